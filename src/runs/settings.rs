//! What can be set while core runs and holds without a restart: for an agent's start from the next one on, for what a
//! run may spend from the next run on.

use super::pay::{Budget, NO_BUDGET};
use super::{Inner, Runs};
use crate::failure::{Exit, Explain};
use crate::store::StoreError;

/// The name of the setting that says what a new run may spend.
pub(super) const RUN_BUDGET: &str = "run-budget";

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Write down how each agent is started.
    SpawnDiagnostics,
    /// What a new run may spend.
    RunBudget,
}

/// A setting cannot be set to that.
#[derive(Debug, thiserror::Error)]
pub enum SetSettingError {
    /// Not one of its values.
    #[error("the setting `{key}` is {takes}, and not `{value}`")]
    Value {
        /// The setting.
        key: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What was given.
        value: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for SetSettingError {
    fn code(&self) -> &'static str {
        match self {
            Self::Value { .. } => "setting-value",
            Self::Store(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Value { .. } => None,
            Self::Store(error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Value { .. } => Exit::Usage,
            Self::Store(error) => error.exit(),
        }
    }
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::SpawnDiagnostics, Self::RunBudget];

    /// Its name in the store, the API and on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => "spawn-diagnostics",
            Self::RunBudget => RUN_BUDGET,
        }
    }
    /// What it means.
    pub fn about(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => {
                "when on, write down how each agent is started: in core's log and in the run's events"
            }
            Self::RunBudget => "what a new run may spend where it is not said: dollars, tokens or none",
        }
    }
    /// The values that it takes, in words.
    fn takes(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => "`on` or `off`",
            Self::RunBudget => "dollars (`5`), tokens (`200000tokens`) or `none`",
        }
    }
    /// What it is when nobody has set it.
    fn by_default(self) -> &'static str {
        match self {
            Self::SpawnDiagnostics => OFF,
            Self::RunBudget => NO_BUDGET,
        }
    }
    /// The one of this name.
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.key() == key)
    }
    /// The value in its one spelling.
    fn checked(self, value: &str) -> Option<String> {
        match self {
            Self::SpawnDiagnostics => [ON, OFF].contains(&value).then(|| value.to_owned()),
            Self::RunBudget => Budget::parse(value).ok().map(|budget| budget.to_string()),
        }
    }
}

const ON: &str = "on";
const OFF: &str = "off";

impl Runs {
    /// The value of a setting.
    ///
    /// # Errors
    /// When the store does not say.
    pub async fn setting(&self, setting: Setting) -> Result<String, StoreError> {
        let stored = self.0.settings.store.setting(setting.key()).await?;
        Ok(stored.unwrap_or_else(|| setting.by_default().to_owned()))
    }

    /// Sets it.
    ///
    /// # Errors
    /// When it does not take that value, or the store does not take it; then it is as it was.
    pub async fn set_setting(&self, setting: Setting, value: &str) -> Result<(), SetSettingError> {
        let Some(checked) = setting.checked(value) else {
            return Err(SetSettingError::Value {
                key: setting.key(),
                takes: setting.takes(),
                value: value.chars().take(60).collect(),
            });
        };
        Ok(self.0.settings.store.set_setting(setting.key(), checked).await?)
    }
}

impl Inner {
    /// Whether each start of an agent is written down.
    pub(super) async fn writes_diagnostics(&self) -> Result<bool, StoreError> {
        let stored = self.settings.store.setting(Setting::SpawnDiagnostics.key()).await?;
        Ok(stored.as_deref() == Some(ON))
    }
}
