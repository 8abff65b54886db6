//! What goes wrong while a worktree is read or saved, and what a person should hear although nothing went wrong.

use std::path::{Path, PathBuf};

use crate::failure::Explain;
use crate::git::{GitError, PrivateDirError};
use crate::ids::RunId;

/// A worktree could not be read or saved. Nothing of it was taken away.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The tree is not there.
    #[error("the worktree `{}` is gone", .0.display())]
    TreeGone(PathBuf),
    /// The repository is not there.
    #[error("the repository `{}` is gone", .0.display())]
    RepositoryGone(PathBuf),
    /// Files that no commit can hold.
    #[error("git does not take the names of some files: {0}")]
    BadNames(String),
    /// Another operation holds it.
    #[error("run `{0}` is busy: another operation works on its worktree")]
    Busy(RunId),
    /// A file of ours or of the registration.
    #[error("`{}` could not be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Git, on our own git folder.
    #[error("the work in the worktree could not be read or saved")]
    Git(#[from] GitError),
    /// Our own git folder.
    #[error("the git folder of the run could not be made")]
    Private(#[from] PrivateDirError),
    /// A task of ours ended without an answer.
    #[error("the work on the worktree was broken off")]
    BrokenOff,
}

impl WorktreeError {
    pub(super) fn file(path: &Path, source: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

impl Explain for WorktreeError {
    fn code(&self) -> &'static str {
        match self {
            Self::TreeGone(_) => "worktree-gone",
            Self::RepositoryGone(_) => "repository-gone",
            Self::BadNames(_) => "worktree-file-names",
            Self::Busy(_) => "worktree-busy",
            Self::File { .. } => "worktree-file",
            Self::Git(error) => error.code(),
            Self::Private(error) => error.code(),
            Self::BrokenOff => "worktree-broken-off",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::TreeGone(_) => Some("what was committed is on the run's branch".into()),
            Self::RepositoryGone(_) => Some("if the repository was moved, move it back".into()),
            Self::BadNames(_) => Some("rename these files or move them out of the worktree".into()),
            Self::Busy(_) => Some("wait for it and try again".into()),
            Self::File { .. } => Some("see that the disk has room and that the folder belongs to you".into()),
            Self::Git(error) => error.hint(),
            Self::Private(error) => error.hint(),
            Self::BrokenOff => Some("try again".into()),
        }
    }
}

/// Something that a person should know about a run's work; nothing was lost by it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
pub enum WorktreeNote {
    /// A lock file of another git lies in the repository. It is left alone.
    LockFile {
        /// The file.
        path: PathBuf,
        /// How old it is.
        age_seconds: u64,
    },
    /// The branch no longer held what it had held; what it held is under `kept`.
    BranchRewritten {
        /// The ref that keeps it.
        kept: String,
    },
    /// The branch was gone or unreadable and stands again.
    BranchRestored,
    /// The tree stood on another commit or branch than the run's.
    HeadElsewhere {
        /// The ref that keeps the commit, when no branch does.
        kept: Option<String>,
    },
    /// A repository inside the tree is not part of the commit.
    NestedRepository {
        /// Its folder, from the top of the tree.
        path: String,
    },
    /// A file that the agent's git keeps was not as core had written it; the old one was moved aside.
    Repaired {
        /// The file's name.
        what: String,
    },
    /// Files whose names git does not take are not part of the commit.
    LeftOut {
        /// What git says about them.
        what: String,
    },
    /// An attribute in the tree kept git from converting a file; it was taken byte by byte.
    TakenAsItIs {
        /// What git says about it.
        why: String,
    },
    /// A file that the agent's git keeps could not be written anew. The work is saved all the same.
    NotRepaired {
        /// Why.
        why: String,
    },
    /// An operation that was left half-way (a rebase, a merge) was ended; its files were moved aside.
    LeftHalfWay {
        /// The file or folder that showed it.
        what: String,
    },
}

impl std::fmt::Display for WorktreeNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LockFile { path, age_seconds } => {
                write!(
                    f,
                    "another git's lock file `{}` is {age_seconds} s old; it was left alone",
                    path.display()
                )
            }
            Self::BranchRewritten { kept } => {
                write!(f, "the branch was rewritten; what it held is kept as `{kept}`")
            }
            Self::BranchRestored => f.write_str("the branch was gone and was restored"),
            Self::HeadElsewhere { kept: Some(kept) } => {
                write!(f, "the worktree stood on another commit, which is kept as `{kept}`")
            }
            Self::HeadElsewhere { kept: None } => {
                f.write_str("the worktree stood on another branch or commit")
            }
            Self::NestedRepository { path } => {
                write!(f, "`{path}` is a repository of its own and not part of the commit")
            }
            Self::Repaired { what } => write!(f, "`{what}` had been changed and was written anew"),
            Self::LeftOut { what } => write!(f, "git does not take some file names: {what}"),
            Self::TakenAsItIs { why } => write!(f, "a file was taken byte by byte, because git says: {why}"),
            Self::NotRepaired { why } => {
                write!(f, "the worktree's own git files could not be put right: {why}")
            }
            Self::LeftHalfWay { what } => {
                write!(f, "`{what}` showed an operation left half-way; it was moved aside")
            }
        }
    }
}
