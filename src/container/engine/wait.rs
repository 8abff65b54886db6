//! Waits until a container is ready: running, and healthy when it says when it is. Polls; never for ever.

use std::time::Duration;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum, HealthStatusEnum};
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::StreamExt as _;

use super::connect::Engine;
use super::error::{EngineError, one_line};
use super::found::Health;
use crate::container::compose::model::Condition;
use crate::failure::Explain;

/// Between two looks: short beside any health check's interval.
const LOOK: Duration = Duration::from_millis(100);
/// How long one try of a health check may take.
const PROBE: Duration = Duration::from_secs(5);
/// How many of a container's last lines an error carries.
const LAST_LINES: usize = 20;

/// A container did not get ready.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// It ended.
    #[error("container `{name}` ended with {code}{}", told(.last))]
    Ended {
        /// The container.
        name: String,
        /// Its exit code.
        code: i64,
        /// Its last lines.
        last: Vec<String>,
    },
    /// Its health check fails.
    #[error("container `{name}` is unhealthy: {check}{}", told(.last))]
    Unhealthy {
        /// The container.
        name: String,
        /// What its health check said last.
        check: String,
        /// Its last lines.
        last: Vec<String>,
    },
    /// Somebody paused it.
    #[error("container `{0}` is paused")]
    Paused(String),
    /// The time limit passed.
    #[error("container `{name}` was not ready after {seconds} s ({state}){}", told(.last))]
    TooSlow {
        /// The container.
        name: String,
        /// The limit.
        seconds: u64,
        /// What it was seen doing last.
        state: String,
        /// Its last lines.
        last: Vec<String>,
    },
    /// The engine does not say.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn told(last: &[String]) -> String {
    if last.is_empty() {
        return "; it printed nothing".into();
    }
    let lines: String = last.iter().map(|line| format!("\n  | {line}")).collect();
    format!("; its last lines:{lines}")
}

impl Explain for WaitError {
    fn code(&self) -> &'static str {
        match self {
            Self::Ended { .. } => "container-ended",
            Self::Unhealthy { .. } => "container-unhealthy",
            Self::TooSlow { .. } => "container-slow",
            Self::Paused(_) => "container-paused",
            Self::Engine(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Ended { name, .. } | Self::Unhealthy { name, .. } | Self::TooSlow { name, .. } => {
                let ours = ["core", "keys"].into_iter().find(|one| name.ends_with(&format!("-{one}-1")));
                let logs = ours.map_or_else(
                    || format!("docker logs {name}"),
                    |service| format!("worca container logs {service}"),
                );
                Some(format!(
                    "`{logs}` shows all of it; put the cause right, then `worca container up` goes on from here"
                ))
            }
            Self::Paused(name) => Some(format!("`docker unpause {name}` lets it go on")),
            Self::Engine(error) => error.hint(),
        }
    }
}

impl Engine {
    /// Waits until the container `name` has reached `condition`, at most `limit`. While the engine has not tried its
    /// health check for the first time, which it does only after a whole interval, `probe` is tried instead.
    ///
    /// # Errors
    /// When it ends, is unhealthy, or is not there in time; with its last lines.
    pub async fn wait_for(
        &self,
        name: &str,
        condition: Condition,
        probe: Option<&[String]>,
        limit: Duration,
    ) -> Result<(), WaitError> {
        let deadline = tokio::time::Instant::now() + limit;
        let mut restarts_before = None;
        loop {
            let seen = self.inspect(name).await?;
            let state = seen.state.unwrap_or_default();
            let code = state.exit_code.unwrap_or_default();
            let running = state.running.unwrap_or_default() && !state.restarting.unwrap_or_default();
            let ended = matches!(
                state.status,
                Some(
                    ContainerStateStatusEnum::EXITED
                        | ContainerStateStatusEnum::DEAD
                        | ContainerStateStatusEnum::REMOVING
                )
            );
            let restarts = seen.restart_count.unwrap_or_default();
            let before = *restarts_before.get_or_insert(restarts);
            // One restart in between is seen as `restarting` by a later look, with its exit code.
            let looping = state.restarting.unwrap_or_default() || restarts > before + 1;
            let health = state.health.unwrap_or_default();
            if condition == Condition::Completed && ended && code == 0 {
                return Ok(());
            }
            // The engine's own restarts would hide a container that ends again and again.
            if ended || (looping && condition != Condition::Completed) {
                return Err(WaitError::Ended { name: name.into(), code, last: self.last_lines(name).await });
            }
            if condition == Condition::Started && running {
                return Ok(());
            }
            match health.status {
                Some(HealthStatusEnum::HEALTHY) if running => return Ok(()),
                _ if state.paused.unwrap_or_default() => return Err(WaitError::Paused(name.into())),
                // The engine's verdict lags behind: that of a container that was paused a moment ago is old.
                Some(HealthStatusEnum::UNHEALTHY) if running && self.passes(name, probe).await => {
                    return Ok(());
                }
                Some(HealthStatusEnum::UNHEALTHY) => {
                    let log = health.log.unwrap_or_default();
                    let check = log.last().and_then(|check| check.output.clone()).unwrap_or_default();
                    let check = one_line(&check);
                    return Err(WaitError::Unhealthy {
                        name: name.into(),
                        check: if check.is_empty() { "its health check says nothing".into() } else { check },
                        last: self.last_lines(name).await,
                    });
                }
                Some(HealthStatusEnum::STARTING) if running && self.passes(name, probe).await => {
                    return Ok(());
                }
                _ => {}
            }
            if tokio::time::Instant::now() >= deadline {
                let state = state.status.map(|status| status.to_string()).unwrap_or_default();
                let health = health.status.map(|status| format!(", health {status}")).unwrap_or_default();
                return Err(WaitError::TooSlow {
                    name: name.into(),
                    seconds: limit.as_secs(),
                    state: format!("{state}{health}"),
                    last: self.last_lines(name).await,
                });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn passes(&self, name: &str, probe: Option<&[String]>) -> bool {
        let Some(probe) = probe else { return false };
        let argv: Vec<&str> = probe.iter().map(String::as_str).collect();
        // A failed try is no failure: the next look tries again, and the engine's own verdict counts.
        self.ask(name, &argv, b"", 4096, PROBE).await.is_ok_and(|answer| answer.code == 0)
    }

    /// What a container's health check says now.
    ///
    /// # Errors
    /// When the container is not there.
    pub async fn health(&self, name: &str) -> Result<Health, EngineError> {
        let status =
            self.inspect(name).await?.state.and_then(|state| state.health).and_then(|health| health.status);
        Ok(match status {
            Some(HealthStatusEnum::HEALTHY) => Health::Healthy,
            Some(HealthStatusEnum::UNHEALTHY) => Health::Unhealthy,
            Some(HealthStatusEnum::STARTING) => Health::Starting,
            Some(HealthStatusEnum::EMPTY | HealthStatusEnum::NONE) | None => Health::None,
        })
    }

    /// The paths inside at which a container mounts something of the host.
    ///
    /// # Errors
    /// When the container is not there.
    pub async fn bind_targets(&self, name: &str) -> Result<Vec<String>, EngineError> {
        let mounts = self.inspect(name).await?.mounts.unwrap_or_default();
        let binds = mounts.into_iter().filter(|mount| mount.typ.as_deref() == Some("bind"));
        Ok(binds.filter_map(|mount| mount.destination).collect())
    }

    /// What is the same as long as a container is the same and runs without a break; `None` when it does not run.
    ///
    /// # Errors
    /// When the container is not there.
    pub async fn life(&self, name: &str) -> Result<Option<String>, EngineError> {
        let seen = self.inspect(name).await?;
        let state = seen.state.unwrap_or_default();
        let since = format!("{} {}", seen.id.unwrap_or_default(), state.started_at.unwrap_or_default());
        Ok(state.running.unwrap_or_default().then_some(since))
    }

    pub(super) async fn inspect(&self, name: &str) -> Result<ContainerInspectResponse, EngineError> {
        let seen = self.docker.inspect_container(name, None).await;
        seen.map_err(|error| EngineError::of(format!("look at container `{name}`"), error))
    }

    /// The last lines that a container printed; none when they cannot be had.
    pub async fn last_lines(&self, name: &str) -> Vec<String> {
        let options =
            LogsOptionsBuilder::default().stdout(true).stderr(true).tail(&LAST_LINES.to_string()).build();
        let mut logs = self.docker.logs(name, Some(options));
        let mut text = String::new();
        let read = async {
            while let Some(Ok(part)) = logs.next().await {
                text.push_str(&String::from_utf8_lossy(&part.into_bytes()));
            }
        };
        // Best effort: these lines go with an error that is already there.
        let _ = tokio::time::timeout(Duration::from_secs(5), read).await;
        let lines: Vec<String> = text.lines().map(one_line).collect();
        lines.into_iter().rev().take(LAST_LINES).rev().collect()
    }
}
