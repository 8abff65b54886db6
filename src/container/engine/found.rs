//! What is at the engine now: every container, network and volume, with what is ours marked as ours.
//!
//! Only reads. Everything else is listed too, because a name, a port or a project that another holds must be told.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum, Network, Volume};
use bollard::query_parameters::ListContainersOptionsBuilder;

use super::connect::Engine;
use super::error::EngineError;
use super::labels;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Every container of the engine.
    pub containers: Vec<FoundContainer>,
    /// Every network.
    pub networks: Vec<FoundNetwork>,
    /// Every volume.
    pub volumes: Vec<FoundVolume>,
}

/// A container at the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundContainer {
    /// The engine's id.
    pub id: String,
    /// The name, without the slash.
    pub name: String,
    /// It carries both labels of the box that was asked for.
    pub ours: bool,
    /// The box that it says it belongs to.
    pub of_box: Option<String>,
    /// The Compose project that it says it belongs to.
    pub project: Option<String>,
    /// The service.
    pub service: String,
    /// It runs once and is not part of the plan.
    pub one_off: bool,
    /// The digest that it was made from.
    pub hash: String,
    /// The number within its service.
    pub number: String,
    /// What it is doing.
    pub state: State,
    /// What its health check says.
    pub health: Health,
    /// The image reference it was made from.
    pub image: String,
    /// The networks it stands on: name to the network's id.
    pub networks: BTreeMap<String, String>,
    /// The host ports it holds.
    pub ports: Vec<u16>,
    /// What the engine says in words, such as `Up 2 hours (healthy)`.
    pub status: String,
    /// The folder of the compose files it was made from.
    pub working_dir: String,
}

/// What a container is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Made, and never started.
    #[default]
    Created,
    /// Running.
    Running,
    /// Stopped for the time being.
    Paused,
    /// Ended, and about to be started again by the engine.
    Restarting,
    /// Ended.
    Exited,
    /// The engine could not remove it whole.
    Dead,
}

/// What a health check says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Health {
    /// There is no health check.
    #[default]
    None,
    /// It has not passed yet.
    Starting,
    /// It passed.
    Healthy,
    /// It failed too often.
    Unhealthy,
}

impl Health {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Restarting => "restarting",
            Self::Exited => "exited",
            Self::Dead => "dead",
        }
    }
}

/// A network at the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundNetwork {
    /// The engine's id.
    pub id: String,
    /// The name.
    pub name: String,
    /// It carries both labels of the box that was asked for.
    pub ours: bool,
    /// The digest that it was made from.
    pub hash: String,
}

/// A volume at the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundVolume {
    /// The name.
    pub name: String,
    /// It carries both labels of the box that was asked for.
    pub ours: bool,
    /// The folder of the files that it was made from; empty when nothing says so.
    pub working_dir: String,
}

impl Engine {
    /// Looks at everything, with the eyes of the box `name`.
    ///
    /// # Errors
    /// When the engine does not list.
    pub async fn look(&self, name: &str) -> Result<Found, EngineError> {
        let (containers, networks, volumes) = tokio::try_join!(
            self.look_at_containers(name),
            self.look_at_networks(name),
            self.look_at_volumes(name)
        )?;
        Ok(Found { containers, networks, volumes })
    }

    /// Looks at the containers alone.
    ///
    /// # Errors
    /// When the engine does not list.
    pub async fn look_at_containers(&self, name: &str) -> Result<Vec<FoundContainer>, EngineError> {
        let all = ListContainersOptionsBuilder::default().all(true).build();
        let listed = self.docker.list_containers(Some(all)).await;
        let listed = listed.map_err(|error| EngineError::of("list containers", error))?;
        Ok(listed.into_iter().map(|one| container(one, name)).collect())
    }

    /// The boxes that have networks here and no containers: each holds a subnet for nothing.
    ///
    /// # Errors
    /// When the engine does not list.
    pub async fn dead_boxes(&self) -> Result<Vec<String>, EngineError> {
        let containers = self.look_at_containers("").await?;
        let listed = self.docker.list_networks(None).await;
        let listed = listed.map_err(|error| EngineError::of("list networks", error))?;
        let mut boxes: Vec<String> =
            listed.into_iter().filter_map(|one| one.labels?.get(labels::BOX).cloned()).collect();
        boxes.sort();
        boxes.dedup();
        boxes.retain(|name| !containers.iter().any(|one| one.of_box.as_ref() == Some(name)));
        Ok(boxes)
    }

    async fn look_at_networks(&self, name: &str) -> Result<Vec<FoundNetwork>, EngineError> {
        let listed = self.docker.list_networks(None).await;
        let listed = listed.map_err(|error| EngineError::of("list networks", error))?;
        Ok(listed.into_iter().map(|one| network(one, name)).collect())
    }

    async fn look_at_volumes(&self, name: &str) -> Result<Vec<FoundVolume>, EngineError> {
        let listed = self.docker.list_volumes(None::<bollard::query_parameters::ListVolumesOptions>).await;
        let listed = listed.map_err(|error| EngineError::of("list volumes", error))?;
        Ok(listed.volumes.unwrap_or_default().into_iter().map(|one| volume(one, name)).collect())
    }
}

fn container(one: ContainerSummary, name: &str) -> FoundContainer {
    let labels = one.labels.unwrap_or_default();
    let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let status = one.status.unwrap_or_default();
    let attached = one.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
    let state = match one.state.unwrap_or(ContainerSummaryStateEnum::EMPTY) {
        ContainerSummaryStateEnum::RUNNING | ContainerSummaryStateEnum::STOPPING => State::Running,
        ContainerSummaryStateEnum::PAUSED => State::Paused,
        ContainerSummaryStateEnum::RESTARTING => State::Restarting,
        ContainerSummaryStateEnum::EXITED => State::Exited,
        ContainerSummaryStateEnum::DEAD | ContainerSummaryStateEnum::REMOVING => State::Dead,
        ContainerSummaryStateEnum::CREATED | ContainerSummaryStateEnum::EMPTY => State::Created,
    };
    let names = one.names.unwrap_or_default();
    FoundContainer {
        id: one.id.unwrap_or_default(),
        name: names.first().map(|name| name.trim_start_matches('/').to_owned()).unwrap_or_default(),
        ours: labels::are_ours(&labels, name),
        of_box: labels.get(labels::BOX).cloned(),
        project: labels.get(labels::PROJECT).cloned(),
        service: label(labels::SERVICE),
        one_off: label(labels::ONE_OFF).eq_ignore_ascii_case("true"),
        hash: label(labels::CONFIG_HASH),
        number: label(labels::NUMBER),
        state,
        health: health_in(&status),
        image: one.image.unwrap_or_default(),
        networks: attached.into_iter().map(|(name, at)| (name, at.network_id.unwrap_or_default())).collect(),
        ports: one.ports.unwrap_or_default().iter().filter_map(|port| port.public_port).collect(),
        working_dir: label(labels::WORKING_DIR),
        status,
    }
}

/// The list gives health only inside the words, as in `Up 5 seconds (health: starting)`.
fn health_in(status: &str) -> Health {
    if status.contains("(healthy)") {
        Health::Healthy
    } else if status.contains("(unhealthy)") {
        Health::Unhealthy
    } else if status.contains("(health: starting)") || status.contains("(starting)") {
        Health::Starting
    } else {
        Health::None
    }
}

fn network(one: Network, name: &str) -> FoundNetwork {
    let labels: HashMap<String, String> = one.labels.unwrap_or_default();
    FoundNetwork {
        id: one.id.unwrap_or_default(),
        name: one.name.unwrap_or_default(),
        ours: labels::are_ours(&labels, name),
        hash: labels.get(labels::NETWORK_HASH).cloned().unwrap_or_default(),
    }
}

fn volume(one: Volume, name: &str) -> FoundVolume {
    let working_dir = one.labels.get(labels::WORKING_DIR).cloned().unwrap_or_default();
    FoundVolume { ours: labels::are_ours(&one.labels, name), name: one.name, working_dir }
}
