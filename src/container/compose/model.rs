//! What a set of Compose files says, typed: the result of parse, interpolation and merge.
//! Order is deterministic everywhere, so that one service's JSON can be hashed. Nothing here knows an engine.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

mod service;

pub use service::{
    Condition, Dependency, HealthTest, Healthcheck, HostAsks, Logging, Mount, NetworkLink, Port, Protocol,
    Relabel, Restart, SecretGrant, Service, Ulimit,
};

/// A whole project: everything that one `up` has to bring about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Project {
    /// The project's name, which labels everything that belongs to it.
    pub name: ProjectName,
    /// The services of the active profiles.
    pub services: BTreeMap<ServiceName, Service>,
    /// The networks that a service names, by their key in the file.
    pub networks: BTreeMap<String, Network>,
    /// The named volumes, by their key in the file.
    pub volumes: BTreeMap<String, Volume>,
    /// The secrets, by their key in the file.
    pub secrets: BTreeMap<String, Secret>,
}

/// A network of the project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Network {
    /// Its name at the engine: `<project>_<key>` unless the file gives one.
    pub name: String,
    /// It exists already and is neither made nor removed.
    pub external: bool,
    /// It has no route out.
    pub internal: bool,
    /// Containers started by hand may join it.
    pub attachable: bool,
    /// It carries IPv6 addresses too.
    pub enable_ipv6: bool,
    /// The network driver; the engine's default when `None`.
    pub driver: Option<String>,
    /// Options of the driver.
    pub driver_opts: BTreeMap<String, String>,
    /// Labels beside Compose's own.
    pub labels: BTreeMap<String, String>,
    /// Address pools, in the file's order.
    pub pools: Vec<AddressPool>,
}

/// One entry of a network's `ipam.config`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AddressPool {
    /// In CIDR form.
    pub subnet: Option<String>,
    /// The part of the subnet that containers get their addresses from, in CIDR form.
    pub ip_range: Option<String>,
    /// The gateway's address.
    pub gateway: Option<String>,
}

/// A named volume of the project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Volume {
    /// Its name at the engine: `<project>_<key>` unless the file gives one.
    pub name: String,
    /// It exists already and is neither made nor removed.
    pub external: bool,
    /// The volume driver; the engine's default when `None`.
    pub driver: Option<String>,
    /// Options of the driver.
    pub driver_opts: BTreeMap<String, String>,
    /// Labels beside Compose's own.
    pub labels: BTreeMap<String, String>,
}

/// A secret: a file on the host that services are granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Secret {
    /// The absolute path on the host.
    pub file: String,
}

/// The name of a project: `a-z`, `0-9`, `_` and `-`, the first a letter or a digit (Compose's rule), at most 60.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProjectName(String);

/// The name of a service: letters, digits, `.`, `_` and `-` (Compose's rule), at most 60.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ServiceName(String);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not the name of a project.
    #[error(
        "`{0}` is no name for a box: use `a-z`, `0-9`, `_` and `-`, the first a letter or a digit, at most 60"
    )]
    Project(String),
    /// Not the name of a service.
    #[error("`{0}` is no name for a service: use letters, digits, `.`, `_` and `-`, at most 60")]
    Service(String),
}

/// Longest name in bytes: a container is `<project>-<service>-1`, and a host name has 63 at most.
const LONGEST_NAME: usize = 60;

impl ProjectName {
    /// Checks a project's name.
    ///
    /// # Errors
    /// When Compose would refuse it.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if first && text.len() <= LONGEST_NAME && text.bytes().all(rest) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Project(text.chars().take(LONGEST_NAME + 1).collect()))
        }
    }
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ServiceName {
    /// Checks a service's name.
    ///
    /// # Errors
    /// When Compose would refuse it.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Service(text.chars().take(LONGEST_NAME + 1).collect()))
        }
    }
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ServiceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Project {
    /// The services in an order in which each comes after everything it depends on.
    ///
    /// A loop cannot be in a project that was loaded; were one there, its members come last, by name.
    pub fn start_order(&self) -> Vec<&ServiceName> {
        let mut order: Vec<&ServiceName> = Vec::new();
        loop {
            let mut grew = false;
            for (name, service) in &self.services {
                let ready =
                    service.depends_on.keys().all(|d| !self.services.contains_key(d) || order.contains(&d));
                if !order.contains(&name) && ready {
                    order.push(name);
                    grew = true;
                }
            }
            if !grew {
                break;
            }
        }
        let left: Vec<&ServiceName> = self.services.keys().filter(|name| !order.contains(name)).collect();
        order.extend(left);
        order
    }
}
