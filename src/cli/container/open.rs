//! `worca container open`.

use clap::Args;

use super::{print, say};
use crate::cli::browser;
use crate::container::verbs::{CORE, Job, link::link, status::port_now};
use crate::failure::{Exit, Failure};

/// Open the UI in the browser, signed in
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container open\n  worca container open --print")]
pub(super) struct OpenArgs {
    /// Only print the link, which signs one browser in, once
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(job: &Job<'_>, args: OpenArgs) -> Result<Exit, Failure> {
    let engine = job.connect().await?;
    let core = job.running(&engine, CORE).await?;
    let link = link(job, port_now(&core)).await?;
    print(&link.url)?;
    if !args.print && !browser::open(&link.url) {
        say("no browser could be opened here: open the link yourself");
    }
    Ok(Exit::Done)
}
