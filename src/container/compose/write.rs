//! The files of a box as text: `compose.yaml`, the overlay with the projects, the first `.env`. It writes no file itself.
//!
//! Any path fits: it is quoted for YAML, its `$` is doubled for Compose, and it stands in the long form, which nothing
//! splits at a colon. A path that no engine can mount is refused with the path quoted.

use super::dotenv;
use super::model::ProjectName;
use super::place::shown;
use crate::failure::{Exit, Explain};

#[cfg(test)]
mod tests;

/// `compose.yaml` as it is in the repository, for the box `worca`.
const TEMPLATE: &str = include_str!("../../../compose/compose.yaml");
/// The one line of it that differs from box to box.
const NAME_LINE: &str = "\nname: worca\n";
/// The name of the overlay, which `compose.yaml` extends.
pub const PROJECTS_FILE: &str = "compose.projects.yaml";
/// The name of the person's own file.
pub const OVERRIDE_FILE: &str = "compose.override.yaml";
/// The name of the main file.
pub const COMPOSE_FILE: &str = "compose.yaml";

/// A project of the person, to be mounted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectMount {
    source: String,
    target: String,
}

/// A path that cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountPathError {
    /// It is relative, or empty.
    #[error("`{0}` is not an absolute path")]
    Relative(String),
    /// It has a character that no file of a box can carry.
    #[error("the path `{shown}` has {character} in it, and such a path cannot be mounted")]
    Character {
        /// The path with the character escaped.
        shown: String,
        /// Which one.
        character: &'static str,
    },
}

impl Explain for MountPathError {
    fn code(&self) -> &'static str {
        "mount-path"
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Relative(_) => "give the whole path of the folder".to_owned(),
            Self::Character { .. } => {
                "rename the folder, or mount one below it that has a plain name".to_owned()
            }
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

impl ProjectMount {
    /// A folder of the host, mounted at the same path inside; `C:\Users\me` becomes `/c/Users/me`.
    ///
    /// # Errors
    /// When the path is not absolute, or has a line break or a NUL in it.
    pub fn new(path: &str) -> Result<Self, MountPathError> {
        if let Some(character) = path.chars().find(|c| matches!(c, '\n' | '\r' | '\0')) {
            let character = match character {
                '\0' => "a NUL",
                _ => "a line break",
            };
            return Err(MountPathError::Character { shown: path.escape_debug().to_string(), character });
        }
        let mut bytes = path.bytes();
        let drive = bytes.next().filter(u8::is_ascii_alphabetic);
        let rest = path.get(2..).filter(|rest| rest.starts_with(['\\', '/']));
        let target = match (drive, bytes.next(), rest) {
            (Some(letter), Some(b':'), Some(rest)) => {
                format!("/{}{}", char::from(letter.to_ascii_lowercase()), rest.replace('\\', "/"))
            }
            _ if path.starts_with('/') => path.to_owned(),
            _ => return Err(MountPathError::Relative(shown(path))),
        };
        Ok(Self { source: path.to_owned(), target })
    }
    /// The path on the host.
    pub fn source(&self) -> &str {
        &self.source
    }
    /// The path inside.
    pub fn target(&self) -> &str {
        &self.target
    }
}

/// `compose.yaml` for a box.
pub fn compose(name: &ProjectName) -> String {
    TEMPLATE.replacen(NAME_LINE, &format!("\nname: {name}\n"), 1)
}

/// `compose.projects.yaml`: the mounts of core, and `WORCA_PROJECTS`, a JSON list of their paths inside.
pub fn projects(mounts: &[ProjectMount]) -> String {
    let mut text = String::from(
        "# Written by `worca container`, and written again by each `up`: choose projects with `--project DIR`.\n\
         # compose.yaml takes this in by `extends`. A `$` in a path is written twice, as Compose wants it.\n\n\
         services:\n  core:\n    environment:\n",
    );
    let paths: Vec<&str> = mounts.iter().map(ProjectMount::target).collect();
    let list = serde_json::Value::from(paths).to_string();
    text.push_str(&format!("      WORCA_PROJECTS: {}\n", quote(&list)));
    if !mounts.is_empty() {
        text.push_str("    volumes:\n");
    }
    for mount in mounts {
        text.push_str(&format!(
            "      - type: bind\n        source: {}\n        target: {}\n        bind:\n          create_host_path: false\n",
            quote(&mount.source),
            quote(&mount.target),
        ));
    }
    text
}

/// Text in YAML's double quotes, its `$` doubled.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '$' => out.push_str("$$"),
            // The characters that YAML does not print, and those that look like nothing.
            c if c.is_control()
                || matches!(c, '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                match u32::from(c) {
                    code @ 0..=0xff => out.push_str(&format!("\\x{code:02x}")),
                    code => out.push_str(&format!("\\u{code:04x}")),
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What the first `.env` of a box says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initial {
    /// The image reference.
    pub image: String,
    /// The port of the UI on the host.
    pub port: u16,
    /// The user that the containers run as.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The name of the person on the commits, from their git; may be empty.
    pub git_name: String,
    /// The address of the person on the commits; may be empty.
    pub git_email: String,
    /// The most memory of core, as Compose writes sizes.
    pub memory: String,
    /// The most CPUs of core; an engine refuses more than it has.
    pub cpus: u32,
    /// The most processes and threads of core.
    pub processes: u32,
}

/// The first `.env` of a box.
pub fn env(initial: &Initial) -> String {
    let mut text = String::from(
        "# The settings of this box. Written once by `worca container up`; from now on this file is yours.\n\
         # `worca container up` applies what you change.\n",
    );
    let mut entry = |why: &str, key: &str, value: &str| {
        text.push_str(&format!("\n# {why}\n{key}={}\n", dotenv::quote(value)));
    };
    entry("The image that both services run.", "WORCA_IMAGE", &initial.image);
    entry("The port of the web UI, on 127.0.0.1.", "WORCA_PORT", &initial.port.to_string());
    entry(
        "The user that the box runs as: the owner of your projects, so that what agents write belongs to you.",
        "WORCA_UID",
        &initial.user.to_string(),
    );
    entry("The group of that user.", "WORCA_GID", &initial.group.to_string());
    entry("Whose name the commits of a run carry.", "WORCA_GIT_NAME", &initial.git_name);
    entry("Whose address they carry.", "WORCA_GIT_EMAIL", &initial.git_email);
    entry("The most memory that core and all agents take together.", "WORCA_MEMORY", &initial.memory);
    entry(
        "The most CPUs that they take together. An engine refuses more than it has.",
        "WORCA_CPUS",
        &initial.cpus.to_string(),
    );
    entry(
        "The most processes and threads that they have together.",
        "WORCA_PIDS",
        &initial.processes.to_string(),
    );
    text
}
