//! The event log: stored first, announced after, read by the page.

use rusqlite::{Row, Transaction, params};
use tokio::sync::watch;

use super::{Store, StoreError};
use crate::clock::Millis;
use crate::events::{Event, StoredEvent};
use crate::ids::RunId;

/// Adds an event inside a transaction that also stores what the event tells of.
pub(super) fn append(tx: &Transaction<'_>, run: &RunId, event: &Event) -> Result<i64, StoreError> {
    let body = serde_json::to_string(event)
        .map_err(|_| StoreError::Foreign { what: "an event", value: event.kind().into() })?;
    tx.execute(
        "INSERT INTO events (run_id, at, kind, body) VALUES (?1, ?2, ?3, ?4)",
        params![run.as_str(), Millis::now().0, event.kind(), body],
    )?;
    Ok(tx.last_insert_rowid())
}

fn stored(row: &Row<'_>) -> rusqlite::Result<(i64, String, i64, String)> {
    Ok((row.get("seq")?, row.get("run_id")?, row.get("at")?, row.get("body")?))
}

fn typed((seq, run, at, body): (i64, String, i64, String)) -> Result<StoredEvent, StoreError> {
    let run = RunId::parse(&run).map_err(|_| StoreError::Foreign { what: "a run id", value: run })?;
    let event = serde_json::from_str(&body).map_err(|_| StoreError::Foreign {
        what: "an event of this program",
        value: crate::events::cut_to(&body, 80),
    })?;
    Ok(StoredEvent { seq, run, at: Millis(at), event })
}

impl Store {
    /// Stores an event and then wakes those that watch. Returns its number.
    ///
    /// # Errors
    /// When the database does not take it; then nobody has seen it.
    pub async fn append_event(&self, run: &RunId, event: Event) -> Result<i64, StoreError> {
        let run = run.clone();
        let seq = self.write(move |tx| append(tx, &run, &event)).await?;
        self.announce(seq);
        Ok(seq)
    }

    /// Tells the watchers that events up to `seq` are on disk.
    pub(super) fn announce(&self, seq: i64) {
        self.0.last_event.send_if_modified(|last| {
            let newer = seq > *last;
            if newer {
                *last = seq;
            }
            newer
        });
    }

    /// The number of the newest event on disk, as it grows. Watching holds nothing in the database.
    pub fn watch_events(&self) -> watch::Receiver<i64> {
        self.0.last_event.subscribe()
    }

    /// At most `limit` events after `after`, of one run or of all, oldest first.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn events_after(
        &self,
        run: Option<&RunId>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let run = run.cloned();
        self.read(move |connection| {
            let rows: Vec<_> = match run {
                Some(run) => connection
                    .prepare_cached(
                        "SELECT * FROM events WHERE run_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                    )?
                    .query_map(params![run.as_str(), after, limit], stored)?
                    .collect::<rusqlite::Result<_>>()?,
                None => connection
                    .prepare_cached("SELECT * FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2")?
                    .query_map(params![after, limit], stored)?
                    .collect::<rusqlite::Result<_>>()?,
            };
            rows.into_iter().map(typed).collect()
        })
        .await
    }
}
