//! One box, one home: a box of the same name that was brought up from other files is somebody's else, and neither
//! changed nor taken away from here.

use std::path::{Path, PathBuf};

use super::Job;
use crate::container::engine::found::{FoundContainer, FoundVolume};
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

/// Refuses when one of these volumes, which are to go, was made from files in another folder that is there still. The
/// folder of a home that was moved is not, so a moved home keeps its box.
///
/// # Errors
/// With that folder.
pub fn check_volumes(job: &Job<'_>, volumes: &[FoundVolume]) -> Result<(), OtherHome> {
    match other_home(&real(job.files.folder()), volumes) {
        Some(folder) => Err(OtherHome { name: job.files.name().to_owned(), folder: folder.to_owned() }),
        None => Ok(()),
    }
}

fn other_home<'a>(ours: &Path, volumes: &'a [FoundVolume]) -> Option<&'a Path> {
    volumes
        .iter()
        .filter(|one| one.ours && !one.working_dir.is_empty())
        .map(|one| Path::new(&one.working_dir))
        .find(|folder| folder.exists() && real(folder) != ours)
}

/// The path behind links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_a_home_that_is_there_are_taken_away_from_that_home_alone() {
        let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let here = real(ours.path());
        let made_from = |folder: &str, ours: bool| {
            [FoundVolume { name: "worca_data".into(), ours, working_dir: folder.into() }]
        };
        let path = |folder: &tempfile::TempDir| folder.path().display().to_string();
        let theirs = made_from(&path(&other), true);
        assert_eq!(other_home(&here, &theirs), Some(other.path()));
        for allowed in [
            made_from(&path(&ours), true),
            // Made by an earlier version, or by Compose; of a home that was moved; not of this box at all.
            made_from("", true),
            made_from("/nowhere/.worca/container", true),
            made_from(&path(&other), false),
        ] {
            assert_eq!(other_home(&here, &allowed), None, "{allowed:?}");
        }
    }
}
