//! Cases by their id, each with its whole kind, and the check against real bash.

mod bypass;
mod found;
mod harmless;
mod host;
mod hostile;
#[cfg(target_os = "linux")]
mod real;

use super::super::{Denial, Rule, RuleId, RuleKind, SetName, Verdict};
use super::{LineContext, Shell, judge_line};

/// The process id of core in these tests.
const HOST: u32 = 4711;

fn rules(patterns: &[&str]) -> Vec<Rule> {
    let set = SetName::parse("normal").unwrap();
    patterns
        .iter()
        .map(|pattern| Rule { set: set.clone(), kind: RuleKind::Commands, pattern: (*pattern).to_owned() })
        .collect()
}

/// Paths that a file rule closes in these tests.
fn closed(path: &str) -> Option<Denial> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let set = SetName::parse("normal").unwrap();
    let by_rule = name.starts_with(".env") || name == "id_rsa" || path.starts_with("~/.ssh");
    let rule = if path.starts_with("/run/secrets") {
        RuleId::Built("worca.own-state")
    } else if by_rule {
        RuleId::Set(Rule { set, kind: RuleKind::Paths, pattern: "**/.env*".into() })
    } else {
        return None;
    };
    Some(Denial { rule, part: None, reason: "closed".into() })
}

const NORMAL: [&str; 12] = [
    "git push",
    "git clean",
    "git reset --hard",
    "npm publish",
    "yarn publish",
    "pnpm publish",
    "cargo publish",
    "twine upload",
    "gem push",
    "gh release create",
    "gh pr merge",
    "rm -rf /",
];

fn judged(patterns: &[&str], undecided: bool, line: &str) -> Verdict {
    let rules = rules(patterns);
    let context = LineContext { rules: &rules, deny_undecided: undecided, host: Some(HOST), path: &closed };
    judge_line(Shell::Bash, line, &context)
}

/// The denial of a line under rules like those of Normal.
#[track_caller]
fn denied(line: &str) -> Denial {
    match judged(&NORMAL, false, line) {
        Verdict::Deny(denial) => denial,
        Verdict::Allow => panic!("allowed: {line}"),
    }
}

#[track_caller]
fn allowed(line: &str) {
    if let Verdict::Deny(denial) = judged(&NORMAL, false, line) {
        panic!("denied: {line}\n{denial:?}");
    }
}

/// Denied by this rule, also with no rule of a set at all.
#[track_caller]
fn denied_everywhere(line: &str, rule: &str) {
    for patterns in [&[][..], &NORMAL] {
        match judged(patterns, false, line) {
            Verdict::Deny(denial) => assert_eq!(denial.rule.to_string(), rule, "{line}: {}", denial.reason),
            Verdict::Allow => panic!("allowed: {line}"),
        }
    }
}

/// Denied by this rule of the set.
#[track_caller]
fn denied_by(line: &str, pattern: &str) {
    let denial = denied(line);
    assert_eq!(denial.rule.to_string(), format!("normal.commands[{pattern}]"), "{line}: {}", denial.reason);
}
