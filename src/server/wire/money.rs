//! What was used and what may be spent, as it goes over the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::amount::{Amount, Unit};
use crate::keys::wire;

/// An amount of money or of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AmountAnswer {
    /// How much.
    pub value: u64,
    /// What it is counted in.
    pub unit: Unit,
}

impl From<Amount> for AmountAnswer {
    fn from(amount: Amount) -> Self {
        Self { value: amount.value(), unit: amount.unit() }
    }
}

impl From<AmountAnswer> for Amount {
    fn from(answer: AmountAnswer) -> Self {
        Self::of(answer.unit, answer.value)
    }
}

/// What was used, by the books of the key service.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CostsAnswer {
    /// One row per different value of what was asked `by`, in their order; one row of everything when nothing was,
    /// and none when nothing was used.
    pub rows: Vec<CostRow>,
    /// The date of the price table that new calls are counted with.
    pub prices: String,
}

/// Some calls, added up. Of who, what and when, what was not asked `by` is not there.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct CostRow {
    /// Who paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The run's step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// The model, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The day (UTC), as `2026-01-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
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

impl From<wire::UsageRow> for CostRow {
    fn from(row: wire::UsageRow) -> Self {
        Self {
            person: row.person.map(|person| person.to_string()),
            run: row.run.map(|run| run.to_string()),
            step: row.step.map(|step| step.to_string()),
            slot: row.slot.map(|slot| slot.to_string()),
            model: row.model,
            day: row.day,
            calls: row.calls,
            failed: row.failed,
            input: row.input,
            output: row.output,
            cache_write: row.cache_write,
            cache_read: row.cache_read,
            cost_micros: row.cost_micros,
            unpriced: row.unpriced,
            estimated: row.estimated,
        }
    }
}

impl From<wire::Usage> for CostsAnswer {
    fn from(usage: wire::Usage) -> Self {
        Self { rows: usage.rows.into_iter().map(Into::into).collect(), prices: usage.prices }
    }
}

/// What a budget is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetScope {
    /// What one person spends on one day (UTC).
    PersonDay,
    /// What one person spends in one month (UTC).
    PersonMonth,
    /// What is spent through one slot in one month (UTC).
    SlotMonth,
}

impl BudgetScope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PersonDay, Self::PersonMonth, Self::SlotMonth];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PersonDay => "person-day",
            Self::PersonMonth => "person-month",
            Self::SlotMonth => "slot-month",
        }
    }
    /// The one of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A budget that stands until it is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetLine {
    /// What it is for.
    pub scope: BudgetScope,
    /// Of which person or slot.
    pub of: String,
    /// What may be spent.
    pub limit: AmountAnswer,
    /// What is spent of it now, in the unit of the limit.
    pub spent: u64,
}

impl From<wire::Cap> for BudgetLine {
    fn from(cap: wire::Cap) -> Self {
        let (scope, of) = match cap.scope {
            wire::CapScope::PersonDay(person) => (BudgetScope::PersonDay, person.to_string()),
            wire::CapScope::PersonMonth(person) => (BudgetScope::PersonMonth, person.to_string()),
            wire::CapScope::SlotMonth(slot) => (BudgetScope::SlotMonth, slot.to_string()),
        };
        Self { scope, of, limit: cap.limit.into(), spent: cap.spent }
    }
}

/// The budgets that stand.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BudgetList {
    /// All of them.
    pub budgets: Vec<BudgetLine>,
}

impl From<wire::Caps> for BudgetList {
    fn from(caps: wire::Caps) -> Self {
        Self { budgets: caps.caps.into_iter().map(Into::into).collect() }
    }
}

/// A budget to set.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// What may be spent: dollars (`5`, `0.25`) or tokens (`200000tokens`).
    pub limit: String,
}
