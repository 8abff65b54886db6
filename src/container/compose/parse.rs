//! The merged tree as a typed project. Every key is applied, or is an error that names its file, line and path.

use std::collections::{BTreeMap, BTreeSet};

use super::interpolate::Environment;
use super::model::{Project, ProjectName, ServiceName};
use super::place::{LoadError, Place, shown};
use super::yaml::Node;

mod fields;
mod health;
mod links;
mod mounts;
mod paths;
mod ports;
mod references;
mod scalars;
mod service;
mod suggest;
#[cfg(test)]
mod tests;
mod top;
mod words;

use fields::Fields;
pub use paths::Folders;
pub(super) use paths::normal as normal_path;
use references::Loose;

/// What the files do not say themselves.
#[derive(Debug, Clone)]
pub struct Context {
    /// The project's name.
    pub name: ProjectName,
    /// Where relative paths and `~` start.
    pub folders: Folders,
    /// The variables, for environment keys without a value and `COMPOSE_PROFILES`.
    pub environment: Environment,
}

/// Where each service and each of its keys stands (`core`, `core.ports`), for messages about the finished project.
pub type Places = BTreeMap<String, Place>;

/// Reads a merged, interpolated tree.
///
/// # Errors
/// At the first key that is not applied, value that has no meaning, or name that leads nowhere.
pub fn project(root: &Node, context: &Context) -> Result<(Project, Places), LoadError> {
    let mut top = Fields::new(root, "")?;
    if let Some(version) = top.take("version") {
        version.text()?;
    }
    if let Some(name) = top.take("name") {
        let text = name.text()?;
        if text != context.name.as_str() {
            let sentence =
                format!("the project is `{}` here, and this names it `{}`", context.name, shown(&text));
            return Err(name.error(sentence).advise("remove `name`, or choose the box with `--name`"));
        }
    }
    let mut places = Places::new();
    let mut services = BTreeMap::new();
    let mut loose = Loose { sleeping: BTreeSet::new(), optional: BTreeSet::new() };
    let active = active_profiles(&context.environment);
    if let Some(field) = top.take("services") {
        for (key, field) in field.mapping()? {
            if key.starts_with("x-") {
                continue;
            }
            let name = ServiceName::parse(key).map_err(|error| field.error(error.to_string()))?;
            let read = service::read(&field, context)?;
            places.insert(key.to_owned(), field.place().clone());
            for entry in field.node().entries().unwrap_or_default() {
                places.insert(format!("{key}.{}", entry.key), entry.place.clone());
            }
            let awake = read.profiles.is_empty() || active.contains("*");
            if awake || read.profiles.iter().any(|profile| active.contains(profile.as_str())) {
                loose.optional.extend(read.optional.into_iter().map(|other| (name.clone(), other)));
                services.insert(name, read.service);
            } else {
                loose.sleeping.insert(name);
            }
        }
    }
    let networks = top::networks(top.take("networks"), context)?;
    let volumes = top::volumes(top.take("volumes"), context)?;
    let secrets = top::secrets(top.take("secrets"), context)?;
    top.finish()?;
    let mut project = Project { name: context.name.clone(), services, networks, volumes, secrets };
    references::check(&mut project, &loose, &places, &root.place)?;
    Ok((project, places))
}

fn active_profiles(environment: &Environment) -> BTreeSet<&str> {
    environment
        .get("COMPOSE_PROFILES")
        .map(|list| list.split(',').map(str::trim).filter(|p| !p.is_empty()).collect())
        .unwrap_or_default()
}
