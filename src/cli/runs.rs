//! `worca runs`: the newest runs, as a table that fits the terminal.

use crate::amount::Amount;
use crate::cli::client::CoreArgs;
use crate::cli::table::{self, Column};
use crate::cli::text::{Output, age, dollars, note, one_line, print, print_json};
use crate::clock::Millis;
use crate::failure::{Exit, Failure};
use crate::server::wire::RunLine;

/// The width when standard output is no terminal.
const WIDE: usize = 120;
/// The least that is shown of a title before other columns go.
const TITLE: usize = 20;

/// List the newest runs
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca runs --limit 10")]
pub struct Args {
    /// How many, 1 to 500
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub limit: u32,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// Lists.
///
/// # Errors
/// When core does not answer.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let list = args.core.connect()?.runs(args.limit).await?;
    if args.json {
        print_json(&list.runs)?;
    } else if list.runs.is_empty() {
        note("no runs yet: start one with `worca run --project DIR --prompt TEXT`");
    } else {
        print(&table(&list.runs, Output::standard(), Millis::now()))?;
    }
    Ok(Exit::Done)
}

/// The table. The title takes what the other columns leave. Budgets are shown where a run has one.
pub fn table(runs: &[RunLine], output: Output, now: Millis) -> String {
    let all = |of: &dyn Fn(&RunLine) -> String| runs.iter().map(of).collect::<Vec<_>>();
    let mut columns = vec![
        Column::names("RUN", all(&|run| one_line(&run.id))),
        Column::names("STATUS", all(&|run| output.status(run.status))),
        Column::numbers("AGE", all(&|run| age(Millis(run.created_at), now))).goes(1),
        Column::numbers("COST", all(&|run| run.cost_micros.map(dollars).unwrap_or_default())).goes(3),
    ];
    if runs.iter().any(|run| run.budget.is_some()) {
        let budget =
            |run: &RunLine| run.budget.map(|limit| Amount::from(limit).to_string()).unwrap_or_default();
        columns.push(Column::numbers("BUDGET", all(&budget)).goes(2));
    }
    columns.push(Column::words("TITLE", all(&|run| one_line(&run.title))).cut_to(TITLE));
    // A title has no end: in a pipe it is cut where a wide terminal would cut it.
    table::table(columns, Some(output.width.unwrap_or(WIDE)))
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::*;
    use crate::amount::Unit;
    use crate::events::RunStatus;
    use crate::server::wire::money::AmountAnswer;

    fn line(id: &str, status: RunStatus, title: &str) -> RunLine {
        RunLine {
            id: id.into(),
            status,
            reason: None,
            title: title.into(),
            checkout: "/p".into(),
            branch: "worca/x/y".into(),
            created_at: 0,
            ended_at: None,
            head_commit: None,
            files_changed: None,
            insertions: None,
            deletions: None,
            cost_micros: Some(120_000),
            tokens: Some(1_000),
            budget: None,
            payer: "local".into(),
        }
    }

    #[test]
    fn the_table_fits_a_wide_and_a_narrow_terminal() {
        let runs = [
            line("r0123456789", RunStatus::Done, "Add a /search endpoint"),
            line(
                "r9876543210",
                RunStatus::Interrupted,
                "漢字 \u{1b}[2Jwith a very long title that has no end and goes on and on and on",
            ),
        ];
        for width in [40, 80] {
            let output = |colour| Output { terminal: true, colour, width: Some(width) };
            let text = table(&runs, output(false), Millis(3_600_000));
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
            let coloured = table(&runs, output(true), Millis(3_600_000));
            assert_eq!(console::strip_ansi_codes(&coloured), text);
            insta::assert_snapshot!(format!("runs_in_{width}_columns"), text);
        }
    }

    #[test]
    fn what_a_run_may_spend_stands_beside_what_it_cost_where_one_has_a_budget() {
        let limit = AmountAnswer { value: 5_000_000, unit: Unit::UsdMicros };
        let runs = [
            RunLine { budget: Some(limit), ..line("r0123456789", RunStatus::Parked, "Add a search") },
            line("r9876543210", RunStatus::Done, "Something else"),
        ];
        let piped = Output { terminal: false, colour: false, width: None };
        let text = table(&runs, piped, Millis(60_000));
        let wanted = "RUN          STATUS    AGE   COST  BUDGET  TITLE\n\
                      r0123456789  parked  1 min  $0.12   $5.00  Add a search\n\
                      r9876543210  done    1 min  $0.12          Something else\n";
        assert_eq!(text, wanted);
    }
}
