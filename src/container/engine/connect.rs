//! One connection to one engine: is it there, which API version do we speak with it.
//!
//! The version is agreed from what `/version` says and put into each path ourselves: a fixed one breaks on engines
//! that are newer or older than this program.

use std::fmt;
use std::time::Duration;

use bollard::{BollardRequest, ClientVersion, Docker};

use super::address::Address;

/// How long an ordinary call may take; pulls and waits have limits of their own.
pub(super) const CALL_SECONDS: u64 = 120;
/// How long an engine may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// The oldest API that has all that a box needs (Docker 20.10, Podman 4).
pub const OLDEST_API: ApiVersion = ApiVersion(1, 41);
/// The newest API whose answers this program knows.
pub const NEWEST_API: ApiVersion = ApiVersion(1, 53);

/// A version of the Engine API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(pub u16, pub u16);

impl ApiVersion {
    /// Reads `1.41`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What an engine says about itself, and the API version that was agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineVersion {
    /// `Docker Engine` or `Podman`.
    pub product: &'static str,
    /// Its own version, such as `20.10.24`.
    pub version: String,
    /// The API version that we speak with it.
    pub api: ApiVersion,
    /// The engine's operating system and machine, such as `linux/amd64`.
    pub platform: String,
}

/// A connected engine.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Where it listens.
    pub address: Address,
    /// What it is.
    pub version: EngineVersion,
    pub(super) docker: Docker,
}

/// Why one address gave no engine.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing is at that path.
    #[error("not there")]
    Missing,
    /// A link whose target is gone: what a removed Docker Desktop leaves behind.
    #[error("a link to `{0}`, which does not exist")]
    Dangling(String),
    /// The path is no socket.
    #[error("not a socket")]
    NotSocket,
    /// The user may not open it.
    #[error("permission denied")]
    Permission,
    /// The socket is there, but nobody listens.
    #[error("nothing listens on it")]
    Refused,
    /// It does not answer in time.
    #[error("it did not answer within {} s", HELLO.as_secs())]
    TooSlow,
    /// It answers, but not as an engine does.
    #[error("it does not answer like an engine: {0}")]
    NotEngine(String),
    /// The engine is older or newer than anything we can speak.
    #[error("{product} {version} speaks API {min} to {max}; {OLDEST_API} to {NEWEST_API} is needed")]
    Version {
        /// `Docker Engine` or `Podman`.
        product: &'static str,
        /// The engine's version.
        version: String,
        /// Its oldest API version.
        min: String,
        /// Its newest API version.
        max: String,
    },
    /// This system cannot reach that kind of address.
    #[error("{0} is not supported on this system")]
    Unsupported(&'static str),
}

impl Engine {
    /// Connects, and agrees on an API version.
    ///
    /// # Errors
    /// When nobody answers there, or no version is spoken by both.
    pub async fn connect(address: &Address) -> Result<Self, ConnectError> {
        reachable(address).await?;
        let docker = client(address)?;
        let hello = tokio::time::timeout(HELLO, docker.version()).await.map_err(|_| ConnectError::TooSlow)?;
        let hello = hello.map_err(|error| not_engine(&error))?;
        let product = match &hello.components {
            Some(parts) if parts.iter().any(|part| part.name.to_lowercase().contains("podman")) => "Podman",
            _ => "Docker Engine",
        };
        let version = hello.version.unwrap_or_else(|| "of unknown version".into());
        let max = hello.api_version.unwrap_or_default();
        let min = hello.min_api_version.unwrap_or_default();
        let Some(api) = agree(&min, &max) else {
            let unknown = |text: String| if text.is_empty() { "?".into() } else { text };
            return Err(ConnectError::Version { product, version, min: unknown(min), max: unknown(max) });
        };
        let platform = format!("{}/{}", hello.os.unwrap_or_default(), hello.arch.unwrap_or_default());
        let docker = docker.with_request_modifier(move |request| with_version(request, api));
        let version = EngineVersion { product, version, api, platform };
        Ok(Self { address: address.clone(), version, docker })
    }
}

impl Engine {
    /// The CPUs and the bytes of memory that the engine has to give.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn capacity(&self) -> Result<(u32, u64), super::EngineError> {
        let info = self.docker.info().await;
        let info = info.map_err(|error| super::EngineError::of("tell what it has", error))?;
        let cpus = info.ncpu.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
        let memory = info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4 << 30);
        Ok((cpus, memory))
    }
}

/// The newest version that both sides speak. An engine that names no oldest one speaks everything below.
fn agree(min: &str, max: &str) -> Option<ApiVersion> {
    let max = ApiVersion::parse(max)?.min(NEWEST_API);
    let min = ApiVersion::parse(min).unwrap_or(ApiVersion(1, 12)).max(OLDEST_API);
    (min <= max).then_some(max)
}

/// Puts the agreed version before the path, as in `/v1.41/containers/json`.
fn with_version(mut request: BollardRequest, api: ApiVersion) -> BollardRequest {
    // Registry credentials are base64 in the URL's alphabet, which the client library does not use.
    if let Some(shown) = request.headers().get("x-registry-auth").and_then(|value| value.to_str().ok())
        && let Ok(mut value) =
            hyper::header::HeaderValue::from_str(&shown.replace('+', "-").replace('/', "_"))
    {
        value.set_sensitive(true);
        request.headers_mut().insert("x-registry-auth", value);
    }
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if path.starts_with("/v1.") {
        return request;
    }
    let mut parts = uri.clone().into_parts();
    if let Ok(versioned) = format!("/v{api}{path}").parse() {
        parts.path_and_query = Some(versioned);
        if let Ok(uri) = hyper::Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

fn client(address: &Address) -> Result<Docker, ConnectError> {
    let version = ClientVersion { major_version: 1, minor_version: 41 };
    let made = match address {
        #[cfg(unix)]
        Address::Unix(path) => {
            let path = path.to_str().ok_or(ConnectError::Unsupported("a socket path that is not UTF-8"))?;
            Docker::connect_with_unix(path, CALL_SECONDS, &version)
        }
        #[cfg(windows)]
        Address::Pipe(pipe) => Docker::connect_with_named_pipe(pipe, CALL_SECONDS, &version),
        Address::Tcp(host) => Docker::connect_with_http(host, CALL_SECONDS, &version),
        #[cfg(not(unix))]
        Address::Unix(_) => return Err(ConnectError::Unsupported("a Unix socket")),
        #[cfg(not(windows))]
        Address::Pipe(_) => return Err(ConnectError::Unsupported("a named pipe")),
    };
    made.map_err(|error| not_engine(&error))
}

fn not_engine(error: &bollard::errors::Error) -> ConnectError {
    match error {
        bollard::errors::Error::RequestTimeoutError => ConnectError::TooSlow,
        bollard::errors::Error::SocketNotFoundError(_) => ConnectError::Missing,
        other => ConnectError::NotEngine(super::error::one_line(&root_cause(other))),
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Tells apart what the client library does not: missing, dangling, forbidden, nobody listening.
async fn reachable(address: &Address) -> Result<(), ConnectError> {
    match address {
        #[cfg(unix)]
        Address::Unix(path) => {
            let connect = tokio::time::timeout(HELLO, tokio::net::UnixStream::connect(path));
            match connect.await.map_err(|_| ConnectError::TooSlow)? {
                Ok(_) => Ok(()),
                Err(error) => Err(socket_error(path, &error)),
            }
        }
        Address::Tcp(host) => {
            let connect = tokio::time::timeout(HELLO, tokio::net::TcpStream::connect(host));
            match connect.await.map_err(|_| ConnectError::TooSlow)? {
                Ok(_) => Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    Err(ConnectError::Refused)
                }
                Err(error) => Err(ConnectError::NotEngine(error.to_string())),
            }
        }
        #[cfg(windows)]
        Address::Pipe(pipe) => {
            if std::path::Path::new(pipe).exists() {
                Ok(())
            } else {
                Err(ConnectError::Missing)
            }
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(ConnectError::Unsupported("a Unix socket")),
        #[cfg(not(windows))]
        Address::Pipe(_) => Err(ConnectError::Unsupported("a named pipe")),
    }
}

#[cfg(unix)]
fn socket_error(path: &std::path::Path, error: &std::io::Error) -> ConnectError {
    use std::io::ErrorKind;
    use std::os::unix::fs::FileTypeExt as _;
    match error.kind() {
        ErrorKind::NotFound => match std::fs::read_link(path) {
            Ok(target) => ConnectError::Dangling(target.display().to_string()),
            Err(_) => ConnectError::Missing,
        },
        ErrorKind::PermissionDenied => ConnectError::Permission,
        ErrorKind::ConnectionRefused => match std::fs::metadata(path) {
            Ok(found) if !found.file_type().is_socket() => ConnectError::NotSocket,
            _ => ConnectError::Refused,
        },
        _ => ConnectError::NotEngine(error.to_string()),
    }
}

#[cfg(all(test, unix))]
pub(super) mod tests;
