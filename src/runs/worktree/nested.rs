//! Repositories inside the tree: submodules that were filled, and clones that the agent made. Git never descends into
//! one with that one's settings; core looks at its files, and at its history through a git folder of its own.

use std::path::{Component, Path, PathBuf};

use super::files::{is_real_folder, read_text};
use super::{Worktree, WorktreeError};
use crate::git::{CommitId, GitError, PrivateDir};

/// The most files of repositories inside the tree that are kept in a backup.
const MOST_FILES: usize = 200_000;

impl Worktree {
    /// The submodules of core's index that have files in the tree.
    pub(super) async fn submodules(&self, for_backup: bool) -> Result<Vec<String>, WorktreeError> {
        let list = self.indexed("ls-files", for_backup).args(["-z", "--stage"]).run().await?.stdout;
        let tree = self.tree();
        let mut found = Vec::new();
        for entry in list.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
            let entry = String::from_utf8_lossy(entry);
            if let Some((_, path)) = entry.split_once('\t')
                && std::fs::symlink_metadata(tree.join(path).join(".git")).is_ok()
            {
                found.push(path.to_owned());
            }
        }
        Ok(found)
    }

    /// Those of the folders whose history holds commits that are nowhere else.
    pub(super) async fn with_own_history(&self, folders: &[String]) -> Result<Vec<String>, WorktreeError> {
        let mut found = Vec::new();
        for folder in folders {
            if !self.is_published(folder).await? {
                found.push(folder.clone());
            }
        }
        Ok(found)
    }

    /// Whether every commit of the repository in this folder is on a remote of it. What cannot be read is not.
    async fn is_published(&self, folder: &str) -> Result<bool, WorktreeError> {
        let Some(git_dir) = self.nested_git_dir(folder) else { return Ok(false) };
        let view = self.private_path().join("nested");
        if view.exists() {
            std::fs::remove_dir_all(&view).map_err(|source| WorktreeError::file(&view, source))?;
        }
        let Some(head) = read_text(&git_dir.join("HEAD")) else { return Ok(false) };
        let head = head.trim();
        if CommitId::parse(head).is_err() && !head.starts_with("ref: refs/heads/") {
            return Ok(false);
        }
        if PrivateDir::make(&self.git, &git_dir, &view, &view, head).await.is_err() {
            return Ok(false);
        }
        let unpublished = PrivateDir::existing(&view, &view)
            .call(&self.git, "rev-list")
            .args([
                "--max-count=1",
                "--ignore-missing",
                "HEAD",
                "--branches",
                "--tags",
                "--glob=refs/stash",
                "--not",
                "--remotes",
            ])
            .text()
            .await;
        let _ = std::fs::remove_dir_all(&view);
        match unpublished {
            Ok(text) => Ok(text.trim().is_empty()),
            Err(GitError::Failed { .. } | GitError::Unexpected { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The git folder of a repository inside the tree, when it is inside the tree or the registration.
    fn nested_git_dir(&self, folder: &str) -> Option<PathBuf> {
        let place = self.tree().join(folder);
        let dot_git = place.join(".git");
        let git_dir = if is_real_folder(&dot_git) {
            dot_git
        } else {
            place.join(read_text(&dot_git)?.strip_prefix("gitdir:")?.trim())
        };
        let git_dir = git_dir.canonicalize().ok()?;
        let tree = self.tree().canonicalize().ok()?;
        let registration = self.registration().canonicalize().ok()?;
        let inside = git_dir.starts_with(&tree) || git_dir.starts_with(registration.join("modules"));
        (inside && git_dir.join("objects").is_dir()).then_some(git_dir)
    }
}

/// Every file and link below these folders of the tree, as paths from its top with a zero byte after each. Folders
/// named `.git` are left out, links are not followed.
pub(super) fn files_below(tree: &Path, folders: &[String]) -> Result<Vec<u8>, WorktreeError> {
    let mut list = Vec::new();
    let mut count = 0usize;
    let mut open: Vec<PathBuf> = folders
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))))
        .collect();
    while let Some(folder) = open.pop() {
        let place = tree.join(&folder);
        let failed = |source| WorktreeError::file(&place, source);
        if !is_real_folder(&place) {
            // A name that is not text, or a folder that went away meanwhile: not kept means not said to be kept.
            return Err(failed(std::io::ErrorKind::NotFound.into()));
        }
        for entry in std::fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name.eq_ignore_ascii_case(".git") {
                continue;
            }
            let path = folder.join(&name);
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                count += 1;
                if count > MOST_FILES {
                    return Err(failed(std::io::Error::other("it holds too many files to keep")));
                }
                list.extend_from_slice(path.as_os_str().as_encoded_bytes());
                list.push(0);
            }
        }
    }
    Ok(list)
}
