//! `worca container`: the clap types of the group, and what all its commands share on the terminal.

use clap::{Args, Subcommand};

use crate::container::boxes::{BoxFiles, DEFAULT_NAME};
use crate::container::report::Reporter;
use crate::container::verbs::{GitIdentity, Host, Job};
use crate::failure::{Exit, Failure};
use crate::home::Home;

mod config;
mod doctor;
mod down;
mod init;
mod login;
mod logs;
mod open;
mod progress;
mod pull;
mod run;
mod shell;
mod status;
mod terminal;
mod up;

/// Bring up, use and take down the box
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:\n  worca container up --project ~/dev/api\n  worca container login\n  worca container run -- --project ~/dev/api --prompt \"Add a /search endpoint\""
)]
pub struct ContainerArgs {
    /// The name of the box; each has its own port, volumes and keys
    #[arg(long, global = true, default_value = DEFAULT_NAME, value_name = "NAME")]
    name: String,
    /// The engine's address, such as unix:///var/run/docker.sock; found by itself when not given
    #[arg(long, global = true, value_name = "ADDRESS")]
    engine: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArgs),
    Up(up::UpArgs),
    Down(down::DownArgs),
    Status(status::StatusArgs),
    Logs(logs::LogsArgs),
    Shell(shell::ShellArgs),
    Login(login::LoginArgs),
    Run(run::RunArgs),
    Pull(pull::PullArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Open(open::OpenArgs),
}

/// Does what the command line says.
///
/// # Errors
/// What the command reports; `main` prints it.
pub async fn run(args: ContainerArgs) -> Result<Exit, Failure> {
    let home = Home::find()?;
    let host = Host::of_process(home, GitIdentity::default());
    let files = BoxFiles::open(&host.home, &args.name)?;
    let report = progress::reporter();
    let report: &dyn Reporter = report.as_ref();
    let job = Job { host: &host, files, engine: args.engine, report };
    match args.command {
        Command::Init(args) => init::run(&job, args),
        Command::Up(args) => up::run(&job, args).await,
        Command::Down(args) => down::run(&job, args).await,
        Command::Status(args) => status::run(&job, args).await,
        Command::Logs(args) => logs::run(&job, args).await,
        Command::Shell(args) => shell::run(&job, args).await,
        Command::Login(args) => login::run(&job, args).await,
        Command::Run(args) => run::run(&job, args).await,
        Command::Pull(args) => pull::run(&job, args).await,
        Command::Config(args) => config::run(&job, &args),
        Command::Doctor(args) => doctor::run(&job, args).await,
        Command::Open(args) => open::run(&job, args).await,
    }
}

/// One JSON document on standard output.
fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print(&text);
}

/// Data for standard output. A reader that has gone away is no failure of the command.
fn print(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A sentence for standard error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
