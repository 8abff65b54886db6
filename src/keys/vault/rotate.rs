//! Rotation: another vault key, under which every row is sealed anew. Killed at any moment, it leaves a vault that opens
//! with the key's file as it stands, and done again it goes on from there.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};

use super::{Address, Vault, VaultError, VaultKey, WriteVaultKeyError};
use crate::failure::{Exit, Explain};

/// Held while a rotation runs; in the vault's folder.
const LOCK: &str = "rotate.lock";

/// A rotation was not carried to its end. What was saved can be read as before.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The key's file.
    #[error(transparent)]
    Key(#[from] WriteVaultKeyError),
    /// Another one runs.
    #[error("another rotation of the vault in `{folder}` is running", folder = .0.display())]
    Busy(PathBuf),
    /// The lock.
    #[error("the vault in `{folder}` cannot be held for a rotation", folder = .folder.display())]
    Lock {
        /// Whose.
        folder: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// Whoever writes the key's file has added no key to go to.
    #[error("the vault key at `{path}` holds no second key to go to", path = .0.display())]
    NoNext(PathBuf),
}

impl Explain for RotateError {
    fn code(&self) -> &'static str {
        match self {
            Self::Vault(error) => error.code(),
            Self::Key(error) => error.code(),
            Self::Busy(_) => "rotation-busy",
            Self::Lock { .. } => "rotation-lock",
            Self::NoNext(_) => "rotation-no-next",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Vault(error) => error.hint(),
            Self::Key(error) => error.hint(),
            Self::Busy(_) => Some("wait until it has ended".into()),
            Self::NoNext(_) => Some("the vault of a box is rotated with `worca container rotate`".into()),
            Self::Lock { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Vault(error) => error.exit(),
            Self::Key(error) => error.exit(),
            Self::Busy(_) | Self::Lock { .. } | Self::NoNext(_) => Exit::Failed,
        }
    }
}

/// What a rotation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotated {
    /// How many saved keys were sealed anew.
    pub keys: usize,
}

/// Rotates the vault in `folder`. With `write` the key's file is written here too; without, whoever holds the file has
/// added the new key to it, and takes the old one away afterwards.
///
/// # Errors
/// When another rotation runs, the vault does not open, a row of it is damaged, or the file cannot be written.
pub fn rotate(folder: &Path, key_file: &Path, write: bool) -> Result<Rotated, RotateError> {
    let read = || VaultKey::read(key_file).map_err(VaultError::from);
    // Makes the folder, and finishes what was broken off.
    drop(Vault::open(folder, read()?)?);
    let _held = hold(folder)?;
    if write {
        VaultKey::begin(key_file)?;
    }
    let file = read()?;
    let next = file.next().ok_or_else(|| RotateError::NoNext(key_file.to_owned()))?;
    let mut vault = Vault::open(folder, file)?;
    let keys = vault.reseal(&next)?;
    if write {
        VaultKey::finish(key_file)?;
    }
    Ok(Rotated { keys })
}

/// Keeps other rotations away until what is returned is dropped; none is waited for.
pub(super) fn hold(folder: &Path) -> Result<File, RotateError> {
    let failed = |cause| RotateError::Lock { folder: folder.to_owned(), cause };
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(folder.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RotateError::Busy(folder.to_owned())),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

impl Vault {
    /// Seals every row under the key with this fingerprint, in one transaction, and says how many. None when the vault
    /// is sealed with it already.
    fn reseal(&mut self, next: &[u8; 32]) -> Result<usize, VaultError> {
        if self.key.fingerprint() == *next {
            return Ok(0);
        }
        let path = self.path.clone();
        let key = self.file.take(next).ok_or_else(|| VaultError::WrongKey { path: path.clone() })?;
        let failed = self.failed("written");
        let change =
            self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let standing: Vec<u8> =
            change.query_row("SELECT fingerprint FROM vault_key", [], |row| row.get(0)).map_err(&failed)?;
        if standing != self.key.fingerprint() {
            return Err(VaultError::WrongKey { path });
        }
        change
            .execute("INSERT INTO vault_key (fingerprint) VALUES (?1)", [next.as_slice()])
            .map_err(&failed)?;
        let number = change.last_insert_rowid();
        let rows = rows(&change).map_err(&failed)?;
        for row in &rows {
            let bound = row.address().bound();
            let plain = self.key.open(&bound, &row.nonce, &row.sealed).ok_or_else(|| row.damaged())?;
            let (nonce, sealed) = key.seal(&bound, &plain).ok_or(VaultError::Seal)?;
            change
                .execute(
                    "UPDATE credential SET vault_key = ?3, nonce = ?4, sealed = ?5 WHERE slot = ?1 AND person = ?2",
                    params![row.slot, row.person, number, nonce.as_slice(), sealed],
                )
                .map_err(&failed)?;
        }
        change.execute("DELETE FROM vault_key WHERE id <> ?1", [number]).map_err(&failed)?;
        change.commit().map_err(&failed)?;
        self.key = key;
        Ok(rows.len())
    }
}

struct Row {
    slot: String,
    person: String,
    kind: String,
    origin: String,
    nonce: Vec<u8>,
    sealed: Vec<u8>,
}

impl Row {
    fn address(&self) -> Address<'_> {
        Address { slot: &self.slot, person: &self.person, kind: &self.kind, origin: &self.origin }
    }
    fn damaged(&self) -> VaultError {
        VaultError::Damaged { slot: self.slot.clone(), person: self.person.clone() }
    }
}

fn rows(database: &Connection) -> rusqlite::Result<Vec<Row>> {
    database
        .prepare("SELECT slot, person, kind, origin, nonce, sealed FROM credential")?
        .query_map([], |row| {
            Ok(Row {
                slot: row.get(0)?,
                person: row.get(1)?,
                kind: row.get(2)?,
                origin: row.get(3)?,
                nonce: row.get(4)?,
                sealed: row.get(5)?,
            })
        })?
        .collect()
}
