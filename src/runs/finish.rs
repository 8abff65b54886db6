//! After the agent: its work becomes a commit, the run gets its result and its end, and the worktree goes when
//! nothing in it would be missed.

use super::outcome::Outcome;
use super::worktree::{Worktree, WorktreeError};
use super::{Cause, Inner, MAX_DIFF};
use crate::events::{Event, RunStatus, cut, cut_to};
use crate::failure::Explain as _;
use crate::git::Person;
use crate::store::{Run, RunEnd, StoreError};

impl Inner {
    /// Commits, measures, ends the run.
    pub(super) async fn finish(
        &self,
        run: &Run,
        worktree: &Worktree,
        outcome: Outcome,
    ) -> Result<(), StoreError> {
        self.set_said(run, &outcome).await?;
        if outcome.cause == Some(Cause::Ending) {
            return self.interrupt(run, worktree, "core was ended while the run was at work").await;
        }
        self.set_status(&run.id, RunStatus::Finishing, None).await?;
        self.conclude(run, worktree, outcome).await
    }

    /// Stores what the agent said at its end. What an earlier agent of this run did is part of it.
    pub(super) async fn set_said(&self, run: &Run, outcome: &Outcome) -> Result<(), StoreError> {
        let before = run.end.turns.unwrap_or_default();
        let said = RunEnd {
            turns: outcome.turns.map(|turns| turns.saturating_add(before)),
            answer: outcome.answer.as_deref().map(cut),
            ..RunEnd::default()
        };
        self.set_end(&run.id, &said).await
    }

    /// The same for a run that is `finishing`: commits, measures, ends it.
    pub(super) async fn conclude(
        &self,
        run: &Run,
        worktree: &Worktree,
        outcome: Outcome,
    ) -> Result<(), StoreError> {
        let mut end = RunEnd::default();
        let (status, reason) = match self.save(run, worktree, &mut end).await {
            Ok(()) => outcome.verdict(),
            Err(SaveError::Store(error)) => return Err(error),
            Err(SaveError::Worktree(error)) => {
                tracing::error!(run = %run.id, code = error.code(), %error, "the work could not be committed");
                let place = worktree.tree();
                let reason =
                    format!("its work could not be committed and is in `{}`: {error}", place.display());
                (RunStatus::Failed, Some(reason))
            }
        };
        // The verdict is on disk before the worktree goes: a start after a kill in between finds it.
        end.verdict = Some(status);
        self.set_end(&run.id, &end).await?;
        if outcome.left == 0 {
            self.remove_if_saved(run, worktree).await?;
        }
        self.set_status(&run.id, status, reason).await
    }

    /// Puts everything on the branch and writes down what changed.
    async fn save(&self, run: &Run, worktree: &Worktree, end: &mut RunEnd) -> Result<(), SaveError> {
        let person = Person::new(&run.author_name, &run.author_email).unwrap_or_else(|_| Person::nobody());
        let saved = worktree.commit_all(&message(run), &person).await?;
        for note in saved.notes {
            self.record(&run.id, Event::Note { text: note.to_string() }).await?;
        }
        let changes = worktree.changes().await?;
        let (insertions, deletions) = changes
            .files
            .iter()
            .filter_map(|file| file.lines)
            .fold((0, 0), |(more, less), (added, removed)| (more + added, less + removed));
        let files = changes.files.len() as u64;
        let diff = worktree.diff(MAX_DIFF).await?;
        let path = self.settings.home.run(&run.id).join("diff.patch");
        tokio::fs::write(&path, diff.text)
            .await
            .map_err(|source| WorktreeError::File { path: path.clone(), source })?;
        end.head_commit = Some(changes.tip.as_str().to_owned());
        end.files_changed = Some(files);
        end.insertions = Some(insertions);
        end.deletions = Some(deletions);
        let commit = changes.tip.as_str().to_owned();
        self.record(&run.id, Event::Committed { commit, files, insertions, deletions }).await?;
        Ok(())
    }

    /// Takes the worktree away when the branch has everything that is in it; else it stays and the run says so.
    async fn remove_if_saved(&self, run: &Run, worktree: &Worktree) -> Result<(), StoreError> {
        let kept_because = match worktree.removable().await {
            Ok(found) if !found.is_on_branch => "not everything in it is on the branch".to_owned(),
            Ok(found) if !found.own_history.is_empty() => {
                format!("`{}` in it has commits of its own", found.own_history.join("`, `"))
            }
            Ok(_) => match worktree.remove().await {
                Ok(_) => return self.set_worktree_removed(&run.id).await,
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let place = worktree.tree();
        let text = format!("the worktree stays in `{}`: {kept_because}", place.display());
        self.record(&run.id, Event::Note { text }).await
    }
}

/// The commit of what the agent left uncommitted: what was asked, and by which run.
fn message(run: &Run) -> String {
    format!("{}\n\nWorca-Run: {}\n", cut_to(&run.title, 72), run.id)
}

#[derive(Debug)]
enum SaveError {
    Worktree(WorktreeError),
    Store(StoreError),
}

impl From<WorktreeError> for SaveError {
    fn from(error: WorktreeError) -> Self {
        Self::Worktree(error)
    }
}

impl From<StoreError> for SaveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
