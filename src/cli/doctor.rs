//! `worca doctor`: what holds agents on this machine when they run without a box.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use super::text::{checks, print, print_json};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::runs::doctor::doctor;

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
        print(&checks(&report.checks))?;
    }
    Ok(if report.good { Exit::Done } else { Exit::Failed })
}
