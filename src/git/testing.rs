//! Real repositories for tests, made by the same git that is tested, each in a folder of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Git, Person};

/// A folder with a repository `project` in it, a home folder for the person, and room for runs.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) git: Git,
}

/// Every git on this machine that a test should hold for.
pub(crate) fn gits() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&path) {
        let program = folder.join("git");
        if program.is_file()
            && !found.iter().any(|known| known.canonicalize().ok() == program.canonicalize().ok())
        {
            found.push(program);
        }
    }
    assert!(!found.is_empty(), "no git on the search path");
    found
}

impl Bench {
    /// With a repository of one commit (`README.md`, `src/main.txt`).
    pub(crate) async fn new(program: &Path) -> Self {
        let bench = Self::empty(program, "project").await;
        bench.first_commit("project");
        bench
    }

    /// With a repository that has no commit yet.
    pub(crate) async fn empty(program: &Path, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(program).await.unwrap();
        let bench = Self { folder, git };
        std::fs::create_dir_all(bench.path("home")).unwrap();
        bench.in_folder("", &["init", "--quiet", "--initial-branch=main", name]);
        bench
    }

    pub(crate) fn first_commit(&self, name: &str) {
        self.write(&format!("{name}/README.md"), "first\n");
        self.write(&format!("{name}/src/main.txt"), "one\ntwo\nthree\n");
        self.in_folder(name, &["add", "--all"]);
        self.in_folder(name, &["commit", "--quiet", "-m", "First commit"]);
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().unwrap();
        if below.is_empty() { folder } else { folder.join(below) }
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        write(&self.path(below), text);
    }

    /// The person's or the agent's own git, in a folder: it must succeed.
    pub(crate) fn in_folder(&self, below: &str, arguments: &[&str]) -> String {
        let (fine, text) = self.try_in(&self.path(below), arguments);
        assert!(fine, "git {arguments:?}: {text}");
        text
    }

    /// The same, in any folder; whether it succeeded, and what it printed.
    #[expect(clippy::disallowed_methods, reason = "a test plays the person and the agent with their own git")]
    pub(crate) fn try_in<S: AsRef<OsStr>>(&self, folder: &Path, arguments: &[S]) -> (bool, String) {
        let output = std::process::Command::new(self.git.program())
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(Person::new("Some Body", "some@body.example").unwrap().environment())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), if output.status.success() { text } else { format!("{text}{said}") })
    }
}

/// Writes a file and the folders above it.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
