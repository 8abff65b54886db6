//! One service of a project, typed. Numbers carry their unit in the doc comment: bytes, nanoseconds, billionths of a CPU.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ServiceName;

/// A service: what its one container is to look like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Service {
    /// The image reference. Never empty in a loaded project.
    pub image: String,
    /// Replaces the image's command.
    pub command: Option<Vec<String>>,
    /// Replaces the image's entrypoint; an empty list clears it.
    pub entrypoint: Option<Vec<String>>,
    /// User, or `user:group`.
    pub user: Option<String>,
    /// Working folder.
    pub working_dir: Option<String>,
    /// Variables; one without a value takes it from the environment of who runs Compose, and is left out when there is none.
    pub environment: BTreeMap<String, Option<String>>,
    /// Labels beside Compose's own.
    pub labels: BTreeMap<String, String>,
    /// The networks it stands on, by their key in the project; `default` is added when none is named.
    pub networks: BTreeMap<String, NetworkLink>,
    /// Bind mounts, volumes and tmpfs of `volumes`, in the file's order; no two share a target.
    pub mounts: Vec<Mount>,
    /// Path to mount options of `tmpfs` (`size=64m,mode=1777`, possibly empty).
    pub tmpfs: BTreeMap<String, String>,
    /// Published ports, in the file's order.
    pub ports: Vec<Port>,
    /// Ports that are announced to other containers and not published (`80/tcp`).
    pub expose: Vec<String>,
    /// Secrets it is granted.
    pub secrets: Vec<SecretGrant>,
    /// The root file system is read-only.
    pub read_only: bool,
    /// Capabilities taken away, upper case, without `CAP_`.
    pub cap_drop: Vec<String>,
    /// Capabilities added, upper case, without `CAP_`.
    pub cap_add: Vec<String>,
    /// Security options as the engine takes them (`no-new-privileges:true`).
    pub security_opt: Vec<String>,
    /// Most processes and threads; `None` and `-1` are without a limit.
    pub pids_limit: Option<i64>,
    /// Most memory, in bytes.
    pub mem_limit: Option<u64>,
    /// Memory and swap together, in bytes; `-1` is without a limit.
    pub memswap_limit: Option<i64>,
    /// Memory that is kept for it under pressure, in bytes.
    pub mem_reservation: Option<u64>,
    /// CPU time, in billionths of a CPU.
    pub nano_cpus: Option<u64>,
    /// Size of `/dev/shm`, in bytes.
    pub shm_size: Option<u64>,
    /// Resource limits by name (`nofile`).
    pub ulimits: BTreeMap<String, Ulimit>,
    /// Kernel parameters of its namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// An init process reaps for it; the engine's default when `None`.
    pub init: Option<bool>,
    /// When it is started again.
    pub restart: Restart,
    /// How its health is tried; the image's own way when `None`.
    pub healthcheck: Option<Healthcheck>,
    /// Services that must be there before it starts.
    pub depends_on: BTreeMap<ServiceName, Dependency>,
    /// Host name inside.
    pub hostname: Option<String>,
    /// Container name; `<project>-<service>-1` when `None`.
    pub container_name: Option<String>,
    /// Host name to addresses, for its `/etc/hosts`.
    pub extra_hosts: BTreeMap<String, Vec<String>>,
    /// Name servers.
    pub dns: Vec<String>,
    /// Search domains.
    pub dns_search: Vec<String>,
    /// Resolver options.
    pub dns_opt: Vec<String>,
    /// Further groups of its user.
    pub group_add: Vec<String>,
    /// The user namespace mode (`keep-id` of Podman); `host` is refused by the rules of the box.
    pub userns_mode: Option<String>,
    /// `linux/amd64`, `linux/arm64`, …
    pub platform: Option<String>,
    /// Where its log goes; the engine's default when `None`.
    pub logging: Option<Logging>,
    /// It has a terminal.
    pub tty: bool,
    /// Its standard input stays open.
    pub stdin_open: bool,
    /// The signal that asks it to end (`SIGTERM`).
    pub stop_signal: Option<String>,
    /// How long it may take to end, in nanoseconds.
    pub stop_grace_period: Option<u64>,
    /// What was asked of the host and is always refused; default in every project that was sealed.
    #[serde(skip_serializing_if = "HostAsks::is_default")]
    pub host: HostAsks,
}

/// Wishes that would open the host to a container. They are read only so that the rules can refuse them by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostAsks {
    /// `privileged: true`.
    pub privileged: bool,
    /// `network_mode: host`.
    pub network: bool,
    /// `pid: host`.
    pub processes: bool,
    /// `ipc: host`.
    pub ipc: bool,
    /// `uts: host`.
    pub uts: bool,
    /// `cgroup: host`.
    pub cgroup: bool,
    /// Devices of the host.
    pub devices: Vec<String>,
}

impl HostAsks {
    /// Nothing is asked of the host.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a service stands on a network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NetworkLink {
    /// Names beside the service's own.
    pub aliases: Vec<String>,
    /// A fixed address.
    pub ipv4_address: Option<String>,
    /// A fixed IPv6 address.
    pub ipv6_address: Option<String>,
}

/// Something mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Mount {
    /// A path of the host.
    Bind {
        /// The absolute path on the host.
        source: String,
        /// The absolute path inside.
        target: String,
        /// Nothing inside can write to it.
        read_only: bool,
        /// A missing source is made as an empty folder (short syntax), instead of an error.
        create_host_path: bool,
        /// `rprivate`, `rslave`, …
        propagation: Option<String>,
        /// SELinux label.
        relabel: Option<Relabel>,
    },
    /// A named or anonymous volume.
    Volume {
        /// Its key in the project; anonymous when `None`.
        source: Option<String>,
        /// The absolute path inside.
        target: String,
        /// Nothing inside can write to it.
        read_only: bool,
        /// What the image holds at the target is not copied into a fresh volume.
        no_copy: bool,
    },
    /// Memory.
    Tmpfs {
        /// The absolute path inside.
        target: String,
        /// In bytes.
        size: Option<u64>,
        /// Permission bits.
        mode: Option<u32>,
        /// Nothing inside can write to it.
        read_only: bool,
    },
}

impl Mount {
    /// The absolute path inside.
    pub fn target(&self) -> &str {
        match self {
            Self::Bind { target, .. } | Self::Volume { target, .. } | Self::Tmpfs { target, .. } => target,
        }
    }
}

/// How a bind mount is labelled for SELinux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relabel {
    /// `z`: for every container.
    Shared,
    /// `Z`: for this container alone.
    Private,
}

/// A published port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Port {
    /// The host's address that listens; all of them when `None`.
    pub host_ip: Option<std::net::IpAddr>,
    /// The host's port; the engine picks one when `None`.
    pub published: Option<u16>,
    /// The port inside.
    pub target: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// When the engine starts a container again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// Whenever it ended.
    Always,
    /// When it failed, at most so many times when a number is given.
    OnFailure(Option<u32>),
    /// Whenever it ended and nobody stopped it.
    UnlessStopped,
}

/// How health is tried. Times are in nanoseconds; the engine's default when `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Healthcheck {
    /// What is run.
    pub test: HealthTest,
    /// Between two tries.
    pub interval: Option<u64>,
    /// For one try.
    pub timeout: Option<u64>,
    /// In which failures do not count.
    pub start_period: Option<u64>,
    /// Failures in a row until it counts as unhealthy.
    pub retries: Option<u32>,
}

/// What a health check runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthTest {
    /// What the image says; only times are changed.
    #[default]
    FromImage,
    /// Nothing: the image's check is off.
    Disabled,
    /// A program and its arguments.
    Command(Vec<String>),
    /// A line for the container's shell.
    Shell(String),
}

/// A service that must be there first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// In which state.
    pub condition: Condition,
    /// This service is started again when the other one is recreated.
    pub restart: bool,
}

/// The state that a dependency must have reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Its container runs.
    Started,
    /// Its health check says so.
    Healthy,
    /// It ended with 0.
    Completed,
}

/// A secret that a service is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretGrant {
    /// Its key in the project.
    pub source: String,
    /// The absolute path inside; `/run/secrets/<source>` unless the file says otherwise.
    pub target: String,
}

/// A resource limit; `-1` is without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ulimit {
    /// The limit that holds.
    pub soft: i64,
    /// The highest that the process may set itself.
    pub hard: i64,
}

/// Where a log goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Logging {
    /// The log driver; the engine's default when `None`.
    pub driver: Option<String>,
    /// Options of the driver.
    pub options: BTreeMap<String, String>,
}
