//! What each start of an agent used, by the key service's books. A start is closed once, with the event and the sums of
//! its run in the same transaction, so that nothing is counted twice and nothing is shown that is not stored.

use rusqlite::{Row, params};

use super::{Store, StoreError, events};
use crate::clock::Millis;
use crate::events::{Event, ModelUsage, SpentBudget};
use crate::ids::{PassId, RunId, SpawnId};

/// A start that has ended and whose pass nobody has asked the books about yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSpawn {
    /// The start.
    pub id: SpawnId,
    /// Its run.
    pub run: RunId,
    /// The public name of its pass.
    pub pass: PassId,
}

fn usage(row: &Row<'_>) -> rusqlite::Result<ModelUsage> {
    Ok(ModelUsage {
        slot: row.get("slot")?,
        model: row.get("model")?,
        calls: row.get("calls")?,
        failed: row.get("failed")?,
        input: row.get("input")?,
        output: row.get("output")?,
        cache_write: row.get("cache_write")?,
        cache_read: row.get("cache_read")?,
        cost_micros: row.get("cost_micros")?,
        unpriced: row.get("unpriced")?,
        estimated: row.get("estimated")?,
    })
}

impl Store {
    /// Stores what a start used and adds its run up anew, with the event where there was a call. A start that is
    /// closed already stays as it is: then this gives `false`.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn close_spawn(
        &self,
        id: &SpawnId,
        run: &RunId,
        rows: Vec<ModelUsage>,
    ) -> Result<bool, StoreError> {
        let (id, run) = (id.clone(), run.clone());
        let (closed, seq) = self
            .write(move |tx| {
                let closed = tx.execute(
                    "UPDATE spawns SET closed_at = ?2 WHERE id = ?1 AND closed_at IS NULL",
                    params![id.as_str(), Millis::now().0],
                )?;
                if closed == 0 {
                    return Ok((false, None));
                }
                for row in &rows {
                    tx.prepare_cached(
                        "INSERT OR REPLACE INTO usage (spawn_id, slot, model, calls, failed, input, output,
                             cache_write, cache_read, cost_micros, unpriced, estimated)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                    )?
                    .execute(params![
                        id.as_str(),
                        row.slot,
                        row.model,
                        row.calls,
                        row.failed,
                        row.input,
                        row.output,
                        row.cache_write,
                        row.cache_read,
                        row.cost_micros,
                        row.unpriced,
                        row.estimated
                    ])?;
                }
                tx.execute(
                    "UPDATE runs SET (cost_micros, tokens) =
                         (SELECT coalesce(sum(cost_micros), 0),
                                 coalesce(sum(input + output + cache_write + cache_read), 0)
                          FROM usage JOIN spawns ON spawns.id = usage.spawn_id WHERE spawns.run_id = ?1)
                     WHERE id = ?1",
                    params![run.as_str()],
                )?;
                match rows.is_empty() {
                    true => Ok((true, None)),
                    false => {
                        let seq = events::append(tx, &run, &Event::Usage { spawn: id, rows })?;
                        Ok((true, Some(seq)))
                    }
                }
            })
            .await?;
        if let Some(seq) = seq {
            self.announce(seq);
        }
        Ok(closed)
    }

    /// What a run used over all its starts, per slot and model.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn run_usage(&self, run: &RunId) -> Result<Vec<ModelUsage>, StoreError> {
        let run = run.clone();
        self.read(move |connection| {
            let rows = connection
                .prepare_cached(
                    "SELECT slot, model, sum(calls) AS calls, sum(failed) AS failed, sum(input) AS input,
                         sum(output) AS output, sum(cache_write) AS cache_write, sum(cache_read) AS cache_read,
                         sum(usage.cost_micros) AS cost_micros, sum(unpriced) AS unpriced,
                         sum(estimated) AS estimated
                     FROM usage JOIN spawns ON spawns.id = usage.spawn_id
                     WHERE spawns.run_id = ?1 GROUP BY slot, model ORDER BY slot, model",
                )?
                .query_map(params![run.as_str()], usage)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(rows)
        })
        .await
    }

    /// The newest warning of each budget of a run, in the order of their first.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn budget_warnings(&self, run: &RunId) -> Result<Vec<SpentBudget>, StoreError> {
        let run = run.clone();
        self.read(move |connection| {
            let bodies: Vec<String> = connection
                .prepare_cached(
                    "SELECT body FROM events WHERE run_id = ?1 AND kind = 'budget_warning' ORDER BY seq LIMIT 1000",
                )?
                .query_map(params![run.as_str()], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let mut warnings: Vec<SpentBudget> = Vec::new();
            for body in bodies {
                let Ok(Event::BudgetWarning { budget }) = serde_json::from_str(&body) else {
                    return Err(StoreError::Foreign { what: "a warning of a budget", value: body });
                };
                match warnings.iter_mut().find(|known| known.cap == budget.cap) {
                    Some(known) => *known = budget,
                    None => warnings.push(budget),
                }
            }
            Ok(warnings)
        })
        .await
    }

    /// The starts that have ended and are not closed yet, the oldest first, at most a hundred.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn open_spawns(&self) -> Result<Vec<OpenSpawn>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<(String, String, String)> = connection
                .prepare_cached(
                    "SELECT id, run_id, pass_id FROM spawns
                     WHERE closed_at IS NULL AND ended_at IS NOT NULL AND pass_id IS NOT NULL
                     ORDER BY started_at LIMIT 100",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            rows.into_iter()
                .map(|(id, run, pass)| {
                    match (SpawnId::parse(&id), RunId::parse(&run), PassId::parse(&pass)) {
                        (Ok(id), Ok(run), Ok(pass)) => Ok(OpenSpawn { id, run, pass }),
                        _ => Err(StoreError::Foreign { what: "a start of an agent", value: id }),
                    }
                })
                .collect()
        })
        .await
    }

    /// Ends the starts that an earlier core left: none of their agents outlived it.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn end_lost_spawns(&self) -> Result<(), StoreError> {
        self.write(move |tx| {
            tx.execute(
                "UPDATE spawns SET ended_at = ?1, exit = 'ended with core' WHERE ended_at IS NULL",
                params![Millis::now().0],
            )?;
            Ok(())
        })
        .await
    }
}
