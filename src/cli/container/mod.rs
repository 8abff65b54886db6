//! `worca container`: the clap types of the group, and what all its commands share on the terminal.

use clap::{Args, Subcommand};

use crate::container::boxes::{BoxFiles, DEFAULT_NAME, named};
use crate::container::engine::EngineError;
use crate::container::report::Reporter;
use crate::container::verbs::{GitIdentity, Host, Job};
use crate::failure::{Exit, Explain, Failure};
use crate::git::{Git, host_person};
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
mod rotate;
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
    Rotate(rotate::RotateArgs),
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
    let name = args.name.clone();
    carry_out(args).await.map_err(|failure| match failure.hint() {
        Some(hint) if named(&hint, &name) != hint => Named::of(&failure, named(&hint, &name)).into(),
        _ => failure,
    })
}

/// A failure whose hint names the box that is worked on.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
struct Named {
    sentence: String,
    #[source]
    cause: Option<Cause>,
    code: &'static str,
    hint: String,
    exit: Exit,
}

/// What stood below a failure, in its own words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Named {
    fn of(failure: &Failure, hint: String) -> Self {
        let sentence = failure.sentence();
        let shown = failure.render();
        let causes = shown.split_once("\n  because: ").map(|(_, causes)| causes);
        let causes = causes.map(|text| text.rsplit_once("\n\nhint: ").map_or(text, |(before, _)| before));
        Self {
            cause: causes.map(|text| Cause(text.trim_end().to_owned())),
            code: failure.code(),
            exit: failure.exit(),
            sentence,
            hint,
        }
    }
}

impl Explain for Named {
    fn code(&self) -> &'static str {
        self.code
    }
    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
    fn exit(&self) -> Exit {
        self.exit
    }
}

async fn carry_out(args: ContainerArgs) -> Result<Exit, Failure> {
    let home = Home::find()?;
    let files = BoxFiles::open(&home, &args.name)?;
    // Asked of git only where it is written down or shown: a second `up` must not start a process for nothing.
    let asks = match &args.command {
        Command::Init(_) | Command::Up(_) | Command::Pull(_) => !files.env().exists(),
        Command::Doctor(_) => true,
        _ => false,
    };
    let git = if asks { identity().await } else { GitIdentity::default() };
    let host = Host::of_process(home, git);
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
        Command::Rotate(args) => rotate::run(&job, &args).await,
        Command::Run(args) => run::run(&job, args).await,
        Command::Pull(args) => pull::run(&job, args).await,
        Command::Config(args) => config::run(&job, &args),
        Command::Doctor(args) => doctor::run(&job, args).await,
        Command::Open(args) => open::run(&job, args).await,
    }
}

/// Whose commits the host's git makes; nobody's when there is no git, or it does not know.
async fn identity() -> GitIdentity {
    let Ok(git) = Git::find().await else { return GitIdentity::default() };
    let Ok(Some(person)) = host_person(&git, None).await else { return GitIdentity::default() };
    GitIdentity { name: person.name().to_owned(), email: person.email().to_owned() }
}

/// One JSON document on standard output.
fn print_json(value: &impl serde::Serialize) -> Result<(), EngineError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| EngineError::Output(error.into()))?;
    print(&text)
}

/// Data for standard output. A reader that has gone away is no failure of the command.
fn print(text: &str) -> Result<(), EngineError> {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{text}").map_err(EngineError::Output) {
        Err(error) if !error.is_unread() => Err(error),
        _ => Ok(()),
    }
}

/// A sentence for standard error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
