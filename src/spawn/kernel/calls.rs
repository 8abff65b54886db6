//! System calls that reach other processes of the same user and that Landlock has no rule for: setting the limits of
//! another process (a processor time of one second ends core), and the priority of everything that the user runs; and
//! the kernel's keyrings, where all that a user runs finds the user's keys. What a process does to itself goes on as
//! ever.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// `setpriority` of all processes of a user; `PRIO_USER` of `<sys/resource.h>`.
const OF_A_USER: u64 = 2;
/// `ioprio_set` of all processes of a user; `IOPRIO_WHO_USER` of `<linux/ioprio.h>`.
const DISK_OF_A_USER: u64 = 3;

/// Forbids them for this thread and all that it starts.
pub(super) fn forbid() -> Result<(), String> {
    let filter = filter().map_err(|error| format!("system calls could not be filtered: {error}"))?;
    seccompiler::apply_filter(&filter).map_err(|error| format!("system calls could not be filtered: {error}"))
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let is =
        |argument, operator, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
    let another = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, conditions) in [
        // A process id that is not 0 (itself), and a new limit.
        (libc::SYS_prlimit64, vec![is(0, SeccompCmpOp::Ne, 0)?, another]),
        (libc::SYS_setpriority, vec![is(0, SeccompCmpOp::Eq, OF_A_USER)?]),
        (libc::SYS_ioprio_set, vec![is(0, SeccompCmpOp::Eq, DISK_OF_A_USER)?]),
        // Whatever they are asked.
        (libc::SYS_keyctl, Vec::new()),
        (libc::SYS_add_key, Vec::new()),
        (libc::SYS_request_key, Vec::new()),
    ] {
        let always = conditions.is_empty();
        let when = if always { Vec::new() } else { vec![SeccompRule::new(conditions)?] };
        rules.extend(super::filter::numbers(call).into_iter().map(|number| (number, when.clone())));
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::try_from(std::env::consts::ARCH)?)?
        .try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_made_and_short() {
        let filter = filter().unwrap();
        assert!(!filter.is_empty() && filter.len() < 120, "{}", filter.len());
    }
}
