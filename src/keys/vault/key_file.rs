//! The vault key's file: one key, or two while the vault goes from the first to the second.
//!
//! A rotation never takes the file's place, because it is mounted by itself into the key service and a new file would
//! not be seen there. It is written in place instead, so that at each moment one of its lines is the key that seals the
//! vault: the new key is added as a second line, the vault is sealed anew, and the new key takes the first line before
//! the second is cut off.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::key::{Key, TEXT};
use crate::failure::{Exit, Explain};
use crate::keys::secret_file::{self, ReadSecretError};

/// The vault key's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadVaultKeyError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] ReadSecretError),
    /// Not 32 bytes.
    #[error("the vault key at `{path}` is not 32 bytes in base64", path = .path.display())]
    Shape {
        /// Where.
        path: PathBuf,
    },
}

impl Explain for ReadVaultKeyError {
    fn code(&self) -> &'static str {
        "vault-key"
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::File(error) => error.hint(),
            Self::Shape { .. } => Some(
                "put the file back as it was; for an empty vault a new one is `head -c 32 /dev/urandom | base64`".into(),
            ),
        }
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// The vault key's file cannot be given another key.
#[derive(Debug, thiserror::Error)]
pub enum WriteVaultKeyError {
    /// What is there cannot be used.
    #[error(transparent)]
    Read(#[from] ReadVaultKeyError),
    /// It cannot be written.
    #[error("the vault key at `{path}` cannot be written", path = .path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The system gives no random bytes.
    #[error("no new vault key could be made")]
    Random(#[source] getrandom::Error),
}

impl Explain for WriteVaultKeyError {
    fn code(&self) -> &'static str {
        match self {
            Self::Read(error) => error.code(),
            Self::Write { .. } => "vault-key-write",
            Self::Random(_) => "random",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
            Self::Write { .. } => {
                Some("every saved key is still readable; try again where the file can be written".into())
            }
            Self::Random(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Read(error) => error.exit(),
            Self::Write { .. } | Self::Random(_) => Exit::Failed,
        }
    }
}

/// What the vault key's file holds. It is wiped when dropped.
#[derive(Debug)]
pub struct VaultKey {
    path: PathBuf,
    /// One or two, in the order of the file.
    keys: Vec<Key>,
}

impl VaultKey {
    /// Reads it from its file: 32 bytes in base64, private to its owner; of a broken rotation, two such lines.
    ///
    /// # Errors
    /// When the file is missing, open to others, or holds something else.
    pub fn read(path: &Path) -> Result<Self, ReadVaultKeyError> {
        let text = secret_file::read(path, "vault key")?;
        let shape = || ReadVaultKeyError::Shape { path: path.to_owned() };
        let lines: Vec<&str> = text.expose().lines().map(str::trim).collect();
        // A line that a loss of power left unfinished is none: the other one is then the vault's.
        let keys: Vec<Key> = lines.iter().filter_map(|line| Key::of_text(line)).collect();
        if lines.len() > 2 || keys.is_empty() {
            return Err(shape());
        }
        Ok(Self { path: path.to_owned(), keys })
    }

    /// A new one, as the text that its file holds.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Zeroizing<String>, getrandom::Error> {
        Ok(Key::generate()?.text())
    }

    /// The first step of a rotation: the file holds the key that it had and a new one. A file that has two already, from
    /// a rotation that was broken off, is left as it is.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn begin(path: &Path) -> Result<(), WriteVaultKeyError> {
        let there = Self::read(path)?;
        let Some(first) =
            there.keys.first().filter(|_| there.next().is_none_or(|next| Some(next) == there.first()))
        else {
            return Ok(());
        };
        let next = Key::generate().map_err(WriteVaultKeyError::Random)?;
        let whole = lines(&[first, &next]);
        write_in_place(path, &whole, whole.len()).map_err(failed(path))
    }

    /// The last step: the file holds its second key alone. Only to be done when the vault is sealed with that one. A file
    /// that has one key is left as it is.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn finish(path: &Path) -> Result<(), WriteVaultKeyError> {
        let there = Self::read(path)?;
        let [_, last] = there.keys.as_slice() else { return Ok(()) };
        // For a moment both lines are the same key; cutting the second off cannot harm the first.
        let whole = lines(&[last, last]);
        write_in_place(path, &whole, TEXT + 1).map_err(failed(path))
    }

    /// Reads the file again.
    pub(super) fn read_again(&self) -> Result<Self, ReadVaultKeyError> {
        Self::read(&self.path)
    }
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
    /// The key with this fingerprint, taken out.
    pub(super) fn take(&mut self, fingerprint: &[u8]) -> Option<Key> {
        let at = self.keys.iter().position(|key| key.fingerprint() == fingerprint)?;
        Some(self.keys.swap_remove(at))
    }
    /// The first key's fingerprint.
    pub(super) fn first(&self) -> Option<[u8; 32]> {
        self.keys.first().map(Key::fingerprint)
    }
    /// The fingerprint of the key that a rotation goes to, when one is under way.
    pub(super) fn next(&self) -> Option<[u8; 32]> {
        self.keys.get(1).map(Key::fingerprint)
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> WriteVaultKeyError + use<> {
    let path = path.to_owned();
    move |cause| WriteVaultKeyError::Write { path, cause }
}

fn lines(keys: &[&Key]) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(Vec::with_capacity(keys.len() * (TEXT + 1)));
    for key in keys {
        text.extend_from_slice(key.text().as_bytes());
        text.push(b'\n');
    }
    text
}

/// Writes over the file's beginning and makes it this long. What is the same stays the same at each moment.
fn write_in_place(path: &Path, whole: &[u8], length: usize) -> std::io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut before = Zeroizing::new(Vec::new());
    (&file).take(whole.len() as u64).read_to_end(&mut before)?;
    let same = before.iter().zip(whole).take_while(|(old, new)| old == new).count();
    file.seek(SeekFrom::Start(same as u64))?;
    file.write_all(whole.get(same..).unwrap_or_default())?;
    file.sync_all()?;
    file.set_len(length as u64)?;
    file.sync_all()
}
