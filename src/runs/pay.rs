//! What a run may use and who pays for it: asked before anything is made, and again before its agent is started anew.

use super::{CreateRunError, Inner};
use crate::amount::{Amount, ParseAmountError};
use crate::ids::PersonId;
use crate::keys::slot::Choice;
use crate::store::{Run, StoreError};

/// The most models that a run is limited to.
pub(super) const MOST_MODELS: usize = 64;
/// The longest of them, in bytes.
const LONGEST_MODEL: usize = 200;
/// The word for no budget.
pub const NO_BUDGET: &str = "none";

/// What a run may spend, as it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Budget {
    /// Of a new run, what the setting `run-budget` says; of one that is taken up again, what it had.
    #[default]
    Standing,
    /// As much as the payer may.
    Unlimited,
    /// So much, over all its starts.
    Limit(Amount),
}

impl Budget {
    /// Reads `none`, dollars or tokens.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(word: &str) -> Result<Self, ParseAmountError> {
        match word.trim() {
            NO_BUDGET => Ok(Self::Unlimited),
            amount => amount.parse().map(Self::Limit),
        }
    }
    /// What it comes to where this stands.
    pub(super) fn or(self, standing: Option<Amount>) -> Option<Amount> {
        match self {
            Self::Standing => standing,
            Self::Unlimited => None,
            Self::Limit(amount) => Some(amount),
        }
    }
}

/// What a budget is set to, as people write it.
impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Standing | Self::Unlimited => f.write_str(NO_BUDGET),
            Self::Limit(Amount::Tokens(tokens)) => write!(f, "{tokens}tokens"),
            Self::Limit(Amount::UsdMicros(micros)) => {
                let (dollars, rest) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
                match rest.trim_end_matches('0') {
                    "" => write!(f, "{dollars}"),
                    rest => write!(f, "{dollars}.{rest:0<2}"),
                }
            }
        }
    }
}

/// The models that a run is limited to, each a name in which `*` stands for anything.
pub(super) fn checked_models(models: Vec<String>) -> Result<Vec<String>, CreateRunError> {
    if models.len() > MOST_MODELS {
        return Err(CreateRunError::ManyModels(models.len()));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@[]*".contains(&byte);
    match models.iter().find(|name| name.is_empty() || name.len() > LONGEST_MODEL || !name.bytes().all(fits))
    {
        Some(name) => Err(CreateRunError::ModelPattern(name.chars().take(60).collect())),
        None => Ok(models),
    }
}

impl Inner {
    /// Asks the key service whether the payer can use the slots that a run with this choice needs, and may still spend.
    pub(super) async fn check_payer(&self, payer: &PersonId, choice: Choice) -> Result<(), CreateRunError> {
        let ready = self.settings.keys.ready(payer, &[choice.slot]).await.map_err(CreateRunError::Keys)?;
        match ready.missing.is_empty() && ready.spent.is_empty() {
            true => Ok(()),
            false => Err(CreateRunError::CannotPay { payer: payer.clone(), ready }),
        }
    }

    /// Whether a run that is taken up again with this budget has any of it left.
    pub(super) fn check_budget(run: &Run, budget: Option<Amount>) -> Result<(), CreateRunError> {
        let Some(limit) = budget else { return Ok(()) };
        let spent = match limit {
            Amount::UsdMicros(_) => run.end.cost_micros,
            Amount::Tokens(_) => run.end.tokens,
        };
        match spent.unwrap_or_default() {
            spent if spent < limit.value() => Ok(()),
            spent => Err(CreateRunError::BudgetSpent {
                run: run.id.clone(),
                spent: Amount::of(limit.unit(), spent),
                limit,
            }),
        }
    }

    /// What the setting says that a new run may spend.
    pub(super) async fn standing_budget(&self) -> Result<Option<Amount>, StoreError> {
        let stored = self.settings.store.setting(super::settings::RUN_BUDGET).await?;
        let read = stored.map(|word| {
            // A budget that cannot be read must not become none.
            Budget::parse(&word).map_err(|_| StoreError::Foreign { what: "a budget", value: word })
        });
        Ok(read.transpose()?.and_then(|budget| budget.or(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_written_as_it_is_read() {
        for word in ["none", "5", "0.50", "12.345678", "0.000001", "200000tokens"] {
            assert_eq!(Budget::parse(word).unwrap().to_string(), word);
        }
        assert_eq!(Budget::parse(" $5.0 ").unwrap().to_string(), "5");
        assert!(Budget::parse("0").is_err() && Budget::parse("None").is_err());
        let limit = Some(Amount::Tokens(1));
        assert_eq!(Budget::Standing.or(limit), limit);
        assert_eq!(Budget::Unlimited.or(limit), None);
        assert_eq!(Budget::Limit(Amount::Tokens(2)).or(limit), Some(Amount::Tokens(2)));
    }

    #[test]
    fn a_limit_on_models_is_a_name_with_stars() {
        let models = ["claude-*", "anthropic/claude-opus-4-*", "*", "opus[1m]"].map(str::to_owned).to_vec();
        assert_eq!(checked_models(models.clone()).unwrap(), models);
        for name in ["", "a b", "ü", "a\n", &"a".repeat(201)] {
            assert!(checked_models(vec![name.to_owned()]).is_err(), "{name}");
        }
        assert!(matches!(checked_models(vec!["a".into(); 65]), Err(CreateRunError::ManyModels(65))));
    }
}
