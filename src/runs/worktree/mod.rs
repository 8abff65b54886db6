//! The worktree of one run: made, saved, kept safe, taken away. It must never touch the user's checkout, index, stash
//! or HEAD, never prune what is not its own, and never run git on the tree through a file that the agent can write.
//!
//! Core registers the worktree by writing git's own small files (`gitrepository-layout`), locked from the first moment,
//! instead of calling `git worktree add`: that would read the repository's settings, run its hooks and filters, and
//! race other gits for `.git/config.lock`. Filters (Git LFS and the like) are therefore off in both directions: a file
//! that the repository stores as a pointer is a pointer in the tree and comes back as that pointer.

mod backup;
mod changes;
mod commit;
mod create;
mod error;
mod files;
mod first;
mod nested;
mod remove;
mod tips;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use backup::Backup;
pub use changes::{ChangeKind, ChangedFile, Changes, CommitLine, DiffText};
pub use commit::Saved;
pub use create::{CreateError, Created, Names, check_branch_is_free};
pub use error::{WorktreeError, WorktreeNote};
pub use first::FirstFile;
pub use remove::{Removal, RemoveError};

use crate::git::{BranchName, Call, CommitId, Git, GitError, Output, PrivateDir};
use crate::ids::RunId;

/// How long one operation waits for another one on the same worktree.
const LOCK_WAIT: Duration = Duration::from_secs(300);
/// How long one git may work on a tree: the largest are read whole, and a tree can hold a pipe where git expects a file.
const TREE_LIMIT: Duration = Duration::from_secs(900);
/// How often a git that met another git's lock is run again, with a doubling pause from the first.
const LOCK_TRIES: u32 = 8;
/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_millis(40);

/// The worktree of a run. Cheap to copy; holds no file open.
#[derive(Debug, Clone)]
pub struct Worktree {
    git: Git,
    common_dir: PathBuf,
    folder: PathBuf,
    run: RunId,
    branch: BranchName,
    base: CommitId,
}

impl Worktree {
    /// A worktree that [`Worktree::create`] made earlier, from what was written down about it: the shared git folder
    /// of its repository, the run's folder, the branch and the commit that it started from.
    pub fn existing(
        git: &Git,
        common_dir: &Path,
        folder: &Path,
        run: &RunId,
        branch: BranchName,
        base: CommitId,
    ) -> Self {
        Self {
            git: git.clone(),
            common_dir: common_dir.to_owned(),
            folder: folder.to_owned(),
            run: run.clone(),
            branch,
            base,
        }
    }

    /// The folder that the agent works in.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }
    /// The git folder that it shares with the user's checkout.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
    /// Its own folder in there. Beside the tree, the objects and its branch it is all that the agent's git writes.
    pub fn registration(&self) -> PathBuf {
        self.common_dir.join("worktrees").join(self.run.as_str())
    }
    /// The branch that the run's work is on.
    pub fn branch(&self) -> &BranchName {
        &self.branch
    }
    /// The commit that the run started from.
    pub fn base(&self) -> &CommitId {
        &self.base
    }

    /// Core's own git folder for it; no agent may write there.
    fn private_path(&self) -> PathBuf {
        self.folder.join("git")
    }
    fn private(&self) -> PrivateDir {
        PrivateDir::existing(&self.private_path(), &self.tree())
    }
    /// A git on the tree.
    fn on_tree(&self, subcommand: &str) -> Call {
        self.private().call(&self.git, subcommand).time_limit(TREE_LIMIT)
    }
    /// A git on objects and refs alone; works when the tree is gone, and reads no file of it.
    fn on_objects(&self, subcommand: &str) -> Call {
        let nowhere = self.private_path();
        PrivateDir::existing(&nowhere, &nowhere).call(&self.git, subcommand)
    }
    /// The names of refs that keep what nothing else keeps.
    fn backup_prefix(&self) -> String {
        format!("refs/worca/backup/{}", self.run)
    }
    /// What stands in the registration's `locked` file.
    fn lock_reason(&self) -> String {
        format!("worca run {}\n", self.run)
    }

    /// One operation at a time on this worktree, across processes. The kernel frees it when its holder dies.
    async fn lock(&self) -> Result<std::fs::File, WorktreeError> {
        let path = self.private_path().join("worca.lock");
        let failed = |source| WorktreeError::file(&path, source);
        let file = std::fs::File::options().create(true).append(true).open(&path).map_err(failed)?;
        let deadline = tokio::time::Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(std::fs::TryLockError::WouldBlock) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(FIRST_PAUSE).await;
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(WorktreeError::Busy(self.run.clone())),
                Err(std::fs::TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        // Whoever held a git lock in our own folder is dead: it held this lock too.
        for name in ["index.lock", "HEAD.lock", "backup-index.lock"] {
            let _ = std::fs::remove_file(self.private_path().join(name));
        }
        Ok(file)
    }
}

/// Runs a git again for as long as another git holds the lock that it needs.
async fn patiently(call: Call) -> Result<Output, GitError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..LOCK_TRIES {
        match call.clone().run().await {
            Err(error) if error.is_locked() => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            other => return other,
        }
    }
    call.run().await
}

#[cfg(all(test, unix))]
mod tests;
