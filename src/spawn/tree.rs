//! The processes below a process, and how to end them all. Linux; reads `/proc`, which shows every process's
//! parent to everybody. Never: a signal by a number alone to a process that somebody else may reap.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One process as it was seen. `start` (clock ticks since boot) tells it from a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    pub(super) state: char,
    pub(super) start: u64,
}

impl Process {
    /// Ended, and only waiting to be reaped.
    pub(super) fn over(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Every process that `/proc` shows now.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(look).collect()
}

/// One process, if it is there.
pub(super) fn look(pid: i32) -> Option<Process> {
    let mut text = Vec::with_capacity(512);
    std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.take(4096).read_to_end(&mut text).ok()?;
    parse(pid, &text)
}

/// `pid (name) state ppid pgrp session … starttime` of proc(5); the name may hold anything, also `)` and blanks.
fn parse(pid: i32, text: &[u8]) -> Option<Process> {
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Process {
        pid,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// Everything below the processes that `top` names, and those themselves.
pub(super) fn with_descendants(all: &[Process], top: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<&Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = all.iter().filter(|process| top(process)).copied().collect();
    let mut known: BTreeSet<i32> = found.iter().map(|process| process.pid).collect();
    let mut at = 0;
    while let Some(pid) = found.get(at).map(|process| process.pid) {
        for child in children.get(&pid).into_iter().flatten() {
            if known.insert(child.pid) {
                found.push(**child);
            }
        }
        at += 1;
    }
    found
}

/// Everything below one process, read from the kernel's own lists of children: cheap, since it looks at nothing
/// else, but a list is not exact while its processes come and go. `None` where the kernel has no such lists.
pub(super) fn below_at_a_glance(top: i32) -> Option<Vec<Process>> {
    let mut found: Vec<Process> = Vec::new();
    let mut known = BTreeSet::from([top]);
    let mut ahead = vec![top];
    while let Some(pid) = ahead.pop() {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let text = match std::fs::read_to_string(task.path().join("children")) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && pid == top => return None,
                other => other.unwrap_or_default(),
            };
            for child in text.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
                if known.insert(child) {
                    found.extend(look(child));
                    ahead.push(child);
                }
            }
        }
    }
    Some(found)
}

/// The direct children of this thread's process, as one cheap read; `None` where the kernel has no such file.
pub(super) fn own_children() -> Option<Vec<i32>> {
    let text = std::fs::read_to_string("/proc/thread-self/children").ok()?;
    Some(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Rounds of stopping before the kill. A tree that forks faster than it is stopped meets the next call.
const ROUNDS: usize = 20;

/// Stops everything that `find` shows until it shows nothing new, then kills all of it: a process that would
/// start another one on its child's death is not running any more by then. Adds what it killed to `killed`.
pub(super) fn stop_and_kill(find: impl Fn() -> Vec<Process>, killed: &mut BTreeSet<(i32, u64)>) {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<Process> =
            find().into_iter().filter(|one| !one.over() && stopped.insert((one.pid, one.start))).collect();
        if fresh.is_empty() {
            break;
        }
        for one in &fresh {
            signal(one, Signal::STOP);
        }
    }
    for one in find().iter().filter(|one| !one.over()) {
        if signal(one, Signal::KILL) {
            killed.insert((one.pid, one.start));
        }
    }
}

/// Sends it to the very process that was seen: the descriptor pins it, and the second look proves that the number
/// was not reused before.
fn signal(seen: &Process, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(seen.pid) else { return false };
    let Ok(pinned) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    look(seen.pid).is_some_and(|now| now.start == seen.start) && pidfd_send_signal(pinned, signal).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_move_the_fields() {
        let line = b"42 (a) R 1 (x) S 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9\n";
        let process = parse(42, line).unwrap();
        assert_eq!((process.state, process.parent, process.session, process.start), ('S', 7, 9, 4711));
        for odd in [&b""[..], b"42 (x", b"42 (x) S", b")", b"42 (x) \xff\xfe 1 2 3"] {
            assert_eq!(parse(42, odd), None);
        }
    }

    #[test]
    fn descendants_are_found_through_every_generation_and_a_circle_ends() {
        let one = |pid, parent| Process { pid, parent, session: 0, state: 'S', start: 0 };
        let all = [one(2, 1), one(3, 2), one(4, 3), one(5, 1), one(8, 9), one(9, 8)];
        let found = |top| {
            with_descendants(&all, |process| process.pid == top).iter().map(|p| p.pid).collect::<Vec<_>>()
        };
        assert_eq!(found(2), [2, 3, 4]);
        assert_eq!(found(8), [8, 9]);
    }
}
