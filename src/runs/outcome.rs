//! How the agent's part of a run ended, and what the run comes to for it. Pure.

use super::live::Cause;
use crate::agents::claude::Finish;
use crate::events::{RunStatus, cut_to};
use crate::failure::Explain;
use crate::spawn::{AgentEnd, AgentExit};

/// The longest reason that is kept, in bytes.
const REASON: usize = 2_000;

/// How the agent's part of a run ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Who asked it to end, if anybody.
    pub(super) cause: Option<Cause>,
    /// What went wrong, as a sentence for people.
    pub(super) failure: Option<String>,
    /// Nothing was started and nothing is lost: the run waits for a person. `failure` says for what.
    pub(super) waits: bool,
    pub(super) cost_micros: Option<u64>,
    pub(super) turns: Option<u64>,
    pub(super) answer: Option<String>,
    /// Processes of the agent that could not be ended: they may still write into the worktree.
    pub(super) left: u32,
}

impl Outcome {
    /// It went wrong.
    pub(super) fn failed(error: &dyn Explain) -> Self {
        Self { failure: Some(sentence_of(error)), ..Self::default() }
    }

    /// What holds the agent could not be put up: under which set, why, and what to do.
    pub(super) fn unguarded(set: &str, error: &dyn Explain, waits: bool) -> Self {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        let failure =
            format!("under the guardrail set `{set}` no agent was started: {}{hint}", sentence_of(error));
        Self { failure: Some(failure), waits, ..Self::default() }
    }

    /// Why the run waits, when it does. A person who asked it to end wants no waiting.
    pub(super) fn waits_for(&self) -> Option<String> {
        let waits = self.waits && self.cause != Some(Cause::Person);
        self.failure.as_deref().filter(|_| waits).map(|reason| cut_to(reason, REASON))
    }

    /// The status that a run with this outcome ends in, and why.
    pub(super) fn verdict(&self) -> (RunStatus, Option<String>) {
        match (&self.failure, self.cause) {
            (_, Some(Cause::Person)) => (RunStatus::Stopped, Some("a person stopped it".into())),
            (Some(reason), _) => (RunStatus::Failed, Some(cut_to(reason, REASON))),
            (None, _) => (RunStatus::Done, None),
        }
    }

    /// What an agent's end and its last word come to.
    pub(super) fn judge(exit: &AgentExit, cause: Option<Cause>, finish: Option<Finish>) -> Self {
        let failure = match &finish {
            Some(finish) if finish.succeeded() && exit.is_success() => None,
            Some(finish) if !finish.succeeded() => {
                let said = finish.text.trim();
                let said = if said.is_empty() { finish.subtype.as_str() } else { said };
                Some(format!("the agent ended with an error: {said}"))
            }
            Some(_) => Some(format!("the agent program {}", sentence(exit))),
            None => Some(format!("the agent program gave no result: it {}", sentence(exit))),
        };
        let finish = finish.unwrap_or_default();
        Self {
            cause,
            failure,
            waits: false,
            cost_micros: finish.cost_usd.and_then(micros),
            turns: Some(finish.turns),
            answer: Some(finish.text).filter(|text| !text.trim().is_empty()),
            left: exit.left,
        }
    }
}

/// An error and its causes as one sentence.
fn sentence_of(error: &dyn Explain) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        sentence = format!("{sentence}: {error}");
        cause = error.source();
    }
    sentence
}

/// Dollars to millionths; `None` for what is no amount.
fn micros(dollars: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked: not negative, and far below 2^53 millionths"
    )]
    (0.0..1e9).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

/// An agent's end in words.
pub(super) fn sentence(exit: &AgentExit) -> String {
    let how = match exit.end {
        AgentEnd::Code(code) => format!("ended with code {code}"),
        AgentEnd::Signal(signal) => format!("was ended by signal {signal}"),
        AgentEnd::ShimKilled => "was killed from inside: its shim is gone".to_owned(),
    };
    let beside = match exit.ended {
        0 => String::new(),
        1 => "; one process that it left was ended".to_owned(),
        count => format!("; {count} processes that it left were ended"),
    };
    let left = match exit.left {
        0 => String::new(),
        count => format!("; {count} could not be ended and may still write"),
    };
    how + &beside + &left
}
