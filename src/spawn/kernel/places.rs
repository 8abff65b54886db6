//! From the places of the rules to what is granted, folder by folder. A kernel rule only ever adds rights downwards,
//! so a place that holds lesser places is given child by child. Never: following a link that an agent may have made.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::guardrails::Access;

/// A folder with more to grant than this in it, or rules with more, are refused.
pub(super) const MAX_RULES: usize = 20_000;

/// Places by the components of their canonical paths.
#[derive(Debug, Default)]
pub(super) struct Places {
    own: Option<Access>,
    below: BTreeMap<OsString, Places>,
}

impl Places {
    /// Looks up where each place really is. One that is not there (or is out of this user's reach) is left out.
    pub(super) fn resolve(given: &BTreeMap<PathBuf, Access>) -> Result<Self, String> {
        let mut real: BTreeMap<&Path, PathBuf> = BTreeMap::new();
        let mut tree = Self::default();
        let mut ceilings = Vec::new();
        // The order of paths is that of their components: what holds a place comes before it.
        for (place, access) in given {
            let plain = place.components().all(|part| !matches!(part, Component::ParentDir));
            if !place.is_absolute() || !plain {
                return Err(format!("the place `{}` is not an absolute path", place.display()));
            }
            let target = match place.canonicalize() {
                Ok(target) => target,
                Err(error) if is_out_of_reach(&error) => continue,
                Err(error) => return Err(format!("the place `{}` is unknown: {error}", place.display())),
            };
            let holder = place.ancestors().skip(1).find_map(|above| {
                Some((above, *given.get(above)?, real.get(above).map_or(above, PathBuf::as_path)))
            });
            let (above, holds, real_above) =
                holder.unwrap_or((Path::new("/"), Access::Closed, Path::new("/")));
            let rest = place.strip_prefix(above).unwrap_or(place);
            let through_link = real_above.join(rest) != target;
            // Where an agent may write, a link can be of its making: it opens nothing then. It still closes.
            if through_link && *access <= holds {
                ceilings.push((target.clone(), *access));
            } else {
                tree.put(&target, *access);
            }
            real.insert(place, target);
        }
        for (target, access) in ceilings {
            if access < tree.of(&target) {
                tree.put(&target, access);
            }
        }
        Ok(tree)
    }

    /// Two names of one place: the lesser access holds.
    fn put(&mut self, path: &Path, access: Access) {
        let mut node = self;
        for name in names(path) {
            node = node.below.entry(name.to_owned()).or_default();
        }
        node.own = Some(node.own.map_or(access, |own| own.min(access)));
    }

    /// The access that the longest place gives to a path.
    fn of(&self, path: &Path) -> Access {
        let mut node = self;
        let mut access = node.own.unwrap_or(Access::Closed);
        for name in names(path) {
            let Some(next) = node.below.get(name) else { break };
            node = next;
            access = node.own.unwrap_or(access);
        }
        access
    }

    /// The least access anywhere in this tree, which has `access` where it says nothing itself.
    fn least(&self, access: Access) -> Access {
        let own = self.own.unwrap_or(access);
        self.below.values().map(|below| below.least(own)).fold(own, Access::min)
    }

    /// Grants everything, each thing once, from the root of the file system down.
    pub(super) fn grant(&self, add: impl FnMut(&Granted<'_>) -> Result<(), String>) -> Result<usize, String> {
        let root = openat(CWD, "/", FOLDER, Mode::empty()).map_err(|error| format!("`/`: {error}"))?;
        let mut walk = Walk { add, rules: 0 };
        walk.visit(self, &root, &mut PathBuf::from("/"), Access::Closed, Access::Closed)?;
        Ok(walk.rules)
    }
}

/// One thing to be granted, with all below it.
pub(super) struct Granted<'a> {
    pub(super) descriptor: BorrowedFd<'a>,
    pub(super) folder: bool,
    pub(super) access: Access,
    /// Named by the rules; else found beside what is.
    pub(super) named: bool,
    pub(super) path: &'a Path,
}

const THING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = THING.union(OFlags::DIRECTORY);

struct Walk<F> {
    add: F,
    rules: usize,
}

impl<F: FnMut(&Granted<'_>) -> Result<(), String>> Walk<F> {
    /// `inherited`: the access where the rules say nothing. `granted`: what the folders above have granted already.
    fn visit(
        &mut self,
        node: &Places,
        at: &OwnedFd,
        path: &mut PathBuf,
        inherited: Access,
        mut granted: Access,
    ) -> Result<(), String> {
        let access = node.own.unwrap_or(inherited);
        let least = node.least(access);
        if least > granted {
            self.grant(at.as_fd(), path, least, true)?;
            granted = least;
        }
        if access > granted {
            self.beside(node, at, path, access)?;
        }
        for (name, below) in &node.below {
            let Ok(next) = openat(at, name, THING, Mode::empty()) else { continue };
            path.push(name);
            self.visit(below, &next, path, access, granted)?;
            path.pop();
        }
        Ok(())
    }

    /// Grants every child that the rules do not name. Links are left out: what they lead to has its own access.
    fn beside(
        &mut self,
        node: &Places,
        at: &OwnedFd,
        path: &mut PathBuf,
        access: Access,
    ) -> Result<(), String> {
        let list = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = match openat(at, ".", list, Mode::empty()).and_then(Dir::new) {
            Ok(entries) => entries,
            // Who may not list it: what it holds beside the named places stays closed.
            Err(Errno::ACCESS | Errno::PERM | Errno::NOTDIR | Errno::NOENT) => return Ok(()),
            Err(error) => return Err(format!("`{}` cannot be listed: {error}", path.display())),
        };
        for entry in entries {
            let entry = entry.map_err(|error| format!("`{}` cannot be listed: {error}", path.display()))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "."
                || name == ".."
                || entry.file_type() == FileType::Symlink
                || node.below.contains_key(name)
            {
                continue;
            }
            let child = match openat(at, name, THING, Mode::empty()) {
                Ok(child) => child,
                Err(Errno::ACCESS | Errno::PERM | Errno::NOENT) => continue,
                Err(error) => {
                    return Err(format!("`{}` cannot be opened: {error}", path.join(name).display()));
                }
            };
            path.push(name);
            self.grant(child.as_fd(), path, access, false)?;
            path.pop();
        }
        Ok(())
    }

    fn grant(
        &mut self,
        descriptor: BorrowedFd<'_>,
        path: &Path,
        access: Access,
        named: bool,
    ) -> Result<(), String> {
        let kind = fstat(descriptor).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let kind = FileType::from_raw_mode(kind.st_mode);
        // A place that became a link after it was resolved.
        if kind == FileType::Symlink {
            return Ok(());
        }
        self.rules += 1;
        if self.rules > MAX_RULES {
            return Err(format!(
                "more than {MAX_RULES} files and folders stand beside closed places (the last one is `{}`)",
                path.display()
            ));
        }
        (self.add)(&Granted { descriptor, folder: kind == FileType::Directory, access, named, path })
    }
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

fn is_out_of_reach(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
