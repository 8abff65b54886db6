//! One box, one home: a box of the same name that was brought up from other files is somebody's else, and neither
//! changed nor taken away from here.

use std::path::{Path, PathBuf};

use super::Job;
use crate::container::engine::found::FoundContainer;
use crate::failure::{Exit, Explain};

/// The engine has a box of this name from other files.
#[derive(Debug, thiserror::Error)]
#[error("a box `{name}` is on this engine already, brought up from `{}`", folder.display())]
pub struct OtherHome {
    name: String,
    folder: PathBuf,
}

impl Explain for OtherHome {
    fn code(&self) -> &'static str {
        "box-of-another-home"
    }
    fn hint(&self) -> Option<String> {
        Some("give this box another name (`--name`), or set `WORCA_HOME` to the home of the other one".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Refuses when a container of the box was made from files in another folder.
///
/// # Errors
/// With that folder.
pub fn check(job: &Job<'_>, containers: &[FoundContainer]) -> Result<(), OtherHome> {
    let ours = real(job.files.folder());
    let other = containers
        .iter()
        .filter(|one| one.ours && !one.one_off && !one.working_dir.is_empty())
        .map(|one| Path::new(&one.working_dir))
        .find(|folder| real(folder) != ours);
    match other {
        Some(folder) => Err(OtherHome { name: job.files.name().to_owned(), folder: folder.to_owned() }),
        None => Ok(()),
    }
}

/// The path behind links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
