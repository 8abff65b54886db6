//! Runs: what was asked, where it stands, what came of it. A change of status and the event that tells of
//! it are one transaction.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError, events};
use crate::amount::{Amount, Unit};
use crate::clock::Millis;
use crate::events::{Event, RunStatus};
use crate::ids::{PersonId, ProjectId, RunId};

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The project that it works on.
    pub project: ProjectId,
    /// The checkout of that project.
    pub checkout: String,
    /// A short line for people.
    pub title: String,
    /// What was asked.
    pub prompt: String,
    /// The model that was asked for; the agent program's own choice when none was.
    pub model: Option<String>,
    /// The guardrail set.
    pub guardrails: String,
    /// Who pays for it.
    pub payer: PersonId,
    /// The most that it may spend, over all its starts.
    pub budget: Option<Amount>,
    /// The models that it may use, as names in which `*` stands for anything; every model when there is none.
    pub models: Vec<String>,
    /// Who the commits are by: name.
    pub author_name: String,
    /// Who the commits are by: address.
    pub author_email: String,
    /// The branch, short.
    pub branch: String,
    /// The commit that it starts from.
    pub base_commit: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Why, where that is not plain.
    pub reason: Option<String>,
    /// When it was asked for.
    pub created_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// What came of it so far.
    pub end: RunEnd,
    /// Whether its worktree is still there.
    pub worktree_present: bool,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunEnd {
    /// The tip of its branch.
    pub head_commit: Option<String>,
    /// Files changed against the base.
    pub files_changed: Option<u64>,
    /// Lines added.
    pub insertions: Option<u64>,
    /// Lines removed.
    pub deletions: Option<u64>,
    /// What it cost by the key service's books, in millionths of a US dollar. Runs of the first versions have what
    /// their agent program said.
    pub cost_micros: Option<u64>,
    /// Tokens of every kind.
    pub tokens: Option<u64>,
    /// Turns of the model.
    pub turns: Option<u64>,
    /// The agent's last words.
    pub answer: Option<String>,
    /// The ref of a backup commit, when there is one.
    pub backup: Option<String>,
    /// The end that it will have once its worktree is dealt with.
    pub verdict: Option<RunStatus>,
}

const COLUMNS: &str = "SELECT runs.*, projects.checkout AS checkout FROM runs
                       JOIN projects ON projects.id = runs.project_id";

/// The same for a list: without the prompt and the agent's last words, which can be long.
const LISTED: &str = "SELECT runs.id, project_id, title, '' AS prompt, model, guardrails, author_name, author_email,
                          payer, budget, budget_unit, models, branch, base_commit, status, reason, created_at,
                          ended_at, head_commit, files_changed, insertions, deletions, cost_micros, tokens, turns,
                          NULL AS answer, backup, verdict, worktree,
                          projects.checkout AS checkout
                      FROM runs JOIN projects ON projects.id = runs.project_id";

/// The runs that need the set ?1 still.
pub(super) const NEED_SET: &str = "SELECT id FROM runs WHERE guardrails = ?1
                                       AND (status IN ('preparing', 'running', 'finishing', 'parked')
                                            OR status = 'interrupted' AND worktree = 'present')
                                   ORDER BY created_at";

fn read(row: &Row<'_>) -> rusqlite::Result<Result<Run, StoreError>> {
    let id: String = row.get("id")?;
    let project: String = row.get("project_id")?;
    let status: String = row.get("status")?;
    let (payer, models): (String, String) = (row.get("payer")?, row.get("models")?);
    let (Ok(id), Ok(project), Some(status), Ok(payer), Ok(models)) = (
        RunId::parse(&id),
        ProjectId::parse(&project),
        RunStatus::parse(&status),
        PersonId::parse(&payer),
        serde_json::from_str(&models),
    ) else {
        return Ok(Err(StoreError::Foreign { what: "a run", value: id }));
    };
    let unit = row.get::<_, Option<String>>("budget_unit")?.as_deref().and_then(Unit::parse);
    let budget = unit.zip(row.get("budget")?).map(|(unit, value)| Amount::of(unit, value));
    Ok(Ok(Run {
        id,
        project,
        status,
        checkout: row.get("checkout")?,
        title: row.get("title")?,
        prompt: row.get("prompt")?,
        model: row.get("model")?,
        guardrails: row.get("guardrails")?,
        payer,
        budget,
        models,
        author_name: row.get("author_name")?,
        author_email: row.get("author_email")?,
        branch: row.get("branch")?,
        base_commit: row.get("base_commit")?,
        reason: row.get("reason")?,
        created_at: Millis(row.get("created_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Millis),
        end: RunEnd {
            head_commit: row.get("head_commit")?,
            files_changed: row.get("files_changed")?,
            insertions: row.get("insertions")?,
            deletions: row.get("deletions")?,
            cost_micros: row.get("cost_micros")?,
            tokens: row.get("tokens")?,
            turns: row.get("turns")?,
            answer: row.get("answer")?,
            backup: row.get("backup")?,
            verdict: row.get::<_, Option<String>>("verdict")?.as_deref().and_then(RunStatus::parse),
        },
        worktree_present: row.get::<_, String>("worktree")? == "present",
    }))
}

impl Store {
    /// Stores a new run in status `preparing`, with the event.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn insert_run(&self, run: Run) -> Result<(), StoreError> {
        let seq = self
            .write(move |tx| {
                tx.execute(
                    "INSERT INTO runs (id, project_id, title, prompt, model, guardrails, author_name,
                         author_email, branch, base_commit, status, created_at, worktree, payer, budget,
                         budget_unit, models)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'present', ?13, ?14, ?15, ?16)",
                    params![
                        run.id.as_str(),
                        run.project.as_str(),
                        run.title,
                        run.prompt,
                        run.model,
                        run.guardrails,
                        run.author_name,
                        run.author_email,
                        run.branch,
                        run.base_commit,
                        RunStatus::Preparing.as_str(),
                        run.created_at.0,
                        run.payer.as_str(),
                        run.budget.map(Amount::value),
                        run.budget.map(|budget| budget.unit().as_str()),
                        serde_json::json!(run.models).to_string(),
                    ],
                )?;
                let event = Event::Status { status: RunStatus::Preparing, reason: None };
                events::append(tx, &run.id, &event)
            })
            .await?;
        self.announce(seq);
        Ok(())
    }

    /// Takes back a run whose worktree could not be made: it never was.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn forget_unmade_run(&self, id: &RunId) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute("DELETE FROM runs WHERE id = ?1 AND status = 'preparing'", params![id.as_str()])?;
            Ok(())
        })
        .await
    }

    /// Moves a run on, with the event, in one transaction. An ended run stays ended: then this does nothing
    /// and gives `false`.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn set_run_status(
        &self,
        id: &RunId,
        status: RunStatus,
        reason: Option<String>,
    ) -> Result<bool, StoreError> {
        let id = id.clone();
        let seq = self
            .write(move |tx| {
                // A parked run has not ended: it waits.
                let ended = status.is_end() && status != RunStatus::Parked;
                let ended_at = ended.then(|| Millis::now().0);
                let changed = tx.execute(
                    "UPDATE runs SET status = ?2, reason = ?3, ended_at = ?4
                     WHERE id = ?1 AND status IN ('preparing', 'running', 'finishing')",
                    params![id.as_str(), status.as_str(), reason, ended_at],
                )?;
                if changed == 0 {
                    return Ok(None);
                }
                events::append(tx, &id, &Event::Status { status, reason }).map(Some)
            })
            .await?;
        if let Some(seq) = seq {
            self.announce(seq);
        }
        Ok(seq.is_some())
    }

    /// Takes up a run again that waits or that an earlier core left, with the event and what it may spend from now
    /// on, in one transaction. It gives `false` and does nothing when the run stands elsewhere or its worktree is
    /// gone.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn resume_run(&self, id: &RunId, budget: Option<Amount>) -> Result<bool, StoreError> {
        let from = "status IN ('parked', 'interrupted') AND worktree = 'present'";
        self.reopen_run(id, RunStatus::Running, from, Some(budget)).await
    }

    /// Brings a parked run to its end, with the event: it is `finishing` then. It gives `false` and does nothing
    /// when the run is not parked.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn unpark_run(&self, id: &RunId) -> Result<bool, StoreError> {
        self.reopen_run(id, RunStatus::Finishing, "status = 'parked'", None).await
    }

    async fn reopen_run(
        &self,
        id: &RunId,
        to: RunStatus,
        from: &'static str,
        budget: Option<Option<Amount>>,
    ) -> Result<bool, StoreError> {
        let id = id.clone();
        let seq = self
            .write(move |tx| {
                // An earlier verdict is of an earlier end.
                let changed = tx.execute(
                    &format!(
                        "UPDATE runs SET status = ?2, reason = NULL, ended_at = NULL, verdict = NULL
                         WHERE id = ?1 AND {from}"
                    ),
                    params![id.as_str(), to.as_str()],
                )?;
                if changed == 0 {
                    return Ok(None);
                }
                if let Some(budget) = budget {
                    tx.execute(
                        "UPDATE runs SET budget = ?2, budget_unit = ?3 WHERE id = ?1",
                        params![
                            id.as_str(),
                            budget.map(Amount::value),
                            budget.map(|budget| budget.unit().as_str())
                        ],
                    )?;
                }
                events::append(tx, &id, &Event::Status { status: to, reason: None }).map(Some)
            })
            .await?;
        if let Some(seq) = seq {
            self.announce(seq);
        }
        Ok(seq.is_some())
    }

    /// The runs that need a guardrail set still: those at work, those that wait and those that can be taken up again,
    /// the oldest first.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn runs_that_need_set(&self, guardrails: &str) -> Result<Vec<RunId>, StoreError> {
        let guardrails = guardrails.to_owned();
        self.read(move |connection| {
            connection
                .prepare(NEED_SET)?
                .query_map(params![guardrails], |row| row.get::<_, String>(0))?
                .map(|id| {
                    let id = id?;
                    RunId::parse(&id).map_err(|_| StoreError::Foreign { what: "a run id", value: id })
                })
                .collect()
        })
        .await
    }

    /// Stores what came of a run, but for its cost, which [`Store::close_spawn`] knows. A value that is not known
    /// leaves what was known before.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn set_run_end(&self, id: &RunId, end: RunEnd) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute(
                "UPDATE runs SET
                     head_commit = coalesce(?2, head_commit), files_changed = coalesce(?3, files_changed),
                     insertions = coalesce(?4, insertions), deletions = coalesce(?5, deletions),
                     turns = coalesce(?6, turns), answer = coalesce(?7, answer),
                     backup = coalesce(?8, backup), verdict = coalesce(?9, verdict)
                 WHERE id = ?1",
                params![
                    id.as_str(),
                    end.head_commit,
                    end.files_changed,
                    end.insertions,
                    end.deletions,
                    end.turns,
                    end.answer,
                    end.backup,
                    end.verdict.map(RunStatus::as_str),
                ],
            )?;
            Ok(())
        })
        .await
    }

    /// Stores that the run's worktree is gone.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn worktree_removed(&self, id: &RunId) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute("UPDATE runs SET worktree = 'removed' WHERE id = ?1", params![id.as_str()])?;
            Ok(())
        })
        .await
    }

    /// The run with this id.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let id = id.clone();
        self.read(move |connection| {
            connection
                .query_row(&format!("{COLUMNS} WHERE runs.id = ?1"), params![id.as_str()], read)
                .optional()?
                .transpose()
        })
        .await
    }

    /// The newest runs, at most `limit`, each with an empty prompt and no answer: a list has no use for them.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn runs(&self, limit: u32) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            connection
                .prepare_cached(&format!("{LISTED} ORDER BY runs.created_at DESC, runs.id LIMIT ?1"))?
                .query_map(params![limit], read)?
                .collect::<rusqlite::Result<Vec<_>>>()?
                .into_iter()
                .collect()
        })
        .await
    }

    /// Runs that have not ended: at start these are what an earlier core left.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn alive_runs(&self) -> Result<Vec<Run>, StoreError> {
        self.read(move |connection| {
            connection
                .prepare(&format!(
                    "{COLUMNS} WHERE runs.status IN ('preparing', 'running', 'finishing')
                     ORDER BY runs.created_at"
                ))?
                .query_map([], read)?
                .collect::<rusqlite::Result<Vec<_>>>()?
                .into_iter()
                .collect()
        })
        .await
    }
}
