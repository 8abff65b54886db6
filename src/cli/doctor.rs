//! `worca doctor`: what holds agents on this machine when they run without a box.

use std::ffi::OsString;

use clap::Args as ClapArgs;
use console::style;

use super::text::{print, print_json};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::runs::doctor::{Finding, doctor};

/// Check what this machine holds agents with when they run without a box
///
/// Ends with 1 when something is missing that the default guardrail set, or every run, needs.
/// `worca container doctor` looks at the box.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  worca doctor --json")]
pub struct Args {
    /// The agent program, a name or a path
    #[arg(long, env = "WORCA_CLAUDE", value_name = "PROGRAM", default_value = "claude")]
    claude: OsString,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When standard output cannot be written.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let home = Home::find().ok();
    let report = doctor(home.as_ref(), &args.claude).await;
    if args.json {
        print_json(&report)?;
    } else {
        for check in &report.checks {
            let mark = match check.finding {
                Finding::Good => style("ok  ").green(),
                Finding::Note => style("note").cyan(),
                Finding::Bad => style("BAD ").red().bold(),
            };
            print(&format!("{mark} {:8} {}\n", check.name, check.sentence))?;
            if let Some(remedy) = &check.remedy {
                print(&format!("              → {remedy}\n"))?;
            }
        }
    }
    Ok(if report.good { Exit::Done } else { Exit::Failed })
}
