//! The runs at work, and the one thing that can be asked of them: to end. What was promised to who asked is kept:
//! once a run takes no wish any more, nobody is told that it will be stopped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::ids::RunId;

/// Why an agent is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A person said so.
    Person,
    /// Core is ending.
    Ending,
}

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It will end for it.
    Heard,
    /// Its agent has ended already; it is being finished.
    TooLate,
    /// It is not at work here.
    Absent,
}

/// The runs at work.
#[derive(Default)]
pub(super) struct Live(Mutex<HashMap<RunId, Place>>);

struct Place {
    ask: watch::Sender<Option<Cause>>,
    closed: bool,
}

impl Live {
    fn places(&self) -> MutexGuard<'_, HashMap<RunId, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a run in; `None` when it is at work already. The wish comes by the receiver.
    pub(super) fn enter(&self, id: &RunId) -> Option<watch::Receiver<Option<Cause>>> {
        match self.places().entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                let (ask, asked) = watch::channel(None);
                free.insert(Place { ask, closed: false });
                Some(asked)
            }
        }
    }

    /// Asks a run to end. The first wish counts.
    pub(super) fn ask(&self, id: &RunId, cause: Cause) -> Asked {
        match self.places().get(id) {
            None => Asked::Absent,
            Some(place) if place.closed => Asked::TooLate,
            Some(place) => {
                place.ask.send_if_modified(|wish| wish.is_none() && wish.replace(cause).is_none());
                Asked::Heard
            }
        }
    }

    /// Asks all runs.
    pub(super) fn ask_all(&self, cause: Cause) {
        for place in self.places().values() {
            place.ask.send_if_modified(|wish| wish.is_none() && wish.replace(cause).is_none());
        }
    }

    /// From now on the run takes no wish. What was wished until now.
    pub(super) fn close(&self, id: &RunId) -> Option<Cause> {
        let mut places = self.places();
        let place = places.get_mut(id)?;
        place.closed = true;
        *place.ask.borrow()
    }

    /// The run is not at work any more.
    pub(super) fn leave(&self, id: &RunId) {
        self.places().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_that_a_run_will_stop_was_heard_and_who_comes_later_is_told_so() {
        let (live, run) = (Live::default(), RunId::random());
        assert_eq!(live.ask(&run, Cause::Person), Asked::Absent);
        let asked = live.enter(&run).unwrap();
        assert!(live.enter(&run).is_none(), "a run is at work once");
        assert_eq!(live.ask(&run, Cause::Person), Asked::Heard);
        assert_eq!(live.ask(&run, Cause::Ending), Asked::Heard);
        assert_eq!(*asked.borrow(), Some(Cause::Person), "the first wish counts");
        assert_eq!(live.close(&run), Some(Cause::Person), "what was heard is not lost");
        assert_eq!(live.ask(&run, Cause::Person), Asked::TooLate);
        live.leave(&run);
        assert_eq!(live.ask(&run, Cause::Person), Asked::Absent);
    }
}
