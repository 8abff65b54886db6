//! `worca stop`: asks a run to stop.

use crate::cli::client::CoreArgs;
use crate::cli::text::note;
use crate::failure::{Exit, Failure};
use crate::ids::RunId;

/// Stop a run
///
/// Its agent is ended with all that it started; the work so far is kept on its branch or in a backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca stop r7k2m9q4xw1")]
pub struct Args {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: RunId,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// Asks, and does not wait for the end.
///
/// # Errors
/// When there is no such run, or it has ended.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    args.core.connect()?.stop(&args.run).await?;
    note(&format!("run {} is stopping; `worca show {}` shows when it has", args.run, args.run));
    Ok(Exit::Done)
}
