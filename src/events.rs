//! What can happen in a run, as it is stored, streamed and shown. A kind is added here and never changed;
//! text in an event came from an agent or a tool and is shown as text, nothing else.

mod usage;

use serde::{Deserialize, Serialize};

pub use usage::{ModelUsage, SpentBudget};

use crate::clock::Millis;
use crate::ids::{RunId, SpawnId};

/// The longest text that one event carries; longer text is cut and ends in `…`.
pub const MAX_TEXT: usize = 64 * 1024;

/// Where a run stands. `preparing`, `running` and `finishing` are alive, the others are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The worktree is being made.
    Preparing,
    /// The agent works.
    Running,
    /// The agent has ended; its work is being committed.
    Finishing,
    /// The agent ended well and its work is on the branch.
    Done,
    /// It did not end well; `reason` says why.
    Failed,
    /// A person stopped it.
    Stopped,
    /// Core ended under it; its work is safe.
    Interrupted,
    /// It waits for something that a person must give.
    Parked,
}

impl RunStatus {
    /// The word for it in the store, the API and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Finishing => "finishing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
            Self::Parked => "parked",
        }
    }
    /// The status of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Preparing,
            Self::Running,
            Self::Finishing,
            Self::Done,
            Self::Failed,
            Self::Stopped,
            Self::Interrupted,
            Self::Parked,
        ]
        .into_iter()
        .find(|status| status.as_str() == word)
    }
    /// Whether nothing more will happen by itself.
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Preparing | Self::Running | Self::Finishing)
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The run moved on.
    Status {
        /// Where it stands now.
        status: RunStatus,
        /// Why, as a sentence, where that is not plain.
        reason: Option<String>,
    },
    /// A worktree and a branch were made.
    Worktree {
        /// The branch, short (`worca/<id>/<slug>`).
        branch: String,
        /// The commit that it starts from.
        base: String,
    },
    /// The agent program was started.
    AgentStarted {
        /// This start.
        #[schema(value_type = String)]
        spawn: SpawnId,
        /// The program and its version.
        program: String,
    },
    /// The agent program is ready and says who it is.
    AgentReady {
        /// Its session, for resuming.
        session: String,
        /// The model that it names.
        model: String,
    },
    /// The agent said something.
    AgentText {
        /// What it said.
        text: String,
    },
    /// The agent uses a tool.
    ToolUse {
        /// The agent program's id of this use.
        id: String,
        /// The tool.
        tool: String,
        /// Its input in one line.
        summary: String,
    },
    /// A tool answered.
    ToolResult {
        /// The id of the use.
        id: String,
        /// Whether it failed or was denied.
        is_error: bool,
        /// The answer's beginning.
        text: String,
    },
    /// The model could not be reached and the agent program tries again.
    AgentRetry {
        /// What it says about it.
        text: String,
    },
    /// The agent program ended.
    AgentEnded {
        /// How, as a sentence.
        exit: String,
        /// The last lines of its standard error, when it failed.
        stderr: Option<String>,
    },
    /// Its work was committed.
    Committed {
        /// The tip of the branch.
        commit: String,
        /// Files changed against the base.
        files: u64,
        /// Lines added.
        insertions: u64,
        /// Lines removed.
        deletions: u64,
    },
    /// Something that a person should know.
    Note {
        /// The sentence.
        text: String,
    },
    /// A start's pass is closed, and the key service says what was used with it.
    Usage {
        /// The start.
        #[schema(value_type = String)]
        spawn: SpawnId,
        /// Per slot and model; never empty.
        rows: Vec<ModelUsage>,
    },
    /// Four fifths of a budget are spent.
    BudgetWarning {
        /// Which, and how much of it.
        budget: SpentBudget,
    },
}

impl Event {
    /// The kind, as in its JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Worktree { .. } => "worktree",
            Self::AgentStarted { .. } => "agent_started",
            Self::AgentReady { .. } => "agent_ready",
            Self::AgentText { .. } => "agent_text",
            Self::ToolUse { .. } => "tool_use",
            Self::ToolResult { .. } => "tool_result",
            Self::AgentRetry { .. } => "agent_retry",
            Self::AgentEnded { .. } => "agent_ended",
            Self::Committed { .. } => "committed",
            Self::Note { .. } => "note",
            Self::Usage { .. } => "usage",
            Self::BudgetWarning { .. } => "budget_warning",
        }
    }
}

/// An event with its place in the order of all events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoredEvent {
    /// Its number: grows, never repeats; the id in the event stream.
    pub seq: i64,
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// When it was stored (milliseconds since 1970).
    #[schema(value_type = i64)]
    pub at: Millis,
    /// What happened.
    pub event: Event,
}

/// Cuts a text to [`MAX_TEXT`] bytes at a character's edge.
pub fn cut(text: &str) -> String {
    cut_to(text, MAX_TEXT)
}

/// Cuts a text to `most` bytes at a character's edge and marks the cut with `…`.
pub fn cut_to(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = text.get(..end).unwrap_or_default().to_owned();
    short.push('…');
    short
}
