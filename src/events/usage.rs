//! What a run's agent used of a model, as the key service's books say it. Never what the agent program guesses.

use serde::{Deserialize, Serialize};

/// What was used of one model through one slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelUsage {
    /// The slot.
    pub slot: String,
    /// The model, as the provider names it.
    pub model: String,
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
    /// What it cost, in millionths of a US dollar. A subscription and a rehearsal cost nothing.
    pub cost_micros: u64,
    /// Calls of models that the price table does not know: their cost is not in `cost_micros`.
    pub unpriced: u64,
    /// Calls that were cut before the provider said how much they used: their output is estimated.
    pub estimated: u64,
}

impl ModelUsage {
    /// Tokens of every kind.
    pub fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_write, self.cache_read].into_iter().fold(0, u64::saturating_add)
    }

    /// All of these rows as one, without slot and model.
    pub fn total<'a>(rows: impl IntoIterator<Item = &'a Self>) -> Self {
        rows.into_iter().fold(Self::default(), |sum, row| Self {
            slot: String::new(),
            model: String::new(),
            calls: sum.calls.saturating_add(row.calls),
            failed: sum.failed.saturating_add(row.failed),
            input: sum.input.saturating_add(row.input),
            output: sum.output.saturating_add(row.output),
            cache_write: sum.cache_write.saturating_add(row.cache_write),
            cache_read: sum.cache_read.saturating_add(row.cache_read),
            cost_micros: sum.cost_micros.saturating_add(row.cost_micros),
            unpriced: sum.unpriced.saturating_add(row.unpriced),
            estimated: sum.estimated.saturating_add(row.estimated),
        })
    }
}

/// A budget of which four fifths or more are spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpentBudget {
    /// Which one, in words (`the day's budget of ada`).
    pub cap: String,
    /// What is spent of it.
    pub spent: u64,
    /// The limit.
    pub limit: u64,
    /// What both are counted in.
    pub unit: crate::amount::Unit,
}

impl std::fmt::Display for SpentBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::amount::Amount;
        let (spent, limit) = (Amount::of(self.unit, self.spent), Amount::of(self.unit, self.limit));
        let percent = u128::from(self.spent) * 100 / u128::from(self.limit.max(1));
        write!(f, "{}: {percent} % is spent, {spent} of {limit}", self.cap)
    }
}
