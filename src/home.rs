//! Where Worca keeps its things: one folder, `WORCA_HOME` or `~/.worca`. Paths only; nothing is read here.

use std::path::{Path, PathBuf};

use crate::failure::{Exit, Explain};
use crate::ids::RunId;

/// Worca's own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

/// No folder can be named.
#[derive(Debug, thiserror::Error)]
pub enum FindHomeError {
    /// Neither variable is there.
    #[error("neither `WORCA_HOME` nor a home folder is set")]
    Unset,
    /// A relative one would move with the working folder.
    #[error("`WORCA_HOME` is `{0}`, which is not an absolute path")]
    Relative(String),
}

impl Explain for FindHomeError {
    fn code(&self) -> &'static str {
        "home-unknown"
    }
    fn hint(&self) -> Option<String> {
        Some("set `WORCA_HOME` to an absolute path".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

impl Home {
    /// The folder that the environment names.
    ///
    /// # Errors
    /// When there is none, or a relative one.
    pub fn find() -> Result<Self, FindHomeError> {
        if let Some(set) = std::env::var_os("WORCA_HOME").filter(|value| !value.is_empty()) {
            let path = PathBuf::from(set);
            if path.is_relative() {
                return Err(FindHomeError::Relative(path.display().to_string()));
            }
            return Ok(Self(path));
        }
        std::env::home_dir().map(|home| Self(home.join(".worca"))).ok_or(FindHomeError::Unset)
    }
    /// This folder, wherever it is (tests, roles with a flag of their own).
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// The database of core.
    pub fn database(&self) -> PathBuf {
        self.0.join("worca.db")
    }
    /// What core holds while it serves, and says where it listens.
    pub fn serve_lock(&self) -> PathBuf {
        self.0.join("serve.lock")
    }
    /// The core token of a core that runs without a box. In the box it is a mounted secret.
    pub fn core_token(&self) -> PathBuf {
        self.0.join("core-token")
    }
    /// Everything of one run.
    pub fn run(&self, run: &RunId) -> PathBuf {
        self.0.join("runs").join(run.as_str())
    }
    /// The compose files, secrets and state of a box: `container` for the default one, beside it for others.
    pub fn container(&self, name: &str) -> PathBuf {
        if name == "worca" { self.0.join("container") } else { self.0.join("containers").join(name) }
    }
    /// The user's own guardrail sets, one file each.
    pub fn guardrails(&self) -> PathBuf {
        self.0.join("guardrails")
    }
    /// The vault of a key service that runs without a box.
    pub fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }
}
