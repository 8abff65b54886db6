//! Where the programs are that an agent needs: the folders of `PATH`, the agent program's own package, the programs
//! that links in `PATH` lead to. Never a folder that holds the user's home.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs that agents rely on and that are often links out of `PATH`.
const FOLLOWED: [&str; 4] = ["node", "git", "python3", "bash"];
/// What stands beside a `bin` and belongs to its programs.
const BESIDE: [&str; 4] = ["lib", "lib64", "libexec", "include"];

/// The places of programs. `path`: the value of `PATH` that the agent keeps; `agent`: its program, a name or a path;
/// `home`: the user's.
pub(super) fn programs(
    path: Option<&OsStr>,
    agent: &OsStr,
    worca: &Path,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut places = BTreeSet::new();
    let folders: Vec<PathBuf> = path
        .map(|path| std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default();
    for folder in &folders {
        take(folder, &mut places);
    }
    for name in FOLLOWED.iter().map(OsStr::new).chain([agent]) {
        if let Some(real) = find(name, &folders) {
            if let Some(folder) = real.parent() {
                take(folder, &mut places);
            }
            places.extend(package(&real));
        }
    }
    places.insert(worca.to_owned());
    let holds_home = |place: &Path| home.is_some_and(|home| home.starts_with(place));
    places.into_iter().filter(|place| place.parent().is_some() && !holds_home(place)).collect()
}

/// A folder with programs and, beside a `bin`, what its programs load; as named and as it really is.
fn take(folder: &Path, places: &mut BTreeSet<PathBuf>) {
    for folder in [folder.to_owned()].into_iter().chain(folder.canonicalize()) {
        if folder.file_name().is_some_and(|name| name == "bin")
            && let Some(parent) = folder.parent().filter(|parent| parent.parent().is_some())
        {
            places.extend(BESIDE.iter().map(|name| parent.join(name)).filter(|beside| beside.is_dir()));
        }
        if folder.is_dir() {
            places.insert(folder);
        }
    }
}

/// The real file of a program.
fn find(program: &OsStr, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.is_absolute() {
        return path.canonicalize().ok();
    }
    if path.components().count() > 1 {
        return None;
    }
    folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file())?.canonicalize().ok()
}

/// The packages that a program of npm is installed with: the outermost `node_modules` that it lies in.
fn package(real: &Path) -> Option<PathBuf> {
    let ancestors: Vec<&Path> = real.ancestors().collect();
    let outermost =
        ancestors.iter().rev().find(|folder| folder.file_name().is_some_and(|n| n == "node_modules"));
    outermost.map(|folder| folder.to_path_buf())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn the_folders_of_path_the_agents_package_and_worca_are_read_and_the_home_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, tools) = (root.join("home/ann"), root.join("tools"));
        let cli = tools.join("lib/node_modules/@anthropic-ai/claude-code/cli.js");
        file(&cli);
        file(&home.join(".local/share/keyrings/login"));
        std::fs::create_dir_all(home.join(".local/bin")).unwrap();
        std::fs::create_dir_all(tools.join("bin")).unwrap();
        symlink("../lib/node_modules/@anthropic-ai/claude-code/cli.js", tools.join("bin/claude")).unwrap();
        let worca = root.join("opt/worca");
        file(&worca);
        let path = std::env::join_paths([
            tools.join("bin"),
            home.join(".local/bin"),
            home.clone(),
            root.join("home"),
            PathBuf::from("/"),
            PathBuf::from("relative/bin"),
            root.join("none/bin"),
        ])
        .unwrap();
        let places = programs(Some(&path), OsStr::new("claude"), &worca, Some(&home));
        let opens = |path: &Path| places.iter().any(|place| path.starts_with(place));
        assert!(opens(&cli) && opens(&worca) && opens(&tools.join("bin/claude")), "{places:?}");
        assert!(opens(&home.join(".local/bin/x")), "{places:?}");
        for closed in [
            home.join(".ssh/id_ed25519"),
            home.join(".local/share/keyrings/login"),
            root.join("home/other"),
            root.join("opt/other"),
            PathBuf::from("/etc/shadow"),
        ] {
            assert!(!opens(&closed), "{} by {places:?}", closed.display());
        }
        // An agent program that is named by its path.
        let places = programs(None, cli.as_os_str(), &worca, Some(&home));
        assert!(places.contains(&tools.join("lib/node_modules")), "{places:?}");
        assert!(programs(None, OsStr::new("claude"), &worca, None).contains(&worca));
    }
}
