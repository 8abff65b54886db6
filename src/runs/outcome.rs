//! How the agent's part of a run ended, and what the run comes to for it. Pure.

use super::live::Cause;
use crate::agents::claude::Finish;
use crate::events::{RunStatus, cut_to};
use crate::failure::Explain;
use crate::ids::RunId;
use crate::keys::client::{Closing, KeysError};
use crate::keys::wire::RefusalKind;
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
    /// Nothing is lost: the run waits for a person. `failure` says for what.
    pub(super) waits: bool,
    /// An agent was at work.
    pub(super) ran: bool,
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

    /// The key service gave no pass. What a person can mend is waited for.
    pub(super) fn no_pass(error: &KeysError) -> Self {
        let waits = matches!(
            error,
            KeysError::NoCredential { .. } | KeysError::Unreachable { .. } | KeysError::Slow { .. }
        );
        Self { waits, ..Self::failed(error) }
    }

    /// What an agent that did not end well came to, by what the key service says of its pass: `None` when it does
    /// not answer. `restarted` says whether it is another one than it was when the agent was started.
    pub(super) fn closed(self, run: &RunId, closing: Option<&Closing>, restarted: bool) -> Self {
        let (true, None, Some(said)) = (self.ran, self.cause, &self.failure) else { return self };
        let resume = format!("`worca resume {run}` goes on");
        let refused = closing.and_then(|closing| closing.refused.as_ref());
        let (failure, waits) = match refused.map(|refused| (refused.kind, bare(&refused.message))) {
            Some((RefusalKind::Budget, why)) => (
                format!("{why}; {resume} once there is more, with `--budget AMOUNT` for the run's own"),
                true,
            ),
            Some((RefusalKind::Key, why)) => (format!("{why}; once there is a key, {resume}"), true),
            _ if restarted => (
                format!(
                    "the key service was started anew while the agent worked, and its pass died with it; {resume}"
                ),
                true,
            ),
            Some((RefusalKind::Model | RefusalKind::Pass, why)) => (why.to_owned(), false),
            None if closing.is_none() => {
                (format!("{said}; the key service does not answer, and once it does {resume}"), true)
            }
            None => return self,
        };
        Self { failure: Some(failure), waits, ..self }
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
            ran: true,
            turns: Some(finish.turns),
            answer: Some(finish.text).filter(|text| !text.trim().is_empty()),
            left: exit.left,
        }
    }
}

/// The key service's sentence without the word by which an agent knows who says it.
fn bare(message: &str) -> &str {
    message.strip_prefix("worca: ").unwrap_or(message)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::wire::PassRefusal;

    fn failed() -> Outcome {
        Outcome { failure: Some("it ended badly".into()), ran: true, ..Outcome::default() }
    }

    fn refused(kind: RefusalKind) -> Closing {
        let refused = PassRefusal { kind, message: "worca: the sentence".into() };
        Closing { refused: Some(refused), ..Closing::default() }
    }

    #[test]
    fn what_the_key_service_refused_decides_and_a_person_may_mend_money_and_keys() {
        let run = RunId::random();
        let after = |kind| {
            let outcome = failed().closed(&run, Some(&refused(kind)), false);
            (outcome.waits_for(), outcome.verdict())
        };
        for kind in [RefusalKind::Budget, RefusalKind::Key] {
            let reason = after(kind).0.unwrap();
            assert!(reason.starts_with("the sentence; ") && reason.contains(&format!("worca resume {run}")));
        }
        for kind in [RefusalKind::Model, RefusalKind::Pass] {
            assert_eq!(after(kind), (None, (RunStatus::Failed, Some("the sentence".into()))));
        }
    }

    #[test]
    fn a_key_service_that_is_gone_or_another_one_leaves_the_run_waiting() {
        let run = RunId::random();
        let gone = failed().closed(&run, None, false).waits_for().unwrap();
        assert!(gone.starts_with("it ended badly; the key service does not answer"), "{gone}");
        for closing in [Closing::default(), refused(RefusalKind::Pass)] {
            let other = failed().closed(&run, Some(&closing), true).waits_for().unwrap();
            assert!(other.contains("was started anew"), "{other}");
        }
        // An ordinary end is none of this.
        let plain = failed().closed(&run, Some(&Closing::default()), false);
        assert_eq!(plain.verdict(), (RunStatus::Failed, Some("it ended badly".into())));
    }

    #[test]
    fn who_ended_well_was_asked_to_end_or_never_worked_is_not_judged_by_its_pass() {
        let run = RunId::random();
        let refused = refused(RefusalKind::Budget);
        let well = Outcome { ran: true, ..Outcome::default() };
        assert_eq!(well.closed(&run, Some(&refused), true).verdict().0, RunStatus::Done);
        let asked = Outcome { cause: Some(Cause::Ending), ..failed() };
        assert_eq!(asked.closed(&run, None, false).waits_for(), None);
        let never = Outcome { ran: false, ..failed() };
        assert_eq!(never.closed(&run, None, true).waits_for(), None);
    }
}
