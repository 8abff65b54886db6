//! Names that lead from one part of a project to another: each must lead somewhere, and none in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::super::model::{Mount, Network, NetworkLink, Project, ProjectName, ServiceName};
use super::super::place::{LoadError, Place, shown};
use super::Places;

/// The network that a service stands on when it names none.
const DEFAULT: &str = "default";

/// Services that a profile keeps asleep, and dependencies that need not exist.
pub(super) struct Loose {
    pub(super) sleeping: BTreeSet<ServiceName>,
    pub(super) optional: BTreeSet<(ServiceName, ServiceName)>,
}

/// Checks every name, adds the default network where a service names none, and drops what no service uses.
pub(super) fn check(
    project: &mut Project,
    loose: &Loose,
    places: &Places,
    start: &Place,
) -> Result<(), LoadError> {
    if project.services.is_empty() {
        return Err(LoadError::value(start.clone(), "there is no service"));
    }
    dependencies(project, loose, places, start)?;
    let name = project.name.clone();
    let mut used = BTreeSet::new();
    for (service_name, service) in &mut project.services {
        let at = |key: &str| place(places, service_name, key, start);
        let own = |what: &str, key: &str, name: &str| {
            let sentence = format!(
                "`services.{service_name}.{key}` names the {what} `{}`, and there is none",
                shown(name)
            );
            LoadError::value(at(key), sentence).advise(format!("declare it under `{what}s` at the top level"))
        };
        if service.networks.is_empty() && !service.host.network {
            service.networks.insert(DEFAULT.to_owned(), NetworkLink::default());
        }
        for key in service.networks.keys() {
            if key == DEFAULT {
                project.networks.entry(DEFAULT.to_owned()).or_insert_with(|| default_network(&name));
            } else if !project.networks.contains_key(key) {
                return Err(own("network", "networks", key));
            }
            used.insert(('n', key.clone()));
        }
        for mount in &service.mounts {
            if let Mount::Volume { source: Some(key), .. } = mount {
                if !project.volumes.contains_key(key) {
                    return Err(own("volume", "volumes", key));
                }
                used.insert(('v', key.clone()));
            }
        }
        for grant in &service.secrets {
            if !project.secrets.contains_key(&grant.source) {
                return Err(own("secret", "secrets", &grant.source));
            }
            used.insert(('s', grant.source.clone()));
        }
        one_thing_per_target(service, |key, sentence| LoadError::value(at(key), sentence))?;
    }
    project.networks.retain(|key, _| used.contains(&('n', key.clone())));
    project.volumes.retain(|key, _| used.contains(&('v', key.clone())));
    project.secrets.retain(|key, _| used.contains(&('s', key.clone())));
    Ok(())
}

fn default_network(name: &ProjectName) -> Network {
    Network { name: format!("{name}_{DEFAULT}"), ..Network::default() }
}

fn place(places: &Places, service: &ServiceName, key: &str, start: &Place) -> Place {
    let found = places.get(&format!("{service}.{key}")).or_else(|| places.get(service.as_str()));
    found.unwrap_or(start).clone()
}

/// A volume, a tmpfs and a secret cannot share a path inside.
fn one_thing_per_target(
    service: &super::super::model::Service,
    error: impl Fn(&str, String) -> LoadError,
) -> Result<(), LoadError> {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    let mounts = service.mounts.iter().map(|mount| ("volumes", mount.target()));
    let tmpfs = service.tmpfs.keys().map(|target| ("tmpfs", target.as_str()));
    let secrets = service.secrets.iter().map(|grant| ("secrets", grant.target.as_str()));
    for (key, target) in mounts.chain(tmpfs).chain(secrets) {
        if let Some(before) = taken.insert(target, key) {
            let sentence = format!("`{}` is mounted by `{before}` and by `{key}`", shown(target));
            return Err(error(key, sentence));
        }
    }
    Ok(())
}

fn dependencies(
    project: &mut Project,
    loose: &Loose,
    places: &Places,
    start: &Place,
) -> Result<(), LoadError> {
    let names: BTreeSet<ServiceName> = project.services.keys().cloned().collect();
    for (name, service) in &mut project.services {
        service.depends_on.retain(|other, _| {
            names.contains(other) || !loose.optional.contains(&(name.clone(), other.clone()))
        });
        if let Some(missing) = service.depends_on.keys().find(|other| !names.contains(*other)) {
            let why =
                if loose.sleeping.contains(missing) { "its profile is not active" } else { "there is none" };
            let sentence = format!("`services.{name}.depends_on` names the service `{missing}`, and {why}");
            return Err(LoadError::value(place(places, name, "depends_on", start), sentence));
        }
    }
    // What is left after taking away, again and again, every service that waits for nobody, waits in a circle.
    let mut waiting: BTreeMap<&ServiceName, Vec<&ServiceName>> =
        project.services.iter().map(|(name, service)| (name, service.depends_on.keys().collect())).collect();
    loop {
        let free: Vec<&ServiceName> = waiting
            .iter()
            .filter(|(_, others)| !others.iter().any(|o| waiting.contains_key(o)))
            .map(|(n, _)| *n)
            .collect();
        if free.is_empty() {
            break;
        }
        for name in free {
            waiting.remove(name);
        }
    }
    match waiting.keys().next() {
        None => Ok(()),
        Some(name) => {
            let members: Vec<String> = waiting.keys().map(|name| format!("`{name}`")).collect();
            let sentence = format!("the services {} wait for each other in a circle", members.join(", "));
            Err(LoadError::value(place(places, name, "depends_on", start), sentence))
        }
    }
}
