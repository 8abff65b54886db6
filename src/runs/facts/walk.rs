//! A bounded look through the user's projects for files that a path rule means: the kernel closes places, not
//! patterns. What could not be looked through is closed whole. Reads folders, never a file.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Entries of folders that are looked at for one start of an agent, over all projects.
pub(super) const MOST_ENTRIES: usize = 100_000;
/// Places that one project may come to; beyond, the project is closed whole.
pub(super) const MOST_FOUND: usize = 500;
/// Entries of one folder that is looked at without what lies below it.
const MOST_FLAT: usize = 20_000;
/// Folders below one another.
const DEEPEST: usize = 24;
/// Not looked into: git must read its own, and of what others made the files are too many and no secrets of the user.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// What a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Files and folders that a rule means, and folders that were not looked through.
    pub(super) closed: Vec<PathBuf>,
    /// The folders among them that were not looked through, a project at most once.
    pub(super) unseen: Vec<PathBuf>,
}

/// A folder to look through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) folder: PathBuf,
    /// With all that lies below; else its own entries alone, and what could not be looked at of them is left open.
    pub(super) whole: bool,
}

/// Looks through these folders in their order. `fits`: whether a rule means a path.
pub(super) fn walk(roots: &[Root], entries: usize, fits: &dyn Fn(&Path) -> bool) -> Found {
    let mut left = entries;
    let mut found = Found::default();
    for Root { folder: root, whole } in roots {
        let mut one = Found::default();
        if !whole {
            let entries = std::fs::read_dir(root).into_iter().flatten().flatten().take(MOST_FLAT);
            let meant = entries.filter(|entry| fits(&entry.path())).take(MOST_FOUND);
            found.closed.extend(meant.flat_map(|entry| meant_by(&entry, root)));
            continue;
        }
        look(root, &mut left, fits, &mut one);
        if one.closed.len() > MOST_FOUND {
            one = Found { closed: vec![root.clone()], unseen: vec![root.clone()] };
        }
        found.closed.append(&mut one.closed);
        found.unseen.append(&mut one.unseen);
    }
    found.closed.sort();
    found.closed.dedup();
    found
}

/// Breadth first, so that a single deep folder does not use up what all others need.
fn look(root: &Path, left: &mut usize, fits: &dyn Fn(&Path) -> bool, found: &mut Found) {
    let mut ahead = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((folder, depth)) = ahead.pop_front() {
        if *left == 0 || depth > DEEPEST {
            found.unseen.push(folder.clone());
            found.closed.push(folder);
            if found.closed.len() > MOST_FOUND {
                return;
            }
            continue;
        }
        // What core cannot list, its agents, which are of the same user, cannot list either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if *left == 0 {
                // The rest of this folder is unknown.
                found.unseen.push(folder.clone());
                found.closed.push(folder.clone());
                break;
            }
            *left -= 1;
            if SKIPPED.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let path = entry.path();
            if fits(&path) {
                found.closed.extend(meant_by(&entry, root));
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push_back((path, depth + 1));
            }
            if found.closed.len() > MOST_FOUND {
                return;
            }
        }
    }
}

/// The place itself; of a link that leads elsewhere in the project also where it leads. What lies outside is no
/// secret by the name of a link to it, and may be a file of the system that everything needs.
fn meant_by(entry: &DirEntry, root: &Path) -> Vec<PathBuf> {
    let path = entry.path();
    if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
        return vec![path];
    }
    path.canonicalize().ok().filter(|real| real.starts_with(root) && real != root).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in paths {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    fn whole(folder: &Path) -> [Root; 1] {
        [Root { folder: folder.to_owned(), whole: true }]
    }

    fn secret(path: &Path) -> bool {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".env"))
    }

    fn below(found: &[PathBuf], root: &Path) -> Vec<String> {
        found.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn files_that_a_rule_means_are_found_at_any_depth_and_others_are_not() {
        let place =
            tree(&[".env", "a/b/.env.local", "a/b/main.rs", "node_modules/x/.env", ".git/.env", ".envs/x"]);
        let root = place.path().canonicalize().unwrap();
        let found = walk(&whole(&root), 1_000, &secret);
        assert_eq!(below(&found.closed, &root), [".env", ".envs", "a/b/.env.local"]);
        assert!(found.unseen.is_empty());
        assert_eq!(walk(&whole(&root.join("none")), 1_000, &secret), Found::default());
    }

    #[test]
    fn what_was_not_looked_through_is_closed() {
        let place = tree(&["a/1", "a/2", "a/3/4", "b/1", "c/.env"]);
        let root = place.path().canonicalize().unwrap();
        for entries in 0..8 {
            let found = walk(&whole(&root), entries, &secret);
            let closed = |path: &str| found.closed.iter().any(|closed| root.join(path).starts_with(closed));
            assert!(closed("c/.env"), "{entries}: {found:?}");
            assert!(found.unseen.iter().all(|unseen| found.closed.contains(unseen)));
        }
        assert_eq!(below(&walk(&whole(&root), 100, &secret).closed, &root), ["c/.env"]);
    }

    #[test]
    fn a_home_is_looked_at_one_level_deep() {
        let place = tree(&[".env", "work/.env", ".bashrc", ".envs/x"]);
        let root = place.path().canonicalize().unwrap();
        let found = walk(&[Root { folder: root.clone(), whole: false }], 0, &secret);
        assert_eq!(below(&found.closed, &root), [".env", ".envs"]);
        assert!(found.unseen.is_empty());
    }

    #[test]
    fn a_project_with_too_many_of_them_is_closed_whole() {
        let names: Vec<String> = (0..=MOST_FOUND).map(|number| format!(".env{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = tree(&names);
        let root = place.path().to_owned();
        let found = walk(&whole(&root), 10_000, &secret);
        assert_eq!((found.closed, found.unseen), (vec![root.clone()], vec![root]));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_closes_where_it_leads_within_the_project_alone() {
        use std::os::unix::fs::symlink;
        let place = tree(&["shared/production", "src/main.rs"]);
        let root = place.path().canonicalize().unwrap();
        symlink("shared/production", root.join(".env")).unwrap();
        symlink("/etc/hostname", root.join(".env.system")).unwrap();
        symlink("nowhere", root.join(".env.gone")).unwrap();
        symlink("/", root.join("all")).unwrap();
        let found = walk(&whole(&root), 1_000, &secret);
        assert_eq!(below(&found.closed, &root), ["shared/production"]);
    }
}
