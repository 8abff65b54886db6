//! Finds the engine: what the user named, else the first known place that answers.
//!
//! `--engine`, `DOCKER_HOST` and `DOCKER_CONTEXT` bind: when they name one that does not answer, no other is taken.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::address::{Address, ParseAddressError};
use super::connect::{ConnectError, Engine};
use crate::failure::{Exit, Explain};

/// Docker's own files are small; more than this is not one of them.
const CONFIG_BYTES: u64 = 1024 * 1024;

/// What the environment says, read once at the edge.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `DOCKER_HOST`.
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`.
    pub docker_context: Option<String>,
    /// `DOCKER_CONFIG`, else `~/.docker`.
    pub docker_config: Option<PathBuf>,
    /// `DOCKER_TLS_VERIFY` or `DOCKER_TLS` is set.
    pub tls: bool,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
    /// `COLIMA_HOME`.
    pub colima: Option<PathBuf>,
    /// `TMPDIR`, where Podman's machine puts its socket.
    pub temporary: Option<PathBuf>,
    /// What absolute known places are under: `/`, or a folder of a test.
    pub root: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| text(name).map(PathBuf::from);
        let home = std::env::home_dir();
        Self {
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_config: path("DOCKER_CONFIG").or_else(|| home.as_ref().map(|home| home.join(".docker"))),
            tls: text("DOCKER_TLS_VERIFY").is_some() || text("DOCKER_TLS").is_some(),
            home,
            runtime: path("XDG_RUNTIME_DIR"),
            config: path("XDG_CONFIG_HOME"),
            colima: path("COLIMA_HOME"),
            temporary: path("TMPDIR"),
            root: PathBuf::from("/"),
        }
    }
}

/// One place that was tried.
#[derive(Debug)]
pub struct Attempt {
    /// Where the name came from, such as "`DOCKER_HOST`".
    pub origin: String,
    /// The address.
    pub address: String,
    /// Why it gave no engine.
    pub why: ConnectError,
}

/// No engine was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The one that the user named does not answer.
    #[error("the engine that {} names, `{}`, cannot be used: {}", .0.origin, .0.address, .0.why)]
    Named(Box<Attempt>),
    /// The name is no address.
    #[error("{origin} cannot be used: {error}")]
    Address {
        /// Where the text came from.
        origin: String,
        /// What is wrong with it.
        error: ParseAddressError,
    },
    /// The named context does not exist or cannot be read.
    #[error("the docker context `{name}`, named by {origin}, {why}")]
    Context {
        /// The name of it.
        name: String,
        /// `DOCKER_CONTEXT` or a file.
        origin: String,
        /// What is wrong with it.
        why: String,
    },
    /// No known place answers.
    #[error("no container engine answers; tried{}", list(.0))]
    Nowhere(Vec<Attempt>),
}

fn list(attempts: &[Attempt]) -> String {
    attempts.iter().map(|tried| format!("\n  {} ({}): {}", tried.address, tried.origin, tried.why)).collect()
}

impl Explain for DiscoverError {
    fn code(&self) -> &'static str {
        match self {
            Self::Named(tried) => match tried.why {
                ConnectError::Version { .. } => "engine-version",
                ConnectError::Permission => "engine-permission",
                _ => "engine-missing",
            },
            Self::Nowhere(_) => "engine-missing",
            Self::Address { .. } => "engine-address",
            Self::Context { .. } => "engine-context",
        }
    }
    fn hint(&self) -> Option<String> {
        let attempts = match self {
            Self::Named(attempt) => std::slice::from_ref(attempt.as_ref()),
            Self::Nowhere(attempts) => attempts.as_slice(),
            Self::Address { error, .. } => return Some(error.hint()),
            Self::Context { .. } => {
                return Some("see `docker context ls`; `docker context use NAME` chooses another, `--engine` names an address".into());
            }
        };
        let any = |matches: fn(&ConnectError) -> bool| attempts.iter().any(|tried| matches(&tried.why));
        if any(|why| matches!(why, ConnectError::Permission)) {
            return Some(
                "let your user open the socket: `sudo usermod -aG docker $USER`, then log in again (members of that group \
                 are as powerful as root), or use rootless Docker or Podman"
                    .into(),
            );
        }
        if any(|why| matches!(why, ConnectError::Version { .. })) {
            return Some(
                "update the engine (Docker Engine 20.10 or later, Podman 4 or later), or update Worca when the engine is \
                 the newer one"
                    .into(),
            );
        }
        if any(|why| matches!(why, ConnectError::Refused)) {
            return Some("start the engine: Docker Desktop, `sudo systemctl start docker`, `colima start` or `podman machine start`".into());
        }
        Some(
            "install and start Docker (https://docs.docker.com/engine/install/) or Podman, or name the engine with \
             `--engine unix:///PATH`"
                .into(),
        )
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Address { .. } => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

/// A found engine, and what the user should know about how it was found.
#[derive(Debug)]
pub struct Discovered {
    /// The engine.
    pub engine: Engine,
    /// Where its name came from.
    pub origin: String,
    /// A sentence when an expected place was passed over.
    pub notice: Option<String>,
}

/// Finds an engine and connects to it. `flag` is the value of `--engine`.
///
/// # Errors
/// When the named one, or every known place, gives none. The error lists each place and why.
pub async fn discover(flag: Option<&str>, surroundings: &Surroundings) -> Result<Discovered, DiscoverError> {
    if let Some(text) = flag {
        return named(text, "`--engine`", surroundings.tls).await;
    }
    if let Some(text) = &surroundings.docker_host {
        return named(text, "`DOCKER_HOST`", surroundings.tls).await;
    }
    if let Some(name) = surroundings.docker_context.as_deref().filter(|name| *name != "default") {
        let (host, tls) = context(name, "`DOCKER_CONTEXT`", surroundings)?;
        return named(&host, &format!("the docker context `{name}`"), tls).await;
    }
    let mut tried = Vec::new();
    if surroundings.docker_context.is_none()
        && let Some(name) = current_context(surroundings)
    {
        let origin = format!("the docker context `{name}`");
        let file = surroundings.docker_config.clone().unwrap_or_default().join("config.json");
        let (host, tls) = context(&name, &format!("`{}`", file.display()), surroundings)?;
        match named(&host, &origin, tls).await {
            Ok(found) => return Ok(found),
            // The choice was made at some time in the past; what is gone since then does not bind.
            Err(DiscoverError::Named(attempt))
                if matches!(
                    attempt.why,
                    ConnectError::Missing | ConnectError::Dangling(_) | ConnectError::Refused
                ) =>
            {
                tried.push(*attempt);
            }
            Err(error) => return Err(error),
        }
    }
    for (origin, address) in known(surroundings) {
        if tried.iter().any(|attempt: &Attempt| attempt.address == address.to_string()) {
            continue;
        }
        match Engine::connect(&address).await {
            Ok(engine) => {
                let notice = tried.first().filter(|first| first.origin.contains("context")).map(|first| {
                    format!(
                        "{} names `{}`, which gives no engine ({}); using `{address}`",
                        first.origin, first.address, first.why
                    )
                });
                return Ok(Discovered { engine, origin: origin.into(), notice });
            }
            Err(why) => tried.push(Attempt { origin: origin.into(), address: address.to_string(), why }),
        }
    }
    Err(DiscoverError::Nowhere(tried))
}

async fn named(text: &str, origin: &str, tls: bool) -> Result<Discovered, DiscoverError> {
    let address =
        Address::parse(text, tls).map_err(|error| DiscoverError::Address { origin: origin.into(), error })?;
    match Engine::connect(&address).await {
        Ok(engine) => Ok(Discovered { engine, origin: origin.into(), notice: None }),
        Err(why) => {
            let attempt = Attempt { origin: origin.into(), address: address.to_string(), why };
            Err(DiscoverError::Named(Box::new(attempt)))
        }
    }
}

/// The current context that docker's own settings name, if it is not the default one. An unreadable file names none.
fn current_context(surroundings: &Surroundings) -> Option<String> {
    let settings = read_json(&surroundings.docker_config.as_ref()?.join("config.json")).ok()?;
    let name = settings.get("currentContext")?.as_str()?;
    (!name.is_empty() && name != "default").then(|| name.to_owned())
}

/// The address of a docker context, and whether it asks for TLS. Docker keeps each in a folder named after the
/// SHA-256 of its name.
fn context(name: &str, origin: &str, surroundings: &Surroundings) -> Result<(String, bool), DiscoverError> {
    let fail = |why: String| DiscoverError::Context { name: name.to_owned(), origin: origin.to_owned(), why };
    let config = surroundings.docker_config.as_ref().ok_or_else(|| fail("has no settings folder".into()))?;
    let id: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let file = config.join("contexts/meta").join(&id).join("meta.json");
    let meta =
        read_json(&file).map_err(|why| fail(format!("cannot be read from `{}`: {why}", file.display())))?;
    let host = meta.pointer("/Endpoints/docker/Host").and_then(|host| host.as_str()).unwrap_or_default();
    if host.is_empty() {
        return Err(fail("names no docker endpoint".into()));
    }
    let tls = config.join("contexts/tls").join(&id).join("docker").is_dir();
    Ok((host.to_owned(), tls))
}

fn read_json(file: &Path) -> Result<serde_json::Value, String> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(CONFIG_BYTES).read_to_end(&mut text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| format!("it is not JSON (line {})", error.line()))
}

/// The places where engines put their sockets, in the order of trying.
fn known(surroundings: &Surroundings) -> Vec<(&'static str, Address)> {
    let mut places = Vec::new();
    if cfg!(windows) {
        places.push(("Docker Desktop", Address::Pipe("//./pipe/docker_engine".into())));
        places.push(("Podman machine", Address::Pipe("//./pipe/podman-machine-default".into())));
        return places;
    }
    let mut add = |origin, base: Option<&PathBuf>, rest: &str| {
        if let Some(base) = base {
            places.push((origin, Address::Unix(base.join(rest))));
        }
    };
    let home = surroundings.home.as_ref();
    let root = Some(&surroundings.root);
    add("Docker", root, "var/run/docker.sock");
    add("Docker Desktop", home, ".docker/run/docker.sock");
    add("Docker Desktop", home, ".docker/desktop/docker.sock");
    add("colima", surroundings.colima.as_ref(), "default/docker.sock");
    add("colima", home, ".colima/default/docker.sock");
    add("colima", surroundings.config.as_ref(), "colima/default/docker.sock");
    add("colima", home, ".config/colima/default/docker.sock");
    add("OrbStack", home, ".orbstack/run/docker.sock");
    add("Rancher Desktop", home, ".rd/docker.sock");
    add("rootless Docker", surroundings.runtime.as_ref(), "docker.sock");
    add("rootless Docker", home, ".docker/run/docker.sock");
    add("rootless Podman", surroundings.runtime.as_ref(), "podman/podman.sock");
    add("Podman", root, "run/podman/podman.sock");
    add("Podman machine", surroundings.temporary.as_ref(), "podman/podman-machine-default-api.sock");
    add("Podman machine", home, ".local/share/containers/podman/machine/podman.sock");
    add("Podman machine", home, ".local/share/containers/podman/machine/podman-machine-default/podman.sock");
    let mut seen = Vec::new();
    places.retain(|(_, address)| {
        let new = !seen.contains(address);
        seen.push(address.clone());
        new
    });
    places
}

#[cfg(all(test, unix))]
mod tests;
