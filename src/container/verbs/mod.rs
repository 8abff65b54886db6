//! What each `worca container` command does, as a function that a test can call: no terminal, no exit, no printing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::boxes::{BoxFiles, BoxLock, State};
use super::engine::found::FoundContainer;
use super::engine::{Engine, Surroundings, discover};
use super::projects::Forbidden;
use super::report::Reporter;
use super::secrets::Owner;
use crate::failure::{Exit, Explain, Failure};
use crate::home::Home;

pub mod config;
pub mod doctor;
pub mod down;
pub mod link;
pub mod login;
pub mod prepare;
pub mod pull;
pub mod rotate;
pub mod run;
mod same_home;
pub mod status;
pub mod up;
pub mod vault;

/// The service that runs core.
pub const CORE: &str = "core";
/// The service that holds the keys.
pub const KEYS: &str = "keys";

/// What the host says, read once at the edge.
#[derive(Debug, Clone)]
pub struct Host {
    /// Worca's own folder.
    pub home: Home,
    /// The user's home folder.
    pub user_home: Option<PathBuf>,
    /// What leads to an engine.
    pub surroundings: Surroundings,
    /// The environment, for variables in compose files.
    pub environment: BTreeMap<String, String>,
    /// The path of this program.
    pub program: Option<PathBuf>,
    /// Who called it.
    pub user: Owner,
    /// Name and address of the user's commits; empty when git does not know.
    pub git: GitIdentity,
}

/// Whose commits a box makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitIdentity {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
}

impl Host {
    /// That of this process.
    pub fn of_process(home: Home, git: GitIdentity) -> Self {
        #[cfg(unix)]
        let user = Owner { uid: rustix::process::getuid().as_raw(), gid: rustix::process::getgid().as_raw() };
        #[cfg(not(unix))]
        let user = Owner { uid: 1000, gid: 1000 };
        let environment = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
        Self {
            home,
            user_home: std::env::home_dir(),
            surroundings: Surroundings::of_process(),
            environment: environment.collect(),
            program: std::env::current_exe().ok(),
            user,
            git,
        }
    }
    /// What no box of this host may mount.
    pub fn forbidden(&self, engine: Option<&Engine>) -> Forbidden {
        let socket = engine.and_then(|engine| match &engine.address {
            super::engine::Address::Unix(path) => Some(path.clone()),
            super::engine::Address::Tcp(_) | super::engine::Address::Pipe(_) => None,
        });
        Forbidden { home: self.user_home.clone(), worca: Some(self.home.path().to_path_buf()), socket }
    }
}

/// One command on one box.
pub struct Job<'a> {
    /// The host.
    pub host: &'a Host,
    /// The box.
    pub files: BoxFiles,
    /// The value of `--engine`.
    pub engine: Option<String>,
    /// Who is told what happens.
    pub report: &'a dyn Reporter,
}

/// A command needs a box that is up.
#[derive(Debug, thiserror::Error)]
pub enum NotUp {
    /// It was never made, or taken down.
    #[error("the box `{0}` is not up")]
    Absent(String),
    /// A service of it does not run.
    #[error("`{service}` of the box `{name}` does not run ({state})")]
    Stopped {
        /// The box.
        name: String,
        /// The service.
        service: String,
        /// What it is doing.
        state: &'static str,
    },
}

impl Explain for NotUp {
    fn code(&self) -> &'static str {
        "box-not-up"
    }
    fn hint(&self) -> Option<String> {
        let (Self::Absent(name) | Self::Stopped { name, .. }) = self;
        let named = super::boxes::flag(name);
        Some(format!("bring it up with `worca container up{named}`"))
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl Job<'_> {
    /// Finds the engine and passes on what is worth knowing about it.
    ///
    /// # Errors
    /// When there is none.
    pub async fn connect(&self) -> Result<Engine, Failure> {
        let found = discover(self.engine.as_deref(), &self.host.surroundings).await?;
        if let Some(notice) = &found.notice {
            self.report.warn(notice);
        }
        Ok(found.engine)
    }
    /// The running container of a service.
    ///
    /// # Errors
    /// When the box is not up, or the service does not run.
    pub async fn running(&self, engine: &Engine, service: &str) -> Result<FoundContainer, Failure> {
        let name = self.files.name().to_owned();
        let all = engine.look_at_containers(&name).await?;
        let mut ours = all.into_iter().filter(|one| one.ours && !one.one_off);
        let Some(one) = ours.find(|one| one.service == service) else {
            return Err(NotUp::Absent(name).into());
        };
        if one.state != super::engine::found::State::Running {
            return Err(NotUp::Stopped { name, service: service.to_owned(), state: one.state.word() }.into());
        }
        Ok(one)
    }
    /// Holds the box for a change, and says so when another command has it. Blocks.
    ///
    /// # Errors
    /// When the other one does not end in time.
    pub fn hold(&self) -> Result<BoxLock, Failure> {
        let waits = || self.report.note("waiting for another `worca container` command on this box to end");
        Ok(self.files.lock_telling("box", &waits)?)
    }
    /// What the box remembers.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn state(&self) -> Result<State, Failure> {
        Ok(self.files.load_state()?)
    }
}
