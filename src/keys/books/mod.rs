//! The books: what every call that costs has used, who pays for it, and whether the next one may be made. A call is
//! promised its place under each cap before it goes out and settled when it ends, however that is.

mod clerk;
mod database;
mod journal;
mod ledger;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use clerk::Clerk;
use database::Booked;
use journal::{Cell, Journal, Owner, State};
use ledger::{Ledger, Price, Promise, Sum, Today, Verdict};

pub use database::BooksError;
pub(super) use journal::How;
pub(super) use ledger::Payer;

use super::meter::{Asked, Counted, Prices};
use super::pass::Live;
use super::slot::SlotName;
use super::wire::{Amount, Cap, CapScope, Caps, Reached, Usage, UsageQuery, UsageRow, Warning};
use crate::clock::Millis;
use crate::ids::{PassId, PersonId, RunId};

const DATABASE: &str = "books.db";
const JOURNAL: &str = "calls.journal";
/// How long a call waits for others to end before it is refused.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the calls of a pass that has just died may take to end before its account is closed without them.
const ENDING: Duration = Duration::from_secs(2);
/// From how many fifths of a cap on a warning is given.
const WARNED: u64 = 4;

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A cap is reached.
    Spent(Reached),
    /// A cap is in dollars, and the model has no price.
    Unpriced(Reached),
    /// Other calls hold what is left, and did not end.
    Busy,
    /// It could not be written down.
    Unwritten,
}

/// The books of one key service.
pub(super) struct Books {
    ledger: Mutex<Ledger>,
    /// A call has ended.
    settled: Notify,
    open: Mutex<HashMap<PassId, usize>>,
    journal: Arc<Journal>,
    clerk: Clerk,
    prices: Prices,
    numbers: AtomicU64,
}

impl Books {
    /// Opens the books in a folder that is there. Calls that were open when the service was last killed are booked.
    ///
    /// # Errors
    /// When they cannot be read or written, or are of a newer program.
    pub(super) fn open(folder: &Path, prices: Prices) -> Result<Self, BooksError> {
        let path = folder.join(JOURNAL);
        let unusable = |cause| BooksError::Journal { path: path.clone(), cause };
        let (mut journal, left) = Journal::open(&path).map_err(unusable)?;
        let file = folder.join(DATABASE);
        let failed = |cause| BooksError::Database { path: file.clone(), cause };
        let mut database = database::open(&file)?;
        let now = Millis::now();
        if !left.is_empty() {
            tracing::warn!(
                calls = left.len(),
                "calls that were open when the service last ended are booked as cut"
            );
            let left: Vec<Booked> =
                left.into_iter().map(|(owner, state)| end_now(&prices, owner, state)).collect();
            database::book(&mut database, &left).map_err(failed)?;
        }
        journal.clear().map_err(unusable)?;
        let mut ledger = Ledger::default();
        for (scope, limit) in database::caps(&database).map_err(failed)? {
            ledger.set_cap(scope, limit);
        }
        for (person, slot, today, sum) in database::this_month(&database, now).map_err(failed)? {
            ledger.carry(&person, &slot, today, sum);
        }
        let last = database::last_number(&database).map_err(failed)?;
        let journal = Arc::new(journal);
        let clerk = Clerk::start(file, database, journal.clone()).map_err(unusable)?;
        Ok(Self {
            ledger: Mutex::new(ledger),
            settled: Notify::new(),
            open: Mutex::default(),
            journal,
            clerk,
            prices,
            numbers: AtomicU64::new(last + 1),
        })
    }

    /// Opens a run's account, with what it has spent before.
    ///
    /// # Errors
    /// When the books do not say.
    pub(super) async fn open_run(&self, run: &RunId) -> Result<(), BooksError> {
        if self.ledger().knows(run) {
            return Ok(());
        }
        let asked = run.clone();
        let spent = self.clerk.ask(move |database| database::of_run(database, &asked)).await?;
        self.ledger().open(run, spent);
        Ok(())
    }

    /// Whether a call of a pass would be refused whatever it asks for: a cap that it counts towards is reached.
    ///
    /// # Errors
    /// When it is.
    pub(super) fn look(&self, live: &Live, free: bool) -> Result<(), Refusal> {
        let spent = self.spent_of(&payer(live), free).into_iter().next();
        spent.map_or(Ok(()), |reached| Err(Refusal::Spent(reached)))
    }

    /// Begins a call of a pass, once there is room for it under every cap. `free` says that nobody is billed for it
    /// by use.
    ///
    /// # Errors
    /// When there is none, or the call cannot be written down. Then it must not be made.
    pub(super) async fn begin(
        self: &Arc<Self>,
        live: &Live,
        asked: &Asked,
        free: bool,
    ) -> Result<Call, Refusal> {
        let bond = &live.bond;
        let payer = payer(live);
        let slot = bond.slot.as_str();
        let price = match free {
            true => Price::Free,
            false => self.prices.most(slot, asked).map_or(Price::Unknown, Price::Micros),
        };
        let tokens = self.prices.most_tokens(slot, asked);
        let (promise, began) = match self.promise(&payer, price, tokens) {
            Some(decided) => decided?,
            None => {
                let waited = tokio::time::timeout(PATIENCE, self.wait(&payer, price, tokens)).await;
                waited.unwrap_or(Err(Refusal::Busy))?
            }
        };
        let owner = Owner {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            began,
            pass: live.id.clone(),
            run: bond.run.clone(),
            step: bond.step.clone(),
            person: bond.person.clone(),
            slot: bond.slot.clone(),
            asked: journal::short(asked.model.as_deref().unwrap_or_default()),
            answered: None,
            free,
        };
        let state = State { counted: asked.reckoned(), ended: None };
        let cell = match self.journal.begin(&owner, &state) {
            Ok(cell) => cell,
            Err(error) => {
                tracing::error!(%error, "a call could not be written down, and was refused");
                self.settle(&promise, Sum::default());
                return Err(Refusal::Unwritten);
            }
        };
        *self.live_calls().entry(live.id.clone()).or_default() += 1;
        Ok(Call { books: self.clone(), owner, state, open: Some((cell, promise)) })
    }

    /// What was used with a pass, per model. Its calls are given a moment to end.
    pub(super) async fn closing(&self, pass: &PassId) -> Result<Vec<UsageRow>, BooksError> {
        let ended = async {
            loop {
                let settled = self.settled.notified();
                tokio::pin!(settled);
                settled.as_mut().enable();
                if !self.live_calls().contains_key(pass) {
                    return;
                }
                settled.await;
            }
        };
        if tokio::time::timeout(ENDING, ended).await.is_err() {
            tracing::warn!(%pass, "a call did not end with its pass: its account is closed without it");
        }
        let pass = pass.clone();
        let query = UsageQuery::default();
        self.clerk
            .ask(move |database| database::usage(database, &["slot", "model"], &query, Some(&pass)))
            .await
    }

    /// Adds calls up. `None` when it is asked by something that calls do not have.
    pub(super) async fn usage(&self, query: UsageQuery) -> Option<Result<Usage, BooksError>> {
        let keys = database::keys_of(&query.by)?;
        let rows = self.clerk.ask(move |database| database::usage(database, &keys, &query, None)).await;
        Some(rows.map(|rows| Usage { rows, prices: self.prices.date().to_owned() }))
    }

    /// The standing caps, with what is spent of each.
    pub(super) fn caps(&self) -> Caps {
        let ledger = self.ledger();
        let caps = ledger
            .caps(today())
            .map(|(scope, limit, spent)| Cap { scope: scope.clone(), limit, spent })
            .collect();
        Caps { caps }
    }

    /// Sets caps and takes others away, all or none.
    pub(super) async fn change_caps(
        &self,
        set: Vec<(CapScope, Amount)>,
        removed: Vec<CapScope>,
    ) -> Result<(), BooksError> {
        let (to_set, to_remove) = (set.clone(), removed.clone());
        self.clerk.ask(move |database| database::change_caps(database, &to_set, &to_remove)).await?;
        {
            let mut ledger = self.ledger();
            for (scope, limit) in set {
                ledger.set_cap(scope, limit);
            }
            for scope in &removed {
                ledger.remove_cap(scope);
            }
        }
        // Whoever waits may have room now.
        self.settled.notify_waiters();
        Ok(())
    }

    /// The standing caps that keep a person from spending more through a slot.
    pub(super) fn spent(&self, person: &PersonId, slot: &SlotName, free: bool) -> Vec<Reached> {
        // No run has this name: a run's own cap is no matter here.
        let payer = Payer { run: RunId::random(), person: person.clone(), slot: slot.clone(), cap: None };
        self.spent_of(&payer, free)
    }

    fn spent_of(&self, payer: &Payer, free: bool) -> Vec<Reached> {
        let reached = self.ledger().reached(payer, 5, today()).into_iter().map(|(_, reached)| reached);
        // Whoever is not billed is under no cap in dollars.
        reached.filter(|reached| !free || matches!(reached.limit, Amount::Tokens(_))).collect()
    }

    /// The caps of which four fifths are spent and that this pass has not been warned of.
    pub(super) fn warnings(&self, live: &Live) -> Vec<Warning> {
        let reached = self.ledger().reached(&payer(live), WARNED, today());
        let new = reached.into_iter().filter(|(place, _)| live.warn_once(*place));
        new.map(|(_, reached)| Warning { pass: live.id.clone(), reached }).collect()
    }

    async fn wait(&self, payer: &Payer, price: Price, tokens: u64) -> Result<(Promise, Millis), Refusal> {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if let Some(decided) = self.promise(payer, price, tokens) {
                return decided;
            }
            settled.await;
        }
    }

    fn promise(
        &self,
        payer: &Payer,
        price: Price,
        tokens: u64,
    ) -> Option<Result<(Promise, Millis), Refusal>> {
        let now = Millis::now();
        match self.ledger().promise(payer, price, tokens, Today::of(now)) {
            Verdict::Promised(promise) => Some(Ok((promise, now))),
            Verdict::Wait => None,
            Verdict::Spent(reached) => Some(Err(Refusal::Spent(reached))),
            Verdict::Unpriced(reached) => Some(Err(Refusal::Unpriced(reached))),
        }
    }

    fn settle(&self, promise: &Promise, used: Sum) {
        self.ledger().settle(promise, used, today());
        self.settled.notify_waiters();
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_calls(&self) -> MutexGuard<'_, HashMap<PassId, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn payer(live: &Live) -> Payer {
    let bond = &live.bond;
    Payer { run: bond.run.clone(), person: bond.person.clone(), slot: bond.slot.clone(), cap: bond.cap }
}

fn today() -> Today {
    Today::of(Millis::now())
}

fn cost(prices: &Prices, owner: &Owner, counted: &Counted) -> Option<u64> {
    if owner.free || counted.tokens() == 0 {
        return Some(0);
    }
    let named = Counted { model: owner.answered.clone(), ..counted.clone() };
    prices.cost(owner.slot.as_str(), Some(&owner.asked), &named)
}

/// What was left of a call by a start that was killed.
fn end_now(prices: &Prices, owner: Owner, mut state: State) -> Booked {
    if state.ended.is_none() {
        state.ended = Some((How::Cut, cost(prices, &owner, &state.counted)));
    }
    Booked { owner, state }
}

/// A call that is under way. Dropping it books it as cut, with what has been seen of it.
pub(super) struct Call {
    books: Arc<Books>,
    owner: Owner,
    state: State,
    open: Option<(Cell, Promise)>,
}

impl Call {
    /// What is counted so far.
    pub(super) fn counted(&self) -> &Counted {
        &self.state.counted
    }

    /// More is known of it.
    pub(super) fn saw(&mut self, counted: &Counted) {
        self.learn(counted);
        let Some((cell, _)) = &mut self.open else { return };
        if let Err(error) = self.books.journal.note(cell, self.owner.number, &self.state) {
            tracing::error!(%error, call = self.owner.number, "what a call has used could not be written down");
        }
    }

    /// It has ended like this, and has used this.
    pub(super) fn end(mut self, counted: &Counted, how: How) {
        self.learn(counted);
        self.finish(how);
    }

    /// It has ended before anything was answered that costs.
    pub(super) fn fail(self) {
        self.end(&Counted::default(), How::Failed);
    }

    fn learn(&mut self, counted: &Counted) {
        self.state.counted = Counted { model: None, ..*counted };
        let named = counted.model.as_deref();
        if named.is_none() || named == self.owner.answered.as_deref() {
            return;
        }
        let before = self.owner.model().to_owned();
        self.owner.answered = named.map(journal::short);
        // Most providers name the model as it was asked for: then the journal says it already.
        if self.owner.model() != before
            && let Some((cell, _)) = &self.open
            && let Err(error) = self.books.journal.rename(cell, &self.owner)
        {
            tracing::error!(%error, call = self.owner.number, "the model of a call could not be written down");
        }
    }

    fn finish(&mut self, how: How) {
        let Some((mut cell, promise)) = self.open.take() else { return };
        let books = &self.books;
        let cost = cost(&books.prices, &self.owner, &self.state.counted);
        self.state.ended = Some((how, cost));
        if let Err(error) = books.journal.note(&mut cell, self.owner.number, &self.state) {
            tracing::error!(%error, call = self.owner.number, "the end of a call could not be written down");
        }
        books.clerk.book(Booked { owner: self.owner.clone(), state: self.state.clone() }, cell);
        {
            let mut open = books.live_calls();
            if let Some(calls) = open.get_mut(&self.owner.pass) {
                *calls -= 1;
                if *calls == 0 {
                    open.remove(&self.owner.pass);
                }
            }
        }
        let used = Sum { micros: cost.unwrap_or(0), tokens: self.state.counted.tokens() };
        books.settle(&promise, used);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.finish(How::Cut);
    }
}

#[cfg(test)]
mod tests;
