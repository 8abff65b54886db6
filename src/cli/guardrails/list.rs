//! `worca guardrails list`: every set of this home, the broken ones too.

use std::fmt::Write as _;

use console::{Alignment, measure_text_width, pad_str, truncate_str};

use crate::cli::text::{Output, note, one_line, print, print_json};
use crate::failure::{Exit, Failure};
use crate::guardrails::{Library, Listed, Origin, OwnSets, Tier};

/// The width when standard output is no terminal.
const WIDE: usize = 120;
/// Below this many columns only name, tier and origin are shown.
const NARROW: usize = 72;

/// List the guardrail sets
///
/// TIER is the tightest tier that a set contains, with every rule and every limit, whatever it is called or made from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails list --json")]
pub struct Args {
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// One set, as it is listed.
#[derive(Debug, serde::Serialize)]
pub struct SetLine {
    /// Its name.
    pub name: String,
    /// `worca` or the path of its file.
    pub origin: String,
    /// The sets that it extends, the nearest first.
    pub extends: Vec<String>,
    /// The tightest tier that it contains.
    pub tier: Option<&'static str>,
    /// How many deny rules it comes to.
    pub rules: Option<usize>,
    /// What is wrong with it.
    pub error: Option<String>,
}

impl SetLine {
    fn of(listed: &Listed, library: &Library) -> Self {
        let origin = match &listed.origin {
            Origin::Tier(_) => "worca".into(),
            Origin::Own(path) => path.display().to_string(),
        };
        let mut line =
            Self { name: listed.name.clone(), origin, extends: vec![], tier: None, rules: None, error: None };
        match library.outcome(listed) {
            Ok(set) => {
                line.extends = set.extends.iter().map(ToString::to_string).collect();
                line.tier = library.tier_of(&set).map(Tier::as_str);
                line.rules = Some(set.rules.len());
            }
            Err(error) => line.error = Some(error),
        }
        line
    }
}

/// Lists.
///
/// # Errors
/// When the folder of the user's own sets cannot be read.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let library = sets.library()?;
    let lines: Vec<SetLine> = library.all().map(|listed| SetLine::of(listed, &library)).collect();
    if args.json {
        print_json(&lines)?;
        return Ok(Exit::Done);
    }
    print(&table(&lines, Output::standard()))?;
    for line in &lines {
        if let Some(error) = &line.error {
            note(&format!("broken: {}", one_line(error)));
        }
    }
    Ok(Exit::Done)
}

/// The table. The last column takes what the others leave.
pub fn table(lines: &[SetLine], output: Output) -> String {
    let width = output.width.unwrap_or(WIDE);
    let wide = width >= NARROW;
    let longest =
        lines.iter().map(|line| measure_text_width(&one_line(&line.name))).max().unwrap_or_default();
    let longest = longest.clamp(4, if wide { width.saturating_sub(58).clamp(14, 40) } else { 16 });
    let mut text = String::new();
    let mut row = |cells: [&str; 5]| {
        let [name, tier, rules, extends, origin] = cells;
        let name = truncate_str(name, longest, "…");
        let mut line = format!(
            "{}  {}  ",
            pad_str(&name, longest, Alignment::Left, None),
            pad_str(tier, 10, Alignment::Left, None)
        );
        if wide {
            let rules = pad_str(rules, 5, Alignment::Right, None);
            let extends = truncate_str(extends, 24, "…");
            let _ = write!(line, "{rules}  {}  ", pad_str(&extends, 24, Alignment::Left, None));
        }
        let left = width.saturating_sub(measure_text_width(&line)).max(8);
        let _ = writeln!(text, "{}", format!("{line}{}", truncate_str(origin, left, "…")).trim_end());
    };
    row(["NAME", "TIER", "RULES", "EXTENDS", "ORIGIN"]);
    for line in lines {
        let rules = line.rules.map(|rules| rules.to_string()).unwrap_or_default();
        let tier = if line.error.is_some() { "broken" } else { line.tier.unwrap_or("none") };
        let (name, origin) = (one_line(&line.name), one_line(&line.origin));
        row([&name, tier, &rules, &line.extends.join(", "), &origin]);
    }
    text
}
