//! The files of a box: written from what is remembered and asked, then read back as the project that is to be.
//!
//! The same texts that `docker compose` reads are applied; nothing reaches the engine that does not stand in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{CORE, Host, Job};
use crate::container::boxes::{BoxFiles, DEFAULT_NAME, State};
use crate::container::compose::load::{self, File};
use crate::container::compose::model::ProjectName;
use crate::container::compose::parse::{Context, Folders};
use crate::container::compose::rules::{self, Grounds, Sealed};
use crate::container::compose::{dotenv, write};
use crate::container::engine::{Address, Engine};
use crate::container::files;
use crate::container::image;
use crate::container::port;
use crate::container::projects::{self, MountFolder};
use crate::container::secrets::{self, Owner};
use crate::failure::{Exit, Explain, Failure};

/// The port of the default box.
pub const DEFAULT_PORT: u16 = 4317;
/// Ports that a further box chooses from when none is given.
const FURTHER_PORTS: std::ops::Range<u16> = 4327..4427;
/// A compose file of a person is a page; more is not one.
const COMPOSE_BYTES: u64 = 1024 * 1024;
/// The user of the image, for a box that root makes without a project.
const IMAGE_USER: Owner = Owner { uid: 1000, gid: 1000 };

/// What a command line asks to be different from what is remembered.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Folders to mount beside those that are remembered.
    pub projects: Vec<PathBuf>,
    /// Folders not to mount any more.
    pub without: Vec<PathBuf>,
    /// The image reference.
    pub image: Option<String>,
    /// The port of the UI.
    pub port: Option<u16>,
    /// Take the volume of the saved keys away first.
    pub new_vault: bool,
}

/// A box whose files are written.
#[derive(Debug)]
pub struct Prepared {
    /// What it remembers from now on.
    pub state: State,
    /// The folders that it mounts.
    pub mounted: Vec<MountFolder>,
    /// Whether a file changed.
    pub written: bool,
}

/// A folder that was to be forgotten is not remembered.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not mounted in this box")]
struct NotMounted(String);

impl Explain for NotMounted {
    fn code(&self) -> &'static str {
        "project-not-mounted"
    }
    fn hint(&self) -> Option<String> {
        Some("`worca container status` lists what is mounted".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Writes the files of the box. Blocks; every file is written whole or not at all, and the same text not again.
///
/// # Errors
/// When a folder may not be mounted, no image is known, or a file cannot be written or understood.
pub fn prepare(
    job: &Job<'_>,
    changes: &Changes,
    engine: Option<&Engine>,
    capacity: Option<(u32, u64)>,
) -> Result<Prepared, Failure> {
    let files = &job.files;
    let user = user_in(&environment(job.host, files)?)?;
    let known = files.exists();
    let mut state = files.load_state()?;
    let mounted = mounts(job, &state, changes, engine)?;
    state.projects = mounted.iter().map(|folder| folder.as_str().to_owned()).collect();
    let name = ProjectName::parse(files.name())
        .map_err(|_| crate::container::boxes::BoxError::Name(files.name().into()))?;
    let mut written = false;

    let before = read_env(job.host, files, false)?;
    let image = choose_image(job.host, &state, changes, before.as_ref())?;
    if let Some(before) = before {
        let mut text = files::read_text(&files.env(), COMPOSE_BYTES)?.unwrap_or_default();
        let mut set = |key: &str, value: &str| {
            if before.get(key).map(String::as_str) != Some(value) {
                text = with_line(&text, key, value);
                written = true;
            }
        };
        // The file is the user's; what they ask on the command line is put into its own lines and nothing else is.
        if let Some(port) = changes.port {
            set("WORCA_PORT", &port.to_string());
        }
        if let Some(image) = image.to_write.as_deref() {
            set("WORCA_IMAGE", image);
        }
        if written {
            files::write_text(&files.env(), &text, true)?;
        }
    } else {
        let owner = owner_of(job.host, &mounted);
        let (cpus, memory) = capacity.unwrap_or_else(this_machine);
        let text = write::env(&write::Initial {
            image: image.to_write.clone().unwrap_or_else(|| image.reference.clone()),
            port: changes.port.unwrap_or_else(|| free_port(job.host, files)),
            user: owner.uid,
            group: owner.gid,
            git_name: job.host.git.name.clone(),
            git_email: job.host.git.email.clone(),
            // A quarter stays with the host, whose own programs must not be what the kernel ends first.
            memory: format!("{}m", (memory / 4 * 3 / (1 << 20)).clamp(512, 16 * 1024)),
            cpus: cpus.max(1),
            processes: 4096,
        });
        files::write_text(&files.env(), &text, true)?;
        written = true;
    }
    if changes.image.is_some() {
        // Named by the user, so the line in `.env` is theirs from now on.
        state.image = None;
    } else if image.to_write.is_some() {
        state.image.clone_from(&image.to_write);
    }

    let paths = mounted
        .iter()
        .map(|folder| write::ProjectMount::new(folder.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    written |= files::write_text(&files.folder().join(write::COMPOSE_FILE), &write::compose(&name), false)?;
    written |= files::write_text(&files.folder().join(write::PROJECTS_FILE), &write::projects(&paths), true)?;
    // Mounted whether anything is in it or not: an engine mounts nothing that is not there.
    std::fs::create_dir_all(files.keys()).map_err(files::failed("make the folder", &files.keys()))?;
    let user = match user {
        Some(user) => user,
        None => user_in(&environment(job.host, files)?)?.unwrap_or(IMAGE_USER),
    };
    // Without an engine nobody can say whether a vault waits for a key that was lost; `up` looks and makes it.
    secrets::ensure(files, user, engine.is_some() || !known)?;
    if state != files.load_state()? {
        files.save_state(&state)?;
    }
    Ok(Prepared { state, mounted, written })
}

/// The texts of a box's files before a port or an image that may turn out not to work was written into them.
#[derive(Debug)]
pub struct Texts(Vec<(PathBuf, Option<String>)>);

impl Texts {
    /// Those of now; none when `changes` ask for no port and no image. Blocks.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of(box_files: &BoxFiles, changes: &Changes) -> Result<Self, Failure> {
        if changes.image.is_none() && changes.port.is_none() {
            return Ok(Self(Vec::new()));
        }
        let folder = box_files.folder();
        let paths = [
            box_files.env(),
            box_files.state(),
            folder.join(write::COMPOSE_FILE),
            folder.join(write::PROJECTS_FILE),
        ];
        let read = |path: PathBuf| Ok((path.clone(), files::read_text(&path, COMPOSE_BYTES)?));
        Ok(Self(paths.into_iter().map(read).collect::<Result<_, files::FileError>>()?))
    }
    /// Puts them back. Blocks.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn put_back(&self) -> Result<(), Failure> {
        for (path, text) in &self.0 {
            match text {
                Some(text) => {
                    files::write_text(path, text, !path.ends_with(write::COMPOSE_FILE))?;
                }
                None if path.exists() => {
                    std::fs::remove_file(path).map_err(files::failed("remove", path))?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Reads the files of the box back as the project that is to be.
///
/// # Errors
/// When a file cannot be read, holds what is not applied, or takes back a promise of the box.
pub fn load(job: &Job<'_>, engine: Option<&Engine>) -> Result<Sealed, Failure> {
    let files = &job.files;
    let name = ProjectName::parse(files.name())
        .map_err(|_| crate::container::boxes::BoxError::Name(files.name().into()))?;
    let mut texts = Vec::new();
    for file in [write::PROJECTS_FILE, write::COMPOSE_FILE, write::OVERRIDE_FILE] {
        if let Some(text) = files::read_text(&files.folder().join(file), COMPOSE_BYTES)? {
            texts.push((file, text));
        }
    }
    let inputs: Vec<File<'_>> = texts.iter().map(|(name, text)| File { name, text }).collect();
    let text_of = |path: &Path| path.to_string_lossy().into_owned();
    let home = job.host.user_home.as_deref().map(text_of);
    let context = Context {
        name,
        folders: Folders { project: text_of(files.folder()), home: home.clone() },
        environment: environment(job.host, files)?,
    };
    let loaded = load::load(&inputs, &context)?;
    for warning in &loaded.warnings {
        job.report.warn(&warning.to_string());
    }
    let sockets = engine.and_then(|engine| match &engine.address {
        Address::Unix(path) => Some(text_of(path)),
        Address::Tcp(_) | Address::Pipe(_) => None,
    });
    let grounds = Grounds {
        home,
        container_home: text_of(files.folder()),
        engine_sockets: sockets.into_iter().collect(),
    };
    Ok(rules::seal(&loaded, &grounds)?)
}

/// What variables in the files stand for: `.env`, over which the environment wins.
///
/// # Errors
/// When `.env` cannot be read or understood.
pub fn environment(host: &Host, files: &BoxFiles) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = read_env(host, files, true)?.unwrap_or_default();
    all.extend(host.environment.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(all)
}

/// What `.env` sets; `None` when there is none. With `known` its values may name what the environment holds.
fn read_env(host: &Host, files: &BoxFiles, known: bool) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let Some(text) = files::read_text(&files.env(), COMPOSE_BYTES)? else { return Ok(None) };
    let nothing = BTreeMap::new();
    let from = if known { &host.environment } else { &nothing };
    Ok(Some(dotenv::parse(".env", &text, from)?))
}

/// The user that the box's processes run as, as `.env` has it.
///
/// # Errors
/// When one of the two is no number.
pub fn user_in(environment: &BTreeMap<String, String>) -> Result<Option<Owner>, NoNumber> {
    let number = |key: &'static str| match environment.get(key) {
        Some(text) => {
            let shown = || text.chars().filter(|c| !c.is_control()).take(60).collect();
            text.trim().parse().map(Some).map_err(|_| NoNumber { key, text: shown() })
        }
        None => Ok(None),
    };
    Ok(number("WORCA_UID")?.zip(number("WORCA_GID")?).map(|(uid, gid)| Owner { uid, gid }))
}

/// A user or group of `.env` is none.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` of `.env` (or of the environment) is `{text}`, which is no number of a user or group")]
pub struct NoNumber {
    key: &'static str,
    text: String,
}

impl Explain for NoNumber {
    fn code(&self) -> &'static str {
        "box-user"
    }
    fn hint(&self) -> Option<String> {
        Some("write the number that `id -u` (WORCA_UID) or `id -g` (WORCA_GID) prints".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

struct Chosen {
    reference: String,
    /// What `.env` and the state are to say from now on, when that changes.
    to_write: Option<String>,
}

/// What a person wrote into `.env` wins over what was built; what we wrote there follows the build.
fn choose_image(
    host: &Host,
    state: &State,
    changes: &Changes,
    before: Option<&BTreeMap<String, String>>,
) -> Result<Chosen, Failure> {
    let in_file = before.and_then(|env| env.get("WORCA_IMAGE")).map(String::as_str);
    let theirs = in_file.filter(|text| Some(*text) != state.image.as_deref());
    let named = host.environment.get("WORCA_IMAGE").map(String::as_str);
    let pick = image::choose(changes.image.as_deref(), named, theirs, host.program.as_deref(), in_file)?;
    let passing = changes.image.is_none() && named.is_some_and(|text| !text.is_empty());
    let to_write = (!passing && theirs != Some(pick.reference.as_str())).then(|| pick.reference.clone());
    Ok(Chosen { reference: pick.reference, to_write })
}

/// Processors and memory where no engine was asked (`init`): those of this machine, as far as it says.
fn this_machine() -> (u32, u64) {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kilobytes: u64 = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(kilobytes * 1024)
    });
    (u32::try_from(cpus).unwrap_or(1), memory.unwrap_or(4 << 30))
}

fn mounts(
    job: &Job<'_>,
    state: &State,
    changes: &Changes,
    engine: Option<&Engine>,
) -> Result<Vec<MountFolder>, Failure> {
    let forbidden = job.host.forbidden(engine);
    let mut remembered: Vec<String> = state.projects.clone();
    for folder in &changes.without {
        // A folder that is gone has no canonical path, and may be named from here all the same.
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        let canonical = std::fs::canonicalize(folder).unwrap_or_else(|_| absolute.clone());
        let before = remembered.len();
        remembered.retain(|one| Path::new(one) != canonical && Path::new(one) != absolute);
        if remembered.len() == before {
            return Err(NotMounted(folder.display().to_string()).into());
        }
    }
    let mut folders = Vec::new();
    for folder in &remembered {
        folders.push(projects::check(Path::new(folder), &forbidden).map_err(|error| Forgotten { error })?);
    }
    for folder in &changes.projects {
        folders.push(projects::check(folder, &forbidden)?);
    }
    let count = folders.iter().map(MountFolder::as_str).collect::<BTreeSet<_>>().len();
    let merged = projects::merge(folders);
    if merged.len() < count && !changes.projects.is_empty() {
        job.report.note("folders that lie inside another mounted one are part of it");
    }
    Ok(merged)
}

/// A remembered folder may not be mounted any more.
#[derive(Debug, thiserror::Error)]
#[error("a project that this box remembers cannot be mounted")]
struct Forgotten {
    #[source]
    error: projects::ProjectError,
}

impl Explain for Forgotten {
    fn code(&self) -> &'static str {
        self.error.code()
    }
    fn hint(&self) -> Option<String> {
        Some(format!(
            "put it back, or go on without it: `worca container up --without-project {}`",
            self.error.path
        ))
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// The user that the box is to run as: who calls, and when that is root, the owner of the first project.
fn owner_of(host: &Host, mounted: &[MountFolder]) -> Owner {
    if host.user.uid != 0 {
        return host.user;
    }
    #[cfg(unix)]
    if let Some(found) = mounted.first().and_then(|folder| std::fs::metadata(folder.as_str()).ok()) {
        use std::os::unix::fs::MetadataExt as _;
        return Owner { uid: found.uid(), gid: found.gid() };
    }
    let _ = mounted;
    IMAGE_USER
}

/// The usual port, and for a further box the first one that no other box has and nobody listens on.
fn free_port(host: &Host, files: &BoxFiles) -> u16 {
    if files.name() == DEFAULT_NAME {
        return DEFAULT_PORT;
    }
    let others = std::fs::read_dir(host.home.path().join("containers")).into_iter().flatten().flatten();
    let texts =
        others.filter_map(|other| files::read_text(&other.path().join(".env"), COMPOSE_BYTES).ok().flatten());
    let known = texts.filter_map(|text| {
        dotenv::parse(".env", &text, &BTreeMap::new()).ok()?.get("WORCA_PORT")?.parse().ok()
    });
    let known: Vec<u16> = known.collect();
    let address = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let mut free = FURTHER_PORTS.filter(|port| !known.contains(port));
    free.find(|port| port::check(files.name(), address, *port, &[]).is_ok()).unwrap_or(DEFAULT_PORT)
}

/// The text with `key=value` in place of its last line that sets `key`, or at the end.
fn with_line(text: &str, key: &str, value: &str) -> String {
    let line = format!("{key}={}", dotenv::quote(value));
    let sets = |one: &str| {
        let one = one.trim_start();
        let one = one.strip_prefix("export ").unwrap_or(one).trim_start();
        one.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', ':']))
    };
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().rposition(|one| sets(one)) {
        Some(at) => {
            if let Some(place) = lines.get_mut(at) {
                *place = &line;
            }
        }
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

/// The host port of core in a sealed project.
pub fn port_of(project: &Sealed) -> Option<u16> {
    project.services.get(CORE)?.ports.first()?.published
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_that_is_no_number_is_refused_and_none_is_none() {
        let user = |uid: &str| {
            let pairs = [("WORCA_UID", uid), ("WORCA_GID", "7")];
            user_in(&pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into())
        };
        assert_eq!(user("5").unwrap(), Some(Owner { uid: 5, gid: 7 }));
        assert_eq!(user_in(&BTreeMap::new()).unwrap(), None);
        for text in ["me", "", "-1", "5:5"] {
            let error = user(text).unwrap_err();
            assert!(error.exit() == Exit::Refused && error.to_string().contains("WORCA_UID"), "{error}");
        }
    }

    #[test]
    fn the_texts_of_before_come_back_and_a_file_that_was_not_there_goes() {
        let folder = tempfile::tempdir().unwrap();
        let box_files = BoxFiles::open(&crate::home::Home::at(folder.path()), "worca").unwrap();
        files::write_text(&box_files.env(), "A=b\n", true).unwrap();
        let changes = Changes { port: Some(7), ..Changes::default() };
        let before = Texts::of(&box_files, &changes).unwrap();
        files::write_text(&box_files.env(), "A=c\n", true).unwrap();
        files::write_text(&box_files.state(), "version: 1\n", true).unwrap();
        before.put_back().unwrap();
        assert_eq!(std::fs::read_to_string(box_files.env()).unwrap(), "A=b\n");
        assert!(!box_files.state().exists());
        assert!(Texts::of(&box_files, &Changes::default()).unwrap().0.is_empty());
    }

    #[test]
    fn a_line_of_env_is_replaced_and_everything_else_stays() {
        let text = "# mine\nWORCA_PORT=4317\nA=b\nexport WORCA_PORT = 1\nWORCA_PORTS=2\n";
        assert_eq!(
            with_line(text, "WORCA_PORT", "9"),
            "# mine\nWORCA_PORT=4317\nA=b\nWORCA_PORT=9\nWORCA_PORTS=2\n"
        );
        assert_eq!(with_line("A=b", "WORCA_PORT", "9"), "A=b\nWORCA_PORT=9\n");
    }
}
