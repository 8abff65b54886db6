//! What the kernel holds for one agent and all that it starts: places and their access, TCP ports, signals. Pure
//! data, made by `compile`; `spawn` puts it into the kernel (Landlock) and tries it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The form of [`KernelRules`], which the shim checks.
pub const KERNEL_RULES_VERSION: u32 = 1;

/// What may be done below a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Nothing.
    Closed,
    /// Read, list and execute.
    Read,
    /// All of it.
    Write,
}

/// The kernel rules of one spawn.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRules {
    /// [`KERNEL_RULES_VERSION`].
    pub version: u32,
    /// Absolute places. Of all that hold a path the longest decides; what no place holds is closed. A place that is
    /// not there when the agent starts is left out.
    pub places: BTreeMap<PathBuf, Access>,
    /// The TCP ports that may be connected to; `None`: any. Binding is not restricted.
    pub connect: Option<Vec<u16>>,
    /// Whether the agent starts at all where the kernel cannot hold every one of these rules.
    pub required: bool,
    /// What is tried, before the agent starts, in the very domain that it gets. Each must fail.
    pub probes: Vec<Probe>,
}

/// One forbidden thing that is tried. Trying it does no harm even where it works.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// Open a file for reading.
    Read(PathBuf),
    /// Open a file that is there for writing (nothing is written, nothing cut).
    Write(PathBuf),
    /// Make a file in a folder; it is taken away again.
    Create(PathBuf),
    /// List a folder.
    List(PathBuf),
    /// Signal a process (signal 0, which only asks).
    Signal(u32),
    /// Connect to a TCP port of this machine.
    Connect(u16),
}

/// A forbidden tool call that is put through the hook before the agent starts, as the agent program calls it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookTrial {
    /// The hook's command line, for `sh -c`.
    pub command: String,
    /// The call, JSON. The answer must be a denial in JSON.
    pub call: String,
}

/// What this kernel can hold, by the Landlock ABI that it offers (0: none).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSupport {
    /// The ABI number.
    pub abi: u32,
    /// Places (1, and 3 for truncating files).
    pub files: bool,
    /// TCP ports (4).
    pub tcp: bool,
    /// Signals and abstract sockets (6).
    pub signals: bool,
}

/// What was tried before an agent started, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// What the kernel offers.
    pub kernel: KernelSupport,
    /// Each probe and its outcome, in order.
    pub probes: Vec<Tried>,
    /// Whether the hook, called as the agent program calls it, denied a forbidden call. `None`: not tried.
    pub hook: Option<bool>,
}

/// One probe's outcome.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// What was tried.
    pub probe: Probe,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Refused, as it must be.
    Held,
    /// It worked. An agent is not started then, unless the kernel cannot hold the rule and the set does not demand it.
    Open,
    /// The thing was not there to be tried.
    Absent,
}
