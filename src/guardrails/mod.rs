//! Guardrail sets and the verdict on a tool call. Decides; starts nothing, and its only input and output are the
//! hook's, the policy file, and the links of the path that is judged.
//!
//! In this form there is one set, `permissive`, and two rules that hold in every set: `worca.own-state` keeps an
//! agent's file tools off Worca's own files, `worca.one-worktree` keeps its work in the run's worktree. What the hook does **not** judge yet: command lines (Bash runs
//! whatever it is given), URLs, and tools of MCP servers that name a path in another field. A hook is a guard rail:
//! it stops what asks. The walls are elsewhere (a key is in no file of the box; core is unreadable; tokens are files
//! of another place).

mod compile;
mod confine;
mod glob;
mod hook;
mod paths;
mod policy;
mod rule;
mod set;
pub mod shell;
mod tools;

pub use compile::{Compiled, Facts, INSTRUCTIONS_FILE, POLICY_FILE, SETTINGS_FILE, compile};
pub use confine::{
    Access, HookTrial, KERNEL_RULES_VERSION, KernelRules, KernelSupport, Outcome, Probe, Receipt, Tried,
};
pub use glob::PathRules;
pub use hook::{judge, pre_tool_use};
pub use policy::{POLICY_VERSION, Policy, PolicyError};
pub use rule::{Denial, Rule, RuleId, RuleKind, Verdict};
pub use set::{
    Confine, ConfineLimits, Deny, Difference, Document, DocumentError, Environment, Filesystem, GuardrailSet,
    Library, LimitDifference, Listed, Mode, Origin, OwnSets, OwnSetsError, Require, SetError, SetName,
    SetNameError, Signals, Tier,
};

#[cfg(test)]
mod tests;
