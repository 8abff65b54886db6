//! What an agent is told about its limits, from the rules themselves and of bounded length.

use super::super::{Filesystem, GuardrailSet, Rule, RuleKind};
use super::Facts;

const TEMPLATE: &str = include_str!("preamble.md");

/// How much of the rules of one kind is spelled out, in letters.
const MOST_SHOWN: usize = 800;

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
    line(RuleKind::Paths, "Denied files, neither read nor edited", "Use made-up values instead.");
    line(RuleKind::Tools, "Denied tools", "Work with what the project holds.");
    if let Some(ports) = &set.confine.tcp {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let beside =
            if ports.is_empty() { String::new() } else { format!(", but for port {}", ports.join(", ")) };
        denied.push_str(&format!("- What you run reaches no network{beside}. What the project needs is here, or a person adds it.\n"));
    }
    if set.deny_undecided {
        denied.push_str(
            "- A command line must show what it runs: no command name from a variable, no script from a pipe.\n",
        );
    }
    let (host, worktree) = (facts.host.to_string(), facts.worktree.to_string_lossy());
    let values = [
        ("{host}", host.as_str()),
        ("{worktree}", &*worktree),
        ("{branch}", &facts.branch),
        ("{places}", places),
        ("{denied}\n", &denied),
    ];
    filled(TEMPLATE, &values)
}

/// The template with each name's value; what a value holds is not looked into again.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    loop {
        let next = values.iter().filter_map(|(name, value)| Some((rest.find(name)?, name, value)));
        let Some((at, name, value)) = next.min_by_key(|(at, _, _)| *at) else { break };
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(before);
        text.push_str(value);
        rest = from.strip_prefix(name).unwrap_or_default();
    }
    text + rest
}

/// The patterns of one kind, cut with a count of the rest; `None` without any.
fn list(rules: &[Rule], kind: RuleKind) -> Option<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut letters = 0;
    let mut left = 0;
    let mut all: Vec<&Rule> = rules.iter().filter(|rule| rule.kind == kind).collect();
    if kind == RuleKind::Commands {
        // Whole programs first: they say the most.
        all.sort_by_key(|rule| rule.pattern.split_whitespace().count());
    }
    for rule in all {
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
