//! The vault: credentials as sealed rows (AES-256-GCM) in SQLite. What goes in comes out only to be put on a
//! request; what is shown of it is slot, person, kind, last four characters and dates.

mod key;
mod key_file;
mod rotate;
mod schema;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

pub use key_file::{ReadVaultKeyError, VaultKey, WriteVaultKeyError};
pub use rotate::{RotateError, Rotated, rotate};

use key::Key;

use crate::failure::{Exit, Explain};
use crate::ids::PersonId;
use crate::keys::credential::{self, Kind, Saved};
use crate::keys::slot::{Endpoint, SlotName};
use crate::secret::Secret;

const FILE: &str = "vault.db";

/// One row, as far as it may be seen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// The slot.
    pub slot: String,
    /// The person whose it is.
    pub person: String,
    /// `api-key` or `subscription`.
    pub kind: String,
    /// The origin that it was saved for, and the path before everything there.
    pub origin: String,
    /// The last four characters, of one that is long enough.
    pub last_four: Option<String>,
    /// When it was saved (RFC 3339, UTC).
    pub added: String,
    /// When it was last put on a request (RFC 3339, UTC; to the minute or so).
    pub last_used: Option<String>,
}

/// Opening the vault, reading or writing it failed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The folder cannot be used.
    #[error("the key service's folder `{path}` cannot be used", path = .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// SQLite says no.
    #[error("the vault at `{path}` cannot be {doing}", path = .path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// `opened`, `read`, `written`.
        doing: &'static str,
        /// Why.
        #[source]
        cause: rusqlite::Error,
    },
    /// Written by a newer program; left as it is.
    #[error("the vault at `{path}` is of version {found}, and this program knows versions up to {known}", path = .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The vault key is not the one that sealed it.
    #[error("the vault at `{path}` was sealed with another vault key", path = .path.display())]
    WrongKey {
        /// Which.
        path: PathBuf,
    },
    /// The vault key's file was read again and cannot be used.
    #[error(transparent)]
    Key(#[from] ReadVaultKeyError),
    /// A row does not open, though the key is right.
    #[error("the key that `{person}` saved for slot `{slot}` was changed or damaged in the vault")]
    Damaged {
        /// For which slot.
        slot: String,
        /// Whose.
        person: String,
    },
    /// The cipher refused to seal.
    #[error("the key could not be sealed")]
    Seal,
}

impl Explain for VaultError {
    fn code(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "vault-folder",
            Self::Database { .. } => "vault-database",
            Self::Newer { .. } => "vault-newer",
            Self::WrongKey { .. } => "vault-key-wrong",
            Self::Key(error) => error.code(),
            Self::Damaged { .. } => "vault-row-damaged",
            Self::Seal => "vault-seal",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Newer { .. } => Some("start the newer worca again; the vault was left as it is".into()),
            Self::WrongKey { path } => Some(format!(
                "put the old vault key back, or move `{}` away and save the keys again",
                path.display()
            )),
            Self::Key(error) => error.hint(),
            Self::Damaged { .. } => Some("save the key again with `worca keys put`, or remove it".into()),
            Self::Folder { .. } | Self::Database { .. } | Self::Seal => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Folder { .. } | Self::Newer { .. } | Self::WrongKey { .. } => Exit::Refused,
            Self::Key(error) => error.exit(),
            Self::Database { .. } | Self::Damaged { .. } | Self::Seal => Exit::Failed,
        }
    }
}

/// An open vault.
pub struct Vault {
    path: PathBuf,
    database: Connection,
    /// The key that seals it, as far as this process knows: another one may rotate it.
    key: Key,
    file: VaultKey,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.path.display())
    }
}

/// Which row.
#[derive(Debug, Clone, Copy)]
struct Address<'a> {
    slot: &'a str,
    person: &'a str,
    kind: &'a str,
    origin: &'a str,
}

impl Address<'_> {
    /// What the seal binds beside the secret: a row that is moved or relabelled does not open any more.
    fn bound(&self) -> Vec<u8> {
        ["worca vault row 1", self.slot, self.person, self.kind, self.origin].join("\0").into_bytes()
    }
}

impl Vault {
    /// Opens the vault in `folder`, making both when they are missing. A rotation that was broken off after the vault was
    /// sealed anew is finished, where the key's file can be written.
    ///
    /// # Errors
    /// When the folder cannot be used, or the vault is newer, damaged or sealed with another key. Such a vault
    /// is left as it is.
    pub fn open(folder: &Path, key: VaultKey) -> Result<Self, VaultError> {
        let path = folder.join(FILE);
        prepare(folder, &path).map_err(|cause| VaultError::Folder { path: folder.to_owned(), cause })?;
        let mut file = key;
        let (database, sealed) = schema::open(&path, &file)?;
        let last = file.next();
        let key = file.take(&sealed).ok_or_else(|| VaultError::WrongKey { path: path.clone() })?;
        // A rotation that runs does that itself. In the box the file is the host's to write, and until then its second
        // line is the one that counts.
        if last == Some(sealed)
            && let Ok(_held) = rotate::hold(folder)
        {
            let _ = VaultKey::finish(file.path());
        }
        Ok(Self { path, database, key, file })
    }

    /// Takes up the key with this fingerprint, when it is not the one that is known: the vault was rotated.
    fn follow(&mut self, fingerprint: &[u8]) -> Result<(), VaultError> {
        if self.key.fingerprint() == fingerprint {
            return Ok(());
        }
        let mut file = self.file.read_again()?;
        self.key = file.take(fingerprint).ok_or_else(|| VaultError::WrongKey { path: self.path.clone() })?;
        Ok(())
    }

    /// Saves a person's credential for requests to `endpoint`, in place of the one that was there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(
        &mut self,
        slot: &SlotName,
        person: &PersonId,
        kind: Kind,
        endpoint: &Endpoint,
        secret: &Secret,
    ) -> Result<(), VaultError> {
        let origin = endpoint.to_string();
        let address =
            Address { slot: slot.as_str(), person: person.as_str(), kind: kind.as_str(), origin: &origin };
        let failed = self.failed("written");
        // Follows a rotation before it seals, and not again: none can come once the transaction has begun.
        loop {
            let (id, fingerprint) = self.standing()?;
            self.follow(&fingerprint)?;
            let change =
                self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
            let same = change
                .query_row("SELECT 1 FROM vault_key WHERE id = ?1", [id], |_| Ok(()))
                .optional()
                .map_err(&failed)?;
            if same.is_none() {
                continue;
            }
            let bound = address.bound();
            let (nonce, sealed) =
                self.key.seal(&bound, secret.expose().as_bytes()).ok_or(VaultError::Seal)?;
            change
                .execute(
                    "INSERT INTO credential (slot, person, kind, origin, vault_key, nonce, sealed, last_four, added)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                     ON CONFLICT (slot, person) DO UPDATE SET kind = excluded.kind, origin = excluded.origin,
                         vault_key = excluded.vault_key, nonce = excluded.nonce, sealed = excluded.sealed,
                         last_four = excluded.last_four, added = excluded.added, last_used = NULL",
                    params![
                        address.slot,
                        address.person,
                        address.kind,
                        address.origin,
                        id,
                        nonce.as_slice(),
                        sealed,
                        credential::last_four(secret),
                        now()
                    ],
                )
                .map_err(&failed)?;
            return change.commit().map_err(&failed);
        }
    }

    /// The key that seals the vault now: its number and its fingerprint.
    fn standing(&self) -> Result<(i64, Vec<u8>), VaultError> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.database
            .query_row("SELECT id, fingerprint FROM vault_key", [], read)
            .map_err(self.failed("read"))
    }

    /// Removes a person's credential for a slot, and says whether there was one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remove(&mut self, slot: &SlotName, person: &PersonId) -> Result<bool, VaultError> {
        let removed = self
            .database
            .execute(
                "DELETE FROM credential WHERE slot = ?1 AND person = ?2",
                params![slot.as_str(), person.as_str()],
            )
            .map_err(self.failed("written"))?;
        Ok(removed > 0)
    }

    /// Every row, as far as it may be seen.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, VaultError> {
        let read = || -> rusqlite::Result<Vec<Listed>> {
            self.database
                .prepare(
                    "SELECT slot, person, kind, origin, last_four, added, last_used
                     FROM credential ORDER BY slot, person",
                )?
                .query_map([], |row| {
                    Ok(Listed {
                        slot: row.get(0)?,
                        person: row.get(1)?,
                        kind: row.get(2)?,
                        origin: row.get(3)?,
                        last_four: row.get(4)?,
                        added: row.get(5)?,
                        last_used: row.get(6)?,
                    })
                })?
                .collect()
        };
        read().map_err(self.failed("read"))
    }

    /// A person's credential for a slot, opened. `None` when that person has none, whoever else does.
    pub(super) fn get(&mut self, slot: &SlotName, person: &PersonId) -> Result<Option<Saved>, VaultError> {
        let row = self
            .database
            .query_row(
                "SELECT kind, origin, nonce, sealed, fingerprint
                 FROM credential JOIN vault_key ON vault_key.id = credential.vault_key
                 WHERE slot = ?1 AND person = ?2",
                params![slot.as_str(), person.as_str()],
                |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        row.get::<_, String>(1)?,
                        row.get::<_, Vec<u8>>(2)?,
                        row.get::<_, Vec<u8>>(3)?,
                        row.get::<_, Vec<u8>>(4)?,
                    ))
                },
            )
            .optional()
            .map_err(self.failed("read"))?;
        let Some((kind, origin, nonce, sealed, fingerprint)) = row else { return Ok(None) };
        self.follow(&fingerprint)?;
        let address = Address { slot: slot.as_str(), person: person.as_str(), kind: &kind, origin: &origin };
        let opened = || {
            let plain = self.key.open(&address.bound(), &nonce, &sealed)?;
            let secret = Secret::new(std::str::from_utf8(&plain).ok()?.to_owned());
            Some(Saved { kind: Kind::parse(&kind)?, endpoint: Endpoint::of_text(&origin)?, secret })
        };
        opened()
            .map(Some)
            .ok_or_else(|| VaultError::Damaged { slot: slot.to_string(), person: person.to_string() })
    }

    /// Notes that a person's credential for a slot was used now.
    pub(super) fn touch(&self, slot: &SlotName, person: &PersonId) -> Result<(), VaultError> {
        self.database
            .execute(
                "UPDATE credential SET last_used = ?3 WHERE slot = ?1 AND person = ?2",
                params![slot.as_str(), person.as_str(), now()],
            )
            .map(drop)
            .map_err(self.failed("written"))
    }

    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> VaultError + use<> {
        let path = self.path.clone();
        move |cause| VaultError::Database { path: path.clone(), doing, cause }
    }
}

fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    let whole = now.replace_nanosecond(0).unwrap_or(now);
    whole.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
}

/// Makes the folder, and the file private before SQLite writes into it.
fn prepare(folder: &Path, file: &Path) -> std::io::Result<()> {
    let mut maker = std::fs::DirBuilder::new();
    maker.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
    maker.create(folder)?;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        options.mode(0o600);
        let opened = options.open(file)?;
        if opened.metadata()?.permissions().mode() & 0o077 != 0 {
            opened.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    options.open(file)?;
    Ok(())
}

#[cfg(test)]
mod tests;
