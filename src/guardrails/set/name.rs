//! The name of a guardrail set.

use crate::failure::{Exit, Explain};

/// The sets that exist.
const EXISTING: [&str; 1] = ["permissive"];

/// The name of an existing guardrail set: 1 to 40 of `a-z`, `0-9`, `-`, the first a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct SetName(String);

/// The name is not one, or no set has it. A run never goes on with another set in its place.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetNameError {
    /// Wrong form.
    #[error("`{0}` is not a guardrail set's name: 1 to 40 of `a-z`, `0-9` and `-`, the first a letter")]
    Form(String),
    /// No such set.
    #[error("there is no guardrail set `{0}`")]
    Unknown(String),
}

impl Explain for SetNameError {
    fn code(&self) -> &'static str {
        match self {
            Self::Form(_) => "guardrails-name",
            Self::Unknown(_) => "guardrails-unknown",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(format!("these exist: {}", EXISTING.map(|name| format!("`{name}`")).join(", ")))
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl SetName {
    /// The name of an existing set.
    ///
    /// # Errors
    /// When the form is another or no set has the name.
    pub fn parse(text: &str) -> Result<Self, SetNameError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let letter = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !letter || text.len() > 40 || !text.bytes().all(fits) {
            return Err(SetNameError::Form(text.chars().take(60).collect()));
        }
        if !EXISTING.contains(&text) {
            return Err(SetNameError::Unknown(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SetName {
    /// What a run gets that names none.
    fn default() -> Self {
        Self("permissive".into())
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
