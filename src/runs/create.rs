//! From what a person asks to a run with a worktree: everything that can refuse it is asked first, then the
//! intention is stored, then it is made; a failure takes back exactly what was made.

use std::path::{Path, PathBuf};

use super::pay::checked_models;
use super::worktree::{Names, Worktree, check_branch_is_free};
use super::{CreateRunError, Inner, MAX_PROMPT, NewRun, scenario};
use crate::agents::claude;
use crate::clock::Millis;
use crate::events::{Event, RunStatus, cut_to};
use crate::git::{BranchName, Person, Repository, host_person};
use crate::guardrails::SetName;
use crate::ids::RunId;
use crate::keys::slot::Choice;
use crate::store::{NewProject, Run, RunEnd};

/// The longest title, in bytes.
const MAX_TITLE: usize = 100;

impl Inner {
    pub(super) async fn make(&self, new: NewRun) -> Result<(Run, Worktree), CreateRunError> {
        if self.tasks.is_closed() {
            return Err(CreateRunError::Ending);
        }
        let prompt = checked_prompt(&new.prompt)?;
        let guardrails = match &new.guardrails {
            Some(name) => self.resolve(name).await?.name,
            None => self.resolve(SetName::default().as_str()).await?.name,
        };
        self.keys_in_reach().await.map_err(CreateRunError::Guardrails)?;
        let model = new.model.as_deref().map(checked_model).transpose()?;
        let models = checked_models(new.models)?;
        let choice = choice(model.as_deref())?;
        scenario::check(&choice, new.scenario.as_deref())?;
        let folder = self.checked_project(&new.project)?;
        let repository =
            Repository::open(&self.settings.git, &folder).await.map_err(CreateRunError::Repository)?;
        let author = self.author(&repository).await?;
        self.check_payer(&new.payer, choice).await?;
        let budget = new.budget.or(self.standing_budget().await?);

        let id = RunId::random();
        let title = title(new.title.as_deref(), prompt);
        let branch = BranchName::of_run(&id, &title);
        check_branch_is_free(&self.settings.git, &repository, &branch)
            .await
            .map_err(CreateRunError::Worktree)?;

        let identity = repository.identity();
        let project = self
            .settings
            .store
            .register_project(NewProject {
                common_dir: identity.common_dir.display().to_string(),
                checkout: repository.top().display().to_string(),
                first_commit: identity.root.as_ref().map(ToString::to_string).unwrap_or_default(),
                origin: identity.origin.clone(),
            })
            .await?;
        let run = Run {
            id: id.clone(),
            project: project.id,
            checkout: project.repository.checkout,
            title,
            prompt: prompt.to_owned(),
            model,
            guardrails: guardrails.as_str().to_owned(),
            payer: new.payer,
            budget,
            models,
            author_name: author.name().to_owned(),
            author_email: author.email().to_owned(),
            branch: branch.as_str().to_owned(),
            base_commit: repository.head().as_str().to_owned(),
            status: RunStatus::Preparing,
            reason: None,
            created_at: Millis::now(),
            ended_at: None,
            end: RunEnd::default(),
            worktree_present: true,
        };
        self.settings.store.insert_run(run.clone()).await?;

        let names = Names { run: id.clone(), folder: self.settings.home.run(&id), branch };
        let created = match Worktree::create(&self.settings.git, &repository, names).await {
            Ok(created) => created,
            Err(error) => {
                self.forget(&id).await;
                return Err(CreateRunError::Worktree(error));
            }
        };
        if let Some(text) = new.scenario
            && let Err(source) = tokio::fs::write(self.scenario_file(&id), text).await
        {
            self.take_down(&id, &created.worktree).await;
            return Err(CreateRunError::Keep(source));
        }
        let made = Event::Worktree { branch: run.branch.clone(), base: run.base_commit.clone() };
        let notes = created.notes.into_iter().map(|note| Event::Note { text: note.to_string() });
        for event in std::iter::once(made).chain(notes) {
            // Not `record`: the caller is told of a full disk at once.
            if let Err(error) = self.settings.store.append_event(&id, event).await {
                self.take_down(&id, &created.worktree).await;
                return Err(error.into());
            }
        }
        Ok((run, created.worktree))
    }

    /// Takes back a worktree and its run.
    async fn take_down(&self, id: &RunId, worktree: &Worktree) {
        if let Err(left) = worktree.undo().await {
            tracing::error!(run = %id, error = %left, "a worktree could not be taken back");
        }
        self.forget(id).await;
    }

    /// Takes back the row of a run that was not made. The next start of core does it where this one cannot.
    async fn forget(&self, id: &RunId) {
        if let Err(error) = self.settings.store.forget_unmade_run(id).await {
            tracing::error!(run = %id, %error, "a run that was not made could not be forgotten");
        }
    }

    /// The folder as it is on disk, if it is one of those that may be worked on.
    fn checked_project(&self, project: &Path) -> Result<PathBuf, CreateRunError> {
        if project.is_relative() {
            return Err(CreateRunError::Relative(project.to_owned()));
        }
        let Some(mounted) = &self.settings.mounted else { return Ok(project.to_owned()) };
        // What is not mounted is not there, so a path that cannot be followed is judged as it was typed.
        let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        if mounted.iter().any(|mount| real.starts_with(mount)) {
            return Ok(real);
        }
        Err(CreateRunError::NotMounted { project: project.to_owned(), mounted: mounted.clone() })
    }

    /// Who the repository says, else who core was told.
    async fn author(&self, repository: &Repository) -> Result<Person, CreateRunError> {
        let named =
            host_person(&self.settings.git, Some(repository)).await.map_err(CreateRunError::Author)?;
        named.or_else(|| self.settings.person.clone()).ok_or(CreateRunError::NoPerson)
    }
}

fn checked_prompt(prompt: &str) -> Result<&str, CreateRunError> {
    let prompt = prompt.trim();
    match prompt.len() {
        0 => Err(CreateRunError::EmptyPrompt),
        length if length > MAX_PROMPT => Err(CreateRunError::LongPrompt(length)),
        _ => Ok(prompt),
    }
}

/// A model's name goes into an argument of the agent program.
fn checked_model(name: &str) -> Result<String, CreateRunError> {
    if claude::is_name(name) {
        return Ok(name.to_owned());
    }
    Err(CreateRunError::Model(name.chars().take(60).collect()))
}

/// The slot that a run with this model needs, and what it plays.
pub(super) fn choice(model: Option<&str>) -> Result<Choice, CreateRunError> {
    let refused = |_| CreateRunError::Model(model.unwrap_or_default().chars().take(60).collect());
    Choice::for_model(model).map_err(refused)
}

/// The title that was given, or the prompt's first line; one line, no control characters.
fn title(given: Option<&str>, prompt: &str) -> String {
    let line = given.map(str::trim).filter(|title| !title.is_empty()).unwrap_or(prompt);
    let line = line.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("run");
    let clean: String = line.chars().filter(|character| !character.is_control()).collect();
    cut_to(clean.trim(), MAX_TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_plain_line() {
        assert_eq!(title(None, "\n  Add a /search endpoint\nand tests"), "Add a /search endpoint");
        assert_eq!(title(Some("  "), "do it"), "do it");
        assert_eq!(title(Some("a\u{1b}[31mb"), "x"), "a[31mb");
        assert!(title(None, &"é".repeat(400)).len() <= MAX_TITLE + '…'.len_utf8());
    }

    #[test]
    fn a_model_name_cannot_be_taken_for_a_flag() {
        for name in ["claude-sonnet-4-5", "rehearsal/hello", "vendor/model:tag", "opus[1m]"] {
            assert!(checked_model(name).is_ok(), "{name}");
        }
        for name in ["", "--dangerously-skip-permissions", "-p", "a b", "a\nb", "ü"] {
            assert!(checked_model(name).is_err(), "{name}");
        }
    }
}
