//! Reads a secret that is handed over as a file, and refuses one that others can read too.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroize as _;

use crate::failure::{Exit, Explain};
use crate::secret::Secret;

/// The most that a secret's file may hold, in bytes.
const LIMIT: u64 = 16 * 1024;

/// A secret's file cannot be used. The path is named, what stands in it never is.
#[derive(Debug, thiserror::Error)]
pub enum ReadSecretError {
    /// It cannot be opened or read.
    #[error("the {what} cannot be read from `{path}`", path = .path.display())]
    Unreadable {
        /// What it holds.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A folder, a device, a pipe.
    #[error("the {what} at `{path}` is not a plain file", path = .path.display())]
    NotFile {
        /// What it should hold.
        what: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// Somebody beside its owner can open it.
    #[error("the {what} at `{path}` can be read by others (its mode is {mode:o})", path = .path.display())]
    Open {
        /// What it holds.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The permission bits found.
        mode: u32,
    },
    /// Empty, too long, or not text.
    #[error("the {what} at `{path}` is {fault}", path = .path.display())]
    Content {
        /// What it should hold.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
    },
}

impl Explain for ReadSecretError {
    fn code(&self) -> &'static str {
        "secret-file"
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Open { path, .. } => format!("run `chmod 600 {}`", path.display()),
            Self::Unreadable { .. } | Self::NotFile { .. } | Self::Content { .. } => {
                "`worca container up` writes this file into the box's `secrets/` folder".into()
            }
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// The secret in `path`, without white space around it. `what` names it in errors.
///
/// # Errors
/// When the file is missing, not plain, open to others, empty, over 16 KiB or not text.
pub fn read(path: &Path, what: &'static str) -> Result<Secret, ReadSecretError> {
    let unreadable = |cause| ReadSecretError::Unreadable { what, path: path.to_owned(), cause };
    let fault = |fault| ReadSecretError::Content { what, path: path.to_owned(), fault };
    // Looked at before it is opened, because opening a pipe would wait for somebody to write to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(ReadSecretError::NotFile { what, path: path.to_owned() });
    }
    let file = File::open(path).map_err(unreadable)?;
    private(&file, path, what)?;
    let mut text = String::new();
    match file.take(LIMIT + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 > LIMIT => {
            text.zeroize();
            return Err(fault("too long"));
        }
        Ok(_) => {}
        Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => return Err(fault("not text")),
        Err(cause) => return Err(unreadable(cause)),
    }
    let secret = Secret::new(text);
    if secret.is_empty() { Err(fault("empty")) } else { Ok(secret) }
}

#[cfg(unix)]
fn private(file: &File, path: &Path, what: &'static str) -> Result<(), ReadSecretError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |cause| ReadSecretError::Unreadable { what, path: path.to_owned(), cause };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 || without_modes(file) {
        return Ok(());
    }
    Err(ReadSecretError::Open { what, path: path.to_owned(), mode })
}

#[cfg(not(unix))]
fn private(_: &File, _: &Path, _: &'static str) -> Result<(), ReadSecretError> {
    // The access list of the person's own profile folder stands here for the mode.
    Ok(())
}

/// Whether the file lies on a share of another system, whose modes are made up (a folder of a Windows or
/// macOS host inside its Linux machine). Numbers from linux/magic.h.
#[cfg(target_os = "linux")]
fn without_modes(file: &File) -> bool {
    const SHARES: [u32; 4] = [
        0x0102_1997, /* 9p */
        0x6573_5546, /* fuse */
        0xFF53_4D42, /* cifs */
        0xFE53_4D42, /* smb2 */
    ];
    rustix::fs::fstatfs(file).is_ok_and(|system| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the magic is 32 bits wide"
        )]
        let magic = system.f_type as u32;
        SHARES.contains(&magic)
    })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn without_modes(_: &File) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_private_file_is_read_and_its_line_end_dropped() {
        let (_folder, path) = file(b"hidden-value\n", 0o600);
        assert_eq!(read(&path, "control secret").unwrap().expose(), "hidden-value");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_and_its_content_is_not_shown() {
        for mode in [0o640, 0o604, 0o620, 0o666] {
            let (_folder, path) = file(b"hidden-value", mode);
            let error = read(&path, "control secret").unwrap_err();
            assert!(matches!(error, ReadSecretError::Open { .. }), "{error}");
            assert!(!format!("{error} {error:?}").contains("hidden-value"));
        }
    }

    #[test]
    fn what_is_missing_empty_long_binary_or_no_file_is_each_a_sentence() {
        let (folder, path) = file(b" \n", 0o600);
        assert!(read(&path, "x").unwrap_err().to_string().contains("empty"));
        let (_long, path) = file(&vec![b'a'; 20_000], 0o600);
        assert!(read(&path, "x").unwrap_err().to_string().contains("too long"));
        let (_binary, path) = file(&[0xff, 0xfe, 0x00], 0o600);
        assert!(read(&path, "x").unwrap_err().to_string().contains("not text"));
        assert!(matches!(read(folder.path(), "x"), Err(ReadSecretError::NotFile { .. })));
        let missing = read(&folder.path().join("none"), "vault key").unwrap_err();
        assert!(missing.to_string().contains("vault key"), "{missing}");
        assert_eq!(missing.exit(), Exit::Refused);
    }
}
