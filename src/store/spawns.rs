//! Each start of an agent: which program, under which pass, how it ended. Never the pass itself.

use rusqlite::params;

use super::{Store, StoreError};
use crate::clock::Millis;
use crate::ids::{PassId, RunId, SpawnId};

/// An agent that is about to be started.
#[derive(Debug, Clone)]
pub struct NewSpawn {
    /// This start.
    pub id: SpawnId,
    /// Its run.
    pub run: RunId,
    /// The program and its version.
    pub program: String,
    /// The public name of its pass.
    pub pass: PassId,
}

impl Store {
    /// Stores that an agent is about to be started.
    ///
    /// # Errors
    /// When the database does not take it; then the agent must not be started.
    pub async fn spawn_begins(&self, new: NewSpawn) -> Result<(), StoreError> {
        self.write(move |tx| {
            tx.execute(
                "INSERT INTO spawns (id, run_id, program, pass_id, started_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![new.id.as_str(), new.run.as_str(), new.program, new.pass.as_str(), Millis::now().0],
            )?;
            Ok(())
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
