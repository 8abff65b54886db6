//! `worca guardrails delete`: a set that nothing stands on and no run needs.

use crate::cli::text::note;
use crate::failure::{Exit, Failure};
use crate::guardrails::{OwnSets, SetName};
use crate::home::Home;
use crate::store;

/// Delete a guardrail set of your own
///
/// Refused while another set extends it, and while a run needs it: one that is at work, that waits, or that can be
/// taken up again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails delete payments")]
pub struct Args {
    /// The set
    #[arg(value_name = "NAME")]
    pub name: SetName,
}

/// Deletes.
///
/// # Errors
/// When there is no such set, it is a tier, something needs it, or the file cannot be deleted.
pub fn run(args: &Args, sets: &OwnSets, home: &Home) -> Result<Exit, Failure> {
    let runs = store::runs_that_need_set(&home.database(), args.name.as_str())?;
    sets.delete(&args.name, runs)?;
    note(&format!("the guardrail set `{}` is deleted", args.name));
    Ok(Exit::Done)
}
