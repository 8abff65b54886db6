//! Carries a plan out, step by step, and tells what it does. It decides nothing.
//!
//! A failure or a kill at any point leaves something that the next plan repairs: a container that was made and not
//! started is made anew.

use std::time::Duration;

use bollard::models::{NetworkConnectRequest, NetworkingConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};
use futures_util::future::{join_all, try_join_all};

use super::connect::{ApiVersion, Engine};
use super::error::EngineError;
use super::plan::{Plan, Step};
use super::wait::WaitError;
use super::wanted::{Wanted, WantedContainer};
use crate::container::compose::model::Condition;
use crate::container::report::Reporter;
use crate::failure::{Exit, Explain};

/// From this version on, a container can be created on several networks at once.
const MANY_ENDPOINTS: ApiVersion = ApiVersion(1, 44);

/// A plan could not be carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The engine refused a step.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A container did not get ready.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The plan names what is not wanted: a fault of this program.
    #[error("the plan names `{0}`, which nothing describes")]
    Unknown(String),
}

impl Explain for ApplyError {
    fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::Wait(error) => error.code(),
            Self::Unknown(_) => "plan-unknown",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Wait(error) => error.hint(),
            Self::Unknown(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl Engine {
    /// Carries `plan` out. Each container gets `patience` to become ready when another one waits for it.
    ///
    /// # Errors
    /// At the first step that fails; the next plan goes on from what is there then.
    pub async fn apply(
        &self,
        wanted: &Wanted,
        plan: &Plan,
        report: &dyn Reporter,
        patience: Duration,
    ) -> Result<(), ApplyError> {
        let remove = plan.steps.iter().filter_map(|step| match step {
            Step::RemoveContainer { id, name, why } => Some(async move {
                report.step(&format!("container {name}"), &format!("removing: {}", why.sentence()));
                self.remove_container(id, name).await?;
                report.done(&format!("container {name}"), "removed");
                Ok::<(), EngineError>(())
            }),
            _ => None,
        });
        try_join_all(remove).await?;
        for step in &plan.steps {
            if let Step::RemoveNetwork { id, name } = step {
                self.remove_network(id, name).await?;
                report.done(&format!("network {name}"), "removed");
            }
        }
        for step in &plan.steps {
            match step {
                Step::CreateNetwork(name) => self.create_network(wanted, name, report).await?,
                Step::CreateVolume(name) => self.create_volume(wanted, name, report).await?,
                _ => {}
            }
        }
        let create = plan.created().map(|name| async move {
            let container = find(wanted, name)?;
            report.step(&format!("container {name}"), "creating");
            self.create_container(container).await?;
            report.step(&format!("container {name}"), "created");
            Ok::<(), ApplyError>(())
        });
        try_join_all(create).await?;
        for step in &plan.steps {
            match step {
                Step::Start(name) => self.start(wanted, name, report, patience).await?,
                Step::Unpause(name) => {
                    let done = self.docker.unpause_container(name).await;
                    done.map_err(|error| EngineError::of(format!("unpause container `{name}`"), error))?;
                    report.done(&format!("container {name}"), "goes on");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until every wanted container is ready.
    ///
    /// # Errors
    /// At the first one that is not.
    pub async fn wait_all(
        &self,
        wanted: &Wanted,
        report: &dyn Reporter,
        patience: Duration,
    ) -> Result<(), WaitError> {
        let all = wanted.containers.iter().map(|container| async move {
            let condition = if container.has_health { Condition::Healthy } else { Condition::Started };
            report.step(&format!("container {}", container.name), "waiting until it is ready");
            self.wait_for(&container.name, condition, container.probe.as_deref(), patience).await?;
            report.done(&format!("container {}", container.name), "ready");
            Ok::<(), WaitError>(())
        });
        try_join_all(all).await.map(|_| ())
    }

    async fn start(
        &self,
        wanted: &Wanted,
        name: &str,
        report: &dyn Reporter,
        patience: Duration,
    ) -> Result<(), ApplyError> {
        let container = find(wanted, name)?;
        for (service, condition) in &container.depends_on {
            if let Some(other) = wanted.containers.iter().find(|one| &one.service == service) {
                report.step(&format!("container {name}"), &format!("waiting for {}", other.name));
                let condition = match condition {
                    Condition::Healthy if !other.has_health => Condition::Started,
                    other => *other,
                };
                self.wait_for(&other.name, condition, other.probe.as_deref(), patience).await?;
            }
        }
        report.step(&format!("container {name}"), "starting");
        let started = self.docker.start_container(name, None).await;
        started.map_err(|error| EngineError::of(format!("start container `{name}`"), error))?;
        report.done(&format!("container {name}"), "started");
        Ok(())
    }

    async fn create_network(
        &self,
        wanted: &Wanted,
        name: &str,
        report: &dyn Reporter,
    ) -> Result<(), ApplyError> {
        let network = wanted.networks.iter().find(|one| one.name == name);
        let network = network.ok_or_else(|| ApplyError::Unknown(name.into()))?;
        let made = self.docker.create_network(network.body.clone()).await;
        made.map_err(|error| EngineError::of(format!("create network `{name}`"), error))?;
        report.done(&format!("network {name}"), "created");
        Ok(())
    }

    async fn create_volume(
        &self,
        wanted: &Wanted,
        name: &str,
        report: &dyn Reporter,
    ) -> Result<(), ApplyError> {
        let volume = wanted.volumes.iter().find(|one| one.name == name);
        let volume = volume.ok_or_else(|| ApplyError::Unknown(name.into()))?;
        let made = self.docker.create_volume(volume.body.clone()).await;
        made.map_err(|error| EngineError::of(format!("create volume `{name}`"), error))?;
        report.done(&format!("volume {name}"), "created");
        Ok(())
    }

    async fn create_container(&self, container: &WantedContainer) -> Result<(), ApplyError> {
        let name = &container.name;
        let at_once = if self.version.api >= MANY_ENDPOINTS { usize::MAX } else { 1 };
        let mut body = container.body.clone();
        let endpoints = container.endpoints.iter().take(at_once).cloned().collect();
        body.networking_config = Some(NetworkingConfig { endpoints_config: Some(endpoints) });
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let made = self.docker.create_container(Some(options), body).await;
        made.map_err(|error| EngineError::of(format!("create container `{name}`"), error))?;
        for (network, endpoint) in container.endpoints.iter().skip(at_once) {
            let request =
                NetworkConnectRequest { container: name.clone(), endpoint_config: Some(endpoint.clone()) };
            let joined = self.docker.connect_network(network, request).await;
            joined.map_err(|error| {
                EngineError::of(format!("put container `{name}` on network `{network}`"), error)
            })?;
        }
        Ok(())
    }

    /// Stops and removes one container. One that is gone already is no error.
    ///
    /// # Errors
    /// When the engine refuses.
    pub async fn remove_container(&self, id: &str, name: &str) -> Result<(), EngineError> {
        // No time is given: the container's own `stop_grace_period` holds.
        match self
            .docker
            .stop_container(id, None)
            .await
            .map_err(|e| EngineError::of(format!("stop container `{name}`"), e))
        {
            // One that was never started, or is in the middle of something, is removed by force below.
            Ok(()) | Err(EngineError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        // `v` takes the container's nameless volumes along; named ones stay.
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let removed = self.docker.remove_container(id, Some(options)).await;
        match removed.map_err(|error| EngineError::of(format!("remove container `{name}`"), error)) {
            Err(error) if !error.is_missing() && !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes one network. One that is gone already is no error.
    ///
    /// # Errors
    /// When the engine refuses, such as while a container stands on it.
    pub async fn remove_network(&self, id: &str, name: &str) -> Result<(), EngineError> {
        let removed = self.docker.remove_network(id).await;
        match removed.map_err(|error| EngineError::of(format!("remove network `{name}`"), error)) {
            Err(error) if !error.is_missing() => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes one volume. One that is gone already is no error.
    ///
    /// # Errors
    /// When the engine refuses, such as while a container uses it.
    pub async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveVolumeOptionsBuilder::default().build();
        let removed = self.docker.remove_volume(name, Some(options)).await;
        match removed.map_err(|error| EngineError::of(format!("remove volume `{name}`"), error)) {
            Err(error) if !error.is_missing() => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes a box away: its containers (those that run once too), its networks and, when asked, its volumes.
    /// Only what carries both labels of the box `name`. Gives what was removed, as `kind name`.
    ///
    /// # Errors
    /// When the engine refuses; what is left is found by the next call.
    pub async fn take_down(
        &self,
        name: &str,
        volumes: bool,
        report: &dyn Reporter,
    ) -> Result<Vec<String>, EngineError> {
        let found = self.look(name).await?;
        let mut removed = Vec::new();
        let containers = found.containers.iter().filter(|one| one.ours);
        let work = containers.map(|one| async move {
            let what = format!("container {}", one.name);
            report.step(&what, "stopping");
            self.remove_container(&one.id, &one.name).await?;
            report.done(&what, "removed");
            Ok::<String, EngineError>(what)
        });
        for one in join_all(work).await {
            removed.push(one?);
        }
        for network in found.networks.iter().filter(|one| one.ours) {
            self.remove_network(&network.id, &network.name).await?;
            report.done(&format!("network {}", network.name), "removed");
            removed.push(format!("network {}", network.name));
        }
        for volume in found.volumes.iter().filter(|one| volumes && one.ours) {
            self.remove_volume(&volume.name).await?;
            report.done(&format!("volume {}", volume.name), "removed");
            removed.push(format!("volume {}", volume.name));
        }
        Ok(removed)
    }
}

fn find<'a>(wanted: &'a Wanted, name: &str) -> Result<&'a WantedContainer, ApplyError> {
    wanted.containers.iter().find(|one| one.name == name).ok_or_else(|| ApplyError::Unknown(name.into()))
}
