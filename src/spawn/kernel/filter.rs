//! The ways round the rule on TCP ports, closed with seccomp. Landlock sees `connect` on a TCP socket; a connection
//! that is opened by a first `send`, or by a protocol that falls back to TCP, passes it by (seen on Linux 6.18).

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// From the kernel's `linux/socket.h`: the first data opens the connection.
const MSG_FASTOPEN: u64 = 0x2000_0000;
/// Families whose stream sockets reach further than this machine, on TCP's ports or beside them: RDS and SMC use TCP
/// below, vsock leads to the machine that this one is a guest of.
const FAMILIES: [u64; 3] = [21, 40, 43];
/// Protocols of connections beside TCP: DCCP, SCTP, MPTCP (which is TCP for who does not speak it).
const PROTOCOLS: [u64; 3] = [33, 132, 262];
/// `SOCK_SEQPACKET`, which is SCTP where no protocol is named; the upper bits of a type are flags.
const SEQPACKET: u64 = 5;
/// Calls of the other ABI of x86-64 have this bit in their number, and some a number of their own.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Puts the calling thread, and all that it starts, under the filters for good.
///
/// # Errors
/// In words, when the kernel takes no filter.
pub(super) fn enter() -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| format!("the kernel took no filter of system calls: {error}");
    let filters = filters().map_err(|error| words(&error))?;
    for filter in &filters {
        apply_filter(filter).map_err(|error| words(&error))?;
    }
    Ok(())
}

fn filters() -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let mut sockets = Vec::new();
    for family in FAMILIES {
        sockets.push(rule(&[(0, !0, family)])?);
    }
    for family in [libc::AF_INET, libc::AF_INET6].map(|family| family as u64) {
        for protocol in PROTOCOLS {
            sockets.push(rule(&[(0, !0, family), (2, !0, protocol)])?);
        }
        sockets.push(rule(&[(0, !0, family), (1, 0xf, SEQPACKET)])?);
    }
    // A program that tries one of these first goes on with TCP at this answer.
    let sockets = filter([(libc::SYS_socket, sockets)], libc::EPROTONOSUPPORT)?;
    let first_send = [
        (libc::SYS_sendto, vec![rule(&[(3, MSG_FASTOPEN, MSG_FASTOPEN)])?]),
        (libc::SYS_sendmsg, vec![rule(&[(2, MSG_FASTOPEN, MSG_FASTOPEN)])?]),
        (libc::SYS_sendmmsg, vec![rule(&[(3, MSG_FASTOPEN, MSG_FASTOPEN)])?]),
        // What is asked for by a ring is no system call.
        (libc::SYS_io_uring_setup, Vec::new()),
    ];
    Ok([sockets, filter(first_send, libc::EPERM)?])
}

/// Arguments by place; each must have this value under this mask.
fn rule(arguments: &[(u8, u64, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = |(at, mask, value): &(u8, u64, u64)| {
        SeccompCondition::new(
            *at,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(mask & 0xffff_ffff),
            *value,
        )
    };
    SeccompRule::new(arguments.iter().map(condition).collect::<Result<_, _>>()?)
}

fn filter<const N: usize>(
    calls: [(libc::c_long, Vec<SeccompRule>); N],
    answer: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, conditions) in calls {
        rules.extend(numbers(call).into_iter().map(|number| (number, conditions.clone())));
    }
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?.try_into()
}

/// All numbers of a call that a process of this architecture can use.
#[cfg(target_arch = "x86_64")]
pub(super) fn numbers(call: i64) -> Vec<i64> {
    let own = match call {
        libc::SYS_sendmsg => Some(518),
        libc::SYS_sendmmsg => Some(538),
        _ => None,
    };
    let other = [Some(call), own].into_iter().flatten().map(|number| number | X32);
    [call].into_iter().chain(other).collect()
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn numbers(call: i64) -> Vec<i64> {
    vec![call]
}
