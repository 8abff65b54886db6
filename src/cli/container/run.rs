//! `worca container run`: a run inside the box, as if it were here.

use std::io::IsTerminal as _;

use clap::Args;

use super::terminal::{self, Feed};
use crate::container::verbs::{Job, run as verb};
use crate::failure::{Exit, Failure};

/// Run a task in the box
///
/// What follows `--` is a `worca run` command line. The project must be mounted; its path may be relative. The exit
/// code is that of `worca run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  worca container run -- --project ~/dev/api --prompt \"Add a /search endpoint\""
)]
pub(super) struct RunArgs {
    /// Options of `worca run`
    #[arg(last = true, required = true, value_name = "WORCA RUN OPTIONS")]
    arguments: Vec<String>,
}

pub(super) async fn run(job: &Job<'_>, args: RunArgs) -> Result<Exit, Failure> {
    let engine = job.connect().await?;
    let (core, mounted) = verb::core(job, &engine).await?;
    let name = job.files.name();
    let mut inside = tokio::task::block_in_place(|| verb::inside(name, &args.arguments, &mounted))?;
    let has_terminal = terminal::is_there();
    if inside.task.is_none() && !std::io::stdin().is_terminal() {
        inside.task =
            Some(tokio::task::block_in_place(|| verb::from_reader("standard input", std::io::stdin()))?);
    }
    let (mut command, file) = verb::command(&engine, &core, &inside, has_terminal).await?;
    command.environment = terminal::environment();
    let feed = match inside.task {
        Some(task) if !has_terminal => Feed::Bytes(task),
        _ => Feed::Ours,
    };
    let life = engine.life(&core).await?.unwrap_or_default();
    let code = terminal::join(&engine, &command, feed).await;
    if !matches!(code, Ok(code) if code <= 128)
        && verb::has_ended(&engine, &core, &life, code.as_ref().ok().copied()).await
    {
        return Err(verb::RunError::CoreEnded(name.to_owned()).into());
    }
    if let Some(file) = file {
        verb::forget(&engine, &core, &file).await;
    }
    terminal::leave(code?)
}
