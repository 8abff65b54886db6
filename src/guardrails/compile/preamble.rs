//! What an agent is told about its limits, from the rules themselves and of bounded length.

use super::super::{Filesystem, GuardrailSet, Rule, RuleKind};
use super::Facts;

const TEMPLATE: &str = include_str!("preamble.md");

/// How much of the rules of one kind is spelled out, in letters.
const MOST_SHOWN: usize = 600;

pub(super) fn text(set: &GuardrailSet, rules: &[Rule], facts: &Facts) -> String {
    let places = match set.confine.filesystem {
        Filesystem::Open => "Other projects can be read and not written.",
        Filesystem::ProjectWrite => {
            "Outside the worktree, your home and `$TMPDIR` files can be read and not written."
        }
        Filesystem::Project => {
            "Outside the worktree, your home and `$TMPDIR` nothing can be written, and only programs and the repository's history be read."
        }
    };
    let mut denied = String::new();
    let mut line = |kind: RuleKind, start: &str, end: &str| {
        if let Some(list) = list(rules, kind) {
            denied.push_str(&format!("- {start}: {list}. {end}\n"));
        }
    };
    line(RuleKind::Commands, "Denied commands, however they are called", "Leave that step to a person.");
    line(RuleKind::Paths, "Denied files, neither read nor edited", "Use examples or made-up values instead.");
    line(RuleKind::Tools, "Denied tools", "Work with what the project holds.");
    if let Some(ports) = &set.confine.tcp {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let beside = if ports.is_empty() {
            String::new()
        } else {
            format!(", but for the ports {}", ports.join(", "))
        };
        denied.push_str(&format!("- There is no network for what you run{beside}.\n"));
    }
    if set.deny_undecided {
        denied.push_str(
            "- A command line must show what it runs: no command name from a variable, no script from a pipe.\n",
        );
    }
    TEMPLATE
        .replace("{host}", &facts.host.to_string())
        .replace("{worktree}", &facts.worktree.to_string_lossy())
        .replace("{branch}", &facts.branch)
        .replace("{places}", places)
        .replace("{denied}\n", &denied)
}

/// The patterns of one kind, cut with a count of the rest; `None` without any.
fn list(rules: &[Rule], kind: RuleKind) -> Option<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut letters = 0;
    let mut left = 0;
    for rule in rules.iter().filter(|rule| rule.kind == kind) {
        // A rule of the repository is its author's text: no line of it, and none of its backticks, becomes ours.
        let pattern: String = rule.pattern.chars().filter(|letter| !letter.is_control()).collect();
        let length = pattern.chars().count();
        if letters + length > MOST_SHOWN || pattern.contains('`') {
            left += 1;
            continue;
        }
        letters += length;
        shown.push(format!("`{pattern}`"));
    }
    if shown.is_empty() && left == 0 {
        return None;
    }
    if left > 0 {
        shown.push(format!("and {left} more"));
    }
    Some(shown.join(", "))
}
