//! Lines for the judges of PowerShell and the command prompt, and what must come of each. Tests alone.

use crate::guardrails::shell::{LineContext, Shell, judge_line};
use crate::guardrails::{Denial, Verdict};

pub(in crate::guardrails::shell) const HOST: u32 = 31337;

/// The denial under no rule but those of every set; `strict`: what cannot be decided is denied.
pub(in crate::guardrails::shell) fn verdict(shell: Shell, line: &str, strict: bool) -> Option<Denial> {
    let context = LineContext { rules: &[], deny_undecided: strict, host: Some(HOST), path: &|_| None };
    match judge_line(shell, line, &context) {
        Verdict::Allow => None,
        Verdict::Deny(denial) => Some(denial),
    }
}

#[track_caller]
pub(in crate::guardrails::shell) fn denied(shell: Shell, lines: &[&str], rule: &str) {
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|line| match verdict(shell, line, false) {
            Some(denial) if denial.rule.to_string() == rule => None,
            Some(denial) => Some(format!("{line}\n    by {}", denial.rule)),
            None => Some(format!("{line}\n    allowed")),
        })
        .collect();
    assert!(wrong.is_empty(), "not denied by {rule}:\n{}", wrong.join("\n"));
}

#[track_caller]
pub(in crate::guardrails::shell) fn allowed(shell: Shell, lines: &[&str], strict: bool) {
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            verdict(shell, line, strict)
                .map(|denial| format!("{line}\n    {}: {}", denial.rule, denial.reason))
        })
        .collect();
    assert!(wrong.is_empty(), "denied:\n{}", wrong.join("\n"));
}
