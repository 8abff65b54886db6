//! Rules on tools by name, and on the host that a fetch names.

use super::glob;
use super::{Rule, RuleKind};

/// One tool under its names of several versions.
const SAME: [&[&str]; 1] = [&["Agent", "Task"]];

/// Whether a tool rule's name part means this tool. Letters of both cases are one: a tool that differs from a denied
/// one only by that does not exist today, and must not be a way around tomorrow.
pub(super) fn name_fits(pattern: &str, tool: &str) -> bool {
    let fits = |tool: &str| glob::fits(pattern, tool, true);
    // A whole server: `mcp__browser` is all of its tools.
    let server = pattern.starts_with("mcp__")
        && tool.strip_prefix(pattern).is_some_and(|rest| {
            rest.starts_with("__") && !pattern.trim_start_matches("mcp__").contains("__")
        });
    server
        || fits(tool)
        || SAME.iter().any(|names| names.contains(&tool) && names.iter().any(|name| fits(name)))
}

/// Whether the rule denies every use of a tool.
pub(super) fn rule_denies_whole(rule: &Rule, tool: &str) -> bool {
    rule.kind == RuleKind::Tools && !rule.pattern.contains('(') && name_fits(&rule.pattern, tool)
}
