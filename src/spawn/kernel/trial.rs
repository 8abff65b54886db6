//! Puts one forbidden call through the hook as the agent program does: by `sh -c`, with the agent's environment and
//! folder, from inside the domain. Anything but a denial in JSON is a hook that would let everything through.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal};

use crate::guardrails::HookTrial;

/// How long the hook may take. It answers in milliseconds; a cold disk takes longer.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause between two looks at whether it has ended.
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
/// Longest answer that is read.
const MAX_ANSWER: u64 = 64 * 1024;

/// Runs the trial. `prepare` gives the command what it needs beside (environment, folder).
///
/// # Errors
/// In words, when the answer is not a denial.
#[expect(clippy::disallowed_methods, reason = "the shim tries the agent's hook as the agent will call it")]
pub(super) fn run(trial: &HookTrial, prepare: impl FnOnce(&mut Command)) -> Result<(), String> {
    let mut command = Command::new(Path::new("/bin/sh"));
    command.arg("-c").arg(&trial.command).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    prepare(&mut command);
    let mut child = command.spawn().map_err(|error| format!("it did not start: {error}"))?;
    let until = Instant::now() + LIMIT;
    let answer = listen(&mut child, &trial.call, until);
    let ended = answer.is_some() && wait(&mut child, until);
    // Whatever it has left running goes with it.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(|error| format!("its end is unknown: {error}"))?;
    match (answer, status.code()) {
        (Some(answer), Some(0)) if ended && is_denial(&answer) => Ok(()),
        (Some(_), Some(0)) if ended => Err("its answer was no denial".into()),
        (Some(_), Some(code)) if ended => Err(format!("it ended with exit code {code}")),
        (Some(_), None) if ended => Err("it was ended by a signal".into()),
        _ => Err(format!("it gave no answer within {} s", LIMIT.as_secs())),
    }
}

/// Whether it has ended by itself.
fn wait(child: &mut Child, until: Instant) -> bool {
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        let _ = poll(&mut [], Some(&AGAIN));
    }
    false
}

/// The whole output.
fn listen(child: &mut Child, call: &str, until: Instant) -> Option<Vec<u8>> {
    let (mut input, output) = (child.stdin.take()?, child.stdout.take()?);
    let call = call.as_bytes().to_vec();
    // Neither thread outlives this process, which becomes the agent: both ends close with the group.
    std::thread::spawn(move || input.write_all(&call));
    let (told, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_ANSWER).read_to_end(&mut bytes);
        let _ = told.send(read.map(|_| bytes));
    });
    answer.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?.ok()
}

fn is_denial(answer: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(answer) else { return false };
    let Some(specific) = answer.get("hookSpecificOutput") else { return false };
    let says = |key: &str, word: &str| specific.get(key).and_then(serde_json::Value::as_str) == Some(word);
    says("hookEventName", "PreToolUse") && says("permissionDecision", "deny")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(command: &str) -> Result<(), String> {
        let trial = HookTrial { command: command.into(), call: "{}".repeat(200_000) };
        run(&trial, |_| ())
    }

    const DENIAL: &str =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;

    #[test]
    fn only_a_denial_is_one() {
        assert_eq!(tried(&format!("cat > /dev/null; echo '{DENIAL}'")), Ok(()));
        // Also without reading its input, and when something of it stays.
        assert_eq!(tried(&format!("sleep 600 >/dev/null & echo '{DENIAL}'")), Ok(()));
        assert_eq!(tried(&format!("echo '{DENIAL}'")), Ok(()));
        for (command, why) in [
            ("true".to_owned(), "its answer was no denial"),
            (format!("echo '{DENIAL}' | sed s/deny/allow/"), "its answer was no denial"),
            (format!("echo '{DENIAL}' | sed s/PreToolUse/PostToolUse/"), "its answer was no denial"),
            (format!("echo note; echo '{DENIAL}'"), "its answer was no denial"),
            ("exit 2".into(), "it ended with exit code 2"),
            (format!("echo '{DENIAL}'; exit 1"), "it ended with exit code 1"),
            ("/no/such/hook".into(), "it ended with exit code 127"),
            (format!("echo '{DENIAL}'; kill -9 $$"), "it was ended by a signal"),
        ] {
            assert_eq!(tried(&command), Err(why.into()), "{command}");
        }
    }
}
