//! The shim's half that Linux makes whole: subreaper, no-new-privileges, death with the parent, and the end of
//! every descendant. Never returns from [`watch`] while a descendant lives, but for [`GIVE_UP`].

use std::collections::BTreeSet;
use std::io::{Read, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};

use super::super::tree;
use super::super::wire::{Description, KILL, Refusal, Report, TERMINATE};
use super::stage;
use crate::guardrails::Receipt;

pub(super) const DESCRIPTORS: &str = "/proc/self/fd";

/// Orphans that ended are reaped at least this often while the agent lives.
const REAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// The pause between two attempts to end what is left.
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 4_000_000 };
/// Looks at the direct children within one attempt: a process that only forks and exits is caught here.
const LOOKS: usize = 200;
/// After this long the shim reports what it could not end (a process that hangs in the kernel).
const GIVE_UP: Duration = Duration::from_secs(60);

/// Everything that must hold before the agent exists.
pub(super) fn confine() -> Result<(), String> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|error| format!("not a subreaper: {error}"))?;
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| format!("no-new-privileges is not set: {error}"))?;
    super::super::harden_self().map_err(|error| format!("the shim stays readable: {error}"))
}

/// Standard input as a file in memory: no writer is needed, and its end is there from the start.
pub(super) fn standard_input(from: &mut impl Read, size: u64) -> Result<OwnedFd, String> {
    let mut file = || -> std::io::Result<OwnedFd> {
        let mut file = std::fs::File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
        super::copy_exactly(from, &mut file, size)?;
        file.rewind()?;
        Ok(file.into())
    };
    file().map_err(|error| format!("the agent's standard input is not whole: {error}"))
}

/// Starts the second stage, hands it what it needs, and waits until it has become the agent.
#[expect(clippy::needless_pass_by_value, reason = "the shim keeps no end of the agent's standard input")]
pub(super) fn begin(
    control: &UnixStream,
    program: &Path,
    description: &Description,
    stdin: OwnedFd,
) -> Result<(u32, Receipt), Refusal> {
    let (own, other) = UnixStream::pair().map_err(|error| format!("no socket: {error}"))?;
    // This very binary, also after its file was replaced by a newer one.
    let mut command = super::new_command(Path::new("/proc/self/exe"));
    command.arg0("worca").args(["shim", "--exec"]).arg(rustix::process::getpid().to_string());
    command.arg("--").arg(program).args(&description.arguments);
    command.env_clear().envs(description.environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(Path::new(&description.directory)).stdin(OwnedFd::from(other));
    // A group of the agent's own: `kill 0`, which many scripts end with, must not reach the shim.
    command.process_group(0);
    let child =
        command.spawn().map_err(|error| format!("`{}` could not be started: {error}", program.display()))?;
    // It holds the second stage's end of the socket, whose close is waited for.
    drop(command);
    let done =
        stage::hand_over(&own, &description.task, stdin.as_fd()).and_then(|()| stage::wait(&own, control));
    done.map(|receipt| (child.id(), receipt)).inspect_err(|_| {
        // Also what the hook may have left.
        Watched::new(child.id()).end_all();
    })
}

pub(super) use stage::become_agent;

/// Waits for the agent's end, for core's word or for core's end; then ends everything.
pub(super) fn watch(control: &UnixStream, agent: u32) -> (Report, ExitCode) {
    let mut watched = Watched::new(agent);
    let pinned = watched.agent.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut commands: &UnixStream = control;
    loop {
        watched.reap();
        if watched.status.is_some() || watched.none {
            break;
        }
        let mut waits = vec![PollFd::new(control, PollFlags::IN)];
        waits.extend(pinned.as_ref().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
        let timeout = if pinned.is_some() { REAP } else { AGAIN };
        let _ = poll(&mut waits, Some(&timeout));
        if waits.first().is_some_and(|wait| wait.revents().is_empty()) {
            continue;
        }
        let mut word = [0u8];
        match commands.read(&mut word) {
            Ok(1..) if word == [TERMINATE] => {
                if let Some(pid) = watched.agent.filter(|_| watched.status.is_none()) {
                    // It is our own child and not yet reaped: the number cannot be another's.
                    let _ = rustix::process::kill_process(pid, Signal::TERM);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(1..) if word != [KILL] => {}
            Ok(_) | Err(_) => break,
        }
    }
    let (ended, left) = watched.end_all();
    let status = watched.status;
    let code = status.and_then(|status| status.exit_status());
    let report =
        Report::Ended { code, signal: status.and_then(|status| status.terminating_signal()), ended, left };
    (report, if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Watched {
    agent: Option<Pid>,
    status: Option<WaitStatus>,
    /// The kernel says that this process has no child at all.
    none: bool,
}

impl Watched {
    fn new(agent: u32) -> Self {
        Self { agent: i32::try_from(agent).ok().and_then(Pid::from_raw), status: None, none: false }
    }

    /// Takes every ended child. Only this thread reaps, so a child's number stays its own between two calls.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == self.agent {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.none = true;
                    return;
                }
            }
        }
    }

    /// Ends every descendant; the condition is the kernel's `ECHILD`: a descendant always has a living ancestor
    /// below the shim or is the shim's own child. Gives how many beside the agent were ended, and are left.
    fn end_all(&mut self) -> (u32, u32) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let below = || {
            let mut found = tree::with_descendants(&tree::all(), |process| process.parent == own);
            found.retain(|process| process.pid != own);
            found
        };
        let mut killed = BTreeSet::new();
        let since = Instant::now();
        let mut first = true;
        loop {
            self.reap();
            if self.none {
                break;
            }
            // The cheap look is enough for nearly every tree; what it misses is still a child, so there is a next.
            if first && tree::below_at_a_glance(own).is_some() {
                tree::stop_and_kill(|| tree::below_at_a_glance(own).unwrap_or_default(), &mut killed);
            } else {
                tree::stop_and_kill(below, &mut killed);
            }
            first = false;
            for _ in 0..LOOKS {
                self.reap();
                let Some(children) =
                    tree::own_children().filter(|children| !self.none && !children.is_empty())
                else {
                    break;
                };
                for pid in children {
                    if let Some(child) = Pid::from_raw(pid) {
                        let _ = rustix::process::kill_process(child, Signal::KILL);
                    }
                }
            }
            if since.elapsed() > GIVE_UP {
                break;
            }
            if !self.none {
                let _ = poll(&mut [], Some(&AGAIN));
            }
        }
        let agent = self.agent.map(|pid| pid.as_raw_nonzero().get());
        let ended = killed.iter().filter(|(pid, _)| Some(*pid) != agent).count();
        let left =
            if self.none { 0 } else { below().iter().filter(|process| !process.over()).count().max(1) };
        (u32::try_from(ended).unwrap_or(u32::MAX), u32::try_from(left).unwrap_or(u32::MAX))
    }
}
