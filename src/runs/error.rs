//! Why a run is not made, not stopped, or not taken up again.

use std::path::PathBuf;

use super::guard::GuardError;
use super::worktree::CreateError;
use crate::amount::Amount;
use crate::events::RunStatus;
use crate::failure::{Exit, Explain};
use crate::git::{GitError, OpenError};
use crate::ids::{PersonId, RunId};
use crate::keys::client::{KeysError, Ready};
use crate::store::StoreError;

/// A run could not be made; nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum CreateRunError {
    /// Nothing to do.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// Too much to do.
    #[error("the prompt has {0} bytes, and at most {max} are taken", max = super::MAX_PROMPT)]
    LongPrompt(usize),
    /// No such set, a broken one, or one that this kernel cannot hold.
    #[error(transparent)]
    Guardrails(GuardError),
    /// Not the name of a model.
    #[error("`{0}` is not the name of a model")]
    Model(String),
    /// A path that means something else to core than to the caller.
    #[error("the project `{}` is not an absolute path", .0.display())]
    Relative(PathBuf),
    /// Not in reach.
    #[error("the project `{}` is not mounted in the box", project.display())]
    NotMounted {
        /// What was asked for.
        project: PathBuf,
        /// What is there.
        mounted: Vec<PathBuf>,
    },
    /// Not a repository that can be worked on.
    #[error(transparent)]
    Repository(OpenError),
    /// Its settings could not be read.
    #[error("the repository's author could not be read")]
    Author(#[source] GitError),
    /// Nobody to commit as.
    #[error("nobody is named as the author of the run's commits")]
    NoPerson,
    /// The key service is out of reach or refuses.
    #[error(transparent)]
    Keys(KeysError),
    /// The payer cannot use the slots that the run needs, or has spent what may be spent: all of it at once.
    #[error("`{payer}` cannot pay for this run: {}", reasons(.ready))]
    CannotPay {
        /// Who would pay.
        payer: PersonId,
        /// What is in the way, never empty.
        ready: Ready,
    },
    /// Not a limit on models.
    #[error("`{0}` is not the name of a model, in which `*` stands for anything")]
    ModelPattern(String),
    /// Too many of them.
    #[error("{0} models are named, and at most {most} can be", most = super::pay::MOST_MODELS)]
    ManyModels(usize),
    /// The text that a rehearsal was to play.
    #[error("the scenario cannot be played: {0}")]
    Scenario(String),
    /// The scenario's text could not be put into the run's folder.
    #[error("the run's scenario could not be kept")]
    Keep(#[source] std::io::Error),
    /// What the run may spend is spent.
    #[error("the budget of run `{run}` is spent: {spent} of {limit}")]
    BudgetSpent {
        /// The run.
        run: RunId,
        /// What its starts have used.
        spent: Amount,
        /// What they may.
        limit: Amount,
    },
    /// The worktree or the branch could not be made.
    #[error(transparent)]
    Worktree(CreateError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Core is going down.
    #[error("core is ending and takes no new run")]
    Ending,
}

impl Explain for CreateRunError {
    fn code(&self) -> &'static str {
        match self {
            Self::EmptyPrompt => "prompt-empty",
            Self::LongPrompt(_) => "prompt-too-long",
            Self::Guardrails(error) => error.code(),
            Self::Model(_) => "model-name",
            Self::Relative(_) => "project-relative",
            Self::NotMounted { .. } => "project-not-mounted",
            Self::Repository(error) => error.code(),
            Self::Author(error) => error.code(),
            Self::NoPerson => "no-author",
            Self::Keys(error) => error.code(),
            Self::CannotPay { ready, .. } if ready.missing.is_empty() => "budget-spent",
            Self::CannotPay { .. } => "no-credential",
            Self::ModelPattern(_) | Self::ManyModels(_) => "model-pattern",
            Self::Scenario(_) => "scenario",
            Self::Keep(_) => "run-folder",
            Self::BudgetSpent { .. } => "budget-spent",
            Self::Worktree(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Ending => "ending",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::EmptyPrompt => Some("say what to do: `--prompt`, `--file`, or standard input".into()),
            Self::LongPrompt(_) => Some("put long text into a file of the project and name it".into()),
            Self::Guardrails(error) => error.hint(),
            Self::Model(_) => {
                Some("give a model's name, a slot and a model (`openrouter/MODEL`), or `rehearsal`".into())
            }
            Self::Relative(_) => Some("give the project's absolute path".into()),
            Self::NotMounted { project, mounted } => {
                let list = mounted.iter().map(|path| format!("`{}`", path.display()));
                let list = list.collect::<Vec<_>>().join(", ");
                let have =
                    if list.is_empty() { "nothing is mounted".into() } else { format!("mounted: {list}") };
                Some(format!("`worca container up --project {}` mounts it; {have}", project.display()))
            }
            Self::Repository(error) => error.hint(),
            Self::Author(error) => error.hint(),
            Self::NoPerson => Some(
                "set `git config user.name` and `user.email` in the repository, or WORCA_GIT_NAME and \
                 WORCA_GIT_EMAIL in the box's `.env`"
                    .into(),
            ),
            Self::Keys(error) => error.hint(),
            Self::CannotPay { ready, .. } if ready.missing.is_empty() => {
                Some("`worca budgets list` shows all; `worca budgets set` raises one".into())
            }
            Self::CannotPay { .. } => Some(
                "`worca container login` saves a key, and `worca keys put SLOT` beside a service of its \
                 own; `--model rehearsal` needs none"
                    .into(),
            ),
            Self::BudgetSpent { run, .. } => {
                Some(format!("`worca resume {run} --budget AMOUNT` gives it a larger one"))
            }
            Self::ModelPattern(_) => {
                Some("name a model, or several with `*`, such as `--only-model 'claude-*'`".into())
            }
            Self::ManyModels(_) => Some("a `*` in a name stands for many models".into()),
            Self::Scenario(_) => Some(
                "`--model rehearsal/NAME` plays a built-in one, `rehearsal/./FILE.yaml` your own; docs/rehearsal.md has the form"
                    .into(),
            ),
            Self::Keep(_) | Self::Ending => None,
            Self::Worktree(error) => error.hint(),
            Self::Store(error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::EmptyPrompt
            | Self::LongPrompt(_)
            | Self::Model(_)
            | Self::ModelPattern(_)
            | Self::ManyModels(_)
            | Self::Scenario(_)
            | Self::Relative(_) => Exit::Usage,
            Self::Guardrails(error) => error.exit(),
            Self::NotMounted { .. } | Self::NoPerson | Self::CannotPay { .. } | Self::BudgetSpent { .. } => {
                Exit::Refused
            }
            Self::Repository(error) => error.exit(),
            Self::Author(error) => error.exit(),
            Self::Keys(error) => error.exit(),
            Self::Worktree(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Keep(_) | Self::Ending => Exit::Failed,
        }
    }
}

/// Everything that is in the way, one after the other.
fn reasons(ready: &Ready) -> String {
    let missing = ready.missing.iter().map(|missing| missing.why.clone());
    let spent = ready.spent.iter().map(|reached| {
        let spent = Amount::of(reached.limit.unit(), reached.spent);
        format!("{} is spent: {spent} of {}", reached.cap, reached.limit)
    });
    missing.chain(spent).collect::<Vec<_>>().join("; ")
}

/// A run could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopRunError {
    /// No such run.
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    /// It is over.
    #[error("run `{0}` has ended already")]
    Ended(RunId),
    /// Its agent is over.
    #[error("run `{0}` cannot be stopped any more: its agent has ended, and its work is being committed")]
    Finishing(RunId),
    /// Between two states: being made, or being taken up.
    #[error("run `{0}` is just being started or ended")]
    Moving(RunId),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for StopRunError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "run-unknown",
            Self::Ended(_) => "run-ended",
            Self::Finishing(_) => "run-finishing",
            Self::Moving(_) => "run-moving",
            Self::Store(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`worca runs` lists them".into()),
            Self::Ended(id) => Some(format!("`worca show {id}` says how")),
            Self::Finishing(id) | Self::Moving(id) => {
                Some(format!("`worca show {id}` shows where it stands"))
            }
            Self::Store(error) => error.hint(),
        }
    }
}

/// A run could not be taken up again; it stands where it stood.
#[derive(Debug, thiserror::Error)]
pub enum ResumeRunError {
    /// No such run.
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    /// It is at work.
    #[error("run `{0}` is at work already")]
    Alive(RunId),
    /// It is over for good.
    #[error("run `{run}` is {status} and does not go on")]
    Ended {
        /// The run.
        run: RunId,
        /// How it ended.
        status: RunStatus,
    },
    /// Its repository is out of reach.
    #[error("the repository of run `{run}` is not there: `{}`", project.display())]
    NoProject {
        /// The run.
        run: RunId,
        /// Its checkout.
        project: PathBuf,
    },
    /// There is nothing to go on with.
    #[error("the worktree of run `{run}` is gone: `{}`", tree.display())]
    NoWorktree {
        /// The run.
        run: RunId,
        /// Where it was.
        tree: PathBuf,
    },
    /// For a reason that would refuse a new run as well.
    #[error(transparent)]
    Refused(CreateRunError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for ResumeRunError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "run-unknown",
            Self::Alive(_) => "run-alive",
            Self::Ended { .. } => "run-ended",
            Self::NoProject { .. } => "project-missing",
            Self::NoWorktree { .. } => "worktree-gone",
            Self::Refused(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`worca runs` lists them".into()),
            Self::Alive(id) => Some(format!("`worca show {id} --events` follows it")),
            Self::Ended { .. } => Some("start a new run with `worca run`".into()),
            Self::NoProject { project, .. } => {
                Some(format!("in a box, `worca container up --project {}` mounts it", project.display()))
            }
            Self::NoWorktree { run, .. } => Some(format!(
                "start a new run; `worca show {run}` names the commit or backup that holds its work"
            )),
            Self::Refused(error) => error.hint(),
            Self::Store(error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Refused(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::NoProject { .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::slot::SlotName;
    use crate::keys::wire::{Missing, Reached};

    #[test]
    fn all_that_keeps_a_person_from_paying_is_named_at_once() {
        let missing = |slot: &str| Missing {
            slot: SlotName::parse(slot).unwrap(),
            why: format!("no key is saved for slot `{slot}`"),
        };
        let spent = Reached {
            cap: "the day's budget of ada".into(),
            spent: 5_100_000,
            limit: Amount::UsdMicros(5_000_000),
        };
        let payer = PersonId::parse("ada").unwrap();
        let ready = Ready { missing: vec![missing("anthropic"), missing("openai")], spent: vec![spent] };
        let error = CreateRunError::CannotPay { payer: payer.clone(), ready: ready.clone() };
        assert_eq!(
            error.to_string(),
            "`ada` cannot pay for this run: no key is saved for slot `anthropic`; no key is saved for slot \
             `openai`; the day's budget of ada is spent: $5.10 of $5.00"
        );
        assert_eq!((error.code(), error.exit()), ("no-credential", Exit::Refused));
        let only_spent = Ready { missing: Vec::new(), ..ready };
        let error = CreateRunError::CannotPay { payer, ready: only_spent };
        assert_eq!((error.code(), error.exit()), ("budget-spent", Exit::Refused));
        assert!(error.hint().unwrap().contains("worca budgets set"));
    }
}
