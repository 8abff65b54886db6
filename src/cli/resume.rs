//! `worca resume`: takes a waiting run up again and follows it as `worca run` does.

use crate::cli::client::CoreArgs;
use crate::cli::interrupt::Interrupts;
use crate::cli::progress::Progress;
use crate::cli::run::{follow_to_end, leave};
use crate::cli::text::{Output, print};
use crate::failure::{Exit, Failure};
use crate::ids::RunId;
use crate::runs::Budget;
use crate::server::wire::ResumeRun;

/// Take a parked or interrupted run up again
///
/// Its agent is started again on the same worktree and branch, under the same guardrail set, and goes on with its
/// own session where it had one. A run whose budget is spent goes on with a larger one: what was spent before counts. Ends as `worca run` does: 0 when the run is done, 1 when it failed or was stopped,
/// 3 when it waits again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  worca resume r7k2m9q4xw1\n  worca resume r7k2m9q4xw1 --budget 10")]
pub struct Args {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: RunId,
    /// What it may spend from now on, over all its starts: dollars (5, 0.25), tokens (200000tokens) or none
    #[arg(long, value_name = "AMOUNT", value_parser = Budget::parse)]
    pub budget: Option<Budget>,
    /// Print each event as a line of JSON, and the run at the end
    #[arg(long)]
    pub json: bool,
    /// Do not follow the run
    #[arg(long)]
    pub detach: bool,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// Resumes.
///
/// # Errors
/// When core refuses it; then the run stands where it stood.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let core = args.core.connect()?;
    // Asked first: what the run did before is not shown again.
    let after = core.status().await?.last_event;
    let wanted = ResumeRun { budget: args.budget.map(|budget| budget.to_string()) };
    let interrupts = Interrupts::listen();
    let run = core.resume(&args.run, &wanted).await?;
    if args.detach {
        return leave(&run, args.json);
    }
    let output = Output::standard();
    let progress = Progress::new(output);
    if !args.json {
        print(&format!("{}\n", progress.head(&run)))?;
    }
    let follower = core.follow_after(&args.run, after);
    follow_to_end(&core, &args.run, follower, output, args.json, interrupts, false).await
}
