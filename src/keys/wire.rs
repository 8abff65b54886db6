//! What core and the key service say to each other on the control part. Unknown keys are errors on both sides.

use serde::{Deserialize, Serialize};

use crate::ids::{PassId, RunId, SpawnId};
use crate::keys::credential::Kind;
use crate::keys::slot::SlotName;

/// `POST /control/passes`: asks for a pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// The run that it is for.
    pub run: RunId,
    /// The one start of an agent that it is for.
    pub spawn: SpawnId,
    /// The slot that it opens.
    pub slot: SlotName,
    /// What the rehearsal slot plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
}

/// The answer: the only time that the pass itself is told.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MintAnswer {
    pub(super) id: PassId,
    pub(super) pass: String,
    pub(super) lease_seconds: u64,
}

/// `POST /control/passes/renew`: gives passes another lease.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// Which.
    pub ids: Vec<PassId>,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewed {
    /// These live on.
    pub alive: Vec<PassId>,
    /// These are dead, and stay so.
    pub gone: Vec<PassId>,
}

/// `GET /control/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The name of this start: another one means that all earlier passes are dead.
    pub boot: String,
    /// The version of the program.
    pub version: String,
    /// Its slots.
    pub slots: Vec<SlotStatus>,
    /// How many passes are alive.
    pub passes: usize,
}

/// One slot, as far as core may know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotStatus {
    /// Its name.
    pub slot: SlotName,
    /// Whether a pass for it would be given out.
    pub ready: bool,
    /// What kind of credential is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Where it goes, when it goes anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A refusal of the control part.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    pub(super) error: RefusalBody,
}

/// What it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalBody {
    /// A word to act on.
    pub(super) code: String,
    /// A sentence.
    pub(super) message: String,
}

/// The words of [`RefusalBody::code`].
pub(super) mod code {
    pub(crate) const UNAUTHORIZED: &str = "unauthorized";
    pub(crate) const BAD_REQUEST: &str = "bad-request";
    pub(crate) const NOT_FOUND: &str = "not-found";
    pub(crate) const NO_CREDENTIAL: &str = "no-credential";
    pub(crate) const UNKNOWN_SLOT: &str = "unknown-slot";
    pub(crate) const UNKNOWN_SCENARIO: &str = "unknown-scenario";
    pub(crate) const TOO_MANY_PASSES: &str = "too-many-passes";
    pub(crate) const NOT_READY: &str = "not-ready";
}
