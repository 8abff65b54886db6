//! Which Claude Code is installed: asked once and recorded with the run.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::failure::Explain;

/// Longest wait for `claude --version`, which takes 0.1 s when the file is warm.
const LIMIT: Duration = Duration::from_secs(20);

/// A version as it was printed: three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads `2.1.332 (Claude Code)`; anything else is not this program.
    pub fn parse(line: &str) -> Option<Self> {
        let (number, name) = line.trim().split_once(' ')?;
        if name != "(Claude Code)" {
            return None;
        }
        let mut parts = number.split('.').map(|part| part.parse().ok());
        let version = Self { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(version)
    }
}

/// The program did not say its version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be run at all.
    #[error("`{program}` could not be run")]
    Run {
        /// As it was asked for.
        program: String,
        /// From the system.
        #[source]
        source: std::io::Error,
    },
    /// It was silent.
    #[error("`{program} --version` did not answer in 20 s")]
    Silent {
        /// As it was asked for.
        program: String,
    },
    /// It is something else.
    #[error("`{program} --version` did not answer like Claude Code")]
    Other {
        /// As it was asked for.
        program: String,
    },
}

impl Explain for VersionError {
    fn code(&self) -> &'static str {
        "claude-version"
    }
    fn hint(&self) -> Option<String> {
        Some("install it with `npm install -g @anthropic-ai/claude-code`, or use `worca container up`".into())
    }
}

/// Asks the program, with an empty environment but for `PATH`: it sees no settings of the user.
///
/// # Errors
/// When it is missing, silent or another program.
#[expect(clippy::disallowed_methods, reason = "asks for a version; runs no agent and reads no repository")]
pub async fn version(program: &OsStr) -> Result<Version, VersionError> {
    let name = || program.to_string_lossy().into_owned();
    let failed = |source| VersionError::Run { program: name(), source };
    let mut child = tokio::process::Command::new(program)
        .arg("--version")
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let read = async { stdout.take(4096).read_to_end(&mut said).await };
        match tokio::time::timeout(LIMIT, read).await {
            Ok(result) => result.map_err(failed)?,
            Err(_) => return Err(VersionError::Silent { program: name() }),
        };
    }
    // It has said all; a program that stays is ended by the drop.
    let _ = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
    Version::parse(&String::from_utf8_lossy(&said)).ok_or_else(|| VersionError::Other { program: name() })
}
