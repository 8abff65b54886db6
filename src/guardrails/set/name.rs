//! The name of a guardrail set: its form. Whether a set of that name exists is the library's matter.

use crate::failure::{Exit, Explain};

/// The name of a guardrail set: 1 to 40 of `a-z`, `0-9`, `-`, the first a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct SetName(String);

/// The text is no name of a set.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a guardrail set's name: 1 to 40 of `a-z`, `0-9` and `-`, the first a letter")]
pub struct SetNameError(String);

impl Explain for SetNameError {
    fn code(&self) -> &'static str {
        "guardrails-name"
    }
    fn hint(&self) -> Option<String> {
        Some("`worca guardrails list` shows the sets that exist".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl SetName {
    /// A name in the right form.
    ///
    /// # Errors
    /// When the form is another.
    pub fn parse(text: &str) -> Result<Self, SetNameError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let letter = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !letter || text.len() > 40 || !text.bytes().all(fits) {
            let shown = text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c });
            return Err(SetNameError(shown.collect()));
        }
        Ok(Self(text.to_owned()))
    }
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The name that stands in the rules of a repository of its own, which no set can have.
    pub fn of_the_project() -> Self {
        Self(PROJECT.into())
    }
    /// Whether it is that name.
    pub fn is_of_the_project(&self) -> bool {
        self.0 == PROJECT
    }
}

/// The set in the name of a repository's own rules: `project.commands[make deploy]`.
const PROJECT: &str = "project";

impl Default for SetName {
    /// What a run gets that names none.
    fn default() -> Self {
        Self("normal".into())
    }
}

impl std::fmt::Display for SetName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SetName {
    type Err = SetNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl<'de> serde::Deserialize<'de> for SetName {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
