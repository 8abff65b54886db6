//! The second stage: the process that puts itself under the kernel's rules, tries them and becomes the agent. Nobody
//! else is in the agent's domain, so no rule of it lets the agent reach the shim.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::Signal;

use super::super::kernel;
use super::super::wire::{MAX_DESCRIPTION, Refusal, Task, Tested};
use crate::guardrails::Receipt;

/// From the hand-over to the agent; the hook's own limit lies within.
const START: Duration = Duration::from_secs(25);

/// The shim's side: the agent's standard input as a descriptor, then the task.
pub(super) fn hand_over(mut stage: &UnixStream, task: &Task, stdin: BorrowedFd<'_>) -> Result<(), Refusal> {
    let mut hand = || -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [stdin];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(stage, &[IoSlice::new(b"0")], &mut ancillary, SendFlags::empty())?;
        let mut line = serde_json::to_vec(task)?;
        line.push(b'\n');
        stage.write_all(&line)
    };
    hand().map_err(|error| Refusal::Start(format!("the second stage took no task: {error}")))
}

/// The shim's side: what was tried, once the agent is executed. Ends early when core is gone.
pub(super) fn wait(mut stage: &UnixStream, control: &UnixStream) -> Result<Receipt, Refusal> {
    let until = Instant::now() + START;
    let mut said = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || said.len() > MAX_DESCRIPTION {
            return Err(Refusal::Start(format!("the agent was not ready within {} s", START.as_secs())));
        }
        let mut waits = [PollFd::new(stage, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
        let _ = poll(&mut waits, Timespec::try_from(left).ok().as_ref());
        let [ready, gone] = waits.map(|wait| !wait.revents().is_empty());
        if gone {
            return Err(Refusal::Start("core has given it up".into()));
        }
        if !ready {
            continue;
        }
        let mut chunk = [0u8; 4096];
        match stage.read(&mut chunk) {
            Ok(0) => break,
            Ok(size) => said.extend_from_slice(chunk.get(..size).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Refusal::Start(format!("the second stage is not heard: {error}"))),
        }
    }
    let mut receipt = None;
    for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Tested::Held(held)) => receipt = Some(held),
            Ok(Tested::Refused(why)) => return Err(why),
            Err(_) => return Err(Refusal::Start("the second stage is of another version".into())),
        }
    }
    receipt.ok_or_else(|| Refusal::Start("the second stage ended before the agent started".into()))
}

/// The second stage itself. Returns only when there is no agent.
pub(super) fn become_agent(parent: &OsStr, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    if let Err(why) = die_with_parent(parent) {
        return super::refuse(&why);
    }
    let Ok(channel) = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return super::refuse("the shim is not heard");
    };
    let task = match receive(&channel) {
        Ok(task) => task,
        Err(error) => return super::refuse(&format!("no task from the shim: {error}")),
    };
    let refusal = match kernel::confine_and_try(&task.kernel, task.trial.as_ref(), |_| ()) {
        Ok(receipt) => {
            super::tell(&channel, &Tested::Held(receipt));
            let error = super::new_command(Path::new(program)).args(arguments).exec();
            Refusal::Start(format!("`{}` could not be executed: {error}", Path::new(program).display()))
        }
        Err(why) => why,
    };
    super::tell(&channel, &Tested::Refused(refusal));
    ExitCode::FAILURE
}

/// From here on the shim's death is the agent's. Also when the shim died just before this line.
fn die_with_parent(parent: &OsStr) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("the agent would outlive its shim: {error}"))?;
    let now = rustix::process::getppid().map(|pid| pid.to_string());
    if now.as_deref().map(OsStr::new) == Some(parent) {
        return Ok(());
    }
    Err("the shim is gone".into())
}

/// Takes the agent's standard input, which becomes this process's, and the task.
fn receive(channel: &UnixStream) -> std::io::Result<Task> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8];
    recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let stdin: Option<OwnedFd> = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let stdin = stdin.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    rustix::stdio::dup2_stdin(stdin)?;
    let mut line = Vec::new();
    BufReader::new(channel).take(MAX_DESCRIPTION as u64).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
