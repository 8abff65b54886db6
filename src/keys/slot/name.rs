//! The name of a slot, which is the first part of a request's path.

use std::fmt;

use crate::failure::{Exit, Explain};

/// The short name of a slot: 1 to 32 of `a-z`, `0-9`, `-`, the first a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct SlotName(String);

/// The text is not the name of a slot.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not the name of a slot (1 to 32 of `a-z`, `0-9`, `-`, the first a letter)")]
pub struct ParseSlotNameError(String);

impl Explain for ParseSlotNameError {
    fn code(&self) -> &'static str {
        "slot-name"
    }
    fn hint(&self) -> Option<String> {
        Some("what stands before the first `/` of a model is its slot, such as `openrouter/MODEL`".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl SlotName {
    /// Reads a name.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, ParseSlotNameError> {
        let shaped = text.len() <= 32
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        if shaped {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseSlotNameError(text.chars().filter(|c| !c.is_control()).take(60).collect()))
        }
    }
    /// The slot of Anthropic's API.
    pub fn anthropic() -> Self {
        Self("anthropic".into())
    }
    /// The slot of OpenAI's API.
    pub fn openai() -> Self {
        Self("openai".into())
    }
    /// The slot of OpenRouter.
    pub fn openrouter() -> Self {
        Self("openrouter".into())
    }
    /// The slot of a model server of the person's own.
    pub fn local() -> Self {
        Self("local".into())
    }
    /// The slot of the built-in scripted model.
    pub fn rehearsal() -> Self {
        Self("rehearsal".into())
    }
    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SlotName {
    type Err = ParseSlotNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl<'de> serde::Deserialize<'de> for SlotName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
