//! The way back: everything in a tree as a commit under `refs/worca/backup/<run>/`, before the tree goes.

use super::commit::Staged;
use super::{Worktree, WorktreeError, WorktreeNote, nested};
use crate::git::{CommitId, Person};

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Backup {
    /// The ref that keeps it; none when the run's branch has everything.
    pub kept: Option<String>,
    /// How many ignored files and folders are not in it.
    pub ignored: u64,
    /// Folders of the tree that are repositories of their own; their files are in it, their history is not.
    pub nested: Vec<String>,
}

impl Worktree {
    /// Keeps everything in the tree that is not ignored: changed, new and staged files, and the files of repositories
    /// inside it. Ignored files are counted. The tree, the branch and the agent's git stay as they are.
    ///
    /// # Errors
    /// When the tree or the repository is gone or cannot be read.
    pub async fn backup(&self) -> Result<Backup, WorktreeError> {
        let _lock = self.lock().await?;
        self.check_places()?;
        self.back_up().await
    }

    pub(super) async fn back_up(&self) -> Result<Backup, WorktreeError> {
        let footing = self.footing().await?;
        let index = self.private_path().join("index");
        if index.exists() {
            // With the sizes and times that core knows already, only what changed is read.
            let target = self.private_path().join("backup-index");
            let copied = tokio::fs::copy(&index, &target).await;
            copied.map_err(|source| WorktreeError::file(&target, source))?;
        }
        let Staged { mut nested, notes } = self.stage(&footing.from, true).await?;
        for note in notes {
            if let WorktreeNote::LeftOut { what } = note {
                return Err(WorktreeError::BadNames(what));
            }
        }
        nested.extend(self.submodules(true).await?);
        self.add_nested_files(&nested).await?;
        let tree = self.write_tree_of(true).await?;
        let mut parents = vec![footing.from.clone()];
        if let Some(staged) = self.staged_only(&tree, &footing.from).await {
            parents.push(staged);
        }
        let is_saved = parents.len() == 1 && tree == self.tree_of(&footing.from).await?;
        let kept = if is_saved {
            let on_branch = match &footing.seen {
                Some(seen) => self.contains(seen, &footing.from).await?,
                None => false,
            };
            if on_branch { None } else { Some(self.keep(&footing.from, "worca: backup").await?) }
        } else {
            let parents: Vec<&CommitId> = parents.iter().collect();
            let commit =
                self.commit_tree(&tree, &parents, "worca: backup of the worktree", &Person::nobody()).await?;
            Some(self.keep(&commit, "worca: backup").await?)
        };
        Ok(Backup { kept, ignored: self.ignored().await?, nested })
    }

    /// A commit of what the agent staged and then changed or took out of the tree again.
    async fn staged_only(&self, tree: &CommitId, from: &CommitId) -> Option<CommitId> {
        let theirs = self.registration().join("index");
        let copy = self.private_path().join("staged-index");
        if !std::fs::symlink_metadata(&theirs).ok()?.is_file() {
            return None;
        }
        tokio::fs::copy(&theirs, &copy).await.ok()?;
        // An index that cannot be read or is half merged holds nothing that could be kept this way.
        let staged = self.object(self.on_objects("write-tree").env("GIT_INDEX_FILE", &copy)).await.ok();
        let _ = std::fs::remove_file(&copy);
        let staged = staged?;
        if staged == *tree || staged == self.tree_of(from).await.ok()? {
            return None;
        }
        self.commit_tree(&staged, &[from], "worca: what was staged", &Person::nobody()).await.ok()
    }

    /// How many ignored files, or folders with nothing but such, are in the tree.
    async fn ignored(&self) -> Result<u64, WorktreeError> {
        let list = self
            .indexed("ls-files", true)
            .args([
                "-z",
                "--others",
                "--ignored",
                "--exclude-standard",
                "--directory",
                "--no-empty-directory",
            ])
            .run()
            .await?;
        Ok(list.stdout.iter().filter(|byte| **byte == 0).count() as u64)
    }

    async fn add_nested_files(&self, nested: &[String]) -> Result<(), WorktreeError> {
        if nested.is_empty() {
            return Ok(());
        }
        let (tree, folders) = (self.tree(), nested.to_vec());
        let files = tokio::task::spawn_blocking(move || nested::files_below(&tree, &folders))
            .await
            .map_err(|_| WorktreeError::BrokenOff)??;
        // The place of a submodule in the index is a single entry; it makes room for the files.
        let mut out = Vec::new();
        for folder in nested {
            out.extend_from_slice(folder.as_bytes());
            out.push(0);
        }
        self.indexed("update-index", true).args(["-z", "--force-remove", "--stdin"]).input(out).run().await?;
        if !files.is_empty() {
            self.indexed("update-index", true)
                .args(["-z", "--add", "--replace", "--stdin"])
                .input(files)
                .run()
                .await?;
        }
        Ok(())
    }
}
