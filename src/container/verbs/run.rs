//! `run`: what follows `--` as `worca run` inside core, with paths and texts of the host made fit for the inside.
//!
//! The task never becomes an argument inside: it is fed in, or put into a file that is gone afterwards.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{CORE, Job};
use crate::container::engine::Engine;
use crate::container::engine::exec::Command;
use crate::container::projects::{self, MountFolder};
use crate::failure::{Exit, Explain, Failure};
use crate::keys::slot::{Choice, SlotName};

/// How long a task may be, in bytes; core takes no longer one.
pub const TASK_BYTES: u64 = 512 * 1024;
/// How long a file of one task may take to be written inside.
const WRITE: Duration = Duration::from_secs(20);
/// The exit code of a program that was killed.
const KILLED: i64 = 137;
/// How long after that its container may take to be seen as ended.
const ENDING: Duration = Duration::from_secs(2);
/// Options of `worca run` that take a value, so that a value is never taken for an option.
const WITH_VALUE: &[&str] =
    &["--guardrails", "--title", "--budget", "--only-model", "--core-url", "--core-token-file"];

/// What follows `--` cannot be run in the box.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder is not there.
    #[error("the project `{path}` cannot be opened")]
    NoProject {
        /// As it was given.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The folder is outside of what is mounted.
    #[error("the project `{path}` is not mounted in the box `{name}`")]
    Outside {
        /// Its canonical path.
        path: String,
        /// The box.
        name: String,
        /// What is mounted.
        mounted: Vec<String>,
    },
    /// The scenario is not there, or the inside does not see it.
    #[error("the scenario `{path}` is not in a folder that is mounted in the box `{name}`")]
    Scenario {
        /// As it was given.
        path: String,
        /// The box.
        name: String,
    },
    /// The task cannot be read.
    #[error("the task cannot be read from `{from}`")]
    Task {
        /// The file, or standard input.
        from: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The task is too long.
    #[error("the task is longer than {TASK_BYTES} bytes")]
    TooLong,
    /// Core's container is not the one of before, or does not run any more.
    #[error("core of the box `{0}` ended while the run was at work")]
    CoreEnded(String),
    /// The task was given twice.
    #[error("`--prompt` and `--file` are both given")]
    Twice,
}

impl Explain for RunError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoProject { .. } => "project-missing",
            Self::Outside { .. } => "project-not-mounted",
            Self::Scenario { .. } => "scenario",
            Self::Task { .. } => "task-unreadable",
            Self::TooLong => "task-too-long",
            Self::CoreEnded(_) => "core-ended",
            Self::Twice => "task-twice",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoProject { .. } => Some("give the path of an existing folder".into()),
            Self::Outside { path, name, mounted } => {
                let named = crate::container::boxes::flag(name);
                let now = if mounted.is_empty() {
                    "nothing is mounted yet".into()
                } else {
                    format!("mounted is {}", mounted.join(", "))
                };
                Some(format!("mount it with `worca container up{named} --project {path}` ({now})"))
            }
            Self::Scenario { .. } => Some("put the file into a mounted project".into()),
            Self::Task { .. } => None,
            Self::TooLong => {
                Some("put the long part into a file of the repository and name it in the task".into())
            }
            Self::CoreEnded(name) => {
                let named = crate::container::boxes::flag(name);
                Some(format!(
                    "`worca container up{named}` starts it, then `worca container shell{named} core -- worca runs` \
                     shows what became of the run; its work is kept"
                ))
            }
            Self::Twice => Some("give one of them".into()),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Outside { .. } => Exit::Refused,
            Self::CoreEnded(_) => Exit::Failed,
            _ => Exit::Usage,
        }
    }
}

/// The command line for the inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// Arguments of `worca run`, without the task.
    pub arguments: Vec<String>,
    /// The task, when the command line gave one.
    pub task: Option<Vec<u8>>,
}

/// Makes the host's command line fit for the inside: the project's canonical path, which is the same there, and the
/// task taken out. `mounted` is what the running box mounts.
///
/// # Errors
/// When the project is not there or not mounted, or the task cannot be read.
pub fn inside(name: &str, arguments: &[String], mounted: &[MountFolder]) -> Result<Inside, RunError> {
    let mut out = Vec::new();
    let mut task = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (flag, glued) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let mut value = || glued.clone().or_else(|| rest.next().cloned());
        match flag {
            "--project" => {
                let Some(path) = value() else {
                    out.push(argument.clone());
                    continue;
                };
                out.push("--project".into());
                out.push(project(name, Path::new(&path), mounted)?);
            }
            "--prompt" | "--file" => {
                let Some(text) = value() else {
                    out.push(argument.clone());
                    continue;
                };
                if task.is_some() {
                    return Err(RunError::Twice);
                }
                task = Some(if flag == "--prompt" {
                    short(text.into_bytes())?
                } else {
                    read(Path::new(&text))?
                });
            }
            "--model" => {
                let Some(model) = value() else {
                    out.push(argument.clone());
                    continue;
                };
                let model = scenario(name, &model, mounted)?.unwrap_or(model);
                // A value that looks like an option stays the value that it is.
                if glued.is_some() {
                    out.push(format!("--model={model}"));
                } else {
                    out.extend(["--model".into(), model]);
                }
            }
            flag if WITH_VALUE.contains(&flag) => {
                out.push(argument.clone());
                if glued.is_none() {
                    out.extend(rest.next().cloned());
                }
            }
            _ => out.push(argument.clone()),
        }
    }
    Ok(Inside { arguments: out, task })
}

fn project(name: &str, path: &Path, mounted: &[MountFolder]) -> Result<String, RunError> {
    let missing = |source| RunError::NoProject { path: path.display().to_string(), source };
    let path = std::fs::canonicalize(home_expanded(path)).map_err(missing)?;
    match (projects::holder(&path, mounted), path.to_str()) {
        (Some(_), Some(text)) => Ok(text.to_owned()),
        _ => Err(RunError::Outside {
            path: path.display().to_string(),
            name: name.to_owned(),
            mounted: mounted.iter().map(|folder| folder.as_str().to_owned()).collect(),
        }),
    }
}

/// A model that names a scenario's file, with the file's canonical path, which is the same inside.
fn scenario(name: &str, model: &str, mounted: &[MountFolder]) -> Result<Option<String>, RunError> {
    let choice = Choice::for_model(Some(model)).ok();
    let Some(path) = choice.as_ref().and_then(Choice::scenario_file) else { return Ok(None) };
    let refused = || RunError::Scenario { path: path.to_owned(), name: name.to_owned() };
    let real = std::fs::canonicalize(path).map_err(|_| refused())?;
    match (projects::holder(&real, mounted), real.to_str()) {
        (Some(_), Some(text)) => Ok(Some(format!("{}/{text}", SlotName::rehearsal()))),
        _ => Err(refused()),
    }
}

/// A shell leaves `~` alone in `--project=~/dev`.
fn home_expanded(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

fn short(text: Vec<u8>) -> Result<Vec<u8>, RunError> {
    if u64::try_from(text.len()).is_ok_and(|length| length <= TASK_BYTES) {
        Ok(text)
    } else {
        Err(RunError::TooLong)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    if path == Path::new("-") {
        return from_reader("standard input", std::io::stdin());
    }
    let shown = path.display().to_string();
    let file = std::fs::File::open(home_expanded(path))
        .map_err(|source| RunError::Task { from: shown.clone(), source })?;
    from_reader(&shown, file)
}

/// A task from a stream, up to the limit. Blocks.
///
/// # Errors
/// When it cannot be read, or is too long.
pub fn from_reader(from: &str, stream: impl std::io::Read) -> Result<Vec<u8>, RunError> {
    let mut text = Vec::new();
    let read = stream.take(TASK_BYTES + 1).read_to_end(&mut text);
    read.map_err(|source| RunError::Task { from: from.to_owned(), source })?;
    short(text)
}

/// What the running core mounts of the host.
///
/// # Errors
/// When the engine does not say.
pub async fn mounted(engine: &Engine, container: &str) -> Result<Vec<MountFolder>, Failure> {
    let binds = engine.bind_targets(container).await?;
    Ok(binds
        .into_iter()
        .filter(|target| !target.starts_with("/run/secrets"))
        .map(MountFolder::known)
        .collect())
}

/// The exec of a run. With a terminal the task lies in a file inside, because a terminal's input has no end.
///
/// # Errors
/// When the box is not up or the file cannot be written.
pub async fn command(
    engine: &Engine,
    container: &str,
    inside: &Inside,
    terminal: bool,
) -> Result<(Command, Option<String>), Failure> {
    let mut argv: Vec<String> = vec!["worca".into(), "run".into()];
    argv.extend(inside.arguments.iter().cloned());
    let mut file = None;
    if let Some(task) = inside.task.as_ref().filter(|_| terminal) {
        let path = format!("/tmp/worca-task-{}", crate::ids::SpawnId::random());
        let script = ["sh", "-c", "umask 077 && cat >\"$1\"", "sh", &path];
        let answer = engine.ask(container, &script, task, 4096, WRITE).await?;
        if answer.code != 0 {
            let message = String::from_utf8_lossy(&answer.err).into_owned();
            let what = format!("hand the task to container `{container}`");
            return Err(crate::container::engine::EngineError::Refused { what, status: 500, message }.into());
        }
        argv.extend(["--file".into(), path.clone()]);
        file = Some(path);
    }
    Ok((Command { container: container.to_owned(), argv, terminal, ..Command::default() }, file))
}

/// Removes the file of a task. Best effort: it lies in memory that goes with the container.
pub async fn forget(engine: &Engine, container: &str, file: &str) {
    let _ = engine.ask(container, &["rm", "-f", file], b"", 4096, WRITE).await;
}

/// The name of core's container, and what it mounts.
///
/// # Errors
/// When the box is not up.
pub async fn core(job: &Job<'_>, engine: &Engine) -> Result<(String, Vec<MountFolder>), Failure> {
    let core = job.running(engine, CORE).await?;
    let mounted = mounted(engine, &core.name).await?;
    Ok((core.name, mounted))
}

/// Whether core is no longer what it was when `life` was asked, after a program inside ended with `code`. Such a
/// program is killed a moment before the engine says that its container has ended.
pub async fn has_ended(engine: &Engine, container: &str, life: &str, code: Option<i64>) -> bool {
    let until = tokio::time::Instant::now() + if code == Some(KILLED) { ENDING } else { Duration::ZERO };
    loop {
        match engine.life(container).await {
            Ok(now) if now.as_deref() == Some(life) => {}
            Ok(_) => return true,
            Err(error) => return error.is_missing(),
        }
        if tokio::time::Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_project_becomes_its_canonical_path_and_the_task_is_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("a:b ü");
        std::fs::create_dir_all(project.join("sub")).unwrap();
        std::fs::write(folder.path().join("task"), "from a file").unwrap();
        std::os::unix::fs::symlink(&project, folder.path().join("link")).unwrap();
        let mounted = vec![MountFolder::known(project.display().to_string())];
        let link = folder.path().join("link/sub").display().to_string();
        let wanted = project.join("sub").display().to_string();
        let made =
            inside("worca", &words(&["--project", &link, "--prompt", "do --file x", "--json"]), &mounted)
                .unwrap();
        assert_eq!(made.arguments, words(&["--project", &wanted, "--json"]));
        assert_eq!(made.task.unwrap(), b"do --file x");
        let file = folder.path().join("task").display().to_string();
        let made = inside(
            "worca",
            &words(&[&format!("--project={link}"), "--title", "--prompt", &format!("--file={file}")]),
            &mounted,
        )
        .unwrap();
        assert_eq!(made.arguments, words(&["--project", &wanted, "--title", "--prompt"]));
        assert_eq!(made.task.unwrap(), b"from a file");
    }

    #[test]
    fn a_scenario_of_ones_own_becomes_its_canonical_path_where_it_is_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("p");
        std::fs::create_dir(&project).unwrap();
        for place in [project.join("x.yaml"), folder.path().join("out.yaml")] {
            std::fs::write(place, "version: 1\n").unwrap();
        }
        let mounted = vec![MountFolder::known(project.display().to_string())];
        let ask = |model: &str| {
            inside("w", &words(&["--model", model, "--budget", "--file"]), &mounted)
                .map(|made| made.arguments)
        };
        let given = format!("rehearsal/{}/../p/x.yaml", project.display());
        let wanted = format!("rehearsal/{}/x.yaml", project.display());
        assert_eq!(ask(&given).unwrap(), words(&["--model", &wanted, "--budget", "--file"]));
        assert_eq!(
            ask("rehearsal/slow").unwrap(),
            words(&["--model", "rehearsal/slow", "--budget", "--file"])
        );
        let glued = inside("w", &words(&["--model=--version"]), &mounted).unwrap();
        assert_eq!(glued.arguments, words(&["--model=--version"]));
        for missing in ["out.yaml", "none.yaml"] {
            let given = format!("rehearsal/{}/{missing}", folder.path().display());
            assert!(matches!(ask(&given), Err(RunError::Scenario { .. })), "{missing}");
        }
    }

    #[test]
    fn a_project_outside_the_mounts_is_refused_with_the_way_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().display().to_string();
        let error = inside("second", &words(&["--project", &path]), &[]).unwrap_err();
        assert_eq!(error.exit(), Exit::Refused);
        assert!(
            error.hint().unwrap().contains(&format!("worca container up --name second --project {path}"))
        );
        let error = inside("worca", &words(&["--project", "/no/such/folder"]), &[]).unwrap_err();
        assert!(matches!(error, RunError::NoProject { .. }) && error.exit() == Exit::Usage);
    }

    #[test]
    fn a_task_twice_or_too_long_or_unreadable_is_a_sentence() {
        assert!(matches!(inside("w", &words(&["--prompt", "a", "--file", "b"]), &[]), Err(RunError::Twice)));
        assert!(matches!(inside("w", &words(&["--file", "/no/such/file"]), &[]), Err(RunError::Task { .. })));
        let long = "x".repeat(usize::try_from(TASK_BYTES).unwrap() + 1);
        assert!(matches!(inside("w", &words(&["--prompt", &long]), &[]), Err(RunError::TooLong)));
        assert_eq!(
            inside("w", &words(&["--help", "--prompt"]), &[]).unwrap().arguments,
            words(&["--help", "--prompt"])
        );
    }
}
