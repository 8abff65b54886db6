//! Which folders may be mounted into a box. Each refusal names its rule.

use std::path::{Path, PathBuf};

use crate::failure::{Exit, Explain};

/// Folders of the system: nothing at or below them is a project.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/System",
    "/Library",
    "/private/etc",
    "/private/var/db",
    "/private/var/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containers",
];
/// Folders that hold everybody's things: no project themselves, though one may lie below.
const SHARED: &[&str] = &[
    "/home",
    "/root",
    "/Users",
    "/Applications",
    "/Volumes",
    "/mnt",
    "/media",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/srv",
    "/tmp",
    "/var",
    "/var/lib",
    "/var/tmp",
];
/// Folders inside the box that are its own.
const INSIDE: &[&str] = &["/worca", "/keys"];
/// What makes a folder look like somebody's home.
const PERSONAL: &[&str] = &[".ssh", ".gnupg"];

/// What may not be mounted, beside the fixed lists.
#[derive(Debug, Clone, Default)]
pub struct Forbidden {
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Worca's own folder.
    pub worca: Option<PathBuf>,
    /// The engine's socket, when it is a file.
    pub socket: Option<PathBuf>,
}

/// A folder that may be mounted: canonical, absolute, text without line breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountFolder(String);

impl MountFolder {
    /// A folder that a running box mounts, by the engine's word.
    pub(super) fn known(path: String) -> Self {
        Self(path)
    }
    /// The path, the same outside and inside.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A folder that may not be mounted.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` is not mounted: {reason}")]
pub struct ProjectError {
    /// The folder, as it was given.
    pub path: String,
    /// The stable word of the rule.
    pub rule: &'static str,
    /// Why, for a person.
    pub reason: String,
}

impl Explain for ProjectError {
    fn code(&self) -> &'static str {
        self.rule
    }
    fn hint(&self) -> Option<String> {
        Some(match self.rule {
            "project-missing" | "project-not-folder" => "give the path of an existing folder".into(),
            "project-line-break" | "project-not-text" | "project-form" => "rename the folder, or clone the project elsewhere".into(),
            _ => "give the project's own folder, or a folder that holds projects and nothing else: `--project ~/dev/api`".into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Checks one folder; a relative path is taken from this process's working folder.
///
/// # Errors
/// When a rule forbids it.
pub fn check(path: &Path, forbidden: &Forbidden) -> Result<MountFolder, ProjectError> {
    let shown: String =
        path.display().to_string().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let refuse = |rule, reason: String| Err(ProjectError { path: shown.clone(), rule, reason });
    let folder = match std::fs::canonicalize(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refuse("project-missing", "it does not exist".into());
        }
        Err(error) => return refuse("project-missing", format!("it cannot be opened ({error})")),
    };
    if !folder.is_dir() {
        return refuse("project-not-folder", "it is not a folder".into());
    }
    let Some(text) = folder.to_str() else {
        return refuse("project-not-text", "its path is not UTF-8".into());
    };
    if text.chars().any(char::is_control) {
        return refuse(
            "project-line-break",
            "its path holds a line break or another control character".into(),
        );
    }
    if !text.starts_with('/') {
        return refuse(
            "project-form",
            "a box can only mount it under a path that starts with `/`; use it from inside WSL".into(),
        );
    }
    if text == "/" {
        return refuse("project-root", "it is the whole file system".into());
    }
    if let Some(home) = forbidden.home.as_ref().map(|home| real(home)) {
        if folder == home {
            return refuse("project-home", "it is your home folder, with all your keys".into());
        }
        if home.starts_with(&folder) {
            return refuse("project-home", "your home folder is inside it".into());
        }
    }
    if let Some(worca) = forbidden.worca.as_ref().map(|worca| real(worca))
        && (folder.starts_with(&worca) || worca.starts_with(&folder))
    {
        return refuse(
            "project-worca",
            format!("Worca's own folder `{}` is it, holds it or lies in it", worca.display()),
        );
    }
    if let Some(socket) = forbidden.socket.as_ref().map(|socket| real(socket))
        && socket.starts_with(&folder)
    {
        return refuse("project-socket", format!("the engine's socket `{}` is inside it", socket.display()));
    }
    if let Some(system) = SYSTEM.iter().find(|system| folder.starts_with(system)) {
        return refuse("project-system", format!("`{system}` belongs to the system"));
    }
    if SHARED.iter().any(|shared| folder == Path::new(shared)) {
        return refuse("project-shared", "it holds more than projects".into());
    }
    if let Some(inside) = INSIDE.iter().find(|inside| folder.starts_with(inside)) {
        return refuse("project-shadows", format!("it would hide the box's own `{inside}`"));
    }
    if let Some(personal) = PERSONAL.iter().find(|personal| folder.join(personal).symlink_metadata().is_ok())
    {
        return refuse("project-keys", format!("it holds `{personal}`, so it looks like somebody's home"));
    }
    Ok(MountFolder(text.to_owned()))
}

/// The canonical path, or the path itself while nothing is there.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Sorted, without doubles and without what another one holds already.
pub fn merge(mut folders: Vec<MountFolder>) -> Vec<MountFolder> {
    folders.sort();
    folders.dedup();
    let all = folders.clone();
    folders.retain(|one| !all.iter().any(|other| other != one && Path::new(&one.0).starts_with(&other.0)));
    folders
}

/// The mounted folder that holds `path`, if one does.
pub fn holder<'a>(path: &Path, mounted: &'a [MountFolder]) -> Option<&'a MountFolder> {
    mounted.iter().find(|folder| path.starts_with(&folder.0))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn rule(path: &Path, forbidden: &Forbidden) -> &'static str {
        check(path, forbidden).map(|_| "allowed").unwrap_or_else(|error| error.rule)
    }

    #[test]
    fn what_holds_more_than_a_project_is_refused_and_the_project_beside_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/ann");
        std::fs::create_dir_all(home.join("dev/api")).unwrap();
        std::fs::create_dir_all(home.join(".worca/container")).unwrap();
        std::fs::create_dir_all(home.join("old-home/.ssh")).unwrap();
        std::fs::create_dir_all(home.join(".docker/run")).unwrap();
        std::fs::write(home.join(".docker/run/docker.sock"), "").unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        let forbidden = Forbidden {
            home: Some(home.clone()),
            worca: Some(home.join(".worca")),
            socket: Some(home.join(".docker/run/docker.sock")),
        };
        for (path, wanted) in [
            (home.join("dev/api"), "allowed"),
            (home.join("dev"), "allowed"),
            ("/".into(), "project-root"),
            (home.clone(), "project-home"),
            (folder.path().join("home"), "project-home"),
            (home.join("dev/.."), "project-home"),
            (home.join("old-home"), "project-keys"),
            (home.join("nowhere"), "project-missing"),
            (home.join("file"), "project-not-folder"),
            (home.join(".worca"), "project-worca"),
            (home.join(".worca/container"), "project-worca"),
            (home.join(".docker"), "project-socket"),
            ("/etc".into(), "project-system"),
            ("/usr/lib".into(), "project-system"),
            ("/proc/self".into(), "project-system"),
            ("/opt".into(), "project-shared"),
        ] {
            assert_eq!(rule(&path, &forbidden), wanted, "{}", path.display());
        }
    }

    #[test]
    fn a_link_is_judged_by_what_it_points_to() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("p")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("p"), folder.path().join("good")).unwrap();
        assert_eq!(rule(&folder.path().join("link"), &Forbidden::default()), "project-system");
        let checked = check(&folder.path().join("good"), &Forbidden::default()).unwrap();
        assert_eq!(Path::new(checked.as_str()), folder.path().join("p").canonicalize().unwrap());
    }

    #[test]
    fn c071_odd_paths_are_allowed_and_one_with_a_line_break_is_refused_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a:b", "sp ace/ü", "quote'\"x", "$HOME", "-v", "{}"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            assert_eq!(rule(&folder.path().join(name), &Forbidden::default()), "allowed", "{name}");
        }
        let broken = folder.path().join("two\nlines");
        std::fs::create_dir_all(&broken).unwrap();
        let error = check(&broken, &Forbidden::default()).unwrap_err();
        assert_eq!(error.rule, "project-line-break");
        assert!(error.to_string().contains("two\u{fffd}lines"), "{error}");
    }

    #[test]
    fn folders_inside_one_another_become_the_outer_one() {
        let folder = |text: &str| MountFolder(text.into());
        let merged =
            merge(vec![folder("/p/sub"), folder("/p-2"), folder("/p"), folder("/p"), folder("/q/x")]);
        assert_eq!(merged, [folder("/p"), folder("/p-2"), folder("/q/x")]);
        assert_eq!(holder(Path::new("/p/sub/deep"), &merged), Some(&folder("/p")));
        assert_eq!(holder(Path::new("/p-3"), &merged), None);
    }
}
