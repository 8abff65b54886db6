//! What a core that was killed left: at start, each run that has not ended gets its work into a commit that
//! nothing forgets, and ends as `interrupted`. Its worktree stays, so that nothing is decided over anybody's head.

use super::Inner;
use super::worktree::Worktree;
use crate::events::{Event, RunStatus};
use crate::failure::Explain as _;
use crate::git::{BranchName, CommitId};
use crate::store::{Run, RunEnd, StoreError};

impl Inner {
    pub(super) async fn recover(&self) -> Result<(), StoreError> {
        for run in self.settings.store.alive_runs().await? {
            tracing::warn!(run = %run.id, status = %run.status, "an earlier core ended under this run");
            let worktree = self.worktree_of(&run).await?;
            let reason = "core ended while the run was at work";
            match (run.status, run.end.verdict) {
                (RunStatus::Preparing, _) => {
                    let reason = self.take_back(&run, &worktree, reason).await?;
                    self.set_status(&run.id, RunStatus::Interrupted, Some(reason)).await?;
                }
                // All was saved and only the end was not told.
                (_, Some(verdict)) if !worktree.tree().exists() => {
                    if worktree.remove().await.is_ok() {
                        self.set_worktree_removed(&run.id).await?;
                    }
                    self.set_status(&run.id, verdict, run.reason).await?;
                }
                _ => self.interrupt(&run, &worktree, reason).await?,
            }
        }
        Ok(())
    }

    /// Saves what is in the worktree under `refs/worca/backup/` and ends the run as `interrupted`.
    pub(super) async fn interrupt(
        &self,
        run: &Run,
        worktree: &Worktree,
        reason: &str,
    ) -> Result<(), StoreError> {
        let reason = self.keep_safe(run, worktree, reason).await?;
        self.set_status(&run.id, RunStatus::Interrupted, Some(reason)).await
    }

    /// No agent has worked yet: what was half made of the worktree goes, and the branch with it.
    async fn take_back(&self, run: &Run, worktree: &Worktree, reason: &str) -> Result<String, StoreError> {
        match worktree.undo().await {
            Ok(()) => {
                self.set_worktree_removed(&run.id).await?;
                Ok(format!("{reason}, before its agent was started"))
            }
            Err(error) => Ok(format!("{reason}; `{}` is left: {error}", worktree.tree().display())),
        }
    }

    async fn keep_safe(&self, run: &Run, worktree: &Worktree, reason: &str) -> Result<String, StoreError> {
        let saved = match worktree.backup().await {
            Ok(saved) => saved,
            Err(error) => {
                tracing::error!(run = %run.id, code = error.code(), %error, "the work could not be backed up");
                return Ok(format!("{reason}; its work is in `{}`: {error}", worktree.tree().display()));
            }
        };
        let end = RunEnd {
            head_commit: worktree.tip().await.ok().map(|tip| tip.as_str().to_owned()),
            backup: saved.kept.clone(),
            ..RunEnd::default()
        };
        self.set_end(&run.id, &end).await?;
        if let Some(kept) = saved.kept {
            let text = format!("what was in the worktree is the commit `{kept}`");
            self.record(&run.id, Event::Note { text }).await?;
        }
        Ok(reason.to_owned())
    }

    /// The worktree of a stored run, made or not.
    pub(super) async fn worktree_of(&self, run: &Run) -> Result<Worktree, StoreError> {
        let (Ok(branch), Ok(base)) = (BranchName::parse(&run.branch), CommitId::parse(&run.base_commit))
        else {
            return Err(StoreError::Foreign { what: "a branch and a commit", value: run.id.to_string() });
        };
        let Some(project) = self.settings.store.project(&run.project).await? else {
            return Err(StoreError::Foreign { what: "a run's project", value: run.project.to_string() });
        };
        let common = project.repository.common_dir;
        let folder = self.settings.home.run(&run.id);
        Ok(Worktree::existing(&self.settings.git, common.as_ref(), &folder, &run.id, branch, base))
    }
}
