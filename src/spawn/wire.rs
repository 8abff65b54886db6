//! What core and the shim say to each other over the control socket. Both ends are the same binary, so there is
//! no version; a shim of another build fails on the first line.
//!
//! Core: one line of JSON (the [`Description`]), then exactly `stdin` raw bytes, then single command bytes.
//! Shim: lines of JSON ([`Report`]). A socket that closes on core's side means: end everything.

use std::ffi::OsString;

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
}

/// What the shim tells.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Report {
    /// The agent has this process id.
    Started(u32),
    /// Nothing was started, and why.
    Refused(String),
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
