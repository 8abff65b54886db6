//! `worca serve`: core in the foreground.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::cli::client::Core as Client;
use crate::cli::interrupt::Interrupts;
use crate::cli::text::{Output, PrintError, print};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::http;
use crate::keys::reach::Place;
use crate::runs::{Reach, Runs};
use crate::server::assemble::{self, RunSettings};
use crate::server::lock::Holder;
use crate::server::serve::{Settings, Start, start};
use crate::server::token;
use crate::spawn::{adopt_strays, harden_self, keep_sweeping};
use crate::store::Store;

/// Serve the page, the API and the runs
///
/// A second start on the same home says where the first one is and ends with 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca serve --listen 127.0.0.1:4317 --control-file control")]
pub struct Args {
    /// Where to listen
    #[arg(
        long,
        env = "WORCA_LISTEN",
        hide_env_values = true,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4317"
    )]
    pub listen: SocketAddr,
    /// What a browser opens, where that differs from where core listens
    #[arg(long, env = "WORCA_PUBLIC_URL", hide_env_values = true, value_name = "URL")]
    pub public_url: Option<String>,
    /// Answer to this host name too (again for more)
    #[arg(
        long,
        env = "WORCA_ALLOW_HOSTS",
        hide_env_values = true,
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub allow_host: Vec<String>,
    /// Where the key service listens
    #[arg(
        long,
        env = "WORCA_KEYS_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:4318"
    )]
    pub keys_url: String,
    /// The file of the secret for the key service's control part
    #[arg(long, env = "WORCA_CONTROL_FILE", hide_env_values = true, value_name = "FILE")]
    pub control_file: Option<PathBuf>,
    /// The file of the core token; without it, `core-token` in Worca's home, made when it is not there
    #[arg(long, env = "WORCA_CORE_TOKEN_FILE", hide_env_values = true, value_name = "FILE")]
    pub core_token_file: Option<PathBuf>,
    /// Claude Code: a name that PATH holds, or a path
    #[arg(
        long,
        env = "WORCA_CLAUDE",
        hide_env_values = true,
        value_name = "PROGRAM",
        default_value = "claude"
    )]
    pub claude: OsString,
    /// Whose name the commits bear where a repository names nobody
    #[arg(long, env = "WORCA_GIT_NAME", hide_env_values = true, value_name = "NAME", requires = "git_email")]
    pub git_name: Option<String>,
    /// The e-mail address beside that name
    #[arg(
        long,
        env = "WORCA_GIT_EMAIL",
        hide_env_values = true,
        value_name = "ADDRESS",
        requires = "git_name"
    )]
    pub git_email: Option<String>,
    /// Close model and cloud sign-ins in your home to every agent, instead of refusing to start (Linux 6.2 or newer)
    #[arg(
        long,
        env = "WORCA_CLOSE_SIGN_INS",
        hide_env_values = true,
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub close_sign_ins: bool,
    /// The folders that may be worked on, as a JSON list; set in a box
    #[arg(long, env = "WORCA_PROJECTS", hide = true, value_name = "JSON")]
    pub projects: Option<String>,
}

impl Args {
    fn named_token(&self) -> Option<PathBuf> {
        self.core_token_file.clone().filter(|path| !path.as_os_str().is_empty())
    }
}

/// Serves until SIGTERM or Ctrl-C.
///
/// # Errors
/// When core cannot start. Then nothing was changed but what the next start needs anyway.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let home = Home::find()?;
    let projects = assemble::mounted(args.projects.as_deref())?;
    let ours = protected(args.named_token().unwrap_or_else(|| home.core_token()), args.control_file.as_ref());
    let reach = Reach::of_this_process(Some(home.path()), projects.clone(), ours, args.close_sign_ins);
    say_closed(&reach.look()?);
    guard_self();
    let settings = Settings {
        home: home.clone(),
        listen: args.listen,
        // An empty variable is one that is not set: a `.env` file has such lines.
        public_url: args.public_url.clone().filter(|url| !url.is_empty()),
        allow_hosts: args.allow_host.clone(),
        core_token_file: args.named_token(),
    };
    let stop = Stop::listen();
    let output = Output::standard();
    let core = match start(settings, async |store, address| {
        make_runs(&args, &home, store, address, projects, reach).await
    })
    .await?
    {
        Start::Ready(core) => core,
        Start::Running(holder) => {
            already(holder, &args, &home, output).await?;
            return Ok(Exit::Done);
        }
    };
    print(&format!("Worca is ready on {}\n", core.app().public_url()))?;
    if output.terminal {
        print_link(&core.link().url)?;
    }
    let runs = core.app().runs().clone();
    let served = core.serve(stop.wait(), async { runs.shut_down().await });
    tokio::select! {
        () = served => {}
        () = keep_sweeping() => {}
    }
    Ok(Exit::Done)
}

async fn make_runs(
    args: &Args,
    home: &Home,
    store: Store,
    address: SocketAddr,
    projects: Option<Vec<PathBuf>>,
    reach: Reach,
) -> Result<Runs, Failure> {
    let token = args.named_token().unwrap_or_else(|| home.core_token());
    let settings = RunSettings {
        home: home.clone(),
        keys_url: args.keys_url.clone(),
        control_file: args.control_file.clone(),
        claude: args.claude.clone(),
        author: (args.git_name.clone(), args.git_email.clone()),
        projects,
        reach,
        protected: protected(token, args.control_file.as_ref()),
        listen_port: Some(address.port()),
    };
    assemble::runs(settings, store).await
}

/// The policy of an agent holds absolute paths alone.
fn protected(token: PathBuf, control: Option<&PathBuf>) -> Vec<PathBuf> {
    let files = [Some(token), control.cloned()].into_iter().flatten();
    files.filter_map(|file| std::path::absolute(file).ok()).collect()
}

/// Keys that are there and that the kernel closes to agents.
fn say_closed(paths: &[PathBuf]) {
    for path in paths {
        let place = Place::File { path: path.clone(), line: None };
        tracing::info!("{place} holds a key; the kernel closes it to every agent");
    }
}

/// No agent of the same user may read core's memory, and what an agent leaves behind falls to core.
fn guard_self() {
    for (what, done) in [("guard its memory", harden_self()), ("adopt strays", adopt_strays())] {
        if let Err(error) = done {
            tracing::warn!("core could not {what}: {error}");
        }
    }
}

fn print_link(url: &str) -> Result<(), PrintError> {
    print(&format!("Sign in (once, within 10 minutes): {url}\n"))
}

/// Points at the core that runs. On a terminal it gives a new sign-in link too, when that core gives one.
async fn already(holder: Option<Holder>, args: &Args, home: &Home, output: Output) -> Result<(), PrintError> {
    let Some(holder) = holder else {
        return print("Worca is already running on this machine\n");
    };
    print(&format!("Worca is already running on {} (pid {})\n", holder.url, holder.pid))?;
    let path = args.named_token().unwrap_or_else(|| home.core_token());
    if !output.terminal {
        return Ok(());
    }
    if let (Ok(token), Ok(client)) =
        (token::read(&path), http::Client::new(&format!("http://{}", holder.listen)))
        && let Ok(link) = Client::over(client.with_bearer(token)).link().await
    {
        print_link(&link.url)?;
    }
    Ok(())
}

/// The signals that end core, caught from the first moment on.
struct Stop {
    interrupts: Interrupts,
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Stop {
    fn listen() -> Self {
        Self {
            interrupts: Interrupts::listen(),
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok(),
        }
    }
    async fn wait(mut self) {
        #[cfg(unix)]
        if let Some(terminate) = &mut self.terminate {
            tokio::select! {
                _ = terminate.recv() => {}
                () = self.interrupts.next() => {}
            }
            return;
        }
        self.interrupts.next().await;
    }
}
