//! Promises about the paths of the host that are mounted: no engine socket, no home folder, no folder of Worca's own.

use super::super::model::{Mount, Project, Service};
use super::super::parse::normal_path;
use super::{Asker, BrokenPromise, Grounds, KEYS, Promise, binds, shown};

/// Sockets that engines listen on, where they usually stand. `*` is one name.
const USUAL_SOCKETS: [&str; 12] = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/user/*/docker.sock",
    "/run/podman/podman.sock",
    "/var/run/podman/podman.sock",
    "/run/user/*/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/var/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/var/run/crio/crio.sock",
    "/run/user/*/containerd/containerd.sock",
    "/run/buildkit/buildkitd.sock",
];

/// The same below a home folder.
const HOME_SOCKETS: [&str; 9] = [
    ".docker/run/docker.sock",
    ".docker/desktop/docker.sock",
    ".colima/docker.sock",
    ".colima/*/docker.sock",
    ".config/colima/*/docker.sock",
    ".orbstack/run/docker.sock",
    ".rd/docker.sock",
    ".lima/*/sock/docker.sock",
    ".local/share/containers/podman/machine/podman.sock",
];

/// Names that a socket of an engine has, wherever it stands.
const SOCKET_NAMES: [&str; 9] = [
    "docker.sock",
    "docker.raw.sock",
    "docker-cli.sock",
    "podman.sock",
    "podman-machine-default-api.sock",
    "containerd.sock",
    "crio.sock",
    "buildkitd.sock",
    "docker_engine",
];

/// Where the key service finds its settings.
pub const SETTINGS: &str = "/etc/worca/keys";

/// Comparing paths by their parts.
pub struct Paths;

impl Paths {
    /// `inner` is `outer`, or stands in it.
    pub fn contains(outer: &str, inner: &str) -> bool {
        let (outer, inner) = (comparable(outer), comparable(inner));
        let outer = outer.trim_end_matches('/');
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// One spelling: forward slashes, and small letters where the file system does not tell them apart.
fn comparable(path: &str) -> String {
    let normal = normal_path(path);
    let windows = normal.contains(":\\") || normal.starts_with(r"\\");
    if windows { normal.replace('\\', "/").to_ascii_lowercase() } else { normal }
}

/// Whether a path of the host is the socket of an engine, by its name, or a folder that usually holds one.
pub fn names_engine_socket(path: &str, found: &[String]) -> bool {
    let path = comparable(path);
    let name = path.rsplit('/').next().unwrap_or(&path).to_ascii_lowercase();
    SOCKET_NAMES.contains(&name.as_str())
        || USUAL_SOCKETS.iter().any(|socket| holds(&path, socket))
        || found.iter().any(|socket| Paths::contains(&path, socket))
}

/// The folder is the socket or one of its parents.
fn holds(folder: &str, socket: &str) -> bool {
    let mut wanted = socket.split('/').filter(|part| !part.is_empty());
    folder
        .split('/')
        .filter(|part| !part.is_empty())
        .all(|part| wanted.next().is_some_and(|w| w == "*" || w == part))
}

pub(super) fn check(
    asker: &Asker<'_>,
    service: &Service,
    project: &Project,
    grounds: &Grounds,
) -> Result<(), BrokenPromise> {
    let broken = |promise, what: String| Err(asker.broken(promise, "volumes", what));
    for (source, target) in binds(service).filter(|bind| !is_settings(asker, service, grounds, *bind)) {
        let quoted = shown(source);
        let root = matches!(comparable(source).trim_end_matches('/'), "" | "c:");
        let home = grounds.home.as_deref().is_some_and(|home| Paths::contains(source, home));
        if root || home {
            return broken(
                Promise::NoHome,
                format!("asks to mount `{quoted}`, which holds the home folder or the whole host"),
            );
        }
        if names_engine_socket(source, &grounds.engine_sockets)
            || below_home(source, grounds)
            || names_engine_socket(target, &[]) && is_socket_name(target)
        {
            return broken(
                Promise::NoEngineSocket,
                format!("asks to mount `{quoted}`, which is or holds an engine's socket"),
            );
        }
        let own = holds_own_files(source, &grounds.container_home);
        if own {
            return broken(
                Promise::NoHome,
                format!("asks to mount `{quoted}`, which holds this box's own files"),
            );
        }
    }
    for grant in &service.secrets {
        let Some(secret) = project.secrets.get(&grant.source) else { continue };
        if names_engine_socket(&secret.file, &grounds.engine_sockets) {
            let what = format!("is granted `{}`, which is an engine's socket", shown(&secret.file));
            return Err(asker.broken(Promise::NoEngineSocket, "secrets", what));
        }
    }
    // A volume whose driver binds a path is a bind mount by another name.
    for (key, volume) in &project.volumes {
        if let Some(device) = volume.driver_opts.get("device") {
            let local = volume
                .driver_opts
                .get("o")
                .is_some_and(|o| o.split(',').any(|o| o == "bind" || o == "rbind"));
            if local {
                let what = format!("has `{}` bound as a volume: use a bind mount", shown(device));
                return Err(BrokenPromise {
                    service: key.clone(),
                    ..asker.broken(Promise::NoHome, "volumes", what)
                });
            }
        }
    }
    if asker.name.as_str() == KEYS && binds(service).any(|bind| !is_settings(asker, service, grounds, bind)) {
        return broken(
            Promise::KeysApart,
            format!(
                "asks for a folder of the host, and the key service has none but `./keys` at `{SETTINGS}`"
            ),
        );
    }
    Ok(())
}

/// The one folder of the host that the key service has: its settings, which it reads and nobody inside writes.
fn is_settings(
    asker: &Asker<'_>,
    service: &Service,
    grounds: &Grounds,
    (source, target): (&str, &str),
) -> bool {
    let read_only = service.mounts.iter().any(|mount| {
        matches!(mount, Mount::Bind { target: at, read_only: true, propagation: None, .. } if at == target)
    });
    asker.name.as_str() == KEYS
        && target == SETTINGS
        && read_only
        && !grounds.container_home.is_empty()
        && comparable(source) == comparable(&format!("{}/keys", grounds.container_home))
}

fn below_home(source: &str, grounds: &Grounds) -> bool {
    let Some(home) = &grounds.home else { return false };
    let source = comparable(source);
    HOME_SOCKETS.iter().any(|socket| holds(&source, &comparable(&format!("{home}/{socket}"))))
}

/// The folder of the box holds the secrets, the settings of the key service, and the files that decide what the box is. Folders that a person puts beside
/// them (`./seed`) are the person's to mount.
fn holds_own_files(source: &str, container_home: &str) -> bool {
    if container_home.is_empty() {
        return false;
    }
    if Paths::contains(source, container_home) {
        return true;
    }
    let (source, home) = (comparable(source), comparable(container_home));
    let inside = source.strip_prefix(home.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    let name = inside.and_then(|inside| inside.split('/').next());
    name.is_some_and(|name| {
        matches!(name, "secrets" | "keys" | ".env" | "state.yaml") || name.starts_with("compose.")
    })
}

fn is_socket_name(target: &str) -> bool {
    target.rsplit('/').next().is_some_and(|name| SOCKET_NAMES.contains(&name))
}
