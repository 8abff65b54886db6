//! What the hook goes by: a small file that core writes for each start, outside the worktree.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Explain};
use crate::ids::RunId;

use super::{Rule, SetName};

/// Largest policy file, in bytes.
const MAX_POLICY: u64 = 1024 * 1024;

/// The form of [`Policy`], which the hook checks.
pub const POLICY_VERSION: u32 = 2;

/// What the hook judges by.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// [`POLICY_VERSION`].
    pub version: u32,
    /// The set that the rules come from.
    pub set: SetName,
    /// Worca's own state; absolute. Of all entries of `closed` and `open` that hold a path the longest decides.
    pub closed: Vec<PathBuf>,
    /// The run's own folders inside it; absolute.
    pub open: Vec<PathBuf>,
    /// The deny rules of the set and of the project.
    pub rules: Vec<Rule>,
    /// Whether a line is denied when it cannot be known what it runs.
    pub deny_undecided: bool,
    /// The process id of core.
    pub host: Option<u32>,
    /// What `~` means in a path rule: the agent's home, the user's; absolute.
    pub homes: Vec<PathBuf>,
}

/// The policy cannot be known, so nothing may run.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Missing, unreadable, too large.
    #[error("the policy file `{}` cannot be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// From the system.
        #[source]
        source: std::io::Error,
    },
    /// Another form.
    #[error("the policy file `{}` is not one of this version", path.display())]
    Form {
        /// Which.
        path: PathBuf,
    },
}

impl Explain for PolicyError {
    fn code(&self) -> &'static str {
        "hook-policy"
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl Policy {
    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// When it is missing, too large or of another form.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        let failed = |source| PolicyError::Read { path: path.into(), source };
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .map_err(failed)?
            .take(MAX_POLICY + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        let policy: Option<Self> = serde_json::from_slice(&bytes).ok();
        let whole = |policy: &Self| {
            policy.version == POLICY_VERSION
                && policy
                    .closed
                    .iter()
                    .chain(&policy.open)
                    .chain(&policy.homes)
                    .all(|path| path.is_absolute())
        };
        policy
            .filter(|policy| bytes.len() as u64 <= MAX_POLICY && whole(policy))
            .ok_or_else(|| PolicyError::Form { path: path.into() })
    }

    /// What holds in the box when no file is named (the image's managed settings): the secrets and all of Worca's
    /// home are closed, but for the run whose folder the agent works in.
    pub fn of_the_box(directory: &Path) -> Self {
        let home = Path::new("/worca");
        let run = directory
            .strip_prefix(home.join("runs"))
            .ok()
            .and_then(|rest| rest.components().next())
            .and_then(|first| RunId::parse(first.as_os_str().to_str()?).ok());
        let open = run.map(|run| home.join("runs").join(run.as_str()));
        Self {
            closed: vec!["/run/secrets".into(), home.into()],
            open: open.map(|run| vec![run.join("tree"), run.join("home")]).unwrap_or_default(),
            ..Self::bare()
        }
    }

    /// A policy with the rules that hold in every set and nothing else.
    pub fn bare() -> Self {
        Self {
            version: POLICY_VERSION,
            set: SetName::default(),
            closed: Vec::new(),
            open: Vec::new(),
            rules: Vec::new(),
            deny_undecided: false,
            host: None,
            homes: Vec::new(),
        }
    }
}
