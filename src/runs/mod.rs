//! Runs: SKELETON of the lead's room, so that `server` compiles. The lead's own file replaces it at merge.

use std::path::PathBuf;
use std::sync::Arc;

use crate::failure::{Exit, Explain};
use crate::home::Home;
use crate::ids::RunId;
use crate::store::{Run, Store};

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The project: a folder in a repository.
    pub project: PathBuf,
    /// What to do.
    pub prompt: String,
    /// A short line for people; made from the prompt when none is given.
    pub title: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The guardrail set.
    pub guardrails: Option<String>,
}

/// A run could not be created; nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum CreateRunError {
    /// (the lead has many variants here)
    #[error("the prompt is empty")]
    EmptyPrompt,
}
impl Explain for CreateRunError {
    fn code(&self) -> &'static str { "prompt-empty" }
    fn exit(&self) -> Exit { Exit::Usage }
}

/// A run could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopRunError {
    /// No such run.
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    /// It has ended.
    #[error("run `{0}` has already ended")]
    Ended(RunId),
}
impl Explain for StopRunError {
    fn code(&self) -> &'static str {
        match self { Self::Unknown(_) => "run-unknown", Self::Ended(_) => "run-ended" }
    }
}

/// The runs of this core. Clones share it.
#[derive(Clone)]
pub struct Runs(Arc<Inner>);
struct Inner { store: Store, home: Home }

impl Runs {
    /// The store, for reading.
    pub fn store(&self) -> &Store { &self.0.store }
    /// Creates a run and starts it. # Errors: refused with a reason; nothing is left.
    pub async fn create(&self, _new: NewRun) -> Result<Run, CreateRunError> { Err(CreateRunError::EmptyPrompt) }
    /// Asks a run to stop; it ends by itself soon. # Errors: unknown or ended.
    pub async fn stop(&self, id: &RunId) -> Result<(), StopRunError> { Err(StopRunError::Unknown(id.clone())) }
    /// Where the diff of a run is stored once it has one (a file of at most 16 MiB).
    pub fn diff_file(&self, id: &RunId) -> PathBuf { self.0.home.run(id).join("diff.patch") }
    /// (for tests here)
    pub fn skeleton(store: Store, home: Home) -> Self { Self(Arc::new(Inner { store, home })) }
}
