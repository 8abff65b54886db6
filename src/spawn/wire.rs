//! What core and the shim say to each other over the control socket. Both ends are the same binary, so there is
//! no version; a shim of another build fails on the first line.
//!
//! Core: one line of JSON (the [`Description`]), then exactly `stdin` raw bytes, then single command bytes.
//! Shim: lines of JSON ([`Report`]). A socket that closes on core's side means: end everything.
//!
//! The shim hands its second stage the agent's standard input as a descriptor and one line of JSON ([`Task`]); the
//! second stage answers with one line ([`Tested`]), a second one when the program could not be executed, and the
//! close of the socket when it was.

use std::ffi::OsString;

use crate::guardrails::{HookTrial, KernelRules, Receipt};

/// Longest first line, in bytes: arguments and environment of the agent (the kernel's own limit is 2 MiB).
pub(super) const MAX_DESCRIPTION: usize = 4 * 1024 * 1024;
/// Ask the agent to end (SIGTERM).
pub(super) const TERMINATE: u8 = b't';
/// End the whole tree now.
pub(super) const KILL: u8 = b'k';

/// What the shim starts.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: OsString,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// How many bytes of standard input follow the line.
    pub(super) stdin: u64,
    pub(super) task: Task,
}

/// What holds it, and is tried before it starts.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) kernel: KernelRules,
    pub(super) trial: Option<HookTrial>,
}

/// What came of putting it on and trying it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Tested {
    /// All holds.
    Held(Receipt),
    /// The agent is not started.
    Refused(Refusal),
}

/// Why nothing was started; each with a sentence or the words of one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Refusal {
    /// A limit of the shim's or the program itself: a whole sentence.
    Start(String),
    /// The set demands what this kernel does not have: what.
    Kernel(String),
    /// The rules could not be put in: why.
    Rules(String),
    /// What the rules forbid, and worked.
    Open(String),
    /// The hook did not deny a forbidden call: what it did.
    Hook(String),
}

impl From<String> for Refusal {
    fn from(sentence: String) -> Self {
        Self::Start(sentence)
    }
}

/// What the shim tells.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// The agent runs.
    Started {
        /// Its process id.
        pid: u32,
        /// What was tried before.
        receipt: Receipt,
    },
    /// Nothing was started, and why.
    Refused(Refusal),
    /// The agent and all that it started are gone (but for `left`).
    Ended {
        /// Exit code, when it ended by itself.
        code: Option<i32>,
        /// Signal that ended it.
        signal: Option<i32>,
        /// Processes beside the agent that had to be ended.
        ended: u32,
        /// Processes that were still there when the shim gave up.
        left: u32,
    },
}
