//! Reads a file that anybody may have made: within limits, without waiting, and nothing but an ordinary file. A link
//! is followed, as an agent would follow it, and what it leads to is judged before it is opened.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes that are read of one file: Claude Code's own carries a history.
pub(super) const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The most entries of one folder.
pub(super) const MOST_ENTRIES: usize = 1_000;

/// What was found where a file could be.
#[derive(Debug)]
pub(super) enum Seen {
    /// Nothing, or nothing that this user, and so an agent, could open.
    Nothing,
    /// Not open to this user: an agent is the same user.
    Closed,
    /// An ordinary file. Its bytes, all of them.
    Bytes(Vec<u8>),
    /// Something is there and was not looked at, with the reason in words.
    Unseen(&'static str),
}

/// Reads a whole file of at most `most` bytes.
pub(super) fn read(path: &Path, most: u64) -> Seen {
    match std::fs::metadata(path) {
        // What an engine makes where the file of a mount is missing.
        Ok(data) if data.is_dir() => return Seen::Nothing,
        Ok(data) if !data.is_file() => return Seen::Unseen(ODD),
        Ok(_) => {}
        Err(error) => return of_error(path, &error),
    }
    let file = match open(path) {
        Ok(file) => file,
        Err(error) => return of_error(path, &error),
    };
    // Another thing may have come into its place.
    match file.metadata() {
        Ok(data) if !data.is_file() => return Seen::Unseen(ODD),
        Ok(data) if data.len() > most => return Seen::Unseen(LARGE),
        Ok(_) => {}
        Err(_) => return Seen::Unseen("it cannot be read"),
    }
    let mut bytes = Vec::new();
    match file.take(most + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 <= most => Seen::Bytes(bytes),
        Ok(_) => Seen::Unseen(LARGE),
        Err(_) => Seen::Unseen("it cannot be read"),
    }
}

const LARGE: &str = "it is larger than what is read";
const ODD: &str = "it is a pipe, a socket or a device";

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    options.open(path)
}

fn of_error(path: &Path, error: &std::io::Error) -> Seen {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => Seen::Nothing,
        // Who owns it opens it again.
        ErrorKind::PermissionDenied if is_own(path) => {
            Seen::Unseen("its mode closes it, which its owner can change")
        }
        ErrorKind::PermissionDenied => Seen::Closed,
        // A circle of links opens for nobody; neither does a name that is too long.
        _ if is_circle(error) => Seen::Nothing,
        _ => Seen::Unseen("it cannot be read"),
    }
}

#[cfg(unix)]
fn is_circle(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    code == Some(Errno::LOOP.raw_os_error()) || code == Some(Errno::NAMETOOLONG.raw_os_error())
}

#[cfg(not(unix))]
fn is_circle(_error: &std::io::Error) -> bool {
    false
}

/// Whether the first thing on the way from a path upwards that can be looked at belongs to this user.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    path.ancestors().find_map(|above| std::fs::metadata(above).ok()).is_some_and(|data| data.uid() == user)
}

#[cfg(not(unix))]
fn is_own(_path: &Path) -> bool {
    false
}

/// The entries of a folder in the order of their names, and whether there are more.
pub(super) fn entries(folder: &Path, most: usize) -> (Vec<PathBuf>, bool) {
    let Ok(entries) = std::fs::read_dir(folder) else { return (Vec::new(), false) };
    let mut all: Vec<PathBuf> = entries.take(most + 1).flatten().map(|entry| entry.path()).collect();
    let more = all.len() > most;
    all.truncate(most);
    all.sort();
    (all, more)
}
