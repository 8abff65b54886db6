//! A box as the host knows it: its name, the paths of its files, what it remembers, and a lock while it is worked on.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::compose::model::ProjectName;
use super::files::{self, FileError};
use crate::failure::{Exit, Explain};
use crate::home::Home;

/// The name of the box when none is given.
pub const DEFAULT_NAME: &str = "worca";
/// The version of `state.yaml` that this program reads and writes.
const STATE_VERSION: u32 = 1;
/// `state.yaml` is a list of folders; more is not one.
const STATE_BYTES: u64 = 256 * 1024;
/// After which a command that waits says so.
const TELL_TIME: Duration = Duration::from_millis(500);
/// How long a command waits for another one that works on the same box.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// ` --name NAME` for the command lines of hints; nothing for the box that is meant without it.
pub fn flag(name: &str) -> String {
    if name == DEFAULT_NAME { String::new() } else { format!(" --name {name}") }
}

/// The text with the name of the box in each command line of ours that does not say it yet; command lines stand in
/// backticks.
pub fn named(text: &str, name: &str) -> String {
    if name == DEFAULT_NAME {
        return text.to_owned();
    }
    let parts =
        text.split('`').enumerate().map(|(index, part)| match part.strip_prefix("worca container ") {
            Some(rest) if index % 2 == 1 && !part.contains("--name ") => {
                let (verb, more) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
                format!("worca container {verb} --name {name}{more}")
            }
            _ => part.to_owned(),
        });
    parts.collect::<Vec<_>>().join("`")
}

/// A box on this host.
#[derive(Debug, Clone)]
pub struct BoxFiles {
    name: ProjectName,
    folder: PathBuf,
}

/// What a box remembers between commands. `state.yaml`; unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    version: u32,
    /// The folders that are mounted, as canonical paths.
    #[serde(default)]
    pub projects: Vec<String>,
    /// The image reference that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The engine that the box was last brought up on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self { version: STATE_VERSION, projects: Vec::new(), image: None, engine: None }
    }
}

/// A box cannot be opened or remembered.
#[derive(Debug, thiserror::Error)]
pub enum BoxError {
    /// The name is none.
    #[error("`{0}` is no name for a box: use `a-z`, `0-9` and `-`, the first a letter, at most 40")]
    Name(String),
    /// A file of it.
    #[error(transparent)]
    File(#[from] FileError),
    /// `state.yaml` cannot be understood.
    #[error("`{}` cannot be understood: {why}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another command works on it.
    #[error("another `worca container` command works on the box `{0}`")]
    Busy(String),
}

impl Explain for BoxError {
    fn code(&self) -> &'static str {
        match self {
            Self::Name(_) => "box-name",
            Self::File(error) => error.code(),
            Self::State { .. } => "box-state",
            Self::Busy(_) => "box-busy",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Name(_) => None,
            Self::File(error) => error.hint(),
            Self::State { path, .. } => Some(format!(
                "put it right, or move it away (`mv {p} {p}.old`) and name the projects again with `--project`",
                p = path.display()
            )),
            Self::Busy(_) => Some("wait until it has ended, then try again".into()),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Name(_) => Exit::Usage,
            Self::State { .. } => Exit::Refused,
            Self::File(_) | Self::Busy(_) => Exit::Failed,
        }
    }
}

impl BoxFiles {
    /// The box `name` below Worca's home. Nothing has to be there yet.
    ///
    /// # Errors
    /// When the name is none.
    pub fn open(home: &Home, name: &str) -> Result<Self, BoxError> {
        let wrong = || BoxError::Name(name.chars().filter(|c| !c.is_control()).take(60).collect());
        let fits =
            name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('_');
        let parsed = ProjectName::parse(name).map_err(|_| wrong())?;
        if !fits {
            return Err(wrong());
        }
        Ok(Self { folder: home.container(name), name: parsed })
    }
    /// The name of the box, which is its Compose project.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }
    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// `.env`, the user's after its first writing.
    pub fn env(&self) -> PathBuf {
        self.folder.join(".env")
    }
    /// The folder of the secrets.
    pub fn secrets(&self) -> PathBuf {
        self.folder.join("secrets")
    }
    /// The folder with the settings of the key service: the person's own files, and none of them has to be there.
    pub fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }
    /// What the box remembers.
    pub fn state(&self) -> PathBuf {
        self.folder.join("state.yaml")
    }
    /// The sign-in address while a `login` waits.
    pub fn login_url(&self) -> PathBuf {
        self.folder.join("login-url")
    }
    /// The compose files in the order of merging; the user's own comes last, when there is one.
    pub fn compose_files(&self) -> Vec<PathBuf> {
        let all = ["compose.yaml", "compose.projects.yaml", "compose.override.yaml"];
        all.iter().map(|name| self.folder.join(name)).filter(|path| path.exists()).collect()
    }
    /// Whether its files were written.
    pub fn exists(&self) -> bool {
        self.folder.join("compose.yaml").exists()
    }
    /// Reads what the box remembers; a fresh one remembers nothing.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn load_state(&self) -> Result<State, BoxError> {
        let path = self.state();
        let Some(text) = files::read_text(&path, STATE_BYTES)? else { return Ok(State::default()) };
        let wrong = |why: String| BoxError::State { path: path.clone(), why };
        let state: State =
            serde_saphyr::from_str(&text).map_err(|error| wrong(one_line(&error.to_string())))?;
        if state.version != STATE_VERSION {
            return Err(wrong(format!(
                "it has version {}, and this program knows {STATE_VERSION}",
                state.version
            )));
        }
        Ok(state)
    }
    /// Writes what the box remembers, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_state(&self, state: &State) -> Result<(), BoxError> {
        let path = self.state();
        let body = serde_saphyr::to_string(state)
            .map_err(|error| BoxError::State { path: path.clone(), why: error.to_string() })?;
        let text = format!(
            "# Written by `worca container`: what the box remembers. Change it with `worca container up`.\n{body}"
        );
        files::write_text(&path, &text, true)?;
        Ok(())
    }
    /// Makes the folder and holds the box until the guard is dropped. Blocks for at most ten seconds.
    ///
    /// # Errors
    /// When another command holds it all that time, or the folder cannot be made.
    pub fn lock(&self, what: &'static str) -> Result<BoxLock, BoxError> {
        self.lock_telling(what, &|| {})
    }
    /// The same, which calls `waits` once when it has waited for a moment.
    ///
    /// # Errors
    /// As above.
    pub fn lock_telling(&self, what: &'static str, waits: &dyn Fn()) -> Result<BoxLock, BoxError> {
        self.make_folder()?;
        let path = self.folder.join(format!("{what}.lock"));
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(files::failed("open", &path))?;
        let mut tell_at = Some(Instant::now() + TELL_TIME);
        let until = Instant::now() + if what == "login" { Duration::ZERO } else { LOCK_TIME };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(BoxLock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Err(BoxError::Busy(self.name().into()));
                }
                Err(TryLockError::WouldBlock) => {
                    if tell_at.is_some_and(|at| Instant::now() >= at) {
                        tell_at = None;
                        waits();
                    }
                    pause();
                }
                Err(TryLockError::Error(error)) => return Err(files::failed("lock", &path)(error).into()),
            }
        }
    }
    fn make_folder(&self) -> Result<(), BoxError> {
        std::fs::create_dir_all(&self.folder).map_err(files::failed("make the folder", &self.folder))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&self.folder, mode).map_err(files::failed("protect", &self.folder))?;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a lock is taken on a blocking thread, and files cannot be awaited"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Held while a command changes the box; the system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct BoxLock {
    _file: File,
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, BoxFiles) {
        let folder = tempfile::tempdir().unwrap();
        let files = BoxFiles::open(&Home::at(folder.path()), "second").unwrap();
        (folder, files)
    }

    #[test]
    fn a_name_is_short_plain_and_starts_with_a_letter() {
        let home = Home::at("/h");
        assert_eq!(BoxFiles::open(&home, "worca").unwrap().folder(), Path::new("/h/container"));
        assert_eq!(BoxFiles::open(&home, "team-2").unwrap().folder(), Path::new("/h/containers/team-2"));
        for name in ["", "Worca", "../x", "a/b", "-a", "2b", "a b", "ä", "a_b", &"a".repeat(41)] {
            assert!(matches!(BoxFiles::open(&home, name), Err(BoxError::Name(_))), "{name}");
        }
    }

    #[test]
    fn what_is_remembered_reads_back_even_with_odd_paths() {
        let (_folder, files) = fresh();
        assert_eq!(files.load_state().unwrap(), State::default());
        let projects = vec![
            "/tmp/a:b".into(),
            "/tmp/sp ace/ü".into(),
            "/tmp/quote'\"x".into(),
            "/tmp/# - {x}".into(),
            "yes".into(),
        ];
        let state = State { projects, image: Some("worca:dev".into()), ..State::default() };
        files.save_state(&state).unwrap();
        assert_eq!(files.load_state().unwrap(), state);
    }

    #[test]
    fn an_unknown_key_and_a_newer_version_are_refused_and_left_alone() {
        let (_folder, files) = fresh();
        std::fs::create_dir_all(files.folder()).unwrap();
        for text in ["version: 1\nprojcts: []\n", "version: 2\n", "version: 1\nprojects: 7\n", "[", ""] {
            std::fs::write(files.state(), text).unwrap();
            let error = files.load_state().unwrap_err();
            assert!(
                matches!(error, BoxError::State { .. }) && error.exit() == Exit::Refused,
                "{text}: {error}"
            );
            assert_eq!(std::fs::read_to_string(files.state()).unwrap(), text);
        }
    }

    #[test]
    fn a_hint_names_the_box_that_is_worked_on_once() {
        let text =
            "see `worca container logs keys`, `worca container down --name x` or worca container `docker ps`";
        assert_eq!(named(text, DEFAULT_NAME), text);
        let wanted = text.replace("container logs", "container logs --name second");
        assert_eq!(named(text, "second"), wanted);
        assert_eq!(named(&wanted, "second"), wanted);
    }

    #[test]
    fn only_one_command_holds_the_box() {
        let (_folder, files) = fresh();
        let held = files.lock("login").unwrap();
        assert!(matches!(files.lock("login"), Err(BoxError::Busy(_))));
        drop(held);
        files.lock("login").unwrap();
    }
}
