//! `worca guardrails diff`: in what two sets differ, each with all that it extends.

use std::fmt::Write as _;

use console::Style;

use crate::cli::text::{Output, note, print, print_json};
use crate::failure::{Exit, Failure};
use crate::guardrails::{Difference, OwnSets, SetName};

/// Show in what two guardrail sets differ
///
/// `-` is what the first has alone, `+` what the second has alone, each set taken with all that it extends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails diff normal strict")]
pub struct Args {
    /// The one
    #[arg(value_name = "SET")]
    pub first: SetName,
    /// The other
    #[arg(value_name = "SET")]
    pub second: SetName,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Compares.
///
/// # Errors
/// When one of them does not exist or is broken.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let library = sets.library()?;
    let difference = library.resolve(&args.first)?.difference(&library.resolve(&args.second)?);
    if args.json {
        print_json(&difference)?;
    } else if difference.is_empty() {
        note(&format!("`{}` and `{}` deny and limit the same", args.first, args.second));
    } else {
        print(&text(&difference, Output::standard()))?;
    }
    Ok(Exit::Done)
}

/// The difference as lines.
pub fn text(difference: &Difference, output: Output) -> String {
    let mut text = String::new();
    let mut line = |sign: &str, style: Style, what: &str| {
        let _ = writeln!(text, "{}", output.paint(style, &format!("{sign} {what}")));
    };
    for limit in &difference.limits {
        line("-", Style::new().red(), &format!("{}: {}", limit.limit, limit.first));
        line("+", Style::new().green(), &format!("{}: {}", limit.limit, limit.second));
    }
    let pairs = [
        ("-", Style::new().red(), &difference.only_first),
        ("+", Style::new().green(), &difference.only_second),
    ];
    for (sign, style, rules) in pairs {
        for rule in rules {
            line(sign, style.clone(), &format!("deny.{}: {}", rule.kind.as_str(), rule.pattern));
        }
    }
    text
}
