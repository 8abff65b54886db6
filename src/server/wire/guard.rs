//! What holds an agent, as the API tells it: the kernel of this machine, the policy of a start, its receipt.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guardrails::{KernelSupport, Library, Outcome, Receipt, SetName};
use crate::runs;
use crate::{spawn, store};

/// What a kernel can hold of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KernelAnswer {
    /// The Landlock ABI that it offers; 0: none.
    pub abi: u32,
    /// Files and folders.
    pub files: bool,
    /// TCP ports.
    pub tcp: bool,
    /// Signals and abstract sockets.
    pub signals: bool,
    /// The guardrail set of a run that names none.
    pub default_set: String,
    /// What of that set the kernel does not hold, each in words.
    pub default_set_loses: Vec<String>,
}

impl KernelAnswer {
    /// That of the machine that core runs on.
    pub fn of_this_machine() -> Self {
        let KernelSupport { abi, files, tcp, signals } = spawn::kernel_support();
        let name = SetName::default();
        // The default set is a tier, which is whole.
        let loses = match Library::embedded().resolve(&name) {
            Ok(set) => runs::lacking(&set, spawn::kernel_support()),
            Err(_) => runs::kernel_lacks(spawn::kernel_support(), true),
        };
        Self {
            abi,
            files,
            tcp,
            signals,
            default_set: name.as_str().to_owned(),
            default_set_loses: loses.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// What held an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyAnswer {
    /// The start that it is about.
    pub spawn: String,
    /// The program and its version.
    pub program: String,
    /// The guardrail set.
    pub set: Option<String>,
    /// SHA-256 of what the set came to for this start, hexadecimal.
    pub digest: Option<String>,
    /// What was tried before the agent started; not there when it was not started.
    pub receipt: Option<ReceiptAnswer>,
}

/// What was tried through the agent's very limits, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptAnswer {
    /// The Landlock ABI of the kernel; 0: none.
    pub kernel_abi: u32,
    /// What of the set the kernel did not hold, each in words.
    pub kernel_lacks: Vec<String>,
    /// Each thing that was tried.
    pub tried: Vec<TriedAnswer>,
    /// Whether the hook denied a forbidden call; not there when it was not asked.
    pub hook: Option<bool>,
}

/// One forbidden thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriedAnswer {
    /// In words: `read`, `write`, `make a file in`, `list`, `signal`, `connect to`.
    pub what: String,
    /// The path, the process, the port.
    pub target: String,
    /// `held`, `open` (the kernel cannot hold it) or `absent` (there was nothing to try it on).
    pub outcome: String,
}

impl From<&Receipt> for ReceiptAnswer {
    fn from(receipt: &Receipt) -> Self {
        let tried: Vec<TriedAnswer> = receipt
            .probes
            .iter()
            .map(|tried| {
                let (what, target) = runs::probe_words(&tried.probe);
                let outcome = match tried.outcome {
                    Outcome::Held => "held",
                    Outcome::Open => "open",
                    Outcome::Absent => "absent",
                };
                TriedAnswer { what: what.to_owned(), target, outcome: outcome.to_owned() }
            })
            .collect();
        let ports = tried.iter().any(|tried| tried.what == "connect to");
        let lacks = runs::kernel_lacks(receipt.kernel, ports);
        Self {
            kernel_abi: receipt.kernel.abi,
            kernel_lacks: lacks.into_iter().map(str::to_owned).collect(),
            tried,
            hook: receipt.hook,
        }
    }
}

impl From<store::Spawn> for PolicyAnswer {
    fn from(spawn: store::Spawn) -> Self {
        let receipt = spawn.receipt.as_deref().and_then(|text| serde_json::from_str::<Receipt>(text).ok());
        Self {
            spawn: spawn.id.to_string(),
            program: spawn.program,
            set: spawn.guardrails,
            digest: spawn.policy_digest,
            receipt: receipt.as_ref().map(ReceiptAnswer::from),
        }
    }
}
