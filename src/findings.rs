//! What a doctor found: one check after another, each with what to do. For the box and for this machine alike.

use serde::Serialize;

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked, in one word.
    pub name: &'static str,
    /// What was found.
    pub finding: Finding,
    /// The same for a person.
    pub sentence: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// As it should be.
    Good,
    /// Worth knowing; nothing that is needed is missing.
    Note,
    /// Something that is needed does not work.
    Bad,
}

/// Whether nothing is bad.
pub fn good(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.finding != Finding::Bad)
}
