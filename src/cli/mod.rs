//! The command line: clap types and terminal output, one file per group of commands. Decides nothing.

pub mod browser;
pub mod budgets;
pub mod client;
pub mod container;
pub mod costs;
pub mod doctor;
pub mod guardrails;
pub mod health;
pub mod hook;
pub mod interrupt;
pub mod keys;
mod log;
pub mod money;
pub mod progress;
pub mod resume;
pub mod run;
pub mod runs;
pub mod scenario;
pub mod serve;
pub mod settings;
pub mod shim;
pub mod show;
pub mod stop;
pub mod table;
pub mod text;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::failure::{Exit, Explain, Failure};

/// Run coding agents in a box that limits them, on branches of their own
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a run is parked, 78 the configuration is refused.
#[derive(Debug, Parser)]
#[command(
    name = "worca",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  worca container up --project ~/dev/api\n  worca container run -- --project ~/dev/api --prompt \"Add a /search endpoint\""
)]
pub struct Cli {
    /// Say more of what happens, on standard error
    #[arg(long, short, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Container(container::ContainerArgs),
    Run(run::Args),
    Runs(runs::Args),
    Show(show::Args),
    Stop(stop::Args),
    Resume(resume::Args),
    Costs(costs::Args),
    Budgets(budgets::BudgetsArgs),
    Settings(settings::SettingsArgs),
    Serve(serve::Args),
    Guardrails(guardrails::GuardrailsArgs),
    Doctor(doctor::Args),
    Keys(keys::KeysArgs),
    Health(health::Args),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example:\n  worca completions bash > ~/.local/share/bash-completion/completions/worca"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Judge one tool call of an agent, given as JSON on standard input
    #[command(hide = true)]
    Hook,
    /// Hold an agent and all that it starts; started by core, never by a person
    #[command(hide = true)]
    Shim,
}

impl Cli {
    /// What the command runs on. The key service has threads of its own, each with a runtime; waking another thread for
    /// each piece of an answer would cost more than the piece.
    pub fn runtime(&self) -> tokio::runtime::Builder {
        match self.command {
            Command::Keys(_) => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        }
    }

    /// Starts the log; what is returned is kept until the end.
    pub fn log(&self) -> impl Sized + use<> {
        log::start(self.verbose, matches!(self.command, Command::Keys(_)))
    }

    /// Does what the command line says.
    ///
    /// # Errors
    /// What the command reports; `main` prints it.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self.command {
            Command::Container(args) => container::run(args).await,
            Command::Run(args) => run::run(args).await,
            Command::Runs(args) => runs::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::Stop(args) => stop::run(args).await,
            Command::Resume(args) => resume::run(args).await,
            Command::Costs(args) => costs::run(args).await,
            Command::Budgets(args) => budgets::run(args).await,
            Command::Settings(args) => settings::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Guardrails(args) => guardrails::run(args),
            Command::Keys(args) => keys::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Health(args) => health::run(args).await,
            Command::Completions { shell } => {
                text::print_bytes(&completions(shell))?;
                Ok(Exit::Done)
            }
            // `early` has them where they are called as they should be.
            Command::Hook | Command::Shim => Err(MisplacedRole.into()),
        }
    }
}

/// The completion script of a shell. It offers no command that the help hides.
fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let whole = Cli::command();
    let mut shown = clap::Command::new("worca")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    // Into memory first: the generator panics when the reader of a pipe has gone away.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, "worca", &mut script);
    script
}

/// `worca -v shim`: a role that other programs start was given an option of ours before its name.
#[derive(Debug, thiserror::Error)]
#[error("`worca shim` and `worca hook` take no option before their name")]
struct MisplacedRole;

impl Explain for MisplacedRole {
    fn code(&self) -> &'static str {
        "role-misplaced"
    }
    fn hint(&self) -> Option<String> {
        Some("core starts the one and the agent program the other; neither is for people".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// The roles that must start in a moment and need no runtime and no parser: `worca shim` and `worca hook`.
/// `main` asks this before anything else; `None` means that the command line is an ordinary one.
pub fn early(arguments: &[OsString]) -> Option<ExitCode> {
    let (role, rest) = arguments.get(1..)?.split_first()?;
    match role.to_str()? {
        "shim" => Some(shim::run(rest)),
        "hook" => Some(hook::run(rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
