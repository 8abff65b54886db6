//! Promises about what a container may do: capabilities, namespaces, root file system, limits, published ports.

use super::super::model::Service;
use super::{Asker, BrokenPromise, CORE, KEYS, Promise, shown};

/// What Docker gives a container by default; a service beside core and keys may ask for these.
const DEFAULT_CAPABILITIES: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn check(asker: &Asker<'_>, service: &Service, trusted: bool) -> Result<(), BrokenPromise> {
    host(asker, service)?;
    capabilities(asker, service, trusted)?;
    security(asker, service, trusted)?;
    if trusted {
        limits(asker, service)?;
        if !service.read_only {
            return Err(asker.broken(Promise::ReadOnlyRoot, "read_only", "has a writable root file system"));
        }
    }
    ports(asker, service)
}

fn host(asker: &Asker<'_>, service: &Service) -> Result<(), BrokenPromise> {
    let asks = &service.host;
    if asks.privileged {
        return Err(asker.broken(Promise::NoPrivileges, "privileged", "asks to be privileged"));
    }
    if let Some(device) = asks.devices.first() {
        let what = format!("asks for the device `{}`", shown(device));
        return Err(asker.broken(Promise::NoPrivileges, "devices", what));
    }
    let users = service.userns_mode.as_deref() == Some("host");
    for (asked, key, of) in [
        (asks.network, "network_mode", "network"),
        (asks.processes, "pid", "processes"),
        (asks.ipc, "ipc", "shared memory"),
        (asks.uts, "uts", "host name"),
        (asks.cgroup, "cgroup", "control groups"),
        (users, "userns_mode", "users"),
    ] {
        if asked {
            return Err(asker.broken(Promise::OwnNamespaces, key, format!("asks for the {of} of the host")));
        }
    }
    Ok(())
}

fn capabilities(asker: &Asker<'_>, service: &Service, trusted: bool) -> Result<(), BrokenPromise> {
    let added = service.cap_add.iter().find(|name| trusted || !DEFAULT_CAPABILITIES.contains(&name.as_str()));
    if let Some(name) = added {
        let what = format!("asks for the capability `{}`", shown(name));
        return Err(asker.broken(Promise::NoCapabilities, "cap_add", what));
    }
    if trusted && !service.cap_drop.iter().any(|name| name == "ALL") {
        return Err(asker.broken(
            Promise::NoCapabilities,
            "cap_drop",
            "keeps capabilities: `cap_drop` lacks `ALL`",
        ));
    }
    Ok(())
}

fn security(asker: &Asker<'_>, service: &Service, trusted: bool) -> Result<(), BrokenPromise> {
    let mut no_new_privileges = false;
    for option in &service.security_opt {
        let plain = option.replacen('=', ":", 1).to_ascii_lowercase();
        match plain.as_str() {
            "no-new-privileges" | "no-new-privileges:true" => no_new_privileges = true,
            "no-new-privileges:false" if trusted => {
                return Err(asker.broken(
                    Promise::NoNewPrivileges,
                    "security_opt",
                    "asks to gain privileges",
                ));
            }
            "no-new-privileges:false" => {}
            // A label of SELinux of the person's own choice, and the engine's own profiles, keep the filters on.
            other => {
                let unconfined = other.ends_with(":unconfined") || other == "label:disable";
                if unconfined || trusted {
                    let what = format!("asks for the security option `{}`", shown(option));
                    return Err(asker.broken(Promise::NoNewPrivileges, "security_opt", what));
                }
            }
        }
    }
    if trusted && !no_new_privileges {
        let what = "may gain privileges: `security_opt` lacks `no-new-privileges:true`";
        return Err(asker.broken(Promise::NoNewPrivileges, "security_opt", what));
    }
    Ok(())
}

fn limits(asker: &Asker<'_>, service: &Service) -> Result<(), BrokenPromise> {
    let broken =
        |key: &str, of: &str| Err(asker.broken(Promise::Limits, key, format!("has no limit on {of}")));
    if service.mem_limit.is_none_or(|bytes| bytes == 0) {
        return broken("mem_limit", "memory");
    }
    if service.nano_cpus.is_none_or(|cpus| cpus == 0) {
        return broken("cpus", "CPU time");
    }
    if service.pids_limit.is_none_or(|processes| processes <= 0) {
        return broken("pids_limit", "processes");
    }
    Ok(())
}

fn ports(asker: &Asker<'_>, service: &Service) -> Result<(), BrokenPromise> {
    match asker.name.as_str() {
        KEYS if !service.ports.is_empty() => {
            Err(asker.broken(Promise::KeysUnpublished, "ports", "asks to publish a port"))
        }
        CORE => match service.ports.iter().find(|port| !port.host_ip.is_some_and(|ip| ip.is_loopback())) {
            None => Ok(()),
            Some(port) => {
                let on = port.host_ip.map_or("every address of the host".to_owned(), |ip| format!("`{ip}`"));
                let what = format!("asks to publish port {} on {on}", port.target);
                Err(asker.broken(Promise::LoopbackOnly, "ports", what))
            }
        },
        _ => Ok(()),
    }
}
