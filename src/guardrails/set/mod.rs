//! Guardrail sets: their YAML, the three tiers, the user's own, and what a set comes to with all that it extends.
//!
//! The files of the user's own sets are read and written here, for core and the command line; the hook never does.

mod compare;
mod document;
mod folder;
mod library;
mod name;
mod pattern;
#[cfg(test)]
mod tests;
mod tier;
mod trial;

pub use compare::{Difference, LimitDifference};
pub use document::{ConfineLimits, Deny, Document, DocumentError, Require, Signals};
pub use folder::{Mode, OwnSets, OwnSetsError};
pub use library::{Library, Listed, Origin, SetError};
pub use name::{SetName, SetNameError};
pub use tier::Tier;

use super::Rule;

/// A set with everything that it extends.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GuardrailSet {
    /// Its name.
    pub name: SetName,
    /// The sets that it extends, the nearest first.
    pub extends: Vec<SetName>,
    /// All deny rules, those of the sets that it extends first; no two with one kind and pattern.
    pub rules: Vec<Rule>,
    /// Whether a line is denied when it cannot be known what it runs.
    pub deny_undecided: bool,
    /// Whether the repository's own deny rules are added.
    pub honor_project_rules: bool,
    /// What of core's environment an agent gets.
    pub environment: Environment,
    /// What the kernel holds.
    pub confine: Confine,
    /// Whether a run is refused where the kernel cannot hold it.
    pub require_kernel: bool,
}

/// What of core's environment an agent gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Environment {
    /// Only the names that Worca needs and those of `keep`; without it, also what is harmless on its face.
    pub scrub: bool,
    /// Names that are kept beside them.
    pub keep: Vec<String>,
}

/// What the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Confine {
    /// Files and folders.
    pub filesystem: Filesystem,
    /// TCP ports that may be connected to beside those of Worca's own services; `None`: any.
    pub tcp: Option<Vec<u16>>,
}

/// How far an agent's file access goes. In each: Worca's own state is closed, and of the user's repository only the
/// run's own parts can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filesystem {
    /// What the user could do, but for the projects.
    Open,
    /// Reads what the user could read; writes in its worktree and its own folders.
    ProjectWrite,
    /// Reads its worktree, its repository, its own folders and the system's programs; nothing else.
    Project,
}
