//! `worca settings`: what can be changed while core runs.

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::client::CoreArgs;
use crate::cli::text::{note, one_line, print, print_json};
use crate::failure::{Exit, Explain, Failure};
use crate::server::wire::{ChangeSetting, SettingAnswer};

/// Show and change settings of a running core
///
/// A change holds at once, without a restart: of an agent's start from the next start on, of a run from the next run
/// on. `spawn-diagnostics` is `on` or `off`; `run-budget` is what a run may spend that does not say it: dollars (5,
/// 0.25), tokens (200000tokens) or none.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  worca settings list\n  worca settings set spawn-diagnostics on\n  worca settings set run-budget 5"
)]
pub struct SettingsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the settings with their values
    #[command(after_help = "Example:\n  worca settings list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        core: CoreArgs,
    },
    /// Print the value of a setting
    #[command(after_help = "Example:\n  worca settings get spawn-diagnostics")]
    Get {
        /// The setting
        #[arg(value_name = "SETTING")]
        key: String,
        #[command(flatten)]
        core: CoreArgs,
    },
    /// Change a setting
    #[command(
        after_help = "Examples:\n  worca settings set spawn-diagnostics on\n  worca settings set run-budget 200000tokens"
    )]
    Set {
        /// The setting
        #[arg(value_name = "SETTING")]
        key: String,
        /// Its new value
        #[arg(value_name = "VALUE")]
        value: String,
        #[command(flatten)]
        core: CoreArgs,
    },
}

/// There is no such setting.
#[derive(Debug, thiserror::Error)]
#[error("there is no setting `{key}`")]
pub struct UnknownSetting {
    key: String,
    existing: Vec<String>,
}

impl Explain for UnknownSetting {
    fn code(&self) -> &'static str {
        "setting-unknown"
    }
    fn hint(&self) -> Option<String> {
        Some(format!("these exist: {}", self.existing.join(", ")))
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Lists, prints or changes.
///
/// # Errors
/// When core does not answer, or knows no such setting or value.
pub async fn run(args: SettingsArgs) -> Result<Exit, Failure> {
    match args.command {
        Command::List { json, core } => {
            let settings = core.connect()?.settings().await?.settings;
            if json {
                print_json(&settings)?;
            } else {
                for setting in &settings {
                    print(&line(setting))?;
                }
            }
        }
        Command::Get { key, core } => {
            let settings = core.connect()?.settings().await?.settings;
            match settings.iter().find(|setting| setting.key == key) {
                Some(setting) => print(&format!("{}\n", one_line(&setting.value)))?,
                None => {
                    let existing = settings.into_iter().map(|one| format!("`{}`", one.key)).collect();
                    return Err(UnknownSetting { key: one_line(&key), existing }.into());
                }
            }
        }
        Command::Set { key, value, core } => {
            let changed = core.connect()?.change_setting(&ChangeSetting { key, value }).await?;
            note(&format!("{} is {}", one_line(&changed.key), one_line(&changed.value)));
        }
    }
    Ok(Exit::Done)
}

fn line(setting: &SettingAnswer) -> String {
    format!("{:<20} {:<4} {}\n", one_line(&setting.key), one_line(&setting.value), one_line(&setting.about))
}
