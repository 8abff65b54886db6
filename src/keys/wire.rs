//! What core and the key service say to each other on the control part. Unknown keys are errors on both sides.
//! Money is millionths of a US dollar, times are milliseconds since 1970 (UTC).

use serde::{Deserialize, Serialize};

pub use crate::amount::Amount;
use crate::ids::{PassId, PersonId, RunId, SpawnId, StepName};
use crate::keys::credential::Kind;
use crate::keys::slot::SlotName;

/// `POST /control/passes`: asks for a pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// The run that it is for.
    pub run: RunId,
    /// The run's step.
    pub step: StepName,
    /// The one start of an agent that it is for.
    pub spawn: SpawnId,
    /// Who pays.
    pub person: PersonId,
    /// The slot that it opens.
    pub slot: SlotName,
    /// The models that it opens, as names in which `*` stands for anything; every model when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The most that the run may spend, over all its passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Amount>,
    /// What the rehearsal slot plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
}

/// What the scripted model plays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// One of the built-in ones.
    Named(String),
    /// The text of a scenario file.
    Text(String),
}

/// The answer: the only time that the pass itself is told.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MintAnswer {
    pub(super) id: PassId,
    pub(super) pass: String,
    pub(super) lease_seconds: u64,
}

/// `POST /control/ready`: asks whether a person could use all of these slots, and what a run may still spend.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyRequest {
    /// Who would pay.
    pub person: PersonId,
    /// The slots that a run needs.
    pub slots: Vec<SlotName>,
}

/// The answer: empty when nothing is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Every slot that cannot be used, in the order that was asked.
    pub missing: Vec<Missing>,
    /// Every cap that is reached already.
    pub spent: Vec<Reached>,
}

/// A slot that a person cannot use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The slot.
    pub slot: SlotName,
    /// Why, as a sentence without a dot.
    pub why: String,
}

/// A cap and what is spent of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reached {
    /// Which cap, in words (`the day's budget of ada`).
    pub cap: String,
    /// What is spent, in the unit of the limit.
    pub spent: u64,
    /// The limit.
    pub limit: Amount,
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
    /// Caps of which four fifths are spent, told once per cap and pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// A cap is nearly reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// The pass whose calls count towards it.
    pub pass: PassId,
    /// The cap.
    pub reached: Reached,
}

/// The answer to `DELETE /control/passes/{id}`: what became of the pass. Asked again, it says the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// What was used with it, per model.
    pub used: Vec<UsageRow>,
    /// Why the service refused its last call, when it did for a reason that ends an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<PassRefusal>,
}

/// Why an agent was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassRefusal {
    /// What kind of refusal.
    pub kind: RefusalKind,
    /// A sentence for people, as the agent got it.
    pub message: String,
}

/// The kinds of refusal that end an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// A cap is reached (402).
    Budget,
    /// The key is missing, or the provider refuses it (403).
    Key,
    /// The pass does not open this model (403).
    Model,
    /// The pass was dead (403).
    Pass,
}

/// What is asked of the books: `GET /control/usage`, as query parameters. All that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// How rows are put together: some of `person`, `run`, `step`, `slot`, `model`, `day`, with commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Of one person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// Calls that began at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Calls that began before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The answer, in the order of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// One row per different value of what was asked `by`; one row of everything when nothing was.
    pub rows: Vec<UsageRow>,
    /// The date of the price table that new calls are counted with.
    pub prices: String,
}

/// Some calls, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageRow {
    /// Who paid, where rows are by person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// The slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotName>,
    /// The model, as the provider names it in its answer, else as the agent asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The day (UTC) on which the calls began, as `2026-01-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// How many calls.
    pub calls: u64,
    /// How many of them failed or were cut.
    pub failed: u64,
    /// Input tokens that no cache was asked for or gave.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that were written into a cache.
    pub cache_write: u64,
    /// Input tokens that were read from a cache.
    pub cache_read: u64,
    /// What it cost by the price table, in millionths of a US dollar. A subscription and a rehearsal cost nothing.
    pub cost_micros: u64,
    /// Calls of models that the price table does not know: their cost is not in `cost_micros`.
    pub unpriced: u64,
    /// Calls that were cut before the provider said how much they used: their output is estimated.
    pub estimated: u64,
}

/// What a cap is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapScope {
    /// What one person spends on one day (UTC).
    PersonDay(PersonId),
    /// What one person spends in one month (UTC).
    PersonMonth(PersonId),
    /// What is spent through one slot in one month (UTC).
    SlotMonth(SlotName),
}

/// A cap that stands until it is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// What it is for.
    pub scope: CapScope,
    /// How much.
    pub limit: Amount,
    /// What is spent of it now, in the unit of the limit. Ignored when a cap is set.
    #[serde(default)]
    pub spent: u64,
}

/// `GET /control/caps`, and the body of `PUT /control/caps`, which sets all that it names; `DELETE /control/caps`
/// takes a list of [`CapScope`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// The caps.
    pub caps: Vec<Cap>,
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
    /// Whether a pass for it would be given out to `local`.
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
