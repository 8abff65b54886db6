//! `worca runs`: the newest runs, as a table that fits the terminal.

use std::fmt::Write as _;

use console::{Alignment, measure_text_width, pad_str, truncate_str};

use crate::cli::client::CoreArgs;
use crate::cli::text::{Output, age, dollars, note, one_line, print, print_json};
use crate::clock::Millis;
use crate::failure::{Exit, Failure};
use crate::server::wire::RunLine;

/// The width when standard output is no terminal.
const WIDE: usize = 120;
/// Below this many columns only id, status and title are shown.
const NARROW: usize = 72;

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

/// The table. The title takes what the other columns leave.
pub fn table(runs: &[RunLine], output: Output, now: Millis) -> String {
    let width = output.width.unwrap_or(WIDE);
    let wide = width >= NARROW;
    let mut text = String::new();
    let row = |text: &mut String, cells: [&str; 5], status: Option<String>| {
        let [id, word, when, cost, title] = cells;
        // A coloured word is as long as the word: it is padded by what is seen.
        let shown = status.unwrap_or_else(|| word.to_owned());
        let mut line = format!(
            "{}  {}  ",
            pad_str(id, 11, Alignment::Left, None),
            pad_str(&shown, 11, Alignment::Left, None)
        );
        if wide {
            let when = pad_str(when, 6, Alignment::Right, None);
            let cost = pad_str(cost, 9, Alignment::Right, None);
            let _ = write!(line, "{when}  {cost}  ");
        }
        let left = width.saturating_sub(measure_text_width(&line)).max(8);
        let _ = writeln!(text, "{}", format!("{line}{}", truncate_str(title, left, "…")).trim_end());
    };
    row(&mut text, ["RUN", "STATUS", "AGE", "COST", "TITLE"], None);
    for run in runs {
        let cost = run.cost_micros.map(dollars).unwrap_or_default();
        let title = one_line(&run.title);
        let when = age(Millis(run.created_at), now);
        row(&mut text, [&run.id, run.status.as_str(), &when, &cost, &title], Some(output.status(run.status)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::RunStatus;

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
            let output = Output { terminal: true, colour: false, width: Some(width) };
            let text = table(&runs, output, Millis(3_600_000));
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
            insta::assert_snapshot!(format!("runs_in_{width}_columns"), text);
        }
    }
}
