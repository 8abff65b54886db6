//! The PreToolUse hook: one tool call in, nothing or one denial out. Whatever it does not understand is denied:
//! for the agent program a hook that fails in any other way than exit 2 is consent.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::paths;
use super::policy::Policy;
use super::{Denial, RuleId, Verdict};

/// Largest tool call, in bytes (a Write carries the whole file).
pub const MAX_CALL: u64 = 32 * 1024 * 1024;

/// The rules that hold in every set.
const OWN_STATE: &str = "worca.own-state";
const ONE_WORKTREE: &str = "worca.one-worktree";
/// Tools that make or change a worktree of the user's repository, where no run's branch would hold the work.
const WORKTREES: [&str; 2] = ["EnterWorktree", "ExitWorktree"];
/// Tools that start a sub-agent, under their names of several versions.
const SUB_AGENTS: [&str; 2] = ["Agent", "Task"];
/// Fields that name one path, in whatever tool.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];
/// Tools that must name a path in a field that we know, or are not understood.
const NAMING: [(&str, &str); 5] = [
    ("Read", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("Write", "file_path"),
    ("NotebookEdit", "notebook_path"),
];
/// Tools that look at everything below a folder.
const SEARCHING: [&str; 3] = ["Grep", "Glob", "LS"];

/// Runs the hook on these streams and gives its exit code: 0, or 2 for a call that could not be judged.
/// `policy`: the file that was named; without one that of the box holds.
pub fn pre_tool_use(
    policy: Option<&Path>,
    mut input: impl Read,
    mut output: impl Write,
    mut errors: impl Write,
) -> u8 {
    match decide(policy, &mut input) {
        Ok(Verdict::Allow) => 0,
        Ok(Verdict::Deny(denial)) => {
            let answer = json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": format!("denied by {} (in every guardrail set): {}", denial.rule, denial.reason),
            }});
            match writeln!(output, "{answer}").and_then(|()| output.flush()) {
                Ok(()) => 0,
                // An answer that did not arrive would be consent.
                Err(_) => 2,
            }
        }
        Err(why) => {
            let _ = writeln!(errors, "worca: this call could not be judged, so it is denied: {why}");
            2
        }
    }
}

fn decide(policy: Option<&Path>, input: &mut impl Read) -> Result<Verdict, String> {
    let mut bytes = Vec::new();
    input
        .take(MAX_CALL + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("its input is not readable: {error}"))?;
    if bytes.len() as u64 > MAX_CALL {
        return Err(format!("it is larger than {MAX_CALL} bytes"));
    }
    let call: Value = serde_json::from_slice(&bytes).map_err(|_| "its input is not JSON".to_owned())?;
    let directory =
        call.get("cwd").and_then(Value::as_str).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = directory.ok_or("it names no working folder")?;
    let policy = match policy {
        Some(file) => Policy::read(file).map_err(|error| error.to_string())?,
        None => Policy::of_the_box(&directory),
    };
    judge(&policy, &call, &directory, std::env::home_dir().as_deref())
}

/// The verdict on one tool call in the form that Claude Code hands to its hooks. `home` is what `~` means.
///
/// # Errors
/// A sentence when the call is not understood: it must not run.
pub fn judge(
    policy: &Policy,
    call: &Value,
    directory: &Path,
    home: Option<&Path>,
) -> Result<Verdict, String> {
    let tool = call.get("tool_name").and_then(Value::as_str).ok_or("it names no tool")?;
    let input = call.get("tool_input").and_then(Value::as_object).ok_or("it has no tool input")?;
    if let Some((_, field)) = NAMING.iter().find(|(name, _)| *name == tool)
        && !input.get(*field).is_some_and(Value::is_string)
    {
        return Err(format!("{tool} without `{field}`"));
    }
    let isolated = SUB_AGENTS.contains(&tool) && input.get("isolation").is_some_and(|value| !value.is_null());
    if isolated || WORKTREES.contains(&tool) {
        let instead = if isolated {
            "start the sub-agent without `isolation`"
        } else {
            "work in the folder you are in"
        };
        let reason = format!("a run has one worktree and one branch; {instead}");
        return Ok(Verdict::Deny(Denial { rule: RuleId::Built(ONE_WORKTREE), part: None, reason }));
    }
    // A command line is not a path: rules on commands come with the sets that have them.
    if tool == "Bash" {
        return Ok(Verdict::Allow);
    }
    let searching = SEARCHING.contains(&tool);
    let mut named: Vec<(String, bool)> = Vec::new();
    for field in PATHS {
        match input.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(path)) => named.push((path.clone(), searching)),
            Some(_) => return Err(format!("{tool} with a `{field}` that is not text")),
        }
    }
    if searching {
        let base = input.get("path").and_then(Value::as_str).unwrap_or(".");
        named.push((base.to_owned(), true));
        // A pattern can lead elsewhere by itself; what stands before its first wildcard is a folder.
        let pattern = if tool == "Glob" { input.get("pattern") } else { input.get("glob") };
        if let Some(pattern) = pattern.and_then(Value::as_str) {
            let wild = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
            let (start, rest) = pattern.split_at_checked(wild).unwrap_or((pattern, ""));
            if rest.split('/').any(|part| part == "..") {
                return Err("a pattern that goes up after a wildcard".into());
            }
            // Half a name before a wildcard says nothing yet: the folder before it does.
            let start =
                if rest.is_empty() { start } else { start.rsplit_once('/').map_or("", |(folder, _)| folder) };
            let start = if pattern.starts_with('/') && start.is_empty() { "/" } else { start };
            let joined = paths::typed(base, directory, home).join(start);
            named.push((joined.to_string_lossy().into_owned(), !rest.is_empty()));
        }
    }
    for (path, below) in named {
        if let Some(closed) = policy.closes(&path, below, directory, home)? {
            return Ok(Verdict::Deny(Denial { rule: RuleId::Built(OWN_STATE), part: None, reason: closed }));
        }
    }
    Ok(Verdict::Allow)
}

impl Policy {
    /// The reason when a path, as typed or where it leads, is closed. `below`: everything under it is touched too.
    fn closes(
        &self,
        path: &str,
        below: bool,
        from: &Path,
        home: Option<&Path>,
    ) -> Result<Option<String>, String> {
        if path.contains('\0') {
            return Err("a path with a zero byte".into());
        }
        let typed = paths::typed(path, from, home);
        // `..` after a link goes up from where the link leads: so the real path is taken from what was typed.
        let raw = if path.starts_with('~') { typed.clone() } else { from.join(path) };
        let real = paths::real(&raw).ok_or("a path of too many links")?;
        let shown: String = path.chars().take(200).collect();
        let instead = match self.open.first() {
            Some(open) => format!("work in `{}` and name paths below it", open.display()),
            None => "work in the project's own folder".into(),
        };
        for place in [&typed, &real] {
            if self.is_closed(place) {
                return Ok(Some(format!("`{shown}` is part of Worca's own state; {instead}")));
            }
            if below && self.holds_closed(place) {
                return Ok(Some(format!(
                    "a search of `{shown}` would read Worca's own state below it; {instead}"
                )));
            }
        }
        Ok(None)
    }

    /// Of all entries that hold the path the longest decides; a tie is closed.
    fn is_closed(&self, path: &Path) -> bool {
        let longest = |entries: &[PathBuf]| {
            let forms = entries.iter().flat_map(|entry| [Some(entry.clone()), paths::real(entry)]).flatten();
            forms.filter(|entry| paths::within(path, entry)).map(|entry| entry.components().count()).max()
        };
        longest(&self.closed).is_some_and(|closed| longest(&self.open).is_none_or(|open| closed >= open))
    }

    fn holds_closed(&self, path: &Path) -> bool {
        let forms = self.closed.iter().flat_map(|entry| [Some(entry.clone()), paths::real(entry)]).flatten();
        forms.filter(|entry| paths::within(entry, path)).any(|entry| self.is_closed(&entry))
    }
}
