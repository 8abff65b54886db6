//! From a set to what holds one agent: settings, the hook's policy, kernel rules, environment. Pure and
//! deterministic: the same set and facts give the same bytes, and one more rule never opens anything.

mod environment;
mod kernel;
mod preamble;
mod settings;

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{GuardrailSet, HookTrial, KernelRules, POLICY_VERSION, PathRules, Policy, Rule};

/// The form of what is compiled; a part of the digest.
const COMPILED_VERSION: u32 = 1;

/// The agent program's settings, in the run's folder.
pub const SETTINGS_FILE: &str = "settings.json";
/// The hook's policy, in the run's folder.
pub const POLICY_FILE: &str = "policy.json";
/// What the agent is told beside its task, in the run's folder: the preamble and the project's own text.
pub const INSTRUCTIONS_FILE: &str = "project.md";

/// What is closed in every box, whether or not anything is there.
const SECRETS: &str = "/run/secrets";

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
    /// Names of core's variables that the agent keeps, beside those that every agent needs.
    pub keep: Vec<String>,
    /// Variables that it is given.
    pub environment: Vec<(String, String)>,
    /// What the agent is told: who the host is, what is denied, what to do instead.
    pub preamble: String,
    /// SHA-256 of all of the above, hexadecimal: which policy held.
    pub digest: String,
}

/// Compiles a set for one spawn. `project` are the repository's own deny rules; they count where the set honours
/// them.
pub fn compile(set: &GuardrailSet, project: &[Rule], facts: &Facts) -> Compiled {
    let rules = all_rules(set, project);
    let policy = policy(set, rules, facts);
    let paths = PathRules::new(&policy.rules, &policy.homes);
    let policy_file = facts.folder.join(POLICY_FILE);
    let command = settings::hook_command(&facts.worca, &policy_file);
    let settings = settings::build(&command, &policy, facts);
    let kernel = kernel::build(set, &paths, facts);
    let trial = trial(command, facts);
    let keep = environment::keep(&set.environment);
    let environment = environment::given(facts);
    let preamble = preamble::text(set, &policy.rules, facts);
    let digest = digest(&json!({
        "version": COMPILED_VERSION,
        "settings": settings,
        "policy": policy,
        "kernel": kernel,
        "trial": trial,
        "keep": keep,
        "environment": environment,
        "preamble": preamble,
    }));
    Compiled { settings, policy, kernel, trial, keep, environment, preamble, digest }
}

/// The rules of the set and of the project, the set's first, none twice.
fn all_rules(set: &GuardrailSet, project: &[Rule]) -> Vec<Rule> {
    let added = if set.honor_project_rules { project } else { &[] };
    let mut all: Vec<Rule> = Vec::new();
    for rule in set.rules.iter().chain(added) {
        if !all.iter().any(|known| known.kind == rule.kind && known.pattern == rule.pattern) {
            all.push(rule.clone());
        }
    }
    all
}

fn policy(set: &GuardrailSet, rules: Vec<Rule>, facts: &Facts) -> Policy {
    let mut closed = vec![PathBuf::from(SECRETS), facts.worca_home.clone()];
    closed.extend(facts.protected.iter().cloned());
    let mut homes = vec![facts.home.clone()];
    homes.extend(facts.user_home.iter().filter(|home| **home != facts.home).cloned());
    Policy {
        version: POLICY_VERSION,
        set: set.name.clone(),
        closed,
        open: vec![facts.worktree.clone(), facts.home.clone()],
        rules,
        deny_undecided: set.deny_undecided,
        host: Some(facts.host),
        homes,
    }
}

/// A call that every set denies. It names the policy file itself, so a hook that judges by another one is found out
/// as well as one that does not judge.
fn trial(command: String, facts: &Facts) -> HookTrial {
    let call = json!({
        "session_id": "before-the-start",
        "hook_event_name": "PreToolUse",
        "cwd": facts.worktree,
        "tool_name": "Read",
        "tool_input": { "file_path": facts.folder.join(POLICY_FILE) },
    });
    HookTrial { command, call: call.to_string() }
}

/// SHA-256 of its JSON, whose keys stand in the order in which they are written here.
fn digest(whole: &Value) -> String {
    Sha256::digest(whole.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
