//! From a set to what holds one agent: settings, the hook's policy, kernel rules, environment. Pure and
//! deterministic: the same set and facts give the same bytes.

use std::path::PathBuf;

use serde_json::Value;

use super::{GuardrailSet, HookTrial, KernelRules, Policy, Rule};

/// What is known about one spawn before it starts. All paths absolute; nothing here is looked up by `compile`.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The running `worca`, which is the hook's program.
    pub worca: PathBuf,
    /// Worca's home.
    pub worca_home: PathBuf,
    /// The run's own folder in it.
    pub folder: PathBuf,
    /// The run's worktree.
    pub worktree: PathBuf,
    /// `HOME` of the agent.
    pub home: PathBuf,
    /// `TMPDIR` of the agent.
    pub temporary: PathBuf,
    /// The repository's common git folder.
    pub common_dir: PathBuf,
    /// The run's own folder in its `worktrees/`.
    pub worktree_admin: PathBuf,
    /// The run's branch, short (`worca/<run>/<slug>`).
    pub branch: String,
    /// The checkout of the repository.
    pub checkout: PathBuf,
    /// Other places of the user's projects: known checkouts with their git folders, mounted folders.
    pub projects: Vec<PathBuf>,
    /// Files and folders that are closed in every set beside Worca's home: the core token, the control secret.
    pub protected: Vec<PathBuf>,
    /// Folders that an agent must read to run at all: those of `PATH`, of the agent program, of `worca`.
    pub programs: Vec<PathBuf>,
    /// The user's home, which `~` in a path rule means beside the agent's own.
    pub user_home: Option<PathBuf>,
    /// Files that are there in readable projects and fit a path rule; the kernel closes them.
    pub found: Vec<PathBuf>,
    /// TCP ports of Worca's own services that an agent needs: the key service, the egress proxy.
    pub service_ports: Vec<u16>,
    /// A TCP port that is closed where ports are, to be tried before the start (core's own).
    pub closed_port: Option<u16>,
    /// The process id of core.
    pub host: u32,
}

/// What a set comes to for one spawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The agent program's `--settings` file.
    pub settings: Value,
    /// The hook's policy.
    pub policy: Policy,
    /// The kernel's rules.
    pub kernel: KernelRules,
    /// The call that the hook must deny before the agent starts.
    pub trial: HookTrial,
    /// Names of core's variables that the agent keeps.
    pub keep: Vec<String>,
    /// Variables that it is given.
    pub environment: Vec<(String, String)>,
    /// What the agent is told: who the host is, what is denied, what to do instead.
    pub preamble: String,
    /// SHA-256 of all of the above, hexadecimal: which policy held.
    pub digest: String,
}

/// Compiles a set for one spawn. `project` are the repository's own deny rules, where the set honours them.
pub fn compile(set: &GuardrailSet, project: &[Rule], facts: &Facts) -> Compiled {
    let _ = (set, project, facts);
    unimplemented!()
}
