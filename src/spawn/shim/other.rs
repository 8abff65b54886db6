//! The shim where there is no subreaper (macOS, BSD): a session and a process group. A process that leaves the
//! agent's group is not ended here; the box, which is Linux, is where the whole tree is held.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::super::kernel;
use super::super::wire::{Description, Refusal, Report, TERMINATE};
use crate::guardrails::Receipt;

pub(super) const DESCRIPTORS: &str = "/dev/fd";

const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

pub(super) fn confine() -> Result<(), String> {
    Ok(())
}

pub(super) fn standard_input(from: &mut impl Read, size: u64) -> Result<Stdio, String> {
    let mut bytes = Vec::new();
    super::copy_exactly(from, &mut bytes, size)
        .map_err(|error| format!("the agent's standard input is not whole: {error}"))?;
    let (reader, mut writer) = std::io::pipe().map_err(|error| format!("no pipe: {error}"))?;
    // Ends when all is written or the agent has closed its side; the process ends soon after the agent anyway.
    std::thread::spawn(move || writer.write_all(&bytes));
    Ok(reader.into())
}

/// There is no domain here: what is tried shows what nothing holds.
pub(super) fn begin(
    _control: &UnixStream,
    program: &Path,
    description: &Description,
    stdin: Stdio,
) -> Result<(u32, Receipt), Refusal> {
    let settle = |command: &mut Command| {
        command.env_clear().envs(description.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(Path::new(&description.directory));
    };
    let task = &description.task;
    let receipt = kernel::confine_and_try(&task.kernel, task.trial.as_ref(), settle)?;
    let mut command = super::new_command(program);
    command.args(&description.arguments).process_group(0);
    settle(&mut command);
    let child = command
        .stdin(stdin)
        .spawn()
        .map_err(|error| format!("`{}` could not be started: {error}", program.display()))?;
    Ok((child.id(), receipt))
}

pub(super) fn become_agent(_parent: &OsStr, _program: &OsStr, _arguments: &[OsString]) -> ExitCode {
    super::refuse("this system has no second stage")
}

pub(super) fn watch(control: &UnixStream, agent: u32) -> (Report, ExitCode) {
    let Some(pid) = i32::try_from(agent).ok().and_then(Pid::from_raw) else {
        return (Report::Refused("no process id".to_owned().into()), ExitCode::FAILURE);
    };
    let mut commands: &UnixStream = control;
    let mut killed = false;
    loop {
        if let Ok(Some((_, status))) = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let (code, signal) = (status.exit_status(), status.terminating_signal());
            return (Report::Ended { code, signal, ended: 0, left: 0 }, ExitCode::SUCCESS);
        }
        let mut waits = [PollFd::new(control, PollFlags::IN)];
        let _ = poll(if killed { &mut [] } else { &mut waits }, Some(&PAUSE));
        if killed || waits.iter().all(|wait| wait.revents().is_empty()) {
            continue;
        }
        let mut word = [0u8];
        match commands.read(&mut word) {
            Ok(1..) if word == [TERMINATE] => {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
            _ => {
                killed = true;
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            }
        }
    }
}
