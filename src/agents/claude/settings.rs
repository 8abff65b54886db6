//! The `--settings` file of one run: what runs unasked, what is denied, and the hook. JSON of Claude Code's own form.

use std::path::Path;

use serde_json::{Value, json};

/// Tools that run without a question, since nobody is there to answer one. What is not named here and would ask
/// (`Monitor`, `CronCreate`, MCP tools, tools of later versions) is refused by the program itself.
const ALLOWED: [&str; 14] = [
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Skill",
    "Task",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Tools that would move the work out of the run's own branch: they make worktrees in the user's repository.
const DENIED: [&str; 2] = ["EnterWorktree", "ExitWorktree"];

/// The hook answers in milliseconds; a slower one counts as consent with this program, so the limit is generous.
const HOOK_SECONDS: u32 = 60;

/// Builds the file. `protected` are folders and files that the agent's file tools may not touch, absolute.
pub(super) fn build(hook: &Path, policy: &Path, protected: &[&Path]) -> Value {
    let mut deny: Vec<String> = DENIED.map(str::to_owned).into();
    for path in protected.iter().map(|path| escaped(path)) {
        // Two slashes: an absolute path. `Edit` covers Write and NotebookEdit, `Read` covers Glob and Grep.
        for tool in ["Read", "Edit"] {
            deny.push(format!("{tool}(/{path})"));
            deny.push(format!("{tool}(/{path}/**)"));
        }
    }
    let command = format!("{} hook pre-tool-use --policy {}", quoted(hook), quoted(policy));
    json!({
        "permissions": { "allow": ALLOWED, "deny": deny },
        "hooks": { "PreToolUse": [{
            "matcher": "*",
            "hooks": [{ "type": "command", "command": command, "timeout": HOOK_SECONDS }],
        }]},
        "includeCoAuthoredBy": false,
    })
}

/// Its letters as a pattern that means just them.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '!' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// One word for a POSIX shell, whatever stands in it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
