//! The vault key: 32 bytes, and the sealing done with it.

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

const LENGTH: usize = 32;
const NONCE: usize = 12;
/// How many characters its text has.
pub(super) const TEXT: usize = LENGTH.div_ceil(3) * 4;

/// One key that seals a vault. It is wiped when dropped.
pub(super) struct Key(Zeroizing<[u8; LENGTH]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Reads its text; `None` when that is not 32 bytes in base64.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).map(Zeroizing::new).ok()?;
        Some(Self(Zeroizing::new(<[u8; LENGTH]>::try_from(bytes.as_slice()).ok()?)))
    }

    /// A new one.
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0u8; LENGTH]);
        getrandom::fill(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }

    /// Its text, of [`TEXT`] characters.
    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()))
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
    pub(super) fn open(&self, bound: &[u8], nonce: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = <[u8; NONCE]>::try_from(nonce).ok()?;
        self.cipher()
            .decrypt(&Nonce::from(nonce), Payload { msg: sealed, aad: bound })
            .ok()
            .map(Zeroizing::new)
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&(*self.0).into())
    }
}
