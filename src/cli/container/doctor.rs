//! `worca container doctor`.

use clap::Args;
use console::style;

use super::{print, print_json};
use crate::container::verbs::Job;
use crate::container::verbs::doctor::{Finding, doctor};
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
        for check in &report.checks {
            let mark = match check.finding {
                Finding::Good => style("ok  ").green(),
                Finding::Note => style("note").cyan(),
                Finding::Bad => style("BAD ").red().bold(),
            };
            print(&format!("{mark} {:10} {}", check.name, check.sentence))?;
            if let Some(remedy) = &check.remedy {
                print(&format!("                → {remedy}"))?;
            }
        }
    }
    Ok(if report.good { Exit::Done } else { Exit::Failed })
}
