//! `worca costs`: what was used of models, by the books of the key service.

use std::str::FromStr;

use crate::cli::client::CoreArgs;
use crate::cli::money::reservations;
use crate::cli::table::{Column, table};
use crate::cli::text::{Output, dollars, grouped, note, one_line, print, print_json};
use crate::clock::Millis;
use crate::failure::{Exit, Failure};
use crate::ids::{PersonId, RunId};
use crate::server::wire::money::{CostRow, CostsAnswer};

/// Show what runs used of models, and what it cost
///
/// The numbers are those of the key service's books, which count what each provider says, call by call, also of a call
/// that was cut. Money is US dollars by a price table with a date; a subscription, a local model and a rehearsal cost
/// nothing and count in tokens alone. Calls of models that the table does not know are counted in tokens, and said
/// beside the table. Standard output has the rows; the sum goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  worca costs\n  worca costs --by day,model --since 7d\n  \
                        worca costs --run r7k2m9q4xw1 --by step,model\n  worca costs --by person --since 2026-01-01 --json")]
pub struct Args {
    /// How rows are put together: some of person, run, step, slot, model, day
    #[arg(long, value_name = "WORDS", value_delimiter = ',', default_value = "slot,model")]
    pub by: Vec<By>,
    /// Of this run alone
    #[arg(long, value_name = "RUN")]
    pub run: Option<RunId>,
    /// Of this person alone
    #[arg(long, value_name = "PERSON")]
    pub person: Option<PersonId>,
    /// Calls that ended at this time or later: a day (UTC) as 2026-01-31, a moment as 2026-01-31T09:00:00Z, or so long
    /// ago: 7d, 12h
    #[arg(long, value_name = "WHEN")]
    pub since: Option<When>,
    /// Calls that ended before this time, written the same way
    #[arg(long, value_name = "WHEN")]
    pub until: Option<When>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// What rows are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Who paid
    Person,
    /// The run
    Run,
    /// The run's step
    Step,
    /// The slot of the key service
    Slot,
    /// The model, as its provider names it
    Model,
    /// The day (UTC)
    Day,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Run => "run",
            Self::Step => "step",
            Self::Slot => "slot",
            Self::Model => "model",
            Self::Day => "day",
        }
    }
    fn head(self) -> &'static str {
        match self {
            Self::Person => "PERSON",
            Self::Run => "RUN",
            Self::Step => "STEP",
            Self::Slot => "SLOT",
            Self::Model => "MODEL",
            Self::Day => "DAY",
        }
    }
    fn of(self, row: &CostRow) -> String {
        let value = match self {
            Self::Person => &row.person,
            Self::Run => &row.run,
            Self::Step => &row.step,
            Self::Slot => &row.slot,
            Self::Model => &row.model,
            Self::Day => &row.day,
        };
        one_line(value.as_deref().unwrap_or("?"))
    }
}

/// A moment, as people write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// That moment.
    At(Millis),
    /// So many milliseconds ago.
    Ago(i64),
}

/// The text is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("give a day (`2026-01-31`), a moment (`2026-01-31T09:00:00Z`) or how long ago (`7d`, `12h`)")]
pub struct ParseWhenError;

impl FromStr for When {
    type Err = ParseWhenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ago = |number: &str, hours: i64| {
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let count = number.parse::<i64>().ok().filter(|_| digits)?;
            count.checked_mul(hours)?.checked_mul(3_600_000).map(Self::Ago)
        };
        let short = match (text.strip_suffix('d'), text.strip_suffix('h')) {
            (Some(days), _) => ago(days, 24),
            (_, Some(hours)) => ago(hours, 1),
            _ => None,
        };
        let moment = || Millis::parse(text).or_else(|| Millis::parse(&format!("{text}T00:00:00Z")));
        short.or_else(|| moment().map(Self::At)).ok_or(ParseWhenError)
    }
}

impl When {
    fn millis(self, now: Millis) -> u64 {
        let at = match self {
            Self::At(at) => at.0,
            Self::Ago(ago) => now.0.saturating_sub(ago),
        };
        u64::try_from(at).unwrap_or_default()
    }
}

/// Shows.
///
/// # Errors
/// When core or the key service does not answer.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let costs = args.core.connect()?.costs(&query(&args, Millis::now())).await?;
    if args.json {
        print_json(&costs.rows)?;
        return Ok(Exit::Done);
    }
    if costs.rows.is_empty() {
        note("nothing was used");
        return Ok(Exit::Done);
    }
    print(&table(columns(&args.by, &costs.rows), Output::standard().width))?;
    note(&total(&costs));
    Ok(Exit::Done)
}

fn query(args: &Args, now: Millis) -> String {
    let by: Vec<&str> = args.by.iter().map(|by| by.word()).collect();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("by", &by.join(","));
    for (name, value) in [
        ("run", args.run.as_ref().map(ToString::to_string)),
        ("person", args.person.as_ref().map(ToString::to_string)),
        ("since", args.since.map(|when| when.millis(now).to_string())),
        ("until", args.until.map(|when| when.millis(now).to_string())),
    ] {
        if let Some(value) = value {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}

/// The columns of the rows: what they are by, then the numbers, of which those that matter least go first.
fn columns(by: &[By], rows: &[CostRow]) -> Vec<Column> {
    let numbers = |of: fn(&CostRow) -> u64| rows.iter().map(|row| grouped(of(row))).collect::<Vec<_>>();
    let mut columns: Vec<Column> = Vec::new();
    let mut seen: Vec<By> = Vec::new();
    for by in by {
        if !seen.contains(by) {
            seen.push(*by);
            columns.push(Column::words(by.head(), rows.iter().map(|row| by.of(row)).collect()));
        }
    }
    let cost = rows.iter().map(|row| {
        // What the price table does not know is not free.
        let unknown = if row.unpriced > 0 { "+?" } else { "" };
        format!("{}{unknown}", dollars(row.cost_micros))
    });
    columns.extend([
        Column::numbers("CALLS", numbers(|row| row.calls)).goes(3),
        Column::numbers("IN", numbers(|row| row.input)).goes(4),
        Column::numbers("CACHE+", numbers(|row| row.cache_write)).goes(1),
        Column::numbers("CACHED", numbers(|row| row.cache_read)).goes(2),
        Column::numbers("OUT", numbers(|row| row.output)).goes(5),
        Column::numbers("COST", cost.collect()),
    ]);
    columns
}

/// All rows together, and what must be known of the numbers.
fn total(costs: &CostsAnswer) -> String {
    let sum = |of: fn(&CostRow) -> u64| costs.rows.iter().map(of).fold(0, u64::saturating_add);
    let calls = sum(|row| row.calls);
    let tokens = sum(|row| {
        [row.input, row.output, row.cache_write, row.cache_read].into_iter().fold(0, u64::saturating_add)
    });
    let mut text = format!(
        "{} {}, {} tokens, {}",
        grouped(calls),
        if calls == 1 { "call" } else { "calls" },
        grouped(tokens),
        dollars(sum(|row| row.cost_micros))
    );
    if !costs.prices.is_empty() {
        text = format!("{text} by the prices of {}", one_line(&costs.prices));
    }
    let unsure =
        reservations(calls, sum(|row| row.failed), sum(|row| row.unpriced), sum(|row| row.estimated));
    for reservation in unsure {
        text = format!("{text}; {reservation}");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use console::measure_text_width;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn rows() -> Vec<CostRow> {
        let row = |slot: &str, model: &str, scale: u64, unpriced: u64| CostRow {
            slot: Some(slot.into()),
            model: Some(model.into()),
            calls: 3 * scale,
            failed: 0,
            input: 1_200 * scale,
            output: 400 * scale,
            cache_write: 9_000 * scale,
            cache_read: 80_000 * scale,
            cost_micros: if unpriced > 0 { 0 } else { 150_000 * scale },
            unpriced,
            ..CostRow::default()
        };
        vec![
            row("anthropic", "claude-opus-4-1-20250805", 40, 0),
            row("openrouter", "some-vendor/a-model-\u{1b}[31mof-no-known-price", 1, 3),
        ]
    }

    #[test]
    fn the_table_is_right_in_a_pipe_and_in_a_narrow_terminal() {
        let by = [By::Slot, By::Model];
        let mut seen = String::new();
        for width in [None, Some(80), Some(60), Some(40)] {
            let text = table(columns(&by, &rows()), width);
            let fits = |line: &str| width.is_none_or(|width| measure_text_width(line) <= width);
            assert!(text.lines().all(fits), "{text}");
            let head = width.map_or("a pipe".to_owned(), |width| format!("{width} columns"));
            seen.push_str(&format!("--- {head}\n{text}"));
        }
        let costs = CostsAnswer { rows: rows(), prices: "2026-08-01".into() };
        seen.push_str(&format!("--- the sum\n{}\n", total(&costs)));
        insta::assert_snapshot!(seen);
    }

    #[test]
    fn a_moment_is_read_as_people_write_it() {
        let now = Millis(1_769_817_600_000); // 2026-01-31T00:00:00Z
        for (text, millis) in [
            ("2026-01-31", 1_769_817_600_000),
            ("2026-01-30T23:59:00Z", 1_769_817_540_000),
            ("2026-01-31T01:00:00+01:00", 1_769_817_600_000),
            ("1d", 1_769_731_200_000),
            ("12h", 1_769_774_400_000),
            ("999999d", 0),
        ] {
            assert_eq!(text.parse::<When>().map(|when| when.millis(now)), Ok(millis), "{text}");
        }
        for text in ["", "d", "-1d", "yesterday", "2026-13-01", "2026-02-30", "99999999999999999999d", "+1h"]
        {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_command_line_becomes_one_query() {
        let line = Line::try_parse_from([
            "costs",
            "--by",
            "day,model",
            "--run",
            "r0123456789",
            "--person",
            "ada",
            "--since",
            "2026-01-31",
            "--until",
            "1h",
        ]);
        let asked = query(&line.unwrap().args, Millis(1_769_821_200_000));
        assert_eq!(
            asked,
            "by=day%2Cmodel&run=r0123456789&person=ada&since=1769817600000&until=1769817600000"
        );
        assert!(Line::try_parse_from(["costs", "--by", "price"]).is_err());
        let line = Line::try_parse_from(["costs"]).unwrap();
        assert_eq!(query(&line.args, Millis(0)), "by=slot%2Cmodel");
    }
}
