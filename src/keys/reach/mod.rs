//! The check of core that no model or cloud key is where an agent could find one: at core's start, and again before
//! each start of an agent. It looks by name and by shape, names every place at once, and never a value.
//!
//! It must never open what is not an ordinary file, wait for anything, read without a limit, or pass over in silence
//! what it could not look at where an agent could.

mod around;
mod file;
mod look;
mod names;
mod place;
mod programs;
mod project;
mod text;

use std::path::PathBuf;

pub use around::Surroundings;
pub use look::look;
pub use place::Place;
pub use project::in_project;

use crate::failure::{Exit, Explain};

/// Whose a place is, which decides what follows from a key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// Core's own surroundings: its environment, mounts, secrets, catalogue.
    Core,
    /// The home that core was started with.
    Home,
    /// Other homes of this machine, and files of the system.
    Machine,
}

/// A key that an agent could find, or a place of one that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What, in words: never a value.
    pub what: String,
    /// Whose it is.
    pub whose: Whose,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What the kernel closes to every agent, whatever its guardrail set: what is closed is not in reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// Nothing: the kernel has no rules for files, or this is a box, where no key may be.
    Nothing,
    /// Files of the machine.
    Machine,
    /// Those, and those of the home that core was started with, as its owner asked.
    Home,
}

impl Closes {
    fn closes(self, finding: &Finding) -> bool {
        let file = matches!(finding.place, Place::File { .. });
        file && match finding.whose {
            Whose::Core => false,
            Whose::Home => self == Self::Home,
            Whose::Machine => self != Self::Nothing,
        }
    }
}

/// Everything that one look found, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Each place once.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The files that have to be closed to agents, when that leaves none in reach.
    ///
    /// # Errors
    /// When a key is in reach: with every place.
    pub fn judge(self, closes: Closes) -> Result<Vec<PathBuf>, KeyInReach> {
        let (closed, open): (Vec<_>, Vec<_>) =
            self.findings.into_iter().partition(|finding| closes.closes(finding));
        if !open.is_empty() {
            return Err(KeyInReach { findings: open });
        }
        let mut paths: Vec<PathBuf> = closed
            .into_iter()
            .filter_map(|finding| match finding.place {
                Place::File { path, .. } => Some(path),
                Place::Variable(_) => None,
            })
            .collect();
        paths.dedup();
        Ok(paths)
    }
}

/// A key is where an agent could find it.
#[derive(Debug, thiserror::Error)]
#[error("a model or cloud key is in reach of agents:{}", list(findings))]
pub struct KeyInReach {
    /// Every place.
    pub findings: Vec<Finding>,
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n  - {finding}")).collect()
}

impl Explain for KeyInReach {
    fn code(&self) -> &'static str {
        "key-in-reach"
    }
    fn hint(&self) -> Option<String> {
        let any = |wanted: Whose| self.findings.iter().any(|finding| finding.whose == wanted);
        let mut parts = vec!["give keys to the key service (`worca container login`, or `worca keys put`)"];
        if any(Whose::Core) {
            parts.push("take them out of core's environment, mounts and secrets");
        }
        if any(Whose::Home) {
            parts.push(
                "sign out there, start core with a `HOME` that holds none, or, without a box on Linux 6.2 or newer, \
                 with `--close-sign-ins`, which closes these files to every agent",
            );
        }
        if any(Whose::Machine) {
            parts.push("remove what other homes and the system hold, or run where the kernel can close it (Linux 6.2)");
        }
        Some(parts.join("; "))
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

#[cfg(test)]
mod tests;
