//! `worca container init`: the files alone.

use clap::Args;

use super::{print, say, up::ProjectFlags};
use crate::container::boxes::named;
use crate::container::verbs::{Job, prepare};
use crate::failure::{Exit, Failure};

/// Write the box's files and start nothing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container init --project ~/dev/api")]
pub(super) struct InitArgs {
    #[command(flatten)]
    flags: ProjectFlags,
}

pub(super) fn run(job: &Job<'_>, args: InitArgs) -> Result<Exit, Failure> {
    let _held = job.hold()?;
    prepare::prepare(job, &args.flags.changes(), None, None)?;
    prepare::load(job, None)?;
    print(&job.files.folder().display().to_string())?;
    say(&named("the files are written; `worca container up` starts the box", job.files.name()));
    Ok(Exit::Done)
}
