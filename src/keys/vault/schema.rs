//! The vault's tables: numbered, append-only steps, each in one transaction.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::{VaultError, VaultKey};

/// Never changed once released: a new step is added at the end.
const STEPS: &[&str] = &["
    CREATE TABLE vault_key (
        id INTEGER PRIMARY KEY,
        fingerprint BLOB NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE credential (
        slot TEXT NOT NULL,
        person TEXT NOT NULL,
        kind TEXT NOT NULL,
        origin TEXT NOT NULL,
        vault_key INTEGER NOT NULL REFERENCES vault_key (id),
        nonce BLOB NOT NULL,
        sealed BLOB NOT NULL,
        last_four TEXT,
        added TEXT NOT NULL,
        last_used TEXT,
        PRIMARY KEY (slot, person)
    ) STRICT;
"];

/// How long another process (`worca keys put` beside the service) is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// Opens the database and brings it up to date. Gives the fingerprint of the key that seals it, which is one of
/// `key`'s file.
pub(super) fn open(path: &Path, key: &VaultKey) -> Result<(Connection, [u8; 32]), VaultError> {
    let failed = |cause| VaultError::Database { path: path.to_owned(), doing: "opened", cause };
    let mut database = Connection::open(path).map_err(failed)?;
    database.busy_timeout(BUSY).map_err(failed)?;
    let found: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(VaultError::Newer { path: path.to_owned(), found, known });
    }
    // A few rows, written once a week: a rollback journal needs no shared memory, which some volumes lack, and
    // what is overwritten or removed is wiped from the file.
    database
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON;")
        .map_err(failed)?;
    let known = [key.first(), key.next()];
    let sealed = migrate(&mut database, key.first()).map_err(failed)?;
    match known.into_iter().flatten().find(|known| sealed.as_deref() == Some(known)) {
        Some(sealed) => Ok((database, sealed)),
        None => Err(VaultError::WrongKey { path: path.to_owned() }),
    }
}

/// Gives the fingerprint of the vault's key. The first key that opens an empty vault becomes that.
fn migrate(database: &mut Connection, first: Option<[u8; 32]>) -> rusqlite::Result<Option<Vec<u8>>> {
    let change = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done: i64 = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for (number, step) in (1i64..).zip(STEPS).filter(|(number, _)| *number > done) {
        change.execute_batch(step)?;
        change.pragma_update(None, "user_version", number)?;
    }
    let known: Option<Vec<u8>> =
        change.query_row("SELECT fingerprint FROM vault_key", [], |row| row.get(0)).optional()?;
    let sealed = match (known, first) {
        (None, Some(first)) => {
            change.execute("INSERT INTO vault_key (fingerprint) VALUES (?1)", [first.as_slice()])?;
            Some(first.to_vec())
        }
        (known, _) => known,
    };
    change.commit()?;
    Ok(sealed)
}
