//! Where the run's branch and the worktree's HEAD stand, and how the branch is moved. Both can be written by the
//! agent; what core saw last is in the run's own folder.

use std::path::PathBuf;

use super::files::{read_text, replace};
use super::{Worktree, WorktreeError, patiently};
use crate::git::{CommitId, GitError};

impl Worktree {
    /// The commit that a name leads to, if there is one.
    pub(super) async fn commit_at(&self, name: &str) -> Result<Option<CommitId>, WorktreeError> {
        let spec = format!("{name}^{{commit}}");
        match self
            .on_objects("rev-parse")
            .args(["--verify", "--quiet", "--end-of-options", &spec])
            .text()
            .await
        {
            Ok(text) => Ok(CommitId::parse(&text).ok()),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the branch stands; nothing when it is gone, unreadable, or made to stand for another ref.
    pub(super) async fn branch_tip(&self) -> Result<Option<CommitId>, WorktreeError> {
        let stands_for_another =
            self.on_objects("symbolic-ref").args(["--quiet", &self.branch.full()]).yes_or_no().await;
        match stands_for_another {
            Ok(true) => Ok(None),
            // Exit code 128 is a ref that cannot be read.
            Ok(false) | Err(GitError::Failed { .. }) => self.commit_at(&self.branch.full()).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Where the worktree's HEAD stands, when that is not simply the run's branch.
    pub(super) async fn head_elsewhere(&self) -> Result<Option<CommitId>, WorktreeError> {
        let Some(text) = self.head_text() else { return Ok(None) };
        let text = text.trim();
        match text.strip_prefix("ref:").map(str::trim) {
            Some(name) if name == self.branch.full() => Ok(None),
            Some(name) if name.starts_with("refs/heads/") => self.commit_at(name).await,
            Some(_) => Ok(None),
            None => match CommitId::parse(text) {
                Ok(commit) => self.commit_at(commit.as_str()).await,
                Err(_) => Ok(None),
            },
        }
    }

    /// Whether everything in `old` is in `new` too.
    pub(super) async fn contains(&self, new: &CommitId, old: &CommitId) -> Result<bool, WorktreeError> {
        if new == old {
            return Ok(true);
        }
        let call = self.on_objects("merge-base").args(["--is-ancestor", old.as_str(), new.as_str()]);
        match call.yes_or_no().await {
            Ok(answer) => Ok(answer),
            // A commit whose history is not all there: not known to be contained.
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The tree of a commit.
    pub(super) async fn tree_of(&self, commit: &CommitId) -> Result<CommitId, WorktreeError> {
        self.object(self.on_objects("rev-parse").args([
            "--verify",
            "--end-of-options",
            &format!("{commit}^{{tree}}"),
        ]))
        .await
    }

    /// Runs a git that prints one object id.
    pub(super) async fn object(&self, call: crate::git::Call) -> Result<CommitId, WorktreeError> {
        let text = call.text().await?;
        let id = text.lines().next().and_then(|line| CommitId::parse(line).ok());
        Ok(id.ok_or(GitError::Unexpected { command: "rev-parse".into(), expected: "an object id" })?)
    }

    /// Moves the run's branch from where it was seen to another commit; a branch that is unreadable is made anew.
    pub(super) async fn move_branch(
        &self,
        seen: Option<&CommitId>,
        to: &CommitId,
        why: &str,
    ) -> Result<(), WorktreeError> {
        if seen == Some(to) {
            return self.remember_tip(to);
        }
        let mut old = seen.cloned();
        if old.is_none() {
            // Our own branch's file, which holds nothing that git can read. What it held last is remembered.
            let file = self.branch_file();
            if std::fs::symlink_metadata(&file).is_ok_and(|data| !data.is_dir()) {
                std::fs::remove_file(&file).map_err(|source| WorktreeError::file(&file, source))?;
            }
            old = self.branch_tip().await?;
        }
        let old = old.as_ref().map_or("", CommitId::as_str);
        let call = self.on_objects("update-ref").args([
            "--no-deref",
            "-m",
            why,
            &self.branch.full(),
            to.as_str(),
            old,
        ]);
        patiently(call).await?;
        self.remember_tip(to)
    }

    /// Keeps a commit under a ref of ours and gives the ref's name; one that is kept already is not kept twice.
    pub(super) async fn keep(&self, commit: &CommitId, why: &str) -> Result<String, WorktreeError> {
        let list = self
            .on_objects("for-each-ref")
            .args(["--format=%(objectname) %(refname)", &format!("{}/", self.backup_prefix())])
            .text()
            .await?;
        let mut number = 1u32;
        for line in list.lines() {
            let Some((object, name)) = line.split_once(' ') else { continue };
            if object == commit.as_str() {
                return Ok(name.to_owned());
            }
            let last = name.rsplit('/').next().and_then(|number| number.parse::<u32>().ok());
            number = number.max(last.unwrap_or(0).saturating_add(1));
        }
        let name = format!("{}/{number}", self.backup_prefix());
        let call = self.on_objects("update-ref").args(["--no-deref", "-m", why, &name, commit.as_str(), ""]);
        patiently(call).await?;
        Ok(name)
    }

    fn branch_file(&self) -> PathBuf {
        self.common_dir.join("refs").join("heads").join(self.branch.as_str())
    }

    fn tip_file(&self) -> PathBuf {
        self.private_path().join("worca-tip")
    }

    /// Whether the making of the worktree came to its end.
    pub(super) fn was_made(&self) -> bool {
        self.tip_file().exists()
    }

    /// Where core saw or put the branch last.
    pub(super) fn last_tip(&self) -> CommitId {
        read_text(&self.tip_file())
            .and_then(|text| CommitId::parse(&text).ok())
            .unwrap_or_else(|| self.base.clone())
    }

    pub(super) fn remember_tip(&self, tip: &CommitId) -> Result<(), WorktreeError> {
        replace(&self.tip_file(), format!("{tip}\n").as_bytes())
    }
}
