//! A run that waits, taken up again or brought to its end: the same worktree, the same branch, the same set, and the
//! agent program's own session where it is still there.

use std::path::Path;
use std::sync::Arc;

use super::create::choice;
use super::drive::Begin;
use super::error::{ResumeRunError, StopRunError};
use super::live::Cause;
use super::outcome::Outcome;
use super::worktree::Worktree;
use super::{Budget, CreateRunError, Inner, Runs};
use crate::agents::claude;
use crate::events::{Event, RunStatus};
use crate::ids::RunId;
use crate::store::{Run, StoreError};

/// How many folders of transcripts are looked into.
const MOST_FOLDERS: usize = 64;

impl Runs {
    /// Starts the agent of a parked or interrupted run again. A budget that is given holds for all its starts.
    ///
    /// # Errors
    /// With the reason; then the run stands where it stood.
    pub async fn resume(&self, id: &RunId, budget: Budget) -> Result<Run, ResumeRunError> {
        let inner = &self.0;
        // Core waits for this at its end, as it waits for the run that comes of it.
        let _making = inner.tasks.token();
        if inner.tasks.is_closed() {
            return Err(ResumeRunError::Refused(CreateRunError::Ending));
        }
        let run = inner.settings.store.run(id).await?.ok_or_else(|| ResumeRunError::Unknown(id.clone()))?;
        match run.status {
            RunStatus::Parked | RunStatus::Interrupted => {}
            RunStatus::Preparing | RunStatus::Running | RunStatus::Finishing => {
                return Err(ResumeRunError::Alive(id.clone()));
            }
            RunStatus::Done | RunStatus::Failed | RunStatus::Stopped => {
                return Err(ResumeRunError::Ended { run: id.clone(), status: run.status });
            }
        }
        let worktree = inner.worktree_of(&run).await?;
        let run = Run { budget: budget.or(run.budget), ..run };
        inner.check_resume(&run, &worktree).await?;
        let asked = inner.live.enter(id).ok_or_else(|| ResumeRunError::Alive(id.clone()))?;
        match inner.settings.store.resume_run(id, run.budget).await {
            Ok(true) => {}
            Ok(false) => {
                inner.live.leave(id);
                return Err(ResumeRunError::Alive(id.clone()));
            }
            Err(error) => {
                inner.live.leave(id);
                return Err(error.into());
            }
        }
        if inner.tasks.is_closed() {
            inner.live.ask(id, Cause::Ending);
        }
        let run = Run { status: RunStatus::Running, reason: None, ended_at: None, ..run };
        let (inner, driven) = (Arc::clone(inner), run.clone());
        self.0.tasks.spawn(async move {
            inner.drive(&driven, &worktree, asked, Begin::Again).await;
            inner.live.leave(&driven.id);
        });
        Ok(run)
    }

    /// Brings a parked run to its end: its work is committed and it is `stopped`.
    pub(super) async fn stop_parked(&self, run: Run) -> Result<(), StopRunError> {
        let inner = Arc::clone(&self.0);
        let _making = inner.tasks.token();
        let worktree = inner.worktree_of(&run).await?;
        if inner.live.enter(&run.id).is_none() {
            return Err(StopRunError::Moving(run.id));
        }
        inner.live.close(&run.id);
        match inner.settings.store.unpark_run(&run.id).await {
            Ok(true) => {}
            other => {
                inner.live.leave(&run.id);
                other?;
                return Err(StopRunError::Moving(run.id));
            }
        }
        self.0.tasks.spawn(async move {
            let outcome = Outcome { cause: Some(Cause::Person), ..Outcome::default() };
            if let Err(error) = inner.conclude(&run, &worktree, outcome).await {
                tracing::error!(run = %run.id, %error, "the run could not be recorded");
            }
            inner.live.leave(&run.id);
        });
        Ok(())
    }
}

impl Inner {
    /// Everything that would only park or fail it again is asked first.
    async fn check_resume(&self, run: &Run, worktree: &Worktree) -> Result<(), ResumeRunError> {
        let mounted = |path: &Path| path.is_dir();
        if !mounted(worktree.common_dir()) {
            return Err(ResumeRunError::NoProject {
                run: run.id.clone(),
                project: run.checkout.clone().into(),
            });
        }
        let tree = worktree.tree();
        if !run.worktree_present || !tree.is_dir() || !worktree.registration().is_dir() {
            return Err(ResumeRunError::NoWorktree { run: run.id.clone(), tree });
        }
        self.resolve(&run.guardrails).await.map_err(ResumeRunError::Refused)?;
        let in_reach = self.keys_in_reach().await.map_err(CreateRunError::Guardrails);
        in_reach.map_err(ResumeRunError::Refused)?;
        Self::check_budget(run, run.budget).map_err(ResumeRunError::Refused)?;
        let choice = choice(run.model.as_deref()).map_err(ResumeRunError::Refused)?;
        self.check_payer(&run.payer, choice).await.map_err(ResumeRunError::Refused)
    }

    /// The session to go on with, when the agent program still has it.
    pub(super) async fn session(&self, run: &Run) -> Result<Option<String>, StoreError> {
        let Some(session) = self.settings.store.last_session(&run.id).await?.and_then(|spawn| spawn.session)
        else {
            return Ok(None);
        };
        let transcripts = self.settings.home.run(&run.id).join("home/.claude/projects");
        let there = claude::is_name(&session) && has_transcript(&transcripts, &session);
        if !there {
            let text = "the agent's earlier session is not there any more: it begins the task anew, in the worktree as it is";
            self.record(&run.id, Event::Note { text: text.into() }).await?;
        }
        Ok(there.then_some(session))
    }
}

/// A link that an earlier agent of the run put in the place of a folder of its own goes, so that the folder is made
/// anew; where it led is left as it is.
pub(super) fn straighten(home: &Path) {
    for name in [".claude", "tmp"] {
        let place = home.join(name);
        if std::fs::symlink_metadata(&place).is_ok_and(|place| !place.is_dir()) {
            let _ = std::fs::remove_file(&place);
        }
    }
}

/// Whether one of the folders of transcripts holds this session.
fn has_transcript(folder: &Path, session: &str) -> bool {
    let name = format!("{session}.jsonl");
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let is_file = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file());
    !session.contains('/')
        && entries.take(MOST_FOLDERS).flatten().any(|entry| is_file(&entry.path().join(&name)))
}

/// What an agent is told that goes on with its session.
pub(super) fn go_on(prompt: &str) -> String {
    format!(
        "You were interrupted before this task was done, and go on now in the same worktree. Look at what is there \
         (`git status`, `git log`), then finish the task. It was:\n\n{prompt}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_gone_on_with_only_where_its_transcript_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("-worca-tree");
        std::fs::create_dir(&one).unwrap();
        assert!(!has_transcript(folder.path(), "abc"));
        std::fs::write(one.join("abc.jsonl"), "{}\n").unwrap();
        assert!(has_transcript(folder.path(), "abc"));
        assert!(!has_transcript(folder.path(), "../-worca-tree/abc"));
        std::fs::create_dir(one.join("folder.jsonl")).unwrap();
        assert!(!has_transcript(folder.path(), "folder"));
        assert!(!has_transcript(&folder.path().join("none"), "abc"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_the_agents_own_folder_goes_and_where_it_led_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (home, other) = (folder.path().join("home"), folder.path().join("other"));
        std::fs::create_dir_all(home.join(".claude/projects")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("kept"), "").unwrap();
        std::os::unix::fs::symlink(&other, home.join("tmp")).unwrap();
        straighten(&home);
        assert!(std::fs::symlink_metadata(home.join("tmp")).is_err());
        assert!(other.join("kept").is_file() && home.join(".claude/projects").is_dir());
    }
}
