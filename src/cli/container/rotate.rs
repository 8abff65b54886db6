//! `worca container rotate`: another vault key for the box.

use clap::Args;

use super::say;
use crate::container::verbs::{Job, rotate};
use crate::failure::{Exit, Failure};

/// Change the vault key of the box, and seal all saved keys with the new one
///
/// The box stays up, and agents at work notice nothing. Broken off at any moment, it loses nothing: call it again. Make a
/// new backup of `secrets/vault_key` afterwards: the old one opens nothing any more.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container rotate")]
pub(super) struct RotateArgs {}

pub(super) async fn run(job: &Job<'_>, _: &RotateArgs) -> Result<Exit, Failure> {
    rotate::rotate(job).await?;
    say("the vault key is another one, and all saved keys are sealed with it");
    Ok(Exit::Done)
}
