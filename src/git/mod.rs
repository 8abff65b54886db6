//! The user's git: the only place that starts it, and what it tells about a repository.
//!
//! Git never gets core's environment, never asks in a terminal, and never outlives its caller. On a tree that an
//! agent can write it runs through a [`PrivateDir`]: a git folder of our own, in which no file of the agent and no
//! setting of the repository names a program.

mod agent;
mod call;
mod error;
mod names;
mod person;
mod private;
mod repository;

pub use agent::agent_environment;
pub use call::{Call, Git, Output};
pub use error::GitError;
pub use names::{BranchName, CommitId, ParseNameError};
pub use person::{Person, PersonError, host_person};
pub use private::{PrivateDir, PrivateDirError};
pub use repository::{OpenError, Repository, RepositoryIdentity};

#[cfg(all(test, unix))]
pub(crate) mod testing;
#[cfg(all(test, unix))]
mod tests;
