//! Small files of a box: read with a limit, written whole or not at all.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Explain};

/// A file of the box could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} `{}`", path.display())]
pub struct FileError {
    /// `read`, `write`, …
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

impl Explain for FileError {
    fn code(&self) -> &'static str {
        "box-file"
    }
    fn hint(&self) -> Option<String> {
        match self.source.kind() {
            ErrorKind::PermissionDenied => {
                Some("see who owns it: `sudo` may have written it in an earlier call".into())
            }
            ErrorKind::StorageFull => Some("free some space on the disk".into()),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

pub(super) fn failed<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> FileError + use<'a> {
    move |source| FileError { what, path: path.to_path_buf(), source }
}

/// The text of a file, or `None` when there is none.
///
/// # Errors
/// When it cannot be read, is over `limit` bytes or is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed("read", path))?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= limit);
    let text =
        if fits { String::from_utf8(bytes).map_err(|_| "it is not UTF-8") } else { Err("it is too large") };
    text.map(Some).map_err(|why| failed("read", path)(std::io::Error::new(ErrorKind::InvalidData, why)))
}

/// Writes a file whole or not at all, readable by everyone or (`private`) by its owner alone. Gives whether anything
/// changed: the same text is not written again.
///
/// # Errors
/// When the folder or the file cannot be written.
pub fn write_text(path: &Path, text: &str, private: bool) -> Result<bool, FileError> {
    let limit = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if read_text(path, limit).ok().flatten().as_deref() == Some(text) {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    let draft = draft(path);
    write_new(&draft, text.as_bytes(), private).map_err(failed("write", &draft))?;
    std::fs::rename(&draft, path).map_err(|error| {
        let _ = std::fs::remove_file(&draft);
        failed("write", path)(error)
    })?;
    Ok(true)
}

/// Writes a file that must not be there yet; one that is there wins and is left alone. Gives whether it was made.
///
/// # Errors
/// When the file cannot be written.
pub fn write_once(path: &Path, text: &str, private: bool) -> Result<bool, FileError> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let draft = draft(path);
    write_new(&draft, text.as_bytes(), private).map_err(failed("write", &draft))?;
    // A link takes the name only when nobody has it, and the file is whole by then.
    let linked = std::fs::hard_link(&draft, path);
    let _ = std::fs::remove_file(&draft);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed("write", path)(error)),
    }
}

/// A name beside `path` that no other process uses.
fn draft(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.draft", crate::ids::SpawnId::random()))
}

fn write_new(path: &Path, bytes: &[u8], private: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if private { 0o600 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = private;
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
