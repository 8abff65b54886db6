//! `worca guardrails`: the sets of this Worca home, and what one of them would say. One file per verb. No core need
//! run; where one runs, it reads the same files at the next start of an agent.

pub mod check;
pub mod copy;
pub mod delete;
pub mod diff;
pub mod edit;
pub mod explain;
pub mod list;
pub mod new;
pub mod show;
#[cfg(test)]
mod tests;

use crate::failure::{Exit, Failure};
use crate::guardrails::OwnSets;
use crate::home::Home;

/// Show, write and try guardrail sets
///
/// A set says what agents may not do. `permissive`, `normal` (what a run gets that names none) and `strict` come with
/// Worca; your own extend one of them and lie in `guardrails` of Worca's home, one file each.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  worca guardrails list\n  worca guardrails new payments --from strict\n  worca guardrails check --set payments -- 'git push'"
)]
pub struct GuardrailsArgs {
    #[command(subcommand)]
    command: GuardrailsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GuardrailsCommand {
    List(list::Args),
    Show(show::Args),
    New(new::Args),
    Edit(edit::Args),
    Copy(copy::Args),
    Delete(delete::Args),
    Diff(diff::Args),
    Check(check::Args),
    Explain(explain::Args),
}

/// Does what the command line says.
///
/// # Errors
/// What the verb reports.
pub fn run(args: GuardrailsArgs) -> Result<Exit, Failure> {
    let home = Home::find()?;
    let sets = OwnSets::at(home.guardrails());
    match args.command {
        GuardrailsCommand::List(args) => list::run(&args, &sets),
        GuardrailsCommand::Show(args) => show::run(&args, &sets),
        GuardrailsCommand::New(args) => new::run(&args, &sets),
        GuardrailsCommand::Edit(args) => edit::run(&args, &sets),
        GuardrailsCommand::Copy(args) => copy::run(&args, &sets),
        GuardrailsCommand::Delete(args) => delete::run(&args, &sets, &home),
        GuardrailsCommand::Diff(args) => diff::run(&args, &sets),
        GuardrailsCommand::Check(args) => check::run(args, &sets, &home),
        GuardrailsCommand::Explain(args) => explain::run(&args, &sets),
    }
}
