//! One core per home: a lock that the kernel frees when its holder ends, however it ends. The file also says
//! where the holder listens; what is written in it means nothing while nobody holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Explain};

/// How long to wait for a holder that has just started to say where it listens.
const TOLD: Duration = Duration::from_secs(3);
/// How often to look meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// The most bytes that are read of the file.
const LONGEST: u64 = 4096;

/// The lock cannot be taken, and not because another core has it.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be locked", path.display())]
pub struct LockError {
    path: PathBuf,
    source: std::io::Error,
}

impl Explain for LockError {
    fn code(&self) -> &'static str {
        "lock-impossible"
    }
    fn hint(&self) -> Option<String> {
        Some("Worca's home must be a folder that this user can write, on a file system with locks".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// What the holder says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Where a browser finds it.
    pub url: String,
    /// Where it listens: what the command line calls.
    pub listen: String,
    /// Its process.
    pub pid: u32,
}

/// The lock while it is held.
#[derive(Debug)]
pub struct ServeLock(File);

/// What taking the lock came to.
#[derive(Debug)]
pub enum Taken {
    /// It is ours until it is dropped.
    Ours(ServeLock),
    /// Another core runs; what it says of itself, once it has.
    Theirs(Option<Holder>),
}

/// Takes the lock of this home, or finds out who has it.
///
/// # Errors
/// When the file cannot be made or the file system knows no locks.
pub async fn take(path: &Path) -> Result<Taken, LockError> {
    let failed = |source| LockError { path: path.to_owned(), source };
    let deadline = tokio::time::Instant::now() + TOLD;
    loop {
        if let Some(folder) = path.parent() {
            make_folder(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // What an earlier holder said is not true any more.
                file.set_len(0).map_err(failed)?;
                return Ok(Taken::Ours(ServeLock(file)));
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let holder = read(&file);
        if holder.is_some() || tokio::time::Instant::now() >= deadline {
            return Ok(Taken::Theirs(holder));
        }
        // It has just started, or is just ending: then the lock is free at the next look.
        tokio::time::sleep(LOOK).await;
    }
}

/// Makes the home for its user alone: prompts and diffs are in it. One that is there stays as it is.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A line that is not whole yet, or that the holder's lock keeps us from reading (Windows), is no answer.
fn read(file: &File) -> Option<Holder> {
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(text.strip_suffix('\n')?).ok()
}

impl ServeLock {
    /// Says where this core listens.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn tell(&mut self, holder: &Holder) -> std::io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(holder)?);
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(line.as_bytes())?;
        self.0.flush()
    }
}
