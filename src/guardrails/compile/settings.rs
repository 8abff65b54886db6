//! The `--settings` file of one run: what runs unasked, what is denied, and the hook. JSON of Claude Code's own form.
//!
//! Its denies are the second layer, which stands also where the hook does not answer. They are less than the rules:
//! `Bash(git push:*)` does not see into `sh -c 'git push'`. Only lines of a form that the program is known to take
//! are written: one that it does not understand could cost the others.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::{Policy, RuleKind, tools};
use super::{Facts, POLICY_FILE, SETTINGS_FILE};

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

/// Builds the file from the policy that the hook goes by.
pub(super) fn build(hook_command: &str, policy: &Policy, facts: &Facts) -> Value {
    let mut deny: Vec<String> = DENIED.map(str::to_owned).into();
    for path in own_state(policy, facts) {
        // Two slashes: an absolute path. `Edit` covers Write and NotebookEdit, `Read` covers Glob and Grep.
        push_paths(&mut deny, &format!("/{}", escaped(&path)));
    }
    for rule in &policy.rules {
        match rule.kind {
            RuleKind::Commands => deny.extend(command(&rule.pattern)),
            RuleKind::Paths => path_lines(&mut deny, &rule.pattern, &policy.homes),
            RuleKind::Tools => match tools::edited(rule) {
                // The program would look for it below the folder of the settings file.
                Some(path) => {
                    deny.extend(absolute(&path, &policy.homes).iter().map(|path| format!("Edit({path})")));
                }
                None => tool_lines(&mut deny, &rule.pattern),
            },
        }
    }
    let denied = |tool: &&str| policy.rules.iter().any(|rule| tools::denies_whole(rule, tool));
    let allow: Vec<&str> = ALLOWED.into_iter().filter(|tool| !denied(tool)).collect();
    let mut once: Vec<String> = Vec::new();
    for line in deny {
        if !once.contains(&line) {
            once.push(line);
        }
    }
    json!({
        "permissions": { "allow": allow, "deny": once },
        "hooks": { "PreToolUse": [{
            "matcher": "*",
            "hooks": [{ "type": "command", "command": hook_command, "timeout": HOOK_SECONDS }],
        }]},
        "includeCoAuthoredBy": false,
    })
}

/// The hook's command line, for a POSIX shell, which becomes the hook: a second process would be paid on every call.
pub(super) fn hook_command(worca: &Path, policy: &Path) -> String {
    format!("exec {} hook pre-tool-use --policy {}", quoted(worca), quoted(policy))
}

/// Worca's own state. A deny has no exceptions, so only what holds nothing of this run can stand there; the hook has
/// the rest.
fn own_state(policy: &Policy, facts: &Facts) -> Vec<PathBuf> {
    let state = ["worca.db", "worca.db-wal", "core-token", "keys", "container", "containers", "guardrails"];
    let state = state.map(|name| facts.worca_home.join(name));
    let closed =
        policy.closed.iter().filter(|closed| !policy.open.iter().any(|open| open.starts_with(closed)));
    let files = [POLICY_FILE, SETTINGS_FILE].map(|name| facts.folder.join(name));
    closed.cloned().chain(state).chain(files).collect()
}

/// The lines of a path rule. What lies in a folder that fits is denied with it (seen on 2.1.332).
fn path_lines(deny: &mut Vec<String>, pattern: &str, homes: &[PathBuf]) {
    deny.extend(
        absolute(pattern, homes).iter().flat_map(|path| [format!("Read({path})"), format!("Edit({path})")]),
    );
}

/// A pattern of ours in the program's form: `//` begins an absolute path.
fn absolute(pattern: &str, homes: &[PathBuf]) -> Vec<String> {
    if pattern.contains(char::is_control) || pattern.trim().is_empty() {
        return Vec::new();
    }
    match pattern.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            homes.iter().map(|home| format!("/{}{rest}", escaped(home))).collect()
        }
        _ if pattern.starts_with('/') => vec![format!("/{pattern}")],
        _ => {
            let rest = pattern.trim_start_matches("./");
            vec![format!("//**/{}", rest.strip_prefix("**/").unwrap_or(rest))]
        }
    }
}

/// `git push` as `Bash(git push:*)`. `None` for a rule with an option or a wildcard, which a prefix cannot say.
fn command(pattern: &str) -> Option<String> {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    let fits = |word: &&str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+@-".contains(&byte);
        !word.starts_with('-') && word.bytes().all(letter)
    };
    let whole = !words.is_empty() && words.iter().all(fits);
    whole.then(|| format!("Bash({}:*)", words.join(" ")))
}

fn push_paths(deny: &mut Vec<String>, pattern: &str) {
    for tool in ["Read", "Edit"] {
        deny.push(format!("{tool}({pattern})"));
        if !pattern.ends_with("/**") {
            deny.push(format!("{tool}({}/**)", pattern.trim_end_matches('/')));
        }
    }
}

fn tool_lines(deny: &mut Vec<String>, pattern: &str) {
    let name = |text: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && text.bytes().all(letter)
    };
    if let Some((tool, _)) = pattern.split_once('(') {
        if name(tool) && pattern.ends_with(')') && !pattern.contains(char::is_control) {
            deny.push(pattern.to_owned());
        }
        return;
    }
    if name(pattern.strip_suffix("__*").filter(|start| start.starts_with("mcp__")).unwrap_or(pattern)) {
        deny.push(pattern.to_owned());
    }
    let rule = |tool: &&str| tools::name_fits(pattern, tool);
    deny.extend(ALLOWED.into_iter().filter(rule).map(str::to_owned));
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
