//! The vault key: 32 bytes from a file that only the key service mounts, and the sealing done with it.

use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::failure::{Exit, Explain};
use crate::keys::secret_file::{self, ReadSecretError};

const LENGTH: usize = 32;
const NONCE: usize = 12;

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

/// The key that seals the vault. It is wiped when dropped.
pub struct VaultKey(Zeroizing<[u8; LENGTH]>);

impl std::fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VaultKey(..)")
    }
}

impl VaultKey {
    /// Reads it from its file: 32 bytes in base64, private to its owner.
    ///
    /// # Errors
    /// When the file is missing, open to others, or holds something else.
    pub fn read(path: &Path) -> Result<Self, ReadVaultKeyError> {
        let text = secret_file::read(path, "vault key")?;
        let bytes = STANDARD.decode(text.expose()).map(Zeroizing::new).ok();
        let key = bytes.and_then(|bytes| <[u8; LENGTH]>::try_from(bytes.as_slice()).ok());
        key.map(|key| Self(Zeroizing::new(key)))
            .ok_or_else(|| ReadVaultKeyError::Shape { path: path.to_owned() })
    }

    /// A new one, as the text that its file holds.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Zeroizing<String>, getrandom::Error> {
        let mut bytes = Zeroizing::new([0u8; LENGTH]);
        getrandom::fill(bytes.as_mut_slice())?;
        Ok(Zeroizing::new(STANDARD.encode(bytes.as_slice())))
    }

    /// Tells one key from another without telling anything about it: of 32 random bytes no hash is undone.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"worca vault key 1\0");
        hash.update(self.0.as_slice());
        hash.finalize().into()
    }

    /// Seals `plain`, bound to `bound`. The nonce is random: 96 bits, for the few rows that a vault has.
    pub(super) fn seal(&self, bound: &[u8], plain: &[u8]) -> Option<([u8; NONCE], Vec<u8>)> {
        let mut nonce = [0u8; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let sealed = self.cipher().encrypt(&Nonce::from(nonce), Payload { msg: plain, aad: bound }).ok()?;
        Some((nonce, sealed))
    }

    /// Opens what [`Self::seal`] made with the same `bound`; `None` when anything of it was changed.
    pub(super) fn open(&self, bound: &[u8], nonce: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let nonce = <[u8; NONCE]>::try_from(nonce).ok()?;
        self.cipher().decrypt(&Nonce::from(nonce), Payload { msg: sealed, aad: bound }).ok()
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&(*self.0).into())
    }
}
