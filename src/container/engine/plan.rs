//! Wanted against found: the steps that make one into the other, in order. Pure; applying is another file's job.
//!
//! Nothing that does not carry the box's labels is ever part of a step. Where such a thing stands in the way, the
//! plan is refused before anything is done.

use std::collections::BTreeSet;

use super::found::{Found, FoundContainer, State};
use super::wanted::{Wanted, WantedContainer};
use crate::failure::{Exit, Explain};

/// The steps, in the order of doing. Empty when all is as wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is done.
    pub steps: Vec<Step>,
}

/// One step. Wanted things are meant by their name, found ones by the engine's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Stop and remove a container of ours.
    RemoveContainer {
        /// The engine's id.
        id: String,
        /// Its name.
        name: String,
        /// Why.
        why: Why,
    },
    /// Remove a network of ours that is to be made anew.
    RemoveNetwork {
        /// The engine's id.
        id: String,
        /// Its name.
        name: String,
    },
    /// Make a network.
    CreateNetwork(String),
    /// Make a volume.
    CreateVolume(String),
    /// Make a container, without starting it.
    CreateContainer(String),
    /// Start a container that is there, after what it depends on.
    Start(String),
    /// Let a paused container go on.
    Unpause(String),
}

/// Why a container is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// What it was made from is not what is wanted.
    Changed,
    /// It was made and never started, or is half removed.
    HalfMade,
    /// A network it stands on is not the wanted one.
    Network,
    /// No service of the files wants it.
    Orphan,
}

impl Why {
    /// The reason, for a person.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Changed => "its configuration changed",
            Self::HalfMade => "it was half made",
            Self::Network => "its network changed",
            Self::Orphan => "no service wants it any more",
        }
    }
}

/// Something that is not ours stands in the way.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// Its name is taken.
    #[error("{kind} `{name}` exists and does not belong to the box `{project}`")]
    Foreign {
        /// `container`, `network` or `volume`.
        kind: &'static str,
        /// The name that both want.
        name: String,
        /// The box.
        project: String,
    },
    /// Another Compose project has the box's name.
    #[error("a compose project named `{project}` that is not a box has the container `{name}`")]
    ForeignProject {
        /// The box's name.
        project: String,
        /// One of its containers.
        name: String,
    },
    /// An external network or volume is missing.
    #[error("the files call {kind} `{name}` external, and it does not exist")]
    NoExternal {
        /// `network` or `volume`.
        kind: &'static str,
        /// The name.
        name: String,
    },
}

impl Explain for PlanError {
    fn code(&self) -> &'static str {
        match self {
            Self::Foreign { .. } | Self::ForeignProject { .. } => "name-taken",
            Self::NoExternal { .. } => "external-missing",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Foreign { kind, name, .. } => Some(format!(
                "give the box another name with `--name NAME`, or remove it yourself: `docker {kind} rm {name}`"
            )),
            Self::ForeignProject { .. } => Some("give the box another name with `--name NAME`".into()),
            Self::NoExternal { kind, name } => Some(format!("make it: `docker {kind} create {name}`")),
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
    /// The names of the containers that are made anew or for the first time.
    pub fn created(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::CreateContainer(name) => Some(name.as_str()),
            _ => None,
        })
    }
    /// The names of the containers that are started.
    pub fn started(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Start(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Compares.
///
/// # Errors
/// When something that is not ours has a name that is needed, or something external is missing.
pub fn plan(wanted: &Wanted, found: &Found) -> Result<Plan, PlanError> {
    check_names(wanted, found)?;
    let ours: Vec<&FoundContainer> = found.containers.iter().filter(|one| one.ours && !one.one_off).collect();

    let mut remove_networks = Vec::new();
    let mut create_networks = Vec::new();
    for network in wanted.networks.iter().filter(|network| !network.external) {
        match found.networks.iter().find(|one| one.name == network.name && one.ours) {
            Some(one) if one.hash == network.hash || one.hash.is_empty() => {}
            Some(one) => {
                remove_networks.push(Step::RemoveNetwork { id: one.id.clone(), name: one.name.clone() });
                create_networks.push(network.name.clone());
            }
            None => create_networks.push(network.name.clone()),
        }
    }
    let create_volumes = wanted.volumes.iter().filter(|volume| !volume.external);
    let create_volumes =
        create_volumes.filter(|volume| !found.volumes.iter().any(|one| one.name == volume.name));
    let mut create_volumes: Vec<Step> =
        create_volumes.map(|volume| Step::CreateVolume(volume.name.clone())).collect();

    let (mut remove, mut create, mut start) = (Vec::new(), Vec::new(), Vec::new());
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for container in &wanted.containers {
        let mut same = ours.iter().filter(|one| one.service == container.service);
        let one = same.clone().find(|one| one.name == container.name).or_else(|| same.next());
        let Some(one) = one else {
            create.push(Step::CreateContainer(container.name.clone()));
            start.push(Step::Start(container.name.clone()));
            continue;
        };
        if let Some(why) = stale(container, one, found, &create_networks) {
            remove.push(Step::RemoveContainer { id: one.id.clone(), name: one.name.clone(), why });
            create.push(Step::CreateContainer(container.name.clone()));
            start.push(Step::Start(container.name.clone()));
        } else {
            match one.state {
                State::Exited => start.push(Step::Start(container.name.clone())),
                State::Paused => start.push(Step::Unpause(container.name.clone())),
                State::Running | State::Restarting | State::Created | State::Dead => {}
            }
        }
        kept.insert(&one.id);
    }
    for orphan in ours.iter().filter(|one| !kept.contains(one.id.as_str())) {
        remove.push(Step::RemoveContainer {
            id: orphan.id.clone(),
            name: orphan.name.clone(),
            why: Why::Orphan,
        });
    }

    let mut steps = remove;
    steps.append(&mut remove_networks);
    steps.extend(create_networks.into_iter().map(Step::CreateNetwork));
    steps.append(&mut create_volumes);
    steps.append(&mut create);
    steps.append(&mut start);
    Ok(Plan { steps })
}

/// Why a found container cannot stay, if it cannot.
fn stale(
    container: &WantedContainer,
    one: &FoundContainer,
    found: &Found,
    new_networks: &[String],
) -> Option<Why> {
    if matches!(one.state, State::Created | State::Dead) {
        return Some(Why::HalfMade);
    }
    if one.hash != container.hash || one.name != container.name {
        return Some(Why::Changed);
    }
    let attached = |name: &String| {
        let now = found.networks.iter().find(|network| &network.name == name);
        !new_networks.contains(name)
            && one
                .networks
                .get(name)
                .is_some_and(|id| id.is_empty() || now.is_some_and(|network| &network.id == id))
    };
    if !container.networks.iter().all(attached) {
        return Some(Why::Network);
    }
    None
}

fn check_names(wanted: &Wanted, found: &Found) -> Result<(), PlanError> {
    let project = &wanted.project;
    let foreign =
        |kind, name: &String| PlanError::Foreign { kind, name: name.clone(), project: project.clone() };
    for container in &wanted.containers {
        if found.containers.iter().any(|one| one.name == container.name && !one.ours) {
            return Err(foreign("container", &container.name));
        }
    }
    // Without this, `docker compose down` of that project would take the box down, and the other way round.
    if let Some(one) = found.containers.iter().find(|one| !one.ours && one.project.as_ref() == Some(project))
    {
        return Err(PlanError::ForeignProject { project: project.clone(), name: one.name.clone() });
    }
    for network in &wanted.networks {
        let one = found.networks.iter().find(|one| one.name == network.name);
        match one {
            None if network.external => {
                return Err(PlanError::NoExternal { kind: "network", name: network.name.clone() });
            }
            Some(one) if !network.external && !one.ours => return Err(foreign("network", &network.name)),
            _ => {}
        }
    }
    for volume in &wanted.volumes {
        let one = found.volumes.iter().find(|one| one.name == volume.name);
        match one {
            None if volume.external => {
                return Err(PlanError::NoExternal { kind: "volume", name: volume.name.clone() });
            }
            Some(one) if !volume.external && !one.ours => return Err(foreign("volume", &volume.name)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
