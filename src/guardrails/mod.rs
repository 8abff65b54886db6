//! Guardrail sets and the verdict on a tool call. Decides; starts nothing, and its only input and output are the
//! hook's, the policy file, and the links of the path that is judged.
//!
//! One set becomes four things (`compile`): the agent program's settings, the hook's policy, the kernel's rules, and
//! what the agent is told. Two rules hold in every set beside those on command lines: `worca.own-state` keeps an
//! agent's tools off Worca's own files, `worca.one-worktree` keeps its work in the run's worktree. A hook is a guard
//! rail: it stops what asks. The walls are the kernel's rules, which `spawn` puts in place, and other containers.

mod compile;
mod confine;
mod explain;
mod fields;
mod glob;
mod hook;
mod judge;
mod path_rules;
mod paths;
mod places;
mod policy;
mod project;
mod rule;
mod set;
pub mod shell;
mod tools;

pub use compile::{Compiled, Facts, INSTRUCTIONS_FILE, POLICY_FILE, SETTINGS_FILE, compile};
pub use confine::{
    Access, HookTrial, KERNEL_RULES_VERSION, KernelRules, KernelSupport, Outcome, Probe, Receipt, Tried,
};
pub use explain::{Explained, explain};
pub use hook::{pre_tool_use, sentence};
pub use judge::judge;
pub use path_rules::PathRules;
pub use policy::{POLICY_VERSION, Policy, PolicyError};
pub use project::{ProjectRules, project_rules};
pub use rule::{Denial, Rule, RuleId, RuleKind, Verdict};
pub use set::{
    Confine, ConfineLimits, Deny, Difference, Document, DocumentError, Environment, Filesystem, GuardrailSet,
    Library, LimitDifference, Listed, Mode, Origin, OwnSets, OwnSetsError, Require, SetError, SetName,
    SetNameError, Signals, Tier,
};

#[cfg(test)]
mod tests;
