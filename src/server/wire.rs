//! What goes over the API, each as its own struct and converted by hand: the store may change its shape, this
//! may only grow. An unknown key in a body is an error.

pub mod guard;
pub mod money;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::events::{ModelUsage, RunStatus, SpentBudget};
use crate::store;
use guard::{KernelAnswer, PolicyAnswer};
use money::AmountAnswer;

/// An error.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorAnswer {
    /// What went wrong.
    pub error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// A stable word for it.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code that the command line ends with.
    pub exit: u8,
}

/// Whether the service answers. Nothing else is told here.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HealthAnswer {
    /// Always `ok`.
    pub status: String,
}

/// Whether this browser is signed in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionAnswer {
    /// Whether it may read.
    pub signed_in: bool,
}

/// How core is doing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StatusAnswer {
    /// Its version.
    pub version: String,
    /// The number of the newest event: follow from here to see only what is new.
    pub last_event: i64,
    /// Runs that have not ended.
    pub alive_runs: u64,
    /// Open event streams.
    pub streams: u64,
    /// Signed-in browsers.
    pub sessions: u64,
    /// What this machine's kernel can hold of an agent.
    pub kernel: KernelAnswer,
}

/// A sign-in link.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkAnswer {
    /// The link. It works once.
    pub url: String,
    /// How long it works.
    pub expires_in_seconds: u64,
}

/// A run to create.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// A folder in the repository, absolute, as core sees it.
    pub project: String,
    /// What to do, at most 512 KiB.
    pub prompt: String,
    /// A short line for people; made from the prompt when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model; the agent program's own choice when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The guardrail set; the default one when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<String>,
    /// What it may spend: dollars (`5`, `0.25`), tokens (`200000tokens`) or `none`; what the setting `run-budget` says
    /// when it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The models that it may use, as names in which `*` stands for anything, at most 64; every model when none is
    /// given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_models: Vec<String>,
    /// The text of the scenario, for a model such as `rehearsal/./name.yaml`, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
}

/// How a run is taken up again. The whole of it may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeRun {
    /// What it may spend from now on, over all its starts: dollars, tokens or `none`; what it may already when it is
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
}

/// A run in a list: without its prompt and the agent's last words, which can be long.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunLine {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Why, where that is not plain.
    pub reason: Option<String>,
    /// A short line for people.
    pub title: String,
    /// The checkout of its project.
    pub checkout: String,
    /// The branch that its work is on.
    pub branch: String,
    /// When it was asked for (milliseconds since 1970).
    pub created_at: i64,
    /// When it ended.
    pub ended_at: Option<i64>,
    /// The tip of its branch, once there is work on it.
    pub head_commit: Option<String>,
    /// Files changed.
    pub files_changed: Option<u64>,
    /// Lines added.
    pub insertions: Option<u64>,
    /// Lines removed.
    pub deletions: Option<u64>,
    /// What its agents used so far cost by the books of the key service, in millionths of a US dollar. It grows when
    /// an agent ends.
    pub cost_micros: Option<u64>,
    /// The tokens of every kind that they used.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// What it may spend, over all its starts.
    #[serde(default)]
    pub budget: Option<AmountAnswer>,
    /// Who pays for it.
    #[serde(default)]
    pub payer: String,
}

/// A run with all that is known of it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunAnswer {
    /// What a list shows of it.
    #[serde(flatten)]
    pub line: RunLine,
    /// The project's id.
    pub project: String,
    /// What was asked.
    pub prompt: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The guardrail set.
    pub guardrails: String,
    /// Who the commits are by.
    pub author: Author,
    /// The commit that it starts from.
    pub base_commit: String,
    /// Turns of the model.
    pub turns: Option<u64>,
    /// The agent's last words.
    pub answer: Option<String>,
    /// The ref of a backup commit, when there is one.
    pub backup: Option<String>,
    /// Whether its worktree is still there.
    pub worktree_present: bool,
    /// What held its agent at the last start; not there before the first one.
    #[serde(default)]
    pub policy: Option<PolicyAnswer>,
    /// The models that it may use, as names in which `*` stands for anything; every model when there is none.
    #[serde(default)]
    pub only_models: Vec<String>,
    /// What its agents used, per slot and model. It grows when an agent ends.
    #[serde(default)]
    pub usage: Vec<ModelUsage>,
    /// The budgets of which four fifths or more were spent while it was at work.
    #[serde(default)]
    pub warnings: Vec<SpentBudget>,
}

impl RunAnswer {
    /// The tip of its branch, where there is work on it.
    pub fn work(&self) -> Option<&str> {
        self.line.head_commit.as_deref().filter(|head| *head != self.base_commit)
    }
}

/// The command that shows what a backup holds beyond the commit that its run started from.
pub fn backup_diff(base: &str, backup: &str) -> String {
    let base: String = base.chars().take(10).collect();
    format!("git diff {base}..{backup}")
}

/// Who commits are by.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

/// Runs, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunLine>,
}

/// The last frame of a run's event stream.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// How the run ended.
    pub status: RunStatus,
}

impl From<store::Run> for RunLine {
    fn from(run: store::Run) -> Self {
        Self::of(&run)
    }
}

impl RunLine {
    fn of(run: &store::Run) -> Self {
        Self {
            id: run.id.to_string(),
            status: run.status,
            reason: run.reason.clone(),
            title: run.title.clone(),
            checkout: run.checkout.clone(),
            branch: run.branch.clone(),
            created_at: run.created_at.0,
            ended_at: run.ended_at.map(|at| at.0),
            head_commit: run.end.head_commit.clone(),
            files_changed: run.end.files_changed,
            insertions: run.end.insertions,
            deletions: run.end.deletions,
            cost_micros: run.end.cost_micros,
            tokens: run.end.tokens,
            budget: run.budget.map(Into::into),
            payer: run.payer.to_string(),
        }
    }
}

impl From<store::Run> for RunAnswer {
    fn from(run: store::Run) -> Self {
        Self {
            line: RunLine::of(&run),
            project: run.project.to_string(),
            prompt: run.prompt,
            model: run.model,
            guardrails: run.guardrails,
            author: Author { name: run.author_name, email: run.author_email },
            base_commit: run.base_commit,
            turns: run.end.turns,
            answer: run.end.answer,
            backup: run.end.backup,
            worktree_present: run.worktree_present,
            policy: None,
            only_models: run.models,
            usage: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A setting of a running core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingAnswer {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// What it means.
    pub about: String,
}

/// The settings that can be changed while core runs.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SettingList {
    /// All of them.
    pub settings: Vec<SettingAnswer>,
}

/// A setting to change.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSetting {
    /// Its name.
    pub key: String,
    /// Its new value.
    pub value: String,
}
