//! `worca container doctor`.

use clap::Args;

use super::print_json;
use crate::cli::text;
use crate::container::verbs::Job;
use crate::container::verbs::doctor::doctor;
use crate::failure::{Exit, Failure};

/// Check everything that the box needs, and say what to do
///
/// Ends with 1 when something fails.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container doctor --json")]
pub(super) struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(job: &Job<'_>, args: DoctorArgs) -> Result<Exit, Failure> {
    let report = doctor(job).await;
    if args.json {
        print_json(&report)?;
    } else {
        text::print(&text::checks(&report.checks))?;
    }
    Ok(if report.good { Exit::Done } else { Exit::Failed })
}
