//! `worca container down`: asks before anything goes that cannot come back.

use clap::Args;
use console::Term;

use super::{print_json, say};
use crate::container::verbs::Job;
use crate::container::verbs::down::down;
use crate::failure::{Exit, Explain, Failure};

/// Take the box down; its runs and keys stay
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  worca container down\n  worca container down --volumes --yes    # runs and keys go too"
)]
pub(super) struct DownArgs {
    /// Remove the volumes too: every run, worktree and saved key of this box
    #[arg(long)]
    volumes: bool,
    /// Do not ask
    #[arg(long, short, requires = "volumes")]
    yes: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The volumes were not given up.
#[derive(Debug, thiserror::Error)]
enum Unconfirmed {
    #[error("removing the volumes of the box `{0}` was not confirmed")]
    No(String),
    #[error("`--volumes` asks on the terminal, and there is none")]
    NoTerminal,
}

impl Explain for Unconfirmed {
    fn code(&self) -> &'static str {
        "not-confirmed"
    }
    fn hint(&self) -> Option<String> {
        Some("`--yes` confirms it; without `--volumes` runs and keys stay".into())
    }
    fn exit(&self) -> Exit {
        match self {
            Self::No(_) => Exit::Failed,
            Self::NoTerminal => Exit::Usage,
        }
    }
}

pub(super) async fn run(job: &Job<'_>, args: DownArgs) -> Result<Exit, Failure> {
    if args.volumes && !args.yes {
        confirm(job.files.name())?;
    }
    let done = down(job, args.volumes).await?;
    if args.json {
        print_json(&done);
    } else if done.removed.is_empty() {
        say(&format!("the box `{}` was not up", done.name));
    } else {
        say(&format!(
            "the box `{}` is down{}",
            done.name,
            if args.volumes { "" } else { "; its runs and keys are kept" }
        ));
    }
    Ok(Exit::Done)
}

fn confirm(name: &str) -> Result<(), Unconfirmed> {
    let terminal = Term::stderr();
    if !terminal.is_term() || !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(Unconfirmed::NoTerminal);
    }
    say(&format!(
        "this removes every run, worktree and saved key of the box `{name}`. Type its name to go on:"
    ));
    let answer = terminal.read_line().unwrap_or_default();
    if answer.trim() == name { Ok(()) } else { Err(Unconfirmed::No(name.to_owned())) }
}
