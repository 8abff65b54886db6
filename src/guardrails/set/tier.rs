//! The three tiers, as they are in the program. The files lie in `guardrails/` of the sources, each rule with the
//! reason behind it.

use super::SetName;

/// A set that comes with Worca. The order is from loose to tight: each extends the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// No denies.
    Permissive,
    /// What a run gets that names none.
    Normal,
    /// For work that is not trusted.
    Strict,
}

impl Tier {
    /// All of them, from loose to tight.
    pub const ALL: [Self; 3] = [Self::Permissive, Self::Normal, Self::Strict];

    /// Its word, which is its name as a set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permissive => "permissive",
            Self::Normal => "normal",
            Self::Strict => "strict",
        }
    }
    /// The tier of that name.
    pub fn named(name: &SetName) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == name.as_str())
    }
    /// Its file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Permissive => include_str!("../../../guardrails/permissive.yaml"),
            Self::Normal => include_str!("../../../guardrails/normal.yaml"),
            Self::Strict => include_str!("../../../guardrails/strict.yaml"),
        }
    }
}
