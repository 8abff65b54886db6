//! `worca container shell`: a shell inside, for a person to look around.

use clap::Args;

use super::terminal::{self, Feed};
use crate::container::engine::exec::Command;
use crate::container::verbs::{CORE, Job, KEYS};
use crate::failure::{Exit, Failure};

/// Open a shell in the box, or run one command there
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container shell\n  worca container shell core -- git --version")]
pub(super) struct ShellArgs {
    /// The service
    #[arg(default_value = CORE, value_parser = [CORE, KEYS])]
    service: String,
    /// A command instead of the shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(job: &Job<'_>, args: ShellArgs) -> Result<Exit, Failure> {
    let engine = job.connect().await?;
    let container = job.running(&engine, &args.service).await?.name;
    let argv = if args.command.is_empty() { vec!["bash".into()] } else { args.command };
    let environment = terminal::environment();
    let command = Command { container, argv, environment, folder: None, terminal: terminal::is_there() };
    terminal::leave(terminal::join(&engine, &command, Feed::Ours).await?)
}
