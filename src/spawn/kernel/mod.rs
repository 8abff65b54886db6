//! The wall: what the kernel holds for one agent, put on and tried in the very process that becomes the agent. Never
//! decides what is allowed (`guardrails` does), and never goes on after a rule that could not be put in.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod domain;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod places;
mod probe;
mod trial;

use std::path::Path;
use std::process::Command;

use crate::guardrails::{HookTrial, KERNEL_RULES_VERSION, KernelRules, KernelSupport, Outcome, Receipt};

use super::SpawnError;
use super::wire::Refusal;

#[cfg(target_os = "linux")]
pub use domain::kernel_support;

/// What the running kernel can hold: nothing, on systems without Landlock.
#[cfg(not(target_os = "linux"))]
pub fn kernel_support() -> KernelSupport {
    KernelSupport { abi: 0, files: false, tcp: false, signals: false }
}

/// Puts the calling thread under the rules and tries them. Where this gives an error, nothing may be started.
/// `prepare` gives the hook what it needs beside (environment, folder).
pub(super) fn confine_and_try(
    rules: &KernelRules,
    trial: Option<&HookTrial>,
    prepare: impl FnOnce(&mut Command),
) -> Result<Receipt, Refusal> {
    if rules.version != KERNEL_RULES_VERSION {
        return Err(Refusal::Rules(format!(
            "they have the form {}, not {KERNEL_RULES_VERSION}",
            rules.version
        )));
    }
    if rules.probes.len() > probe::MAX_PROBES {
        return Err(Refusal::Rules(format!("they have more than {} probes", probe::MAX_PROBES)));
    }
    let kernel = kernel_support();
    let missing = missing(rules, kernel);
    if rules.required && !missing.is_empty() {
        return Err(Refusal::Kernel(missing.join(", ")));
    }
    #[cfg(target_os = "linux")]
    domain::enter(rules).and_then(|_| calls::forbid()).map_err(Refusal::Rules)?;

    let probes = probe::try_all(&rules.probes);
    let open: Vec<String> = probes
        .iter()
        .filter(|tried| tried.outcome == Outcome::Open)
        .filter(|tried| rules.required || probe::can_hold(kernel, &tried.probe))
        .map(|tried| probe::words(&tried.probe))
        .collect();
    if !open.is_empty() {
        return Err(Refusal::Open(open.join(", ")));
    }
    let hook = match trial {
        Some(trial) => trial::run(trial, prepare).map(|()| Some(true)).map_err(Refusal::Hook)?,
        None => None,
    };
    Ok(Receipt { kernel, probes, hook })
}

/// Puts a call through a hook outside of any start and any domain: whether it denies.
///
/// # Errors
/// When it does not.
pub fn try_hook(trial: &HookTrial, folder: &Path) -> Result<(), SpawnError> {
    trial::run(trial, |command| {
        command.current_dir(folder);
    })
    .map_err(SpawnError::HookOpen)
}

/// What the rules need and this kernel does not have, in words.
fn missing(rules: &KernelRules, kernel: KernelSupport) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !kernel.files {
        missing.push("files and folders");
    }
    if rules.connect.is_some() && !kernel.tcp {
        missing.push("TCP ports");
    }
    if !kernel.signals {
        missing.push("signals");
    }
    missing
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
