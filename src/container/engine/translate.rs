//! One service, network or volume of the model as the body of its API call. Pure.
//!
//! Every bind goes through the structured Mounts field: the old Binds strings are split at colons again by the engine.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use bollard::models::{
    ContainerCreateBody, EndpointIpamConfig, EndpointSettings, HealthConfig, HostConfig, HostConfigLogConfig,
    Ipam, IpamConfig, Mount as ApiMount, MountBindOptions, MountBindOptionsPropagationEnum,
    MountTmpfsOptions, MountType, MountVolumeOptions, NetworkCreateRequest, PortBinding, PortMap,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum, VolumeCreateRequest,
};

use crate::container::compose::model::{
    HealthTest, Mount, Network, Port, Project, Protocol, Restart, Service, Volume,
};
use crate::failure::{Exit, Explain};

/// The model holds something that cannot be asked of the engine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TranslateError {
    /// SELinux labels exist only in the old strings, which break on colons.
    #[error(
        "service `{service}` wants an SELinux label on the mount of `{source_path}`, which is not applied"
    )]
    Relabel {
        /// The service.
        service: String,
        /// The path on the host.
        source_path: String,
    },
    /// Not a propagation mode.
    #[error("service `{service}` wants the mount propagation `{mode}`, which does not exist")]
    Propagation {
        /// The service.
        service: String,
        /// The mode.
        mode: String,
    },
    /// A path with a line break, which no engine mounts reliably.
    #[error("service `{service}` mounts the path {path:?}, which holds a line break")]
    Path {
        /// The service.
        service: String,
        /// The path.
        path: String,
    },
    /// The engine runs only its own platform.
    #[error("service `{service}` asks for platform `{platform}`, which is not applied")]
    Platform {
        /// The service.
        service: String,
        /// The platform.
        platform: String,
    },
}

impl Explain for TranslateError {
    fn code(&self) -> &'static str {
        "compose-not-applied"
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Relabel { .. } => Some(
                "remove the `z` or `Z`, and add `security_opt: [\"label=disable\"]` where SELinux is on"
                    .into(),
            ),
            Self::Propagation { .. } => {
                Some("use private, rprivate, shared, rshared, slave or rslave".into())
            }
            Self::Path { .. } => Some("rename the folder".into()),
            Self::Platform { .. } => {
                Some("remove `platform`; the image of the engine's own platform is used".into())
            }
        }
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

pub(super) fn network(network: &Network) -> NetworkCreateRequest {
    let pools = network.pools.iter().map(|pool| IpamConfig {
        subnet: pool.subnet.clone(),
        ip_range: pool.ip_range.clone(),
        gateway: pool.gateway.clone(),
        ..IpamConfig::default()
    });
    let pools: Vec<_> = pools.collect();
    NetworkCreateRequest {
        name: network.name.clone(),
        driver: Some(network.driver.clone().unwrap_or_else(|| "bridge".into())),
        internal: Some(network.internal),
        attachable: Some(network.attachable),
        enable_ipv6: Some(network.enable_ipv6),
        options: (!network.driver_opts.is_empty()).then(|| network.driver_opts.clone().into_iter().collect()),
        ipam: (!pools.is_empty()).then(|| Ipam { config: Some(pools), ..Ipam::default() }),
        ..NetworkCreateRequest::default()
    }
}

pub(super) fn volume(volume: &Volume) -> VolumeCreateRequest {
    VolumeCreateRequest {
        name: Some(volume.name.clone()),
        driver: volume.driver.clone(),
        driver_opts: (!volume.driver_opts.is_empty())
            .then(|| volume.driver_opts.clone().into_iter().collect()),
        ..VolumeCreateRequest::default()
    }
}

/// How the service stands on each of its networks, by the network's name at the engine.
pub(super) fn endpoints(project: &Project, key: &str, service: &Service) -> Vec<(String, EndpointSettings)> {
    let own = service.container_name.clone().unwrap_or_else(|| format!("{}-{key}-1", project.name));
    let known =
        service.networks.iter().filter_map(|(network, link)| Some((project.networks.get(network)?, link)));
    known
        .map(|(network, link)| {
            let mut aliases = vec![own.clone(), key.to_owned()];
            aliases.extend(link.aliases.iter().filter(|alias| *alias != key).cloned());
            let fixed = link.ipv4_address.is_some() || link.ipv6_address.is_some();
            let ipam_config = fixed.then(|| EndpointIpamConfig {
                ipv4_address: link.ipv4_address.clone(),
                ipv6_address: link.ipv6_address.clone(),
                ..EndpointIpamConfig::default()
            });
            (
                network.name.clone(),
                EndpointSettings { aliases: Some(aliases), ipam_config, ..EndpointSettings::default() },
            )
        })
        .collect()
}

pub(super) fn has_health(service: &Service, of_image: bool) -> bool {
    match service.healthcheck.as_ref().map(|check| &check.test) {
        Some(HealthTest::Disabled) => false,
        Some(HealthTest::Command(_) | HealthTest::Shell(_)) => true,
        Some(HealthTest::FromImage) | None => of_image,
    }
}

/// The health check as a program and its arguments.
pub(super) fn probe(service: &Service) -> Option<Vec<String>> {
    match &service.healthcheck.as_ref()?.test {
        HealthTest::Command(argv) => Some(argv.clone()),
        HealthTest::Shell(line) => Some(vec!["sh".into(), "-c".into(), line.clone()]),
        HealthTest::FromImage | HealthTest::Disabled => None,
    }
}

pub(super) fn host_ports(service: &Service) -> Vec<(IpAddr, u16)> {
    let tcp = service.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    tcp.filter_map(|port| Some((port.host_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port.published?)))
        .collect()
}

pub(super) fn container(
    project: &Project,
    key: &str,
    service: &Service,
) -> Result<ContainerCreateBody, TranslateError> {
    if let Some(platform) = &service.platform {
        return Err(TranslateError::Platform { service: key.into(), platform: platform.clone() });
    }
    let environment =
        service.environment.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let exposed = service.ports.iter().map(port_key).chain(
        service.expose.iter().map(
            |port| {
                if port.contains('/') { port.clone() } else { format!("{port}/tcp") }
            },
        ),
    );
    Ok(ContainerCreateBody {
        hostname: service.hostname.clone(),
        user: service.user.clone(),
        tty: Some(service.tty),
        open_stdin: Some(service.stdin_open),
        attach_stdin: Some(false),
        attach_stdout: Some(false),
        attach_stderr: Some(false),
        env: Some(environment.collect()),
        cmd: service.command.clone(),
        entrypoint: service.entrypoint.clone(),
        healthcheck: health(service),
        image: Some(service.image.clone()),
        working_dir: service.working_dir.clone(),
        exposed_ports: Some(exposed.collect::<std::collections::BTreeSet<_>>().into_iter().collect()),
        stop_signal: service.stop_signal.clone(),
        stop_timeout: service
            .stop_grace_period
            .and_then(|time| i64::try_from(time.div_ceil(1_000_000_000)).ok()),
        host_config: Some(host(project, key, service)?),
        ..ContainerCreateBody::default()
    })
}

fn host(project: &Project, key: &str, service: &Service) -> Result<HostConfig, TranslateError> {
    let some_list = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let mut mounts = Vec::new();
    for mount in &service.mounts {
        mounts.push(api_mount(project, key, mount)?);
    }
    for grant in &service.secrets {
        if let Some(secret) = project.secrets.get(&grant.source) {
            mounts.push(bind(key, &secret.file, &grant.target, true)?);
        }
    }
    let first_network = service.networks.keys().find_map(|network| project.networks.get(network));
    let ulimits = service.ulimits.iter().map(|(name, limit)| ResourcesUlimits {
        name: Some(name.clone()),
        soft: Some(limit.soft),
        hard: Some(limit.hard),
    });
    let hosts =
        service.extra_hosts.iter().flat_map(|(host, all)| all.iter().map(move |one| format!("{host}:{one}")));
    let logging = service.logging.as_ref().map(|logging| HostConfigLogConfig {
        typ: logging.driver.clone(),
        config: Some(logging.options.clone().into_iter().collect()),
    });
    Ok(HostConfig {
        memory: service.mem_limit.and_then(|bytes| i64::try_from(bytes).ok()),
        memory_swap: service.memswap_limit,
        memory_reservation: service.mem_reservation.and_then(|bytes| i64::try_from(bytes).ok()),
        nano_cpus: service.nano_cpus.and_then(|nanos| i64::try_from(nanos).ok()),
        shm_size: service.shm_size.and_then(|bytes| i64::try_from(bytes).ok()),
        init: service.init,
        pids_limit: service.pids_limit,
        ulimits: (!service.ulimits.is_empty()).then(|| ulimits.collect()),
        log_config: logging,
        network_mode: Some(first_network.map_or_else(|| "none".into(), |network| network.name.clone())),
        port_bindings: Some(bindings(&service.ports)),
        restart_policy: Some(restart(service.restart)),
        mounts: Some(mounts),
        cap_add: some_list(&service.cap_add),
        cap_drop: some_list(&service.cap_drop),
        security_opt: some_list(&service.security_opt),
        dns: some_list(&service.dns),
        dns_options: some_list(&service.dns_opt),
        dns_search: some_list(&service.dns_search),
        extra_hosts: (!service.extra_hosts.is_empty()).then(|| hosts.collect()),
        group_add: some_list(&service.group_add),
        readonly_rootfs: Some(service.read_only),
        tmpfs: (!service.tmpfs.is_empty()).then(|| service.tmpfs.clone().into_iter().collect()),
        sysctls: (!service.sysctls.is_empty()).then(|| service.sysctls.clone().into_iter().collect()),
        userns_mode: service.userns_mode.clone(),
        ..HostConfig::default()
    })
}

fn api_mount(project: &Project, key: &str, mount: &Mount) -> Result<ApiMount, TranslateError> {
    match mount {
        Mount::Bind { source, target, read_only, create_host_path, propagation, relabel } => {
            if relabel.is_some() {
                return Err(TranslateError::Relabel { service: key.into(), source_path: source.clone() });
            }
            let mut made = bind(key, source, target, *read_only)?;
            let propagation = propagation.as_deref().map(|mode| propagation_of(key, mode)).transpose()?;
            if propagation.is_some() || *create_host_path {
                made.bind_options = Some(MountBindOptions {
                    propagation,
                    create_mountpoint: create_host_path.then_some(true),
                    ..MountBindOptions::default()
                });
            }
            Ok(made)
        }
        Mount::Volume { source, target, read_only, no_copy } => Ok(ApiMount {
            typ: Some(MountType::VOLUME),
            source: source
                .as_ref()
                .map(|key| project.volumes.get(key).map_or_else(|| key.clone(), |v| v.name.clone())),
            target: Some(target.clone()),
            read_only: Some(*read_only),
            volume_options: no_copy
                .then(|| MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
            ..ApiMount::default()
        }),
        Mount::Tmpfs { target, size, mode, read_only } => Ok(ApiMount {
            typ: Some(MountType::TMPFS),
            target: Some(target.clone()),
            read_only: Some(*read_only),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: size.and_then(|bytes| i64::try_from(bytes).ok()),
                mode: mode.map(i64::from),
                ..MountTmpfsOptions::default()
            }),
            ..ApiMount::default()
        }),
    }
}

fn bind(key: &str, source: &str, target: &str, read_only: bool) -> Result<ApiMount, TranslateError> {
    if let Some(path) = [source, target].into_iter().find(|path| path.contains(['\n', '\r', '\0'])) {
        return Err(TranslateError::Path { service: key.into(), path: path.to_owned() });
    }
    Ok(ApiMount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        ..ApiMount::default()
    })
}

fn propagation_of(key: &str, mode: &str) -> Result<MountBindOptionsPropagationEnum, TranslateError> {
    Ok(match mode {
        "private" => MountBindOptionsPropagationEnum::PRIVATE,
        "rprivate" => MountBindOptionsPropagationEnum::RPRIVATE,
        "shared" => MountBindOptionsPropagationEnum::SHARED,
        "rshared" => MountBindOptionsPropagationEnum::RSHARED,
        "slave" => MountBindOptionsPropagationEnum::SLAVE,
        "rslave" => MountBindOptionsPropagationEnum::RSLAVE,
        other => return Err(TranslateError::Propagation { service: key.into(), mode: other.into() }),
    })
}

fn port_key(port: &Port) -> String {
    let protocol = match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    format!("{}/{protocol}", port.target)
}

fn bindings(ports: &[Port]) -> PortMap {
    let mut map: PortMap = HashMap::new();
    for port in ports {
        let binding = PortBinding {
            host_ip: Some(port.host_ip.map_or_else(String::new, |ip| ip.to_string())),
            host_port: Some(port.published.map_or_else(String::new, |number| number.to_string())),
        };
        map.entry(port_key(port)).or_default().get_or_insert_with(Vec::new).push(binding);
    }
    map
}

fn restart(restart: Restart) -> RestartPolicy {
    let (name, maximum_retry_count) = match restart {
        Restart::No => (RestartPolicyNameEnum::NO, None),
        Restart::Always => (RestartPolicyNameEnum::ALWAYS, None),
        Restart::UnlessStopped => (RestartPolicyNameEnum::UNLESS_STOPPED, None),
        Restart::OnFailure(times) => (RestartPolicyNameEnum::ON_FAILURE, times.map(i64::from)),
    };
    RestartPolicy { name: Some(name), maximum_retry_count }
}

fn health(service: &Service) -> Option<HealthConfig> {
    let check = service.healthcheck.as_ref()?;
    let nanos = |time: Option<u64>| time.and_then(|time| i64::try_from(time).ok());
    let test = match &check.test {
        HealthTest::FromImage => None,
        HealthTest::Disabled => Some(vec!["NONE".into()]),
        HealthTest::Command(argv) => {
            Some(std::iter::once("CMD".to_owned()).chain(argv.iter().cloned()).collect())
        }
        HealthTest::Shell(line) => Some(vec!["CMD-SHELL".into(), line.clone()]),
    };
    Some(HealthConfig {
        test,
        interval: nanos(check.interval),
        timeout: nanos(check.timeout),
        start_period: nanos(check.start_period),
        retries: check.retries.map(i64::from),
        ..HealthConfig::default()
    })
}
