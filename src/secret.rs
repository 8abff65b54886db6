//! A value that must not be shown: no `Display`, no `Serialize`, wiped when dropped.

use zeroize::Zeroize as _;

/// A credential in memory. Its `Debug` prints a word; [`Secret::expose`] is the only way to the bytes, so
/// that every use can be found by its name.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes the value over. Surrounding white space (a pasted newline) is dropped.
    pub fn new(mut value: String) -> Self {
        let secret = Self(value.trim().to_owned());
        value.zeroize();
        secret
    }
    /// The value itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
