//! A scenario as it is played: its turns, and what goes wrong in them how many times.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) input: Map<String, Value>,
}

/// What a turn says that it used, in tokens; what it does not say is reckoned from the texts' length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

/// An answer with a status that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) message: String,
    /// In seconds.
    pub(super) retry_after: Option<u64>,
}

/// Where a stream is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// After this many events.
    Events(u64),
    /// After this many bytes.
    Bytes(u64),
}

/// An `error` event in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorEvent {
    /// After how many events.
    pub(super) after: u64,
    /// What it says; its status stands in where no stream was asked for.
    pub(super) failure: Failure,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Fail(Failure),
    Cut(Place),
    Error(ErrorEvent),
}

/// What the model does when it is its turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) text: Option<String>,
    pub(super) tools: Vec<Tool>,
    /// Before the first word.
    pub(super) pause: Duration,
    /// Between two pieces.
    pub(super) pace: Duration,
    pub(super) used: Used,
    /// What goes wrong first, and with how many calls each.
    pub(super) faults: Vec<(Fault, u32)>,
}

impl Turn {
    /// Says something, and that is all.
    pub(super) fn says(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }
}

/// A scenario.
#[derive(PartialEq, Eq)]
pub struct Script {
    turns: Vec<Turn>,
    /// For each turn, how many answers stand up to its end: a repeated turn is kept once.
    ends: Vec<usize>,
}

impl Script {
    /// Of turns, each with how many times it comes.
    pub(super) fn new(turns: Vec<(Turn, usize)>) -> Self {
        let mut end = 0usize;
        let (turns, ends) = turns
            .into_iter()
            .map(|(turn, times)| {
                end = end.saturating_add(times);
                (turn, end)
            })
            .unzip();
        Self { turns, ends }
    }
    /// The turn after `spoken` answers, and nothing when there is none any more.
    pub(super) fn turn(&self, spoken: usize) -> Option<&Turn> {
        self.turns.get(self.ends.partition_point(|end| *end <= spoken))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Script({} turns)", self.turns.len())
    }
}

/// How often each answer was asked for with one pass, where something goes wrong in it.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<usize, u32>>);

impl Attempts {
    /// What goes wrong with this call for the answer after `spoken` others.
    pub(super) fn fault(&self, turn: &Turn, spoken: usize) -> Option<Fault> {
        if turn.faults.is_empty() {
            return None;
        }
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = attempts.entry(spoken).or_default();
        let mut before = 0u32;
        let fault = turn.faults.iter().find(|(_, calls)| {
            before = before.saturating_add(*calls);
            *made < before
        });
        *made = made.saturating_add(1);
        fault.map(|(fault, _)| fault.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_turn_is_kept_once_and_comes_as_often_as_it_says() {
        let script = Script::new(vec![(Turn::says("a"), 2), (Turn::says("b"), 1)]);
        let texts: Vec<_> = (0..4).map(|n| script.turn(n).and_then(|turn| turn.text.as_deref())).collect();
        assert_eq!(texts, [Some("a"), Some("a"), Some("b"), None]);
        assert_eq!(Script::new(Vec::new()).turn(0), None);
    }

    #[test]
    fn faults_come_one_after_another_for_each_answer_by_itself() {
        let cut = Fault::Cut(Place::Events(1));
        let fail = Fault::Fail(Failure { status: 529, kind: "x", message: String::new(), retry_after: None });
        let turn = Turn { faults: vec![(fail.clone(), 2), (cut.clone(), 1)], ..Turn::says("a") };
        let attempts = Attempts::default();
        let first: Vec<_> = (0..5).map(|_| attempts.fault(&turn, 0)).collect();
        assert_eq!(first, [Some(fail.clone()), Some(fail.clone()), Some(cut), None, None]);
        assert_eq!(attempts.fault(&turn, 1), Some(fail));
    }
}
