//! What is to be at the engine: the compose model turned into bodies of API calls, each with a digest. Pure.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerCreateBody, EndpointSettings, NetworkCreateRequest, VolumeCreateRequest};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::labels;
use super::translate::{self, TranslateError};
use crate::container::compose::model::{Condition, Mount, Project, Service};

/// Everything of one project, in the order of starting.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The project's name, which is the box's name.
    pub project: String,
    /// The networks to be.
    pub networks: Vec<WantedNetwork>,
    /// The volumes to be.
    pub volumes: Vec<WantedVolume>,
    /// The containers to be; each comes after what it depends on.
    pub containers: Vec<WantedContainer>,
}

/// A network to be.
#[derive(Debug, Clone)]
pub struct WantedNetwork {
    /// Its name at the engine.
    pub name: String,
    /// It must exist already; it is neither made nor removed.
    pub external: bool,
    /// The digest of the body.
    pub hash: String,
    pub(super) body: NetworkCreateRequest,
}

/// A volume to be.
#[derive(Debug, Clone)]
pub struct WantedVolume {
    /// Its name at the engine.
    pub name: String,
    /// It must exist already; it is neither made nor removed.
    pub external: bool,
    pub(super) body: VolumeCreateRequest,
}

/// A container to be.
#[derive(Debug, Clone)]
pub struct WantedContainer {
    /// The service.
    pub service: String,
    /// Its name at the engine.
    pub name: String,
    /// The digest of everything that it is made from.
    pub hash: String,
    /// Whether it says when it is healthy.
    pub has_health: bool,
    /// What its health check runs, when the files say it: run by us too while the engine has not come to its first try.
    pub probe: Option<Vec<String>>,
    /// What must be there before it starts, and in which state.
    pub depends_on: Vec<(String, Condition)>,
    /// The names of the networks that it stands on.
    pub networks: Vec<String>,
    /// The ports of the host that it takes, as address and port.
    pub ports: Vec<(std::net::IpAddr, u16)>,
    pub(super) body: ContainerCreateBody,
    pub(super) endpoints: Vec<(String, EndpointSettings)>,
}

/// Where the project came from and what its parts are made of, beside the model.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The folder of the compose files.
    pub working_dir: String,
    /// The compose files.
    pub config_files: Vec<String>,
    /// Image reference to image id, for every service's image.
    pub images: BTreeMap<String, String>,
    /// Image references whose image has a health check of its own.
    pub healthy_images: Vec<String>,
    /// Secret key, or source of a bind mount, to a text that changes when what is in it does, and is not that.
    pub stamps: BTreeMap<String, String>,
}

/// Turns a model into API bodies.
///
/// # Errors
/// When the model asks for something that the API cannot do through structured mounts.
pub fn wanted(project: &Project, origin: &Origin) -> Result<Wanted, TranslateError> {
    let name = project.name.as_str();
    let networks = project.networks.iter().map(|(key, network)| {
        let mut body = translate::network(network);
        let hash = digest(&(&body, &network.labels));
        let own = [(labels::NETWORK, key.as_str()), (labels::NETWORK_HASH, &hash)];
        body.labels = Some(with_labels(&network.labels, name, &own));
        WantedNetwork { name: network.name.clone(), external: network.external, hash, body }
    });
    let volumes = project.volumes.iter().map(|(key, volume)| {
        let mut body = translate::volume(volume);
        // The home that made it: what is in it is taken away from there alone.
        let own = [(labels::VOLUME, key.as_str()), (labels::WORKING_DIR, origin.working_dir.as_str())];
        body.labels = Some(with_labels(&volume.labels, name, &own));
        WantedVolume { name: volume.name.clone(), external: volume.external, body }
    });
    let (networks, volumes) = (networks.collect(), volumes.collect());
    let mut containers = Vec::new();
    for service_name in project.start_order() {
        if let Some(service) = project.services.get(service_name) {
            containers.push(container(project, service_name.as_str(), service, origin)?);
        }
    }
    Ok(Wanted { project: name.to_owned(), networks, volumes, containers })
}

fn container(
    project: &Project,
    key: &str,
    service: &Service,
    origin: &Origin,
) -> Result<WantedContainer, TranslateError> {
    let endpoints = translate::endpoints(project, key, service);
    let mut body = translate::container(project, key, service)?;
    let image = origin.images.get(&service.image).cloned().unwrap_or_default();
    let stamps = service.secrets.iter().map(|grant| origin.stamps.get(&grant.source));
    let sources = service.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { source, .. } => origin.stamps.get(source.as_str()),
        Mount::Volume { .. } | Mount::Tmpfs { .. } => None,
    });
    let stamps: Vec<_> = stamps.chain(sources.map(Some)).collect();
    let hash = digest(&(&body, &service.labels, &endpoints, &image, stamps));
    let depends: Vec<String> = service
        .depends_on
        .iter()
        .map(|(other, dependency)| {
            format!("{other}:{}:{}", condition_word(dependency.condition), dependency.restart)
        })
        .collect();
    let own = [
        (labels::SERVICE, key),
        (labels::NUMBER, "1"),
        (labels::ONE_OFF, "False"),
        (labels::CONFIG_HASH, &hash),
        (labels::CONFIG_FILES, &origin.config_files.join(",")),
        (labels::WORKING_DIR, &origin.working_dir),
        (labels::DEPENDS_ON, &depends.join(",")),
        (labels::IMAGE, &image),
    ];
    body.labels = Some(with_labels(&service.labels, project.name.as_str(), &own));
    Ok(WantedContainer {
        service: key.to_owned(),
        name: service.container_name.clone().unwrap_or_else(|| format!("{}-{key}-1", project.name)),
        hash,
        has_health: translate::has_health(service, origin.healthy_images.contains(&service.image)),
        probe: translate::probe(service),
        depends_on: service.depends_on.iter().map(|(other, d)| (other.to_string(), d.condition)).collect(),
        networks: endpoints.iter().map(|(name, _)| name.clone()).collect(),
        ports: translate::host_ports(service),
        body,
        endpoints,
    })
}

fn condition_word(condition: Condition) -> &'static str {
    match condition {
        Condition::Started => "service_started",
        Condition::Healthy => "service_healthy",
        Condition::Completed => "service_completed_successfully",
    }
}

fn with_labels(
    given: &BTreeMap<String, String>,
    project: &str,
    own: &[(&str, &str)],
) -> HashMap<String, String> {
    let mut all: HashMap<String, String> =
        given.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let always =
        [(labels::PROJECT, project), (labels::BOX, project), (labels::VERSION, labels::COMPOSE_VERSION)];
    all.extend(always.iter().chain(own).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    all
}

/// The SHA-256 of a value's JSON with sorted keys, in hex: the same on every start of this program.
pub(super) fn digest(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or(Value::Null);
    let mut text = String::new();
    canonical(&json, &mut text);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(entries) => {
            let sorted: BTreeMap<&String, &Value> = entries.iter().collect();
            text.push('{');
            for (key, value) in sorted {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests;
