//! What goes wrong when git itself is run.

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::{Exit, Explain};

/// Git could not be run, or did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No `git` on the search path.
    #[error("`git` was not found")]
    NotFound,
    /// It is there and does not start.
    #[error("`{}` does not start", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Older than what this program was written for.
    #[error("git {found} is too old: {needed} or newer is needed")]
    TooOld {
        /// What `git --version` says.
        found: String,
        /// The oldest that is taken.
        needed: &'static str,
    },
    /// It ran longer than it may. It was ended, with everything that it had started.
    #[error("`git {command}` did not end within {} s and was stopped", limit.as_secs())]
    TimedOut {
        /// The subcommand.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// It printed more than is taken.
    #[error("`git {command}` printed more than {limit} bytes")]
    TooMuchOutput {
        /// The subcommand.
        command: String,
        /// The limit.
        limit: usize,
    },
    /// It said no.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        /// The subcommand.
        command: String,
        /// The first lines of its standard error, without credentials.
        stderr: String,
        /// Its exit code; none when a signal ended it.
        exit: Option<i32>,
    },
    /// What it printed is not what this subcommand prints.
    #[error("`git {command}` printed something else than {expected}")]
    Unexpected {
        /// The subcommand.
        command: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl GitError {
    /// Whether another git held a lock that this one needed.
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Failed { stderr, .. }
            if stderr.contains(".lock': File exists") || (stderr.contains("Unable to create") && stderr.contains(".lock")))
    }
}

impl Explain for GitError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "git-not-found",
            Self::Start { .. } => "git-does-not-start",
            Self::TooOld { .. } => "git-too-old",
            Self::TimedOut { .. } => "git-timed-out",
            Self::TooMuchOutput { .. } => "git-too-much-output",
            Self::Failed { .. } => "git-failed",
            Self::Unexpected { .. } => "git-unexpected",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound => Some("install git, and see that `git --version` works in this shell".into()),
            Self::Start { .. } => Some("see that `git --version` works in this shell".into()),
            Self::TooOld { .. } => Some("install a newer git".into()),
            Self::TimedOut { .. } => Some("try again; if the repository is very large, run `git gc` in it first".into()),
            Self::Failed { .. } if self.is_locked() => {
                Some("another git is at work in this repository: wait for it, or remove the lock file when none is".into())
            }
            Self::TooMuchOutput { .. } | Self::Failed { .. } | Self::Unexpected { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::NotFound | Self::TooOld { .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}
