//! What is spent, what is promised to calls that are still open, and whether one more fits under every cap. Pure:
//! nothing here waits, writes or looks at a clock.
//!
//! A call is let through when, for each cap that it counts towards, what is spent, what is promised and what it may
//! use at most stay within the limit; or when nothing else is promised there, so that a cap is never hit at nothing
//! spent only because an answer could be long. So what is spent goes over a cap by less than one call.

use std::collections::{BTreeMap, HashMap};

use crate::clock::Millis;
use crate::ids::{PersonId, RunId};
use crate::keys::slot::SlotName;
use crate::keys::wire::{Amount, CapScope, Reached};

/// An amount in both units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) micros: u64,
    pub(super) tokens: u64,
}

impl Sum {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_add(other.micros),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
    fn minus(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_sub(other.micros),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
    /// In the unit of a limit.
    fn like(self, limit: Amount) -> u64 {
        match limit {
            Amount::UsdMicros(_) => self.micros,
            Amount::Tokens(_) => self.tokens,
        }
    }
}

/// The day and the month (UTC) that a moment lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Today {
    /// Days since 1970.
    day: i64,
    /// Months since the year 0.
    month: i32,
}

impl Today {
    pub(super) fn of(moment: Millis) -> Self {
        let date = time::OffsetDateTime::from_unix_timestamp(moment.0.div_euclid(1000))
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
            .date();
        Self {
            day: moment.0.div_euclid(86_400_000),
            month: date.year() * 12 + i32::from(u8::from(date.month())),
        }
    }
}

/// Whom a call counts for, and what its run may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::keys) struct Payer {
    pub(in crate::keys) run: RunId,
    pub(in crate::keys) person: PersonId,
    pub(in crate::keys) slot: SlotName,
    pub(in crate::keys) cap: Option<Amount>,
}

/// Something that amounts are added up for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Scope {
    Run(RunId),
    Day(PersonId, i64),
    Month(PersonId, i32),
    Slot(SlotName, i32),
}

impl Scope {
    fn all(run: &RunId, person: &PersonId, slot: &SlotName, today: Today) -> [Self; 4] {
        [
            Self::Run(run.clone()),
            Self::Day(person.clone(), today.day),
            Self::Month(person.clone(), today.month),
            Self::Slot(slot.clone(), today.month),
        ]
    }
    fn of(scope: &CapScope, today: Today) -> Self {
        match scope {
            CapScope::PersonDay(person) => Self::Day(person.clone(), today.day),
            CapScope::PersonMonth(person) => Self::Month(person.clone(), today.month),
            CapScope::SlotMonth(slot) => Self::Slot(slot.clone(), today.month),
        }
    }
    fn is_over(&self, today: Today) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Day(_, day) => *day < today.day,
            Self::Month(_, month) | Self::Slot(_, month) => *month < today.month,
        }
    }
    /// The standing cap that this is counted for.
    fn standing(&self) -> Option<CapScope> {
        Some(match self {
            Self::Run(_) => return None,
            Self::Day(person, _) => CapScope::PersonDay(person.clone()),
            Self::Month(person, _) => CapScope::PersonMonth(person.clone()),
            Self::Slot(slot, _) => CapScope::SlotMonth(slot.clone()),
        })
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(run) => write!(f, "the budget of run {run}"),
            Self::Day(person, _) => write!(f, "the day's budget of {person}"),
            Self::Month(person, _) => write!(f, "the month's budget of {person}"),
            Self::Slot(slot, _) => write!(f, "the month's budget of slot {slot}"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    spent: Sum,
    promised: Sum,
}

/// What a call costs at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Price {
    /// Nobody is billed for it by use: a subscription, a model of one's own, a rehearsal.
    Free,
    /// Millionths of a dollar.
    Micros(u64),
    /// The price table does not know the model.
    Unknown,
}

/// What stands promised to one open call, until it is settled.
#[derive(Debug)]
pub(super) struct Promise {
    scopes: [Scope; 4],
    need: Sum,
}

/// Whether a call may be made.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Yes; and what it may use is set aside.
    Promised(Promise),
    /// Not before another one ends: what it leaves decides.
    Wait,
    /// This cap is reached.
    Spent(Reached),
    /// This cap is in dollars, and nobody knows what the model costs.
    Unpriced(Reached),
}

/// All accounts and caps.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    accounts: HashMap<Scope, Account>,
    caps: BTreeMap<CapScope, Amount>,
    latest: Option<Today>,
}

impl Ledger {
    /// Takes up what was spent before this start: by a person, through a slot, at a moment.
    pub(super) fn carry(&mut self, person: &PersonId, slot: &SlotName, today: Today, sum: Sum) {
        let scopes = [
            Scope::Day(person.clone(), today.day),
            Scope::Month(person.clone(), today.month),
            Scope::Slot(slot.clone(), today.month),
        ];
        for scope in scopes {
            let account = self.accounts.entry(scope).or_default();
            account.spent = account.spent.plus(sum);
        }
    }

    /// Whether a run's account is open.
    pub(super) fn knows(&self, run: &RunId) -> bool {
        self.accounts.contains_key(&Scope::Run(run.clone()))
    }

    /// Opens a run's account with what it has spent before. One that is open stays as it is.
    pub(super) fn open(&mut self, run: &RunId, spent: Sum) {
        self.accounts.entry(Scope::Run(run.clone())).or_insert(Account { spent, ..Account::default() });
    }

    pub(super) fn set_cap(&mut self, scope: CapScope, limit: Amount) {
        self.caps.insert(scope, limit);
    }

    pub(super) fn remove_cap(&mut self, scope: &CapScope) {
        self.caps.remove(scope);
    }

    /// Each standing cap, with what is spent of it.
    pub(super) fn caps(&self, today: Today) -> impl Iterator<Item = (&CapScope, Amount, u64)> {
        self.caps.iter().map(move |(scope, limit)| {
            let account = self.account(&Scope::of(scope, today));
            (scope, *limit, account.spent.like(*limit))
        })
    }

    /// Asks for a call that uses `price` and `tokens` at most.
    pub(super) fn promise(&mut self, payer: &Payer, price: Price, tokens: u64, today: Today) -> Verdict {
        let micros = match price {
            Price::Free | Price::Unknown => 0,
            Price::Micros(micros) => micros,
        };
        let need = Sum { micros, tokens };
        let scopes = Scope::all(&payer.run, &payer.person, &payer.slot, today);
        let mut waits = false;
        for scope in &scopes {
            let Some(limit) = self.limit(scope, payer.cap) else { continue };
            let money = matches!(limit, Amount::UsdMicros(_));
            if money && price == Price::Free {
                continue;
            }
            let account = self.account(scope);
            let (spent, promised) = (account.spent.like(limit), account.promised.like(limit));
            let reached = || Reached { cap: scope.to_string(), spent, limit };
            if money && price == Price::Unknown {
                return Verdict::Unpriced(reached());
            }
            if spent >= limit.value() {
                return Verdict::Spent(reached());
            }
            let together = spent.saturating_add(promised).saturating_add(need.like(limit));
            waits |= together > limit.value() && promised > 0;
        }
        if waits {
            return Verdict::Wait;
        }
        for scope in &scopes {
            let account = self.accounts.entry(scope.clone()).or_default();
            account.promised = account.promised.plus(need);
        }
        Verdict::Promised(Promise { scopes, need })
    }

    /// A call has ended, and has used this. The day on which it began pays, as it was promised.
    pub(super) fn settle(&mut self, promise: &Promise, used: Sum, today: Today) {
        for scope in &promise.scopes {
            let account = self.accounts.entry(scope.clone()).or_default();
            account.promised = account.promised.minus(promise.need);
            account.spent = account.spent.plus(used);
        }
        if self.latest.replace(today) != Some(today) {
            self.accounts
                .retain(|scope, account| !scope.is_over(today) || account.promised != Sum::default());
        }
    }

    /// The caps that a payer's calls count towards and of which `fifths` fifths or more are spent, by their place.
    pub(super) fn reached(&self, payer: &Payer, fifths: u64, today: Today) -> Vec<(usize, Reached)> {
        let scopes = Scope::all(&payer.run, &payer.person, &payer.slot, today);
        let reached = scopes.iter().enumerate().filter_map(|(place, scope)| {
            let limit = self.limit(scope, payer.cap)?;
            let spent = self.account(scope).spent.like(limit);
            let over = u128::from(spent) * 5 >= u128::from(limit.value()) * u128::from(fifths);
            over.then(|| (place, Reached { cap: scope.to_string(), spent, limit }))
        });
        reached.collect()
    }

    fn limit(&self, scope: &Scope, own: Option<Amount>) -> Option<Amount> {
        match scope.standing() {
            None => own,
            Some(standing) => self.caps.get(&standing).copied(),
        }
    }

    fn account(&self, scope: &Scope) -> Account {
        self.accounts.get(scope).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
