//! Each start of an agent: which program, under which pass and policy, what was tried before it started, how it
//! ended. Never the pass itself.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError};
use crate::clock::Millis;
use crate::ids::{PassId, RunId, SpawnId, StepName};

/// An agent that is about to be started.
#[derive(Debug, Clone)]
pub struct NewSpawn {
    /// This start.
    pub id: SpawnId,
    /// Its run.
    pub run: RunId,
    /// The run's step.
    pub step: StepName,
    /// The program and its version.
    pub program: String,
    /// The public name of its pass.
    pub pass: PassId,
    /// The guardrail set.
    pub guardrails: String,
    /// SHA-256 of the policy that the set came to, hexadecimal.
    pub policy_digest: String,
}

/// A start of an agent, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// This start.
    pub id: SpawnId,
    /// The program and its version.
    pub program: String,
    /// The guardrail set; none was stored by the first versions.
    pub guardrails: Option<String>,
    /// SHA-256 of the policy, hexadecimal.
    pub policy_digest: Option<String>,
    /// What was tried before the agent started and what came of it, as JSON.
    pub receipt: Option<String>,
    /// The agent program's session.
    pub session: Option<String>,
    /// When it was started.
    pub started_at: Millis,
    /// How it ended, as a sentence.
    pub exit: Option<String>,
}

fn spawn(row: &Row<'_>) -> rusqlite::Result<(String, Option<Spawn>)> {
    let id: String = row.get("id")?;
    let Ok(known) = SpawnId::parse(&id) else { return Ok((id, None)) };
    let spawn = Spawn {
        id: known,
        program: row.get("program")?,
        guardrails: row.get("guardrails")?,
        policy_digest: row.get("policy_digest")?,
        receipt: row.get("receipt")?,
        session: row.get("session")?,
        started_at: Millis(row.get("started_at")?),
        exit: row.get("exit")?,
    };
    Ok((id, Some(spawn)))
}

impl Store {
    /// Stores that an agent is about to be started.
    ///
    /// # Errors
    /// When the database does not take it; then the agent must not be started.
    pub async fn spawn_begins(&self, new: NewSpawn) -> Result<(), StoreError> {
        self.write(move |tx| {
            tx.execute(
                "INSERT INTO spawns (id, run_id, program, pass_id, guardrails, policy_digest, started_at, step)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    new.id.as_str(),
                    new.run.as_str(),
                    new.program,
                    new.pass.as_str(),
                    new.guardrails,
                    new.policy_digest,
                    Millis::now().0,
                    new.step.as_str()
                ],
            )?;
            Ok(())
        })
        .await
    }

    /// Stores what was tried before the agent started. It is there before the agent's first event is.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn spawn_receipt(&self, id: &SpawnId, receipt: String) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute("UPDATE spawns SET receipt = ?2 WHERE id = ?1", params![id.as_str(), receipt])?;
            Ok(())
        })
        .await
    }

    /// The newest start of a run's agent.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn last_spawn(&self, run: &RunId) -> Result<Option<Spawn>, StoreError> {
        self.newest(run, "").await
    }

    /// The newest start of a run's agent that came as far as a session, by which it can be resumed.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn last_session(&self, run: &RunId) -> Result<Option<Spawn>, StoreError> {
        self.newest(run, "AND session IS NOT NULL").await
    }

    async fn newest(&self, run: &RunId, which: &'static str) -> Result<Option<Spawn>, StoreError> {
        let run = run.clone();
        self.read(move |connection| {
            let select = format!(
                "SELECT * FROM spawns WHERE run_id = ?1 {which} ORDER BY started_at DESC, rowid DESC LIMIT 1"
            );
            match connection.query_row(&select, params![run.as_str()], spawn).optional()? {
                None => Ok(None),
                Some((_, Some(spawn))) => Ok(Some(spawn)),
                Some((id, None)) => Err(StoreError::Foreign { what: "a start's id", value: id }),
            }
        })
        .await
    }

    /// Stores the agent program's session, by which it can be resumed.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn spawn_session(&self, id: &SpawnId, session: String) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute("UPDATE spawns SET session = ?2 WHERE id = ?1", params![id.as_str(), session])?;
            Ok(())
        })
        .await
    }

    /// Stores how the agent ended.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn spawn_ended(&self, id: &SpawnId, exit: String) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(move |tx| {
            tx.execute(
                "UPDATE spawns SET ended_at = ?2, exit = ?3 WHERE id = ?1",
                params![id.as_str(), Millis::now().0, exit],
            )?;
            Ok(())
        })
        .await
    }
}
