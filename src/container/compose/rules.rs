//! What a box promises, held against a finished project. [`seal`] is the only way to a [`Sealed`] project, and nothing else
//! is ever applied, so that no file of a person can take a promise back.
//!
//! The rules look at names and paths alone. Who hands in the paths resolves symbolic links before, where a disk is at hand.

use std::fmt;
use std::ops::Deref;

use super::load::Loaded;
use super::model::{Mount, Project, Service, ServiceName};
use super::parse::Places;
use super::place::{Place, shown};
use crate::failure::{Exit, Explain};

mod confinement;
mod keys;
mod sockets;
#[cfg(test)]
mod tests;

pub use sockets::{Paths, SETTINGS, names_engine_socket};

/// The service that runs agents.
pub const CORE: &str = "core";
/// The service that holds the model keys.
pub const KEYS: &str = "keys";

/// A project that keeps every promise of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(Project);

impl Sealed {
    /// The project, to be changed and sealed again.
    pub fn into_project(self) -> Project {
        self.0
    }
}

impl Deref for Sealed {
    type Target = Project;
    fn deref(&self) -> &Project {
        &self.0
    }
}

/// What the rules need to know about the host. All paths are absolute and in their normal form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grounds {
    /// The home folder.
    pub home: Option<String>,
    /// The folder that holds the Compose files and the secrets of this box.
    pub container_home: String,
    /// Paths of engine sockets that were found, beside the usual ones.
    pub engine_sockets: Vec<String>,
}

/// A promise of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// No service reaches the engine.
    NoEngineSocket,
    /// No service is privileged or has a device of the host.
    NoPrivileges,
    /// No service shares a namespace of the host.
    OwnNamespaces,
    /// Neither the root, the home folder nor Worca's own folder is mounted.
    NoHome,
    /// Core and the key service have no capability; others none beyond the engine's default.
    NoCapabilities,
    /// Core and the key service cannot gain privileges, and no service leaves the engine's filters.
    NoNewPrivileges,
    /// Core and the key service have a read-only root file system.
    ReadOnlyRoot,
    /// Core and the key service have limits on memory, CPU and processes.
    Limits,
    /// The key service publishes nothing.
    KeysUnpublished,
    /// Core is published on the loopback address alone.
    LoopbackOnly,
    /// Only the key service has the vault and its key; nobody else has the control secret but core.
    KeysApart,
    /// No model key stands in a Compose file.
    NoModelKey,
    /// The network `work` has no route out.
    WorkInternal,
    /// Core and the key service are there.
    Complete,
}

impl Promise {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEngineSocket => "box.no-engine-socket",
            Self::NoPrivileges => "box.no-privileges",
            Self::OwnNamespaces => "box.own-namespaces",
            Self::NoHome => "box.no-home",
            Self::NoCapabilities => "box.no-capabilities",
            Self::NoNewPrivileges => "box.no-new-privileges",
            Self::ReadOnlyRoot => "box.read-only-root",
            Self::Limits => "box.limits",
            Self::KeysUnpublished => "box.keys-unpublished",
            Self::LoopbackOnly => "box.loopback-only",
            Self::KeysApart => "box.keys-apart",
            Self::NoModelKey => "box.no-model-key",
            Self::WorkInternal => "box.work-internal",
            Self::Complete => "box.complete",
        }
    }
    fn instead(self) -> &'static str {
        match self {
            Self::NoEngineSocket => {
                "nothing in the box may reach the engine: who can start containers owns the host"
            }
            Self::NoPrivileges => "run such a container outside the box",
            Self::OwnNamespaces => {
                "put the service on the network `work` or `out`; it reaches the others by name"
            }
            Self::NoHome => {
                "mount the one folder that is needed, or add a project with `worca container up --project DIR`"
            }
            Self::NoCapabilities => {
                "remove the capability; for core and keys the list has to stay as it was written"
            }
            Self::NoNewPrivileges => "leave `security_opt` of the written files as it is",
            Self::ReadOnlyRoot => "give the service a writable folder with `tmpfs` or a volume instead",
            Self::Limits => {
                "raise the limit in `.env` (`WORCA_MEMORY`, `WORCA_CPUS`, `WORCA_PIDS`); it cannot be taken away"
            }
            Self::KeysUnpublished => "the key service is reached from inside the box alone",
            Self::LoopbackOnly => "publish on `127.0.0.1`; to share the box, use an ssh tunnel",
            Self::KeysApart => "give the other service a volume or secret of its own",
            Self::NoModelKey => "remove it here and save it with `worca container login`",
            Self::WorkInternal => "leave the network as it is, and put what needs the internet on `out`",
            Self::Complete => {
                "leave the written `compose.yaml` as it is, and change things in `compose.override.yaml`"
            }
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A project that would take a promise of the box back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}`{service}` {what} (rule `{promise}`)", prefix(place.as_ref()))]
pub struct BrokenPromise {
    /// The promise.
    pub promise: Promise,
    /// The service or network.
    pub service: String,
    /// What it asks for.
    pub what: String,
    /// Where it asks, when a file says so.
    pub place: Option<Place>,
}

fn prefix(place: Option<&Place>) -> String {
    place.map(|place| format!("{place}: ")).unwrap_or_default()
}

impl Explain for BrokenPromise {
    fn code(&self) -> &'static str {
        self.promise.name()
    }
    fn hint(&self) -> Option<String> {
        Some(self.promise.instead().to_owned())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Checks every promise.
///
/// # Errors
/// The first promise that the project would break, with the place that asks for it.
pub fn seal(loaded: &Loaded, grounds: &Grounds) -> Result<Sealed, BrokenPromise> {
    let project = &loaded.project;
    for name in [CORE, KEYS] {
        if !project.services.contains_key(name) {
            return Err(whole(Promise::Complete, name, "is missing"));
        }
    }
    match project.networks.get("work") {
        Some(work) if work.internal => {}
        Some(_) => return Err(whole(Promise::WorkInternal, "work", "has a route out")),
        None => return Err(whole(Promise::WorkInternal, "work", "is missing")),
    }
    for (name, service) in &project.services {
        let asker = Asker { name, places: &loaded.places };
        let trusted = matches!(name.as_str(), CORE | KEYS);
        confinement::check(&asker, service, trusted)?;
        sockets::check(&asker, service, project, grounds)?;
        keys::check(&asker, service, project)?;
    }
    Ok(Sealed(project.clone()))
}

/// As [`seal`], with every path of the host also looked at under the name that `resolve` gives it, so that a symbolic
/// link cannot hide what it leads to. `None`: the path has no other name. What is mounted stays as the files name it.
///
/// # Errors
/// As [`seal`].
pub fn seal_resolved(
    loaded: &Loaded,
    grounds: &Grounds,
    resolve: impl Fn(&str) -> Option<String>,
) -> Result<Sealed, BrokenPromise> {
    let sealed = seal(loaded, grounds)?;
    let mut real = loaded.project.clone();
    let rename = |path: &mut String| {
        if let Some(other) = resolve(path) {
            *path = other;
        }
    };
    for service in real.services.values_mut() {
        for mount in &mut service.mounts {
            if let Mount::Bind { source, .. } = mount {
                rename(source);
            }
        }
    }
    real.secrets.values_mut().for_each(|secret| rename(&mut secret.file));
    for (name, service) in &real.services {
        let asker = Asker { name, places: &loaded.places };
        sockets::check(&asker, service, &real, grounds)?;
        keys::check(&asker, service, &real)?;
    }
    Ok(sealed)
}

fn whole(promise: Promise, name: &str, what: &str) -> BrokenPromise {
    BrokenPromise { promise, service: name.to_owned(), what: what.to_owned(), place: None }
}

/// The service that is looked at, to name it in an error.
struct Asker<'a> {
    name: &'a ServiceName,
    places: &'a Places,
}

impl Asker<'_> {
    fn broken(&self, promise: Promise, key: &str, what: impl Into<String>) -> BrokenPromise {
        let place =
            self.places.get(&format!("{}.{key}", self.name)).or_else(|| self.places.get(self.name.as_str()));
        BrokenPromise {
            promise,
            service: self.name.as_str().to_owned(),
            what: what.into(),
            place: place.cloned(),
        }
    }
}

/// The host paths that a service binds, with their targets.
fn binds(service: &Service) -> impl Iterator<Item = (&str, &str)> {
    service.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { source, target, .. } => Some((source.as_str(), target.as_str())),
        Mount::Volume { .. } | Mount::Tmpfs { .. } => None,
    })
}
