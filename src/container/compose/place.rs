//! Where something stands in a file, and every way in which reading one can fail. Never a value: it may be a secret.

use std::fmt;
use std::sync::Arc;

use crate::failure::{Exit, Explain};

/// A place in a file that a person can open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name as it was given.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Compose files that cannot be read, or that say something that Worca does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {sentence}")]
pub struct LoadError {
    place: Place,
    sentence: String,
    hint: Option<String>,
    code: &'static str,
}

impl LoadError {
    /// The text is not the YAML that Compose files are written in.
    pub(super) fn syntax(place: Place, sentence: impl Into<String>) -> Self {
        Self { place, sentence: sentence.into(), hint: None, code: "compose-syntax" }
    }
    /// A value has no meaning at its key.
    pub(super) fn value(place: Place, sentence: impl Into<String>) -> Self {
        Self { place, sentence: sentence.into(), hint: None, code: "compose-value" }
    }
    /// A key that Worca does not apply.
    pub(super) fn not_applied(place: Place, path: &str) -> Self {
        let sentence = format!("`{}` is not applied by Worca", shown(path));
        Self { place, sentence, hint: None, code: "compose-not-applied" }
    }
    /// A variable that has to be set and is not, or a `$` that starts nothing.
    pub(super) fn variable(place: Place, sentence: impl Into<String>) -> Self {
        Self { place, sentence: sentence.into(), hint: None, code: "compose-variable" }
    }
    /// The same with advice.
    pub(super) fn advise(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl Explain for LoadError {
    fn code(&self) -> &'static str {
        self.code
    }
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Something that Compose only warns about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub place: Place,
    /// What a person should know.
    pub sentence: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.sentence)
    }
}

/// A text out of a file as a message may show it: one line, no control characters, at most 120 characters.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut short: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() || c == '`' { '?' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
