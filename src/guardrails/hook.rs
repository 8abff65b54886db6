//! The PreToolUse hook: one tool call in, nothing or one denial out. Whatever it does not understand is denied:
//! for the agent program a hook that fails in any other way than exit 2 is consent.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::judge::judge;
use super::policy::Policy;
use super::{Denial, RuleId, SetName, Verdict};

/// Largest tool call, in bytes (a Write carries the whole file).
pub const MAX_CALL: u64 = 32 * 1024 * 1024;

/// The one built-in rule that not every set has.
const UNDECIDED: &str = "shell.undecided";

/// Runs the hook on these streams and gives its exit code: 0, or 2 for a call that could not be judged.
/// `policy`: the file that was named; without one that of the box holds.
pub fn pre_tool_use(
    policy: Option<&Path>,
    mut input: impl Read,
    mut output: impl Write,
    mut errors: impl Write,
) -> u8 {
    match decide(policy, &mut input) {
        Ok((Verdict::Allow, _)) => 0,
        Ok((Verdict::Deny(denial), set)) => {
            let answer = json!({ "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": sentence(&denial, &set),
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

/// What the model reads: the rule, the set, the part of the line that it is about, and what to do instead.
pub fn sentence(denial: &Denial, set: &SetName) -> String {
    let whose = match &denial.rule {
        RuleId::Built(name) if *name != UNDECIDED => "in every guardrail set".to_owned(),
        _ => format!("guardrail set `{set}`"),
    };
    let part = denial.part.as_ref().map(|part| format!("`{part}`: ")).unwrap_or_default();
    format!("denied by {} ({whose}): {part}{}", denial.rule, denial.reason)
}

fn decide(policy: Option<&Path>, input: &mut impl Read) -> Result<(Verdict, SetName), String> {
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
    let verdict = judge(&policy, &call, &directory, std::env::home_dir().as_deref())?;
    Ok((verdict, policy.set))
}
