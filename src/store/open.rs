//! Opening the database: look before the first write, choose the journal by the file system, migrate.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::failure::{Exit, Explain};

/// The numbered steps; a step is never changed once it has been released.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_guardrails.sql"),
    include_str!("migrations/0003_money.sql"),
];

/// `WrCa`: says whose database this is (`PRAGMA application_id`, SQLite's file format, offset 68).
const APPLICATION_ID: i32 = 0x5772_4361;

/// The write-ahead log is cut back to this after a checkpoint, in bytes.
const WAL_LIMIT: i64 = 16 * 1024 * 1024;

/// How long a statement waits for another process, which only a second program on the file can be.
const BUSY: Duration = Duration::from_secs(5);

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// A newer program made it.
    #[error("`{}` is of a newer Worca: its schema is {found}, this program knows {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema number.
        found: u32,
        /// Ours.
        known: usize,
    },
    /// Some other program's database.
    #[error("`{}` is a database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Not a database, or a broken one.
    #[error("`{}` is damaged or no database", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The folder or the file is out of reach.
    #[error("`{}` cannot be opened", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Anything else.
    #[error("`{}` cannot be opened as a database", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

impl Explain for OpenStoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Newer { .. } => "database-newer",
            Self::Foreign { .. } => "database-foreign",
            Self::Damaged { .. } => "database-damaged",
            Self::Io { .. } | Self::Open { .. } => "database-unreachable",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Newer { .. } => "use the newer program, or a copy of the database from before its update; \
                                   nothing was written"
                .into(),
            Self::Foreign { path } | Self::Damaged { path, .. } => {
                format!("move `{}` aside (do not delete it) and start again", path.display())
            }
            Self::Io { path, .. } | Self::Open { path, .. } => format!(
                "`{}` must be a folder that this user can write, on a local disk",
                path.parent().unwrap_or(path).display()
            ),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// The one connection that writes.
pub(super) fn writer(path: &Path) -> Result<Connection, OpenStoreError> {
    let io = |source| OpenStoreError::Io { path: path.to_owned(), source };
    look_at_header(path)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    let journal = journal_for(path);
    match prepare(path, journal) {
        // No shared memory file can be made here although the file system looked local: the rollback
        // journal needs none. Tried once; what else is wrong shows again.
        Err(OpenStoreError::Open { source, .. }) if journal == "wal" && is_shared_memory(&source) => {
            prepare(path, "delete")
        }
        other => other,
    }
}

/// A connection that cannot write.
pub(super) fn reader(path: &Path) -> Result<Connection, OpenStoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| {
            connection.busy_timeout(BUSY)?;
            Ok(connection)
        })
        .map_err(|source| OpenStoreError::Open { path: path.to_owned(), source })
}

/// Reads the schema number and the owner from the file's first 100 bytes, before SQLite touches the file.
pub(super) fn look_at_header(path: &Path) -> Result<(), OpenStoreError> {
    let io = |source| OpenStoreError::Io { path: path.to_owned(), source };
    let mut header = Vec::with_capacity(100);
    match std::fs::File::open(path) {
        Ok(file) => file.take(100).read_to_end(&mut header).map_err(io)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    // https://www.sqlite.org/fileformat2.html#the_database_header
    let number = |offset: usize| {
        header
            .get(offset..offset + 4)
            .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
            .map_or(0, u32::from_be_bytes)
    };
    check(path, number(60), number(68))
}

fn check(path: &Path, version: u32, owner: u32) -> Result<(), OpenStoreError> {
    if owner != 0 && owner != APPLICATION_ID.cast_unsigned() {
        return Err(OpenStoreError::Foreign { path: path.to_owned() });
    }
    if usize::try_from(version).unwrap_or(usize::MAX) > MIGRATIONS.len() {
        return Err(OpenStoreError::Newer { path: path.to_owned(), found: version, known: MIGRATIONS.len() });
    }
    Ok(())
}

fn prepare(path: &Path, journal: &str) -> Result<Connection, OpenStoreError> {
    let open = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenStoreError::Damaged { path: path.to_owned(), source }
        }
        _ => OpenStoreError::Open { path: path.to_owned(), source },
    };
    let mut connection = Connection::open(path).map_err(open)?;
    connection.busy_timeout(BUSY).map_err(open)?;
    if journal == "delete" {
        // Alone on the file, SQLite reads a write-ahead log that is there without shared memory.
        connection.pragma_update(None, "locking_mode", "exclusive").map_err(open)?;
    }
    // Once more, through SQLite: a newer number may still stand in the write-ahead log alone.
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = number("user_version").map_err(open)?;
    let owner = number("application_id").map_err(open)?;
    check(path, u32::try_from(version).unwrap_or(u32::MAX), u32::try_from(owner).unwrap_or(u32::MAX))?;

    connection.pragma_update(None, "journal_mode", journal).map_err(open)?;
    connection.pragma_update(None, "locking_mode", "normal").map_err(open)?;
    // NORMAL: a kill of the program loses nothing; a power cut may lose the last moments, never the file.
    connection.pragma_update(None, "synchronous", "normal").map_err(open)?;
    connection.pragma_update(None, "journal_size_limit", WAL_LIMIT).map_err(open)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(open)?;
    migrate(&mut connection, usize::try_from(version).unwrap_or(usize::MAX)).map_err(open)?;
    Ok(connection)
}

fn migrate(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
    for (index, step) in MIGRATIONS.iter().enumerate().skip(from) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", index + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

fn is_shared_memory(error: &rusqlite::Error) -> bool {
    // SQLITE_IOERR_SHMOPEN, SHMSIZE, SHMLOCK, SHMMAP, and what a file that cannot be made gives:
    // SQLITE_CANTOPEN, SQLITE_READONLY (https://www.sqlite.org/rescode.html).
    const SHARED_MEMORY: [i32; 4] = [4618, 4874, 5130, 5386];
    error.sqlite_error().is_some_and(|error| {
        SHARED_MEMORY.contains(&error.extended_code)
            || matches!(error.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    })
}

/// The journal for the file system under the database. Write-ahead logging shares memory between
/// connections, which file systems over a network or into a virtual machine do not hold to.
#[cfg(target_os = "linux")]
fn journal_for(path: &Path) -> &'static str {
    let folder = path.parent().unwrap_or(path);
    match rustix::fs::statfs(folder) {
        Ok(found) if !is_shared(found.f_type.cast_unsigned() & 0xffff_ffff) => "wal",
        Ok(_) | Err(_) => "delete",
    }
}

/// Whether a file system of this kind reaches over a network or into a virtual machine. The numbers are those
/// of linux/magic.h: 9p, NFS, CIFS, SMB2, FUSE (as which virtiofs shows).
#[cfg(target_os = "linux")]
pub(super) fn is_shared(magic: u64) -> bool {
    [0x0102_1997, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546].contains(&magic)
}

#[cfg(not(target_os = "linux"))]
fn journal_for(_path: &Path) -> &'static str {
    "wal"
}
