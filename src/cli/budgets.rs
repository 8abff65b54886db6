//! `worca budgets`: what a person and a slot may spend.

use clap::{Args as ClapArgs, Subcommand};

use crate::amount::Amount;
use crate::cli::client::CoreArgs;
use crate::cli::table::{Column, table};
use crate::cli::text::{Output, note, one_line, print, print_json};
use crate::failure::{Exit, Explain, Failure};
use crate::ids::PersonId;
use crate::keys::slot::SlotName;
use crate::server::wire::money::{BudgetLine, BudgetScope};

/// Show and change what may be spent
///
/// A budget stands until it is changed and holds for everything, also for what is at work: what one person spends on
/// one day, what one person spends in one month, what is spent through one slot in one month. Days and months are
/// those of UTC. When a budget is spent, the run that meets it waits (`parked`), and no new run is taken that would
/// count towards it; at 80 % the run says so. What one run may spend is not here: `worca run --budget`,
/// `worca resume RUN --budget`, and for runs that do not say it `worca settings set run-budget`.
///
/// An AMOUNT is US dollars (5, 0.25) or tokens of every kind (200000tokens). A subscription costs no dollars: tokens
/// alone limit it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  worca budgets list\n  worca budgets set day 5\n  \
                        worca budgets set month 100 --slot openrouter\n  worca budgets remove day --person ada")]
pub struct BudgetsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the budgets that stand, with what is spent of each
    #[command(after_help = "Example:\n  worca budgets list --json")]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        core: CoreArgs,
    },
    /// Set a budget, new or in place of the one that stands
    #[command(
        after_help = "Examples:\n  worca budgets set day 5\n  worca budgets set month 2000000tokens --person ada\n  \
                      worca budgets set month 100 --slot openrouter"
    )]
    Set {
        /// For how long it is
        #[arg(value_name = "PERIOD")]
        period: Period,
        /// What may be spent: dollars (5, 0.25) or tokens (200000tokens)
        #[arg(value_name = "AMOUNT")]
        amount: Amount,
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        core: CoreArgs,
    },
    /// Remove a budget
    #[command(after_help = "Example:\n  worca budgets remove month --slot openrouter")]
    Remove {
        /// For how long it is
        #[arg(value_name = "PERIOD")]
        period: Period,
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        core: CoreArgs,
    },
}

/// For how long a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Period {
    /// One day (UTC)
    Day,
    /// One month (UTC)
    Month,
}

/// Whose budget it is.
#[derive(Debug, ClapArgs)]
struct Of {
    /// What this person spends; `local` is whoever acts without a sign-in
    #[arg(long, value_name = "PERSON", default_value = "local")]
    person: PersonId,
    /// What is spent through this slot, by everybody; a slot has a budget per month alone
    #[arg(long, value_name = "SLOT", conflicts_with = "person")]
    slot: Option<SlotName>,
}

/// A slot has no budget per day.
#[derive(Debug, thiserror::Error)]
#[error("a slot has a budget per month alone")]
pub struct SlotDay(SlotName);

impl Explain for SlotDay {
    fn code(&self) -> &'static str {
        "budget-scope"
    }
    fn hint(&self) -> Option<String> {
        Some(format!("`worca budgets set month AMOUNT --slot {}`", self.0))
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl Of {
    fn scope(self, period: Period) -> Result<(BudgetScope, String), SlotDay> {
        match (period, self.slot) {
            (Period::Day, None) => Ok((BudgetScope::PersonDay, self.person.to_string())),
            (Period::Month, None) => Ok((BudgetScope::PersonMonth, self.person.to_string())),
            (Period::Month, Some(slot)) => Ok((BudgetScope::SlotMonth, slot.to_string())),
            (Period::Day, Some(slot)) => Err(SlotDay(slot)),
        }
    }
}

/// Lists or changes.
///
/// # Errors
/// When core or the key service does not answer, or there is no such budget to remove.
pub async fn run(args: BudgetsArgs) -> Result<Exit, Failure> {
    match args.command {
        Command::List { json, core } => {
            let budgets = core.connect()?.budgets().await?.budgets;
            if json {
                print_json(&budgets)?;
            } else if budgets.is_empty() {
                note("no budget stands: set one with `worca budgets set day AMOUNT`");
            } else {
                print(&table(columns(&budgets), Output::standard().width))?;
            }
        }
        Command::Set { period, amount, of, core } => {
            let (scope, of) = of.scope(period)?;
            let budgets = core.connect()?.set_budget(scope, &of, amount).await?.budgets;
            let set = budgets.iter().find(|budget| budget.scope == scope && budget.of == of);
            let spent = set.map(|set| Amount::of(set.limit.unit, set.spent));
            let spent = spent.map(|spent| format!("; {spent} of it is spent")).unwrap_or_default();
            note(&format!("{} is {amount}{spent}", name(scope, &of)));
        }
        Command::Remove { period, of, core } => {
            let (scope, of) = of.scope(period)?;
            core.connect()?.remove_budget(scope, &of).await?;
            note(&format!("{} is gone", name(scope, &of)));
        }
    }
    Ok(Exit::Done)
}

/// What a budget is called.
fn name(scope: BudgetScope, of: &str) -> String {
    match scope {
        BudgetScope::PersonDay => format!("the day's budget of {of}"),
        BudgetScope::PersonMonth => format!("the month's budget of {of}"),
        BudgetScope::SlotMonth => format!("the month's budget of slot {of}"),
    }
}

fn columns(budgets: &[BudgetLine]) -> Vec<Column> {
    let all = |of: fn(&BudgetLine) -> String| budgets.iter().map(of).collect::<Vec<_>>();
    let period = |budget: &BudgetLine| match budget.scope {
        BudgetScope::PersonDay => "day".to_owned(),
        BudgetScope::PersonMonth | BudgetScope::SlotMonth => "month".to_owned(),
    };
    let of = |budget: &BudgetLine| match budget.scope {
        BudgetScope::PersonDay | BudgetScope::PersonMonth => one_line(&budget.of),
        BudgetScope::SlotMonth => format!("slot {}", one_line(&budget.of)),
    };
    let used = |budget: &BudgetLine| {
        let percent = u128::from(budget.spent) * 100 / u128::from(budget.limit.value.max(1));
        format!("{percent} %")
    };
    vec![
        Column::words("PERIOD", all(period)),
        Column::words("OF", all(of)),
        Column::numbers("SPENT", all(|budget| Amount::of(budget.limit.unit, budget.spent).to_string()))
            .goes(1),
        Column::numbers("LIMIT", all(|budget| Amount::from(budget.limit).to_string())),
        Column::numbers("USED", all(used)),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::server::wire::money::AmountAnswer;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: BudgetsArgs,
    }

    fn scope(words: &[&str]) -> Result<(BudgetScope, String), String> {
        let words = ["budgets"].iter().chain(words);
        match Line::try_parse_from(words).map_err(|error| error.to_string())?.args.command {
            Command::Set { period, of, .. } | Command::Remove { period, of, .. } => {
                of.scope(period).map_err(|error| error.to_string())
            }
            Command::List { .. } => Err("a list".into()),
        }
    }

    #[test]
    fn a_budget_is_of_a_person_or_of_a_slot() {
        for (words, wanted) in [
            (&["set", "day", "5"][..], (BudgetScope::PersonDay, "local")),
            (&["set", "month", "0.25", "--person", "ada"], (BudgetScope::PersonMonth, "ada")),
            (&["set", "month", "200000tokens", "--slot", "openai"], (BudgetScope::SlotMonth, "openai")),
            (&["remove", "day", "--person", "ada"], (BudgetScope::PersonDay, "ada")),
        ] {
            assert_eq!(scope(words), Ok((wanted.0, wanted.1.to_owned())), "{words:?}");
        }
        assert_eq!(
            scope(&["set", "day", "5", "--slot", "openai"]),
            Err("a slot has a budget per month alone".into())
        );
        for words in [
            &["set", "day"][..],
            &["set", "week", "5"],
            &["set", "day", "0"],
            &["set", "day", "5", "--person", "A B"],
            &["set", "month", "5", "--person", "ada", "--slot", "openai"],
            &["remove"],
        ] {
            assert!(scope(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_list_says_what_is_spent() {
        let line = |scope, of: &str, unit, spent, value| BudgetLine {
            scope,
            of: of.into(),
            limit: AmountAnswer { value, unit },
            spent,
        };
        use crate::amount::Unit::{Tokens, UsdMicros};
        let budgets = [
            line(BudgetScope::PersonDay, "local", UsdMicros, 1_200_000, 5_000_000),
            line(BudgetScope::PersonMonth, "ada", Tokens, 2_000_001, 2_000_000),
            line(BudgetScope::SlotMonth, "openrouter", UsdMicros, 0, 100_000_000),
        ];
        let text = [None, Some(40)].map(|width| table(columns(&budgets), width)).join("--- narrow\n");
        insta::assert_snapshot!(text);
    }
}
