//! `worca container config`.

use clap::Args;

use super::print;
use crate::container::verbs::{Job, config};
use crate::failure::{Exit, Failure};

/// Print what the compose files come to, merged and checked
///
/// Secrets are named by their files; no value of one is in it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container config --json")]
pub(super) struct ConfigArgs {
    /// Print JSON instead of YAML
    #[arg(long)]
    json: bool,
}

pub(super) fn run(job: &Job<'_>, args: &ConfigArgs) -> Result<Exit, Failure> {
    print(config::config(job, args.json)?.trim_end())?;
    Ok(Exit::Done)
}
