//! Taking a worktree away: after everything in it is kept, and exactly it. What is on disk is the state, so a removal
//! that stopped half-way goes on where it stopped.

use std::path::{Path, PathBuf};

use super::files::{make_accessible, read_text};
use super::{Backup, Worktree, WorktreeError};
use crate::failure::Explain;

/// What stands in the way of a removal, or does not.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Removal {
    /// Whether the run's branch has everything that is in the tree.
    pub is_on_branch: bool,
    /// Repositories inside the tree whose history holds commits that are nowhere else.
    pub own_history: Vec<String>,
}

/// The worktree is still there, whole or in part; a further try goes on.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Somebody else locked it.
    #[error("the worktree is locked: {reason}")]
    Locked {
        /// What the lock says.
        reason: String,
        /// The lock file.
        file: PathBuf,
    },
    /// Work that a commit of this repository cannot keep.
    #[error("`{}` in the worktree is a repository with commits that are nowhere else", .0.join("`, `"))]
    OwnHistory(Vec<String>),
    /// Something does not go away.
    #[error("`{}` could not be removed", path.display())]
    Stuck {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It could not be kept first.
    #[error("the work in the worktree could not be kept, so it was not removed")]
    NotKept(#[source] WorktreeError),
    /// The run has another operation going, or its folder cannot be used.
    #[error("the worktree could not be removed")]
    Other(#[source] WorktreeError),
}

impl Explain for RemoveError {
    fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "worktree-locked",
            Self::OwnHistory(_) => "worktree-own-history",
            Self::Stuck { .. } => "worktree-stuck",
            Self::NotKept(error) | Self::Other(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Locked { file, .. } => Some(format!("unlock it first: remove `{}`", file.display())),
            Self::OwnHistory(_) => Some("push these commits, or move the folder out of the worktree".into()),
            Self::Stuck { .. } => Some("close what holds it open and try again".into()),
            Self::NotKept(error) | Self::Other(error) => error.hint(),
        }
    }
}

impl Worktree {
    /// What a removal would meet. Changes nothing but the backup's own index.
    ///
    /// # Errors
    /// When the tree or the repository is gone or cannot be read.
    pub async fn removable(&self) -> Result<Removal, WorktreeError> {
        let _lock = self.lock().await?;
        self.check_places()?;
        let footing = self.footing().await?;
        let mut nested = self.stage(&footing.from, true).await?.nested;
        let clones = !nested.is_empty();
        nested.extend(self.submodules(true).await?);
        let tree_is_committed = self.write_tree_of(true).await? == self.tree_of(&footing.from).await?;
        let head_is_on_branch = match &footing.seen {
            Some(seen) => self.contains(seen, &footing.from).await?,
            None => false,
        };
        let own_history = self.with_own_history(&nested).await?;
        Ok(Removal { is_on_branch: tree_is_committed && head_is_on_branch && !clones, own_history })
    }

    /// Keeps everything in the worktree, then takes away its folder and its registration. The branch stays. Other
    /// worktrees, also ones whose folder is not there, are not touched. Works on what is left of a removal that
    /// stopped, and when the folder or the registration is gone already.
    ///
    /// # Errors
    /// When it is locked by somebody else, holds work that cannot be kept, or something in it does not go away.
    pub async fn remove(&self) -> Result<Option<Backup>, RemoveError> {
        let lock_file = self.registration().join("locked");
        if let Some(reason) = read_text(&lock_file)
            && reason != self.lock_reason()
        {
            let reason: String = reason.trim().chars().filter(|c| !c.is_control()).take(200).collect();
            let reason = if reason.is_empty() { "no reason is given".to_owned() } else { reason };
            return Err(RemoveError::Locked { reason, file: lock_file });
        }
        let mut backup = None;
        let half_gone = self.private_path().join("removing");
        if self.private_path().is_dir() && !self.was_made() && !self.registration().join("index").exists() {
            // A start that was stopped: no agent ever ran there.
            self.take_back(true).await;
            if std::fs::symlink_metadata(self.tree()).is_ok() {
                self.take_away().await?;
            }
        } else if self.private_path().is_dir() {
            let _lock = self.lock().await.map_err(RemoveError::Other)?;
            // Once a removal has begun to delete, what is left of the tree is not work any more: it was kept.
            if super::files::is_real_folder(&self.tree()) && !half_gone.exists() {
                backup = Some(self.keep_before_removal().await?);
                std::fs::write(&half_gone, "kept\n")
                    .map_err(|source| RemoveError::Other(WorktreeError::file(&half_gone, source)))?;
            }
            self.take_away().await?;
            let _ = std::fs::remove_file(&half_gone);
        } else if std::fs::symlink_metadata(self.tree()).is_ok() {
            // A tree without our git folder cannot be compared with anything.
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(RemoveError::NotKept(WorktreeError::file(&self.private_path(), missing)));
        } else {
            self.take_away().await?;
        }
        Ok(backup)
    }

    /// Takes a worktree back in which no agent has worked: the folder, the registration, and the branch where it
    /// still stands at its first commit.
    ///
    /// # Errors
    /// As [`Worktree::remove`]. A branch that has moved stays and is no error.
    pub async fn undo(&self) -> Result<(), RemoveError> {
        self.remove().await?;
        if self.private_path().is_dir() {
            let gone = self.on_objects("update-ref").args(["-d", &self.branch.full(), self.base.as_str()]);
            if let Err(error) = gone.run().await {
                tracing::warn!(branch = self.branch.as_str(), %error, "the branch of a run that never was stays");
            }
        }
        Ok(())
    }

    async fn keep_before_removal(&self) -> Result<Backup, RemoveError> {
        self.check_places().map_err(RemoveError::NotKept)?;
        let backup = self.back_up().await.map_err(RemoveError::NotKept)?;
        let own = self.with_own_history(&backup.nested).await.map_err(RemoveError::NotKept)?;
        if own.is_empty() { Ok(backup) } else { Err(RemoveError::OwnHistory(own)) }
    }

    async fn take_away(&self) -> Result<(), RemoveError> {
        let worktree = self.clone();
        let work = move || {
            remove_all(&worktree.tree()).map_err(|(path, source)| RemoveError::Stuck { path, source })?;
            worktree.unregister().map_err(RemoveError::Other)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| RemoveError::Other(WorktreeError::BrokenOff))?
    }

    /// Takes away the registration, when it is this run's.
    pub(super) fn unregister(&self) -> Result<(), WorktreeError> {
        let folder = self.registration();
        if read_text(&folder.join("locked")).is_some_and(|reason| reason != self.lock_reason()) {
            return Ok(());
        }
        if std::fs::symlink_metadata(&folder).is_ok() {
            remove_all(&folder).map_err(|(path, source)| WorktreeError::file(&path, source))?;
        }
        if let Some(parent) = folder.parent() {
            // Git does the same; a folder with another worktree in it is not empty.
            let _ = std::fs::remove_dir(parent);
        }
        Ok(())
    }
}

/// Removes a folder with everything in it, read-only folders too. Links are removed, not followed.
fn remove_all(path: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let Ok(data) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !data.is_dir() {
        return std::fs::remove_file(path).map_err(|error| (path.to_owned(), error));
    }
    match std::fs::remove_dir_all(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => {
            return Err((path.to_owned(), error));
        }
        Err(_) => make_accessible(path),
    }
    std::fs::remove_dir_all(path).map_err(|error| (path.to_owned(), error))
}
