//! The guardrail set of a run: found and resolved when the run is asked for, and again before each start of its
//! agent. A set that is not there, is broken or demands what this kernel lacks never becomes another one.

use super::facts;
use super::outcome::Outcome;
use super::worktree::{FirstFile, Worktree, WorktreeError};
use super::{CreateRunError, Inner};
use crate::agents::claude::{self, ProjectFile};
use crate::events::{Event, cut};
use crate::failure::{Exit, Explain};
use crate::guardrails::{
    Compiled, Facts, GuardrailSet, KernelSupport, Library, OwnSetsError, ProjectRules, Rule, SetError,
    SetName, SetNameError, compile,
};
use crate::keys::reach::KeyInReach;
use crate::spawn;
use crate::store::{Run, StoreError};

/// A run cannot have its set.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// No name of a set.
    #[error(transparent)]
    Name(SetNameError),
    /// Unknown or broken.
    #[error(transparent)]
    Set(SetError),
    /// The folder of the user's own sets cannot be read.
    #[error(transparent)]
    Folder(OwnSetsError),
    /// It demands what is not there.
    #[error("the guardrail set `{set}` demands kernel rules, and this kernel does not hold {lacks}")]
    Kernel {
        /// The set.
        set: SetName,
        /// What is missing, in words.
        lacks: String,
    },
    /// The hook's program.
    #[error("the path of the running `worca`, which the hook needs, is unknown")]
    OwnPath(#[source] std::io::Error),
    /// The repository's own rules, which the set adds.
    #[error("the repository's own deny rules cannot be read")]
    Project(#[source] WorktreeError),
    /// A key that an agent could find came up since core started.
    #[error(transparent)]
    KeyInReach(KeyInReach),
    /// Core is ending.
    #[error("core is ending")]
    Ending,
}

impl Explain for GuardError {
    fn code(&self) -> &'static str {
        match self {
            Self::Name(error) => error.code(),
            Self::Set(error) => error.code(),
            Self::Folder(error) => error.code(),
            Self::Kernel { .. } => "kernel-lacks",
            Self::OwnPath(_) => "agent-files",
            Self::Project(error) => error.code(),
            Self::KeyInReach(error) => error.code(),
            Self::Ending => "ending",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Name(error) => error.hint(),
            Self::Set(error) => error.hint(),
            Self::Folder(error) => error.hint(),
            Self::Kernel { .. } => Some(
                "`worca doctor` says what this kernel holds; choose a set without `require: kernel`".into(),
            ),
            Self::Project(error) => error.hint(),
            Self::KeyInReach(error) => error.hint(),
            Self::OwnPath(_) | Self::Ending => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Name(error) => error.exit(),
            Self::Set(error) => error.exit(),
            Self::Folder(error) => error.exit(),
            Self::Kernel { .. } => Exit::Refused,
            Self::Project(error) => error.exit(),
            Self::KeyInReach(error) => error.exit(),
            Self::OwnPath(_) | Self::Ending => Exit::Failed,
        }
    }
}

/// What of a set a kernel does not hold, each in words; nothing when it holds all of it.
pub fn lacking(set: &GuardrailSet, kernel: KernelSupport) -> Vec<&'static str> {
    kernel_lacks(kernel, set.confine.tcp.is_some())
}

/// The same where only is known whether ports are limited.
pub fn kernel_lacks(kernel: KernelSupport, ports: bool) -> Vec<&'static str> {
    [
        (!kernel.files, "files and folders (Linux 6.2)"),
        (!kernel.tcp && ports, "TCP ports (Linux 6.7)"),
        (!kernel.signals, "signals to other processes (Linux 6.12)"),
    ]
    .into_iter()
    .filter_map(|(lacks, what)| lacks.then_some(what))
    .collect()
}

/// How many notes on a repository's own rules a run gets.
const MOST_NOTES: usize = 20;

/// What one start of an agent is held by.
pub(super) struct Guard {
    pub(super) facts: Facts,
    pub(super) compiled: Compiled,
}

/// There is none.
pub(super) enum NoGuard {
    /// The agent is not started, and the run ends or waits.
    Outcome(Outcome),
    Store(StoreError),
}

impl From<StoreError> for NoGuard {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Inner {
    /// The set of this name with all that it extends, as its file is now, when this kernel holds what it demands.
    async fn set(&self, name: &str) -> Result<GuardrailSet, GuardError> {
        let name = SetName::parse(name).map_err(GuardError::Name)?;
        let folder = self.settings.home.guardrails();
        let reading = tokio::task::spawn_blocking(move || {
            Library::read(&folder).map_err(GuardError::Folder)?.resolve(&name).map_err(GuardError::Set)
        });
        let set = reading.await.map_err(|_| GuardError::Ending)??;
        let lacks = lacking(&set, spawn::kernel_support());
        if set.require_kernel && !lacks.is_empty() {
            return Err(GuardError::Kernel { set: set.name, lacks: lacks.join(", nor ") });
        }
        Ok(set)
    }

    /// The same for who asks for a run.
    pub(super) async fn resolve(&self, name: &str) -> Result<GuardrailSet, CreateRunError> {
        self.set(name).await.map_err(CreateRunError::Guardrails)
    }

    /// Reads the run's set again, gathers what is known of this start and compiles both. Whatever is missing leaves
    /// the run waiting, with its worktree and its branch.
    pub(super) async fn guard(&self, run: &Run, worktree: &Worktree) -> Result<Guard, NoGuard> {
        let waits = |error: &GuardError| NoGuard::Outcome(Outcome::unguarded(&run.guardrails, error, true));
        let set = self.set(&run.guardrails).await.map_err(|error| waits(&error))?;
        let closed = self.keys_in_reach().await.map_err(|error| waits(&error))?;
        let worca = std::env::current_exe().map_err(|error| waits(&GuardError::OwnPath(error)))?;
        let project = match set.honor_project_rules {
            true => project_rules(worktree).await.map_err(|error| waits(&GuardError::Project(error)))?,
            false => ProjectRules::default(),
        };
        let rules: Vec<Rule> = set.rules.iter().chain(&project.rules).cloned().collect();
        let gathered =
            facts::gather(&self.settings, set.confine.filesystem, &rules, run, worktree, worca).await?;
        let in_project = self.keys_in_project(run, worktree).await;
        let notes = project.notes.into_iter().take(MOST_NOTES).chain(in_project);
        for text in gathered.notes.into_iter().chain(notes) {
            self.record(&run.id, Event::Note { text: cut(&text) }).await?;
        }
        let (mut facts, rules) = (gathered.facts, project.rules);
        facts.protected.extend(closed);
        let compiling = tokio::task::spawn_blocking(move || {
            let compiled = compile(&set, &rules, &facts);
            Guard { facts, compiled }
        });
        Ok(compiling.await.map_err(|_| StoreError::Ending)?)
    }
}

/// The repository's own deny rules, as the run's first commit has them.
async fn project_rules(worktree: &Worktree) -> Result<ProjectRules, WorktreeError> {
    let mut files = Vec::new();
    for name in claude::PROJECT_SETTINGS {
        match worktree.first_file(name, claude::MAX_PROJECT_TEXT).await? {
            FirstFile::Absent => {}
            FirstFile::Text(bytes) => files.push((name, ProjectFile::Text(bytes))),
            FirstFile::Long => files.push((name, ProjectFile::Long)),
            FirstFile::Other => files.push((name, ProjectFile::Other)),
        }
    }
    Ok(claude::project_rules(&files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_said_in_words_and_ports_only_where_they_are_limited() {
        let kernel = |abi: u32| KernelSupport { abi, files: abi >= 3, tcp: abi >= 4, signals: abi >= 6 };
        assert_eq!(kernel_lacks(kernel(0), true).len(), 3);
        assert_eq!(kernel_lacks(kernel(0), false).len(), 2);
        assert_eq!(kernel_lacks(kernel(4), true), ["signals to other processes (Linux 6.12)"]);
        assert!(kernel_lacks(kernel(6), true).is_empty());
    }
}
