//! Where a key is, as it may be shown: a name or a path can hold a key or a terminal's control letters itself.

use std::path::{Path, PathBuf};

use crate::keys::shapes;

/// A place that an agent could find a key in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A variable of core's environment.
    Variable(String),
    /// A file.
    File {
        /// Its path, as it was looked for.
        path: PathBuf,
        /// The line, from 1, where there is one to be named.
        line: Option<usize>,
    },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the environment variable `{}`", shown(name)),
            Self::File { path, line: None } => write!(f, "`{}`", shown_path(path)),
            Self::File { path, line: Some(line) } => write!(f, "`{}`, line {line}", shown_path(path)),
        }
    }
}

/// A path for a person.
pub(super) fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// A name for a person: no key, no control letter.
pub(super) fn shown(name: &str) -> String {
    let mut text = String::new();
    for letter in shapes::without(name).chars() {
        if letter.is_control()
            || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}
