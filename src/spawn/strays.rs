//! What is left of an agent whose shim was killed: it falls to core, and core ends it. Linux.
//!
//! A stray is a child of core in a session that is not core's and that is not a living shim: every agent is below
//! a session of its own, and no process can enter a session of others. So core's own helpers (git) are never
//! taken for one, as long as core starts nothing that opens a session and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

use super::tree;

/// Living shims by number; the descriptor keeps the number from being another's.
static SHIMS: Mutex<BTreeMap<i32, OwnedFd>> = Mutex::new(BTreeMap::new());
static ADOPTED: AtomicBool = AtomicBool::new(false);

/// A sweep ends after this even when something is left (a process that hangs in the kernel).
const LIMIT: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(5);
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 4_000_000 };

/// Makes this process the parent of what loses its shim. Call it once when core starts to serve; without it
/// [`sweep`] does nothing.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTED.store(true, Ordering::SeqCst);
    Ok(())
}

/// Starts a shim so that no sweep can come between its start and its entry here.
pub(super) fn starting<T>(start: impl FnOnce() -> std::io::Result<(T, Option<u32>)>) -> std::io::Result<T> {
    let mut shims = SHIMS.lock().unwrap_or_else(PoisonError::into_inner);
    let (started, number) = start()?;
    let number = number.and_then(|number| i32::try_from(number).ok());
    if let Some(pid) = number.and_then(Pid::from_raw) {
        // The child is ours and not reaped, so the number is its own.
        shims.insert(pid.as_raw_nonzero().get(), rustix::process::pidfd_open(pid, PidfdFlags::empty())?);
    }
    Ok(started)
}

/// Ends every stray and reaps it; gives how many were ended. Blocks for milliseconds, at most ten seconds.
pub fn sweep() -> usize {
    if !ADOPTED.load(Ordering::SeqCst) {
        return 0;
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // From /proc, where a session whose leader is of an outer PID namespace is 0: that is no `Pid`.
    let Some(session) = tree::look(own).map(|seen| seen.session) else { return 0 };
    let mut killed = BTreeSet::new();
    let since = Instant::now();
    while since.elapsed() < LIMIT {
        let mut shims = SHIMS.lock().unwrap_or_else(PoisonError::into_inner);
        shims.retain(|_, pinned| lives(pinned));
        let stray = |one: &tree::Process| {
            one.parent == own && one.session != session && !shims.contains_key(&one.pid)
        };
        let roots: Vec<tree::Process> = tree::all().into_iter().filter(stray).collect();
        if roots.is_empty() {
            break;
        }
        for pid in roots.iter().filter(|root| root.over()).filter_map(|root| Pid::from_raw(root.pid)) {
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        if roots.iter().any(|root| !root.over()) {
            tree::stop_and_kill(|| tree::with_descendants(&tree::all(), stray), &mut killed);
        }
        drop(shims);
        let _ = poll(&mut [], Some(&AGAIN));
    }
    killed.len()
}

/// Sweeps every few seconds, for what no agent's end tells of (an agent that was dropped after its shim was
/// killed). Belongs into core's task group; never returns.
pub async fn keep_sweeping() {
    loop {
        tokio::time::sleep(PERIOD).await;
        // A sweep that panicked says nothing about the next one.
        let _ = tokio::task::spawn_blocking(sweep).await;
    }
}

/// Whether a shim stands still. Nobody but its own agent (or the machine's owner) can have stopped it.
pub(super) fn is_stopped(shim: u32) -> bool {
    i32::try_from(shim).ok().and_then(tree::look).is_some_and(|seen| matches!(seen.state, 'T' | 't'))
}

fn lives(pinned: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pinned, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready == 0)
}
