//! Why an agent did not start.

use std::path::PathBuf;

use crate::failure::{Exit, Explain};

/// An agent could not be started, or its shim failed.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A folder of the request is not there.
    #[error("the agent's {what} `{}` is not a folder", path.display())]
    Folder {
        /// Which of the folders.
        what: &'static str,
        /// As it was asked for.
        path: PathBuf,
    },
    /// The name of a variable has another form, or names a model credential that no agent may hold.
    #[error("the variable `{name}` may not be given to an agent: {why}")]
    Variable {
        /// The name; never its value.
        name: String,
        /// In words.
        why: &'static str,
    },
    /// The prompt is over [`super::MAX_STDIN`].
    #[error("the prompt has {size} bytes, and at most {} are passed on", super::MAX_STDIN)]
    StdinTooLarge {
        /// In bytes.
        size: usize,
    },
    /// The path of this program is unknown.
    #[error("the path of the running `worca` is unknown")]
    OwnPath(#[source] std::io::Error),
    /// The shim did not start.
    #[error("the shim `{}` did not start", shim.display())]
    Shim {
        /// The binary.
        shim: PathBuf,
        /// From the system.
        #[source]
        source: std::io::Error,
    },
    /// The shim could not set a limit or could not start the program.
    #[error("the shim refused: {0}")]
    Refused(String),
    /// The set demands what this kernel cannot hold.
    #[error("the guardrail set demands kernel rules, and this kernel cannot hold those on {0}")]
    KernelLacks(String),
    /// The kernel's rules could not be put in.
    #[error("the kernel rules could not be put on the agent: {0}")]
    KernelRules(String),
    /// The kernel let through what the rules forbid.
    #[error("the limits do not hold: tried from the agent's place, this worked: {0}")]
    Open(String),
    /// The hook let through a call that the set forbids.
    #[error("the hook did not deny a forbidden call: {0}")]
    HookOpen(String),
    /// The shim ended or was silent before it had started anything.
    #[error("the shim gave no sign of a started agent ({0})")]
    Silent(String),
    /// Not on this system.
    #[error("agents do not run on this system: it has no way to hold a process and all its children")]
    Unsupported,
}

impl Explain for SpawnError {
    fn code(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "agent-folder",
            Self::Variable { .. } => "agent-variable",
            Self::StdinTooLarge { .. } => "prompt-too-large",
            Self::OwnPath(_) | Self::Shim { .. } | Self::Silent(_) => "shim-failed",
            Self::Refused(_) => "shim-refused",
            Self::KernelLacks(_) => "kernel-lacks",
            Self::KernelRules(_) => "kernel-rules",
            Self::Open(_) => "limits-open",
            Self::HookOpen(_) => "hook-open",
            Self::Unsupported => "agents-unsupported",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Variable { .. } => {
                Some("an agent holds a pass, never a key; leave the variable out".into())
            }
            Self::StdinTooLarge { .. } => {
                Some("put the text into a file of the project and name the file".into())
            }
            Self::Refused(_) => Some("see that the agent program is installed and on PATH".into()),
            Self::KernelLacks(_) => Some(
                "`worca doctor` says what this kernel holds; choose a set without `require: kernel`, or a Linux kernel of 6.12 or newer"
                    .into(),
            ),
            Self::KernelRules(_) => Some("`worca doctor` says what this kernel holds".into()),
            Self::Open(_) => Some("nothing was started; see whether the place is a link or mounted twice".into()),
            Self::HookOpen(_) => {
                Some("nothing was started; the program may have been replaced: restart `worca serve`".into())
            }
            Self::Unsupported => Some("use `worca container up`: the box runs Linux".into()),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Variable { .. } | Self::Unsupported | Self::KernelLacks(_) => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}
