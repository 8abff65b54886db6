//! The one way to start an agent. What is started gets a small environment, folders of its own and a shim
//! above it, and nothing of it outlives its end.
//!
//! Never: an agent without the shim; a prompt, a pass or any other given value in an argv; a variable of core
//! in an agent's environment that is not on the keep list; a wait without a limit.
//!
//! What holds an agent's tree (Linux). The shim is the tree's session leader and subreaper: a process that leaves
//! its session, is daemonised or loses its parent is still the shim's. When the agent ends, when core asks, or
//! when core is gone (the control socket closes), the shim stops and kills all of them until it has no child left.
//! If a shim is killed or stopped, its agent goes with it (parent-death signal) and the rest falls to core, which
//! [`adopt_strays`] made a subreaper too and which ends them ([`sweep_strays`]).
//!
//! What holds what an agent does (Linux; docs/decisions/0011). The process that becomes it puts itself under the
//! request's [`KernelRules`], tries what they forbid and the hook from inside, and is executed only when all of it is
//! held; the [`Receipt`](crate::guardrails::Receipt) tells. Nothing of an agent reaches core, a shim or another agent
//! with a signal or a trace, whatever way it takes (`tests/process_confine`).
//! Not held here: where the kernel has no rules for signals (Linux before 6.12), an agent of the same user that kills
//! core *and then* its own shim leaves its other processes to the init of the machine. In the box core's end is the
//! container's end.

#![cfg_attr(
    not(unix),
    allow(dead_code, reason = "agents are refused there; what would start them still compiles")
)]

mod agent;
mod environment;
mod error;
mod harden;
#[cfg(unix)]
mod kernel;
mod lines;
#[cfg(unix)]
mod shim;
#[cfg(target_os = "linux")]
mod strays;
#[cfg(target_os = "linux")]
mod tree;
mod wire;

pub use agent::{Agent, AgentEnd, AgentExit, Stopper, start};
pub use environment::{HOST_PID, KEPT, kept};
pub use error::SpawnError;
pub use harden::harden_self;
#[cfg(unix)]
pub use kernel::{kernel_support, try_hook};
pub use lines::{Line, MAX_LINE};
#[cfg(unix)]
pub use shim::main as shim_main;
#[cfg(target_os = "linux")]
pub use strays::{adopt as adopt_strays, keep_sweeping, sweep as sweep_strays};

use std::ffi::OsString;
use std::path::PathBuf;

use crate::guardrails::{HookTrial, KernelRules};

/// The largest standard input that an agent is given, in bytes.
pub const MAX_STDIN: usize = 32 * 1024 * 1024;

/// Everything about one start of an agent.
pub struct SpawnRequest {
    /// The `worca` binary whose `shim` role holds the agent. `None`: this program itself.
    pub shim: Option<PathBuf>,
    /// The agent program, as an absolute path or a name that is looked for in the kept `PATH`.
    pub program: OsString,
    /// Its arguments. Every process of the machine can read them: no prompt and no secret belongs here.
    pub arguments: Vec<OsString>,
    /// The working folder. It must exist.
    pub directory: PathBuf,
    /// `HOME` of the agent, for this run alone. It must exist.
    pub home: PathBuf,
    /// `TMPDIR` of the agent, for this run alone. It must exist.
    pub temporary: PathBuf,
    /// What is added to the environment; it wins over what is kept. Secrets may stand here: they go to the
    /// agent alone, over a socket.
    pub environment: Vec<(String, OsString)>,
    /// Further names of core's environment that the agent keeps where core has them, beside [`KEPT`].
    pub keep: Vec<String>,
    /// What the agent reads from standard input (the prompt), at most [`MAX_STDIN`] bytes.
    pub stdin: Vec<u8>,
    /// What the kernel holds for it and all that it starts, and what is tried before it starts.
    pub kernel: KernelRules,
    /// The forbidden call that its hook must deny before it starts. `None`: it has no hook.
    pub trial: Option<HookTrial>,
}

/// What the running kernel can hold: nothing, where agents are not started at all.
#[cfg(not(unix))]
pub fn kernel_support() -> crate::guardrails::KernelSupport {
    crate::guardrails::KernelSupport { abi: 0, files: false, tcp: false, signals: false }
}

/// There is no agent here that would call a hook.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn try_hook(_trial: &HookTrial, _folder: &std::path::Path) -> Result<(), SpawnError> {
    Err(SpawnError::Unsupported)
}

/// Where strays are not adopted: other systems have no subreaper.
///
/// # Errors
/// Never; the signature is that of Linux.
#[cfg(not(target_os = "linux"))]
pub fn adopt_strays() -> std::io::Result<()> {
    Ok(())
}

/// As above: there is nothing to sweep.
#[cfg(not(target_os = "linux"))]
pub fn sweep_strays() -> usize {
    0
}

/// As above; never returns.
#[cfg(not(target_os = "linux"))]
pub async fn keep_sweeping() {
    std::future::pending().await
}

#[cfg(test)]
mod tests;
