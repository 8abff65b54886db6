//! Settings that are on or off and hold from the next thing that asks, without a restart.

use super::{Inner, Runs};
use crate::store::StoreError;

/// A setting that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Write down how each agent is started.
    SpawnDiagnostics,
}

impl Switch {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::SpawnDiagnostics];

    /// Its name in the store, the API and on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => "spawn-diagnostics",
        }
    }
    /// What it does when it is on.
    pub fn about(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => {
                "write down how each agent is started: in core's log and in the run's events"
            }
        }
    }
    /// What it is when nobody has set it.
    pub fn by_default(self) -> bool {
        match self {
            Self::SpawnDiagnostics => false,
        }
    }
    /// The one of this name.
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|switch| switch.key() == key)
    }
}

/// The word for a state.
pub fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The state that a word means.
pub fn state(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

impl Runs {
    /// Whether a setting is on.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn switch(&self, switch: Switch) -> Result<bool, StoreError> {
        self.0.switch(switch).await
    }

    /// Sets it. It holds from the next start of an agent on.
    ///
    /// # Errors
    /// When the store does not take it; then it is as it was.
    pub async fn set_switch(&self, switch: Switch, on: bool) -> Result<(), StoreError> {
        self.0.settings.store.set_setting(switch.key(), word(on).to_owned()).await
    }
}

impl Inner {
    pub(super) async fn switch(&self, switch: Switch) -> Result<bool, StoreError> {
        let stored = self.settings.store.setting(switch.key()).await?;
        Ok(stored.as_deref().and_then(state).unwrap_or(switch.by_default()))
    }
}
