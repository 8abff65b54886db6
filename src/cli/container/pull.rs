//! `worca container pull`.

use clap::Args;

use super::print;
use crate::container::verbs::{Job, pull as verb};
use crate::failure::{Exit, Failure};

/// Fetch the image of the box from its registry
///
/// `up` does this by itself when the image is not there. An image that was built here cannot be fetched.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container pull")]
pub(super) struct PullArgs {}

pub(super) async fn run(job: &Job<'_>, _args: PullArgs) -> Result<Exit, Failure> {
    for image in verb::pull(job).await? {
        print(&format!("{} {}", image.reference, image.id))?;
    }
    Ok(Exit::Done)
}
