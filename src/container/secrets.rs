//! The secrets of a box: made once, on the host, for their one reader. Never shown, never overwritten.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::boxes::BoxFiles;
use super::files::{self, FileError};
use crate::secret::Secret;

/// The bearer of core's API for the host's own commands.
pub const CORE_TOKEN: &str = "core_token";
/// The bearer between core and the key service.
pub const CONTROL: &str = "control";
/// What the vault is encrypted with; only the key service mounts it.
pub const VAULT_KEY: &str = "vault_key";
/// A secret file has a line.
const SECRET_BYTES: u64 = 4096;

/// The user and group that a box's processes run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Makes the secrets that are missing: the folder 0700, each file 0600, each whole or not at all. When this process
/// is root, the files belong to `owner`, who reads them inside. Those that are there keep their value; without
/// `vault_key` a missing key of the vault stays missing.
///
/// # Errors
/// When a file cannot be written or given away.
pub fn ensure(files: &BoxFiles, owner: Owner, vault_key: bool) -> Result<(), FileError> {
    let folder = files.secrets();
    std::fs::create_dir_all(&folder).map_err(files::failed("make the folder", &folder))?;
    protect(&folder, 0o700)?;
    for (name, standard) in [(CORE_TOKEN, false), (CONTROL, false), (VAULT_KEY, true)] {
        let path = folder.join(name);
        if name == VAULT_KEY && !vault_key && !path.exists() {
            continue;
        }
        let mut bytes = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|error| files::failed("make", &path)(std::io::Error::other(error.to_string())))?;
        let text = zeroize::Zeroizing::new(if standard {
            STANDARD.encode(*bytes)
        } else {
            URL_SAFE_NO_PAD.encode(*bytes)
        });
        files::write_once(&path, &text, true)?;
        protect(&path, 0o600)?;
        give(&path, owner)?;
    }
    Ok(())
}

/// Reads one secret, for the call that shows it.
///
/// # Errors
/// When it is not there or cannot be read.
pub fn read(files: &BoxFiles, name: &str) -> Result<Secret, FileError> {
    let path = files.secrets().join(name);
    let text = files::read_text(&path, SECRET_BYTES)?;
    text.map(Secret::new).ok_or_else(|| files::failed("read", &path)(std::io::ErrorKind::NotFound.into()))
}

/// A text that changes when the file does, made without its content: a digest of a secret is a way to guess it.
pub fn stamp(path: &std::path::Path) -> String {
    let Ok(found) = path.metadata() else { return "missing".into() };
    let modified = found.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |time| time.as_nanos());
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let inode = 0;
    format!("{modified}-{inode}-{}", found.len())
}

/// A text that changes when another file takes this one's place, and stays when this one is written in place: a process
/// that reads it again by itself needs no new start for that.
pub fn place(path: &std::path::Path) -> String {
    #[cfg(unix)]
    if let Ok(found) = path.metadata() {
        return format!("in-place-{}", std::os::unix::fs::MetadataExt::ino(&found));
    }
    stamp(path)
}

#[cfg(unix)]
fn protect(path: &std::path::Path, mode: u32) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(files::failed("protect", path))
}

#[cfg(unix)]
fn give(path: &std::path::Path, owner: Owner) -> Result<(), FileError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)).map_err(files::failed("give away", path))
}

#[cfg(not(unix))]
fn protect(_path: &std::path::Path, _mode: u32) -> Result<(), FileError> {
    Ok(())
}

#[cfg(not(unix))]
fn give(_path: &std::path::Path, _owner: Owner) -> Result<(), FileError> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::home::Home;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn secrets_are_made_once_and_only_their_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let files = BoxFiles::open(&Home::at(folder.path()), "worca").unwrap();
        let owner = Owner { uid: 1234, gid: 1234 };
        ensure(&files, owner, true).unwrap();
        let values: Vec<String> = [CORE_TOKEN, CONTROL, VAULT_KEY]
            .iter()
            .map(|n| read(&files, n).unwrap().expose().to_owned())
            .collect();
        let stamps: Vec<String> =
            [CORE_TOKEN, CONTROL].iter().map(|n| stamp(&files.secrets().join(n))).collect();
        assert_eq!(files.secrets().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for name in [CORE_TOKEN, CONTROL, VAULT_KEY] {
            let found = files.secrets().join(name).metadata().unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
            assert!(!rustix::process::geteuid().is_root() || found.uid() == 1234, "{name}");
        }
        assert_eq!(STANDARD.decode(&values[2]).unwrap().len(), 32);
        ensure(&files, owner, true).unwrap();
        let again: Vec<String> = [CORE_TOKEN, CONTROL, VAULT_KEY]
            .iter()
            .map(|n| read(&files, n).unwrap().expose().to_owned())
            .collect();
        assert_eq!(values, again);
        assert_eq!(stamps, [CORE_TOKEN, CONTROL].map(|n| stamp(&files.secrets().join(n))));
        assert_eq!(std::fs::read_dir(files.secrets()).unwrap().count(), 3, "a draft was left behind");
        std::fs::remove_file(files.secrets().join(VAULT_KEY)).unwrap();
        ensure(&files, owner, false).unwrap();
        assert!(!files.secrets().join(VAULT_KEY).exists());
    }
}
