//! `worca container up`: the flags, and how the result shows.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use console::style;

use super::down::confirm;
use super::{print, print_json, say};
use crate::container::boxes::named;
use crate::container::verbs::Job;
use crate::container::verbs::prepare::Changes;
use crate::container::verbs::up::{PATIENCE, up};
use crate::failure::{Exit, Failure};

/// Bring the box up, or change it to what is asked
///
/// Writes the compose files, applies them, waits until both services are healthy and prints where the UI is, with a
/// link that signs one browser in. Projects and the image are remembered. A second call changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container up --project ~/dev/api --project ~/dev/web")]
pub(super) struct UpArgs {
    #[command(flatten)]
    flags: ProjectFlags,
    /// Seconds that a service may take to become healthy
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Give up the saved keys of this box, when the key of their vault is lost; asks
    #[arg(long)]
    new_vault: bool,
    /// Do not ask
    #[arg(long, short, requires = "new_vault")]
    yes: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What changes the files of a box.
#[derive(Debug, Args)]
pub(super) struct ProjectFlags {
    /// A project to mount, at the same path inside; again for more
    #[arg(long, value_name = "DIR")]
    project: Vec<PathBuf>,
    /// A folder of projects to mount
    #[arg(long, value_name = "DIR")]
    projects: Vec<PathBuf>,
    /// A folder not to mount any more
    #[arg(long, value_name = "DIR")]
    without_project: Vec<PathBuf>,
    /// The image of the box
    #[arg(long, value_name = "REF")]
    image: Option<String>,
    /// The port of the UI on 127.0.0.1
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

impl ProjectFlags {
    pub(super) fn changes(self) -> Changes {
        Changes {
            projects: self.project.into_iter().chain(self.projects).collect(),
            without: self.without_project,
            image: self.image,
            port: self.port,
            new_vault: false,
        }
    }
}

pub(super) async fn run(job: &Job<'_>, args: UpArgs) -> Result<Exit, Failure> {
    if args.new_vault && !args.yes {
        confirm(job.files.name(), "--new-vault", "every saved key")?;
    }
    let changes = Changes { new_vault: args.new_vault, ..args.flags.changes() };
    let done = up(job, &changes, Duration::from_secs(args.wait)).await?;
    if args.json {
        print_json(&done)?;
        return Ok(Exit::Done);
    }
    say(if done.changed { "the box is up" } else { "the box is up; nothing changed" });
    if done.projects.is_empty() {
        say(&named("no project is mounted yet: `worca container up --project DIR`", job.files.name()));
    }
    match &done.link {
        Some(link) => {
            say(&format!(
                "the UI, on {}; sign in with this link, once, within {} min:",
                style(&done.url).bold(),
                link.expires_in_seconds / 60
            ));
            print(&link.url)?;
        }
        None => print(&done.url)?,
    }
    Ok(Exit::Done)
}
