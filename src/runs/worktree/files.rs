//! The small files that make a worktree: written, checked, put right. Every one of them but the `locked` file can be
//! written by the agent, so what stands in them is data to compare, never a way to follow.

use std::io::{Read as _, Write as _};
use std::path::Path;

use super::{Worktree, WorktreeError, WorktreeNote};
use crate::ids::RunId;

/// The longest of these files that is read.
const LONGEST: u64 = 8 * 1024;
/// What git leaves in a worktree's folder while an operation is half-way.
const HALF_WAY: &[&str] = &[
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_NAMES",
    "index.lock",
    "HEAD.lock",
];

impl Worktree {
    /// Makes the registration. Fails when the folder is there already; `locked` is its first file.
    pub(super) fn register(&self) -> Result<(), WorktreeError> {
        let folder = self.registration();
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).map_err(|source| WorktreeError::file(parent, source))?;
        }
        std::fs::create_dir(&folder).map_err(|source| WorktreeError::file(&folder, source))?;
        for (name, text) in self.registration_files() {
            replace(&folder.join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// Makes the tree with its `.git` file.
    pub(super) fn make_tree(&self) -> Result<(), WorktreeError> {
        let tree = self.tree();
        std::fs::create_dir(&tree).map_err(|source| WorktreeError::file(&tree, source))?;
        replace(&tree.join(".git"), self.pointer().as_bytes())
    }

    fn registration_files(&self) -> [(&'static str, String); 4] {
        [
            ("locked", self.lock_reason()),
            ("commondir", "../..\n".into()),
            ("gitdir", format!("{}\n", self.tree().join(".git").display())),
            ("HEAD", format!("ref: {}\n", self.branch.full())),
        ]
    }

    fn pointer(&self) -> String {
        format!("gitdir: {}\n", self.registration().display())
    }

    /// What the worktree's HEAD says, when it is a small ordinary file.
    pub(super) fn head_text(&self) -> Option<String> {
        read_text(&self.registration().join("HEAD"))
    }

    /// Writes what the agent may have changed anew, and gives its git the index of core. Everything that is in the
    /// way is moved into the run's own folder, or beside, not deleted.
    pub(super) fn put_right(&self) -> Result<Vec<WorktreeNote>, WorktreeError> {
        let mut notes = Vec::new();
        let registration = self.registration();
        if !is_real_folder(&registration) {
            self.move_aside(&registration, "registration")?;
            std::fs::create_dir_all(&registration)
                .map_err(|source| WorktreeError::file(&registration, source))?;
            notes.push(WorktreeNote::Repaired { what: "worktrees/<run>".into() });
        }
        for name in HALF_WAY {
            let path = registration.join(name);
            if std::fs::symlink_metadata(&path).is_ok() {
                self.move_aside(&path, name)?;
                if !matches!(*name, "index.lock" | "HEAD.lock" | "AUTO_MERGE" | "MERGE_MSG") {
                    notes.push(WorktreeNote::LeftHalfWay { what: (*name).to_owned() });
                }
            }
        }
        // Core never makes one, and git reads settings from it.
        let settings = registration.join("config.worktree");
        if std::fs::symlink_metadata(&settings).is_ok() {
            self.move_aside(&settings, "config.worktree")?;
            notes.push(WorktreeNote::Repaired { what: "config.worktree".into() });
        }
        for (name, text) in self.registration_files() {
            let path = registration.join(name);
            if read_text(&path).as_deref() != Some(&text) {
                if name != "HEAD" {
                    notes.push(WorktreeNote::Repaired { what: name.to_owned() });
                }
                self.move_aside(&path, name)?;
                replace(&path, text.as_bytes())?;
            }
        }
        let dot_git = self.tree().join(".git");
        if read_text(&dot_git).as_deref() != Some(&self.pointer()) {
            self.move_aside(&dot_git, "dot-git")?;
            replace(&dot_git, self.pointer().as_bytes())?;
            notes.push(WorktreeNote::Repaired { what: ".git".into() });
        }
        self.hand_over_index()?;
        Ok(notes)
    }

    /// Gives the agent's git a copy of core's index, which knows the size and time of every file.
    pub(super) fn hand_over_index(&self) -> Result<(), WorktreeError> {
        let ours = self.private_path().join("index");
        let bytes = std::fs::read(&ours).map_err(|source| WorktreeError::file(&ours, source))?;
        let theirs = self.registration().join("index");
        if is_real_folder(&theirs) {
            self.move_aside(&theirs, "index")?;
        }
        replace(&theirs, &bytes)
    }

    /// Moves a file or folder of the agent to where nothing reads it: the run's folder, or on another file system a
    /// folder beside it.
    fn move_aside(&self, path: &Path, name: &str) -> Result<(), WorktreeError> {
        if std::fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        if is_real_folder(path) {
            // A folder that may not be written does not move.
            allow(path, 0o700);
        }
        let ours = self.private_path().join("left");
        let beside = self.registration().join("worca-left");
        let mut last = std::io::Error::other("no place was free");
        for folder in [ours, beside] {
            if let Err(error) = std::fs::create_dir_all(&folder) {
                last = error;
                continue;
            }
            let free = (1..1000)
                .map(|n| folder.join(format!("{n}-{name}")))
                .find(|path| std::fs::symlink_metadata(path).is_err());
            match free.map(|target| std::fs::rename(path, target)) {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => last = error,
                None => {}
            }
        }
        Err(WorktreeError::file(path, last))
    }
}

/// Writes a new file and puts it in the place of the old one, whatever that is a link to.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), WorktreeError> {
    let failed = |source| WorktreeError::file(path, source);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    };
    let mut new_name = name.to_owned();
    // A name that nobody can have put something under.
    new_name.push(format!(".{}", RunId::random()));
    let new = folder.join(new_name);
    let mut file = std::fs::File::options().write(true).create_new(true).open(&new).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&new, path).map_err(failed)
}

/// The text of a small ordinary file; a link is not followed.
pub(super) fn read_text(path: &Path) -> Option<String> {
    let data = std::fs::symlink_metadata(path).ok()?;
    if !data.is_file() || data.len() > LONGEST {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A folder, not a link to one.
pub(super) fn is_real_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|data| data.is_dir())
}

/// Lets us read everything below a folder, and list and empty every folder. Git records neither of these rights.
pub(super) fn make_accessible(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        allow(&folder, 0o700);
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => allow(&entry.path(), 0o600),
                _ => {}
            }
        }
    }
}

/// Adds rights of the owner, where one is missing.
#[cfg(unix)]
fn allow(path: &Path, rights: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Ok(data) = std::fs::symlink_metadata(path)
        && !data.is_symlink()
        && data.permissions().mode() & rights != rights
    {
        let mode = (data.permissions().mode() | rights) & 0o7777;
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    }
}

#[cfg(not(unix))]
fn allow(_: &Path, _: u32) {}
