//! Core's memory: one SQLite database in Worca's home, one writer, a few readers, every statement in a
//! function that is named for what it means.
//!
//! It must never hold a credential, never write a database of a newer program, and never keep a read
//! transaction open for as long as a client likes: each call reads a page and lets go.

mod events;
mod open;
mod peek;
mod projects;
mod runs;
mod settings;
mod spawns;
#[cfg(test)]
mod tests;
mod usage;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{Semaphore, watch};

pub use open::OpenStoreError;
pub use peek::runs_that_need_set;
pub use projects::{NewProject, Project};
pub use runs::{Run, RunEnd};
pub use spawns::{NewSpawn, Spawn};
pub use usage::OpenSpawn;

use crate::failure::Explain;

/// How many reads go on at once.
const READERS: usize = 3;

/// The database. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

struct Shared {
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    places: Semaphore,
    last_event: watch::Sender<i64>,
}

/// A statement did not go through. The transaction around it left nothing.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space for it.
    #[error("the disk that holds Worca's database is full")]
    DiskFull,
    /// Anything else that SQLite says.
    #[error("Worca's database did not take or give a record")]
    Sqlite(#[source] rusqlite::Error),
    /// A stored value that this program did not write.
    #[error("Worca's database holds `{value}` where {what} should be")]
    Foreign {
        /// What was expected.
        what: &'static str,
        /// What is there.
        value: String,
    },
    /// The task that does the work is gone: the program is ending.
    #[error("the program is ending")]
    Ending,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            _ => Self::Sqlite(error),
        }
    }
}

impl Explain for StoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::DiskFull => "disk-full",
            Self::Sqlite(_) => "database",
            Self::Foreign { .. } => "database-foreign-value",
            Self::Ending => "ending",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::DiskFull => Some("free some space; what was stored before is whole".into()),
            Self::Sqlite(_) | Self::Foreign { .. } | Self::Ending => None,
        }
    }
}

impl Store {
    /// Opens the database and brings it to this program's shape.
    ///
    /// # Errors
    /// When it is of a newer program (then not a byte is written), damaged, or out of reach.
    pub fn open(path: &Path) -> Result<Self, OpenStoreError> {
        let writer = open::writer(path)?;
        let mut readers = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            readers.push(open::reader(path)?);
        }
        let last: i64 = writer
            .query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))
            .map_err(|source| OpenStoreError::Open { path: path.to_owned(), source })?;
        Ok(Self(Arc::new(Shared {
            writer: Mutex::new(writer),
            readers: Mutex::new(readers),
            places: Semaphore::new(READERS),
            last_event: watch::Sender::new(last),
        })))
    }

    /// Runs `work` in one transaction: all of it is stored, or nothing.
    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            // A writer that panicked has rolled back its transaction: the connection is sound.
            let mut writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
        .await
        .map_err(|_| StoreError::Ending)?
    }

    /// Runs `work` on a reader. No transaction outlives the call.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let _place = self.0.places.acquire().await.map_err(|_| StoreError::Ending)?;
        tokio::task::spawn_blocking(move || {
            let taken = shared.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // There are as many places as readers, so one is there; the writer serves if it is not.
            let Some(reader) = taken else {
                return work(&shared.writer.lock().unwrap_or_else(PoisonError::into_inner));
            };
            let value = work(&reader);
            shared.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            value
        })
        .await
        .map_err(|_| StoreError::Ending)?
    }
}
