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

/// What cannot come back was not given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconfirmed {
    #[error("removing {1} of the box `{0}` was not confirmed")]
    No(String, &'static str),
    #[error("`{0}` asks on the terminal, and there is none")]
    NoTerminal(&'static str),
}

impl Explain for Unconfirmed {
    fn code(&self) -> &'static str {
        "not-confirmed"
    }
    fn hint(&self) -> Option<String> {
        Some("`--yes` confirms it; without that option nothing is removed that cannot come back".into())
    }
    fn exit(&self) -> Exit {
        match self {
            Self::No(..) => Exit::Failed,
            Self::NoTerminal(_) => Exit::Usage,
        }
    }
}

pub(super) async fn run(job: &Job<'_>, args: DownArgs) -> Result<Exit, Failure> {
    if args.volumes && !args.yes {
        confirm(job.files.name(), "--volumes", "every run, worktree and saved key")?;
    }
    let done = down(job, args.volumes).await?;
    if args.json {
        print_json(&done)?;
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

/// Asks for the name of the box before `what` of it goes.
pub(super) fn confirm(name: &str, flag: &'static str, what: &'static str) -> Result<(), Unconfirmed> {
    let terminal = Term::stderr();
    if !terminal.is_term() || !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(Unconfirmed::NoTerminal(flag));
    }
    say(&format!("this removes {what} of the box `{name}`. Type its name to go on:"));
    let answer = terminal.read_line().unwrap_or_default();
    if answer.trim() == name { Ok(()) } else { Err(Unconfirmed::No(name.to_owned(), what)) }
}
