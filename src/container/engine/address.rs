//! Where an engine listens, parsed once from `--engine`, `DOCKER_HOST` or a docker context. No I/O.

use std::fmt;
use std::path::{Path, PathBuf};

/// The address of an engine that this program can talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
    /// `host:port` without TLS.
    Tcp(String),
    /// A Windows named pipe, such as `//./pipe/docker_engine`.
    Pipe(String),
}

/// The text names no engine that this program can talk to.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ParseAddressError {
    /// Reached through another program.
    #[error("`{0}` goes through ssh, which is not supported")]
    Ssh(String),
    /// Needs certificates.
    #[error("`{0}` needs TLS, which is not supported")]
    Tls(String),
    /// Anything else.
    #[error("`{0}` is not an engine address such as `unix:///var/run/docker.sock`")]
    Unknown(String),
}

impl ParseAddressError {
    /// What to do instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Ssh(_) => "forward the socket with `ssh -L /tmp/engine.sock:/var/run/docker.sock HOST` and give \
                             `--engine unix:///tmp/engine.sock`; note that projects are mounted from that machine"
                .into(),
            Self::Tls(_) => "run Worca on the engine's machine and use its socket, or forward the socket by ssh".into(),
            Self::Unknown(_) => "give `unix:///PATH`, an absolute path, `tcp://HOST:PORT` or `npipe:////./pipe/NAME`".into(),
        }
    }
}

impl Address {
    /// Reads an address; a plain absolute path is a Unix socket. `tls` says that the environment asks for TLS.
    ///
    /// # Errors
    /// When the scheme is not one that can be spoken.
    pub fn parse(text: &str, tls: bool) -> Result<Self, ParseAddressError> {
        let text = text.trim();
        let shown = || text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        let unknown = || ParseAddressError::Unknown(shown());
        if let Some(path) = text.strip_prefix("unix://") {
            return if Path::new(path).is_absolute() { Ok(Self::Unix(path.into())) } else { Err(unknown()) };
        }
        if let Some(pipe) = text.strip_prefix("npipe://") {
            return if pipe.is_empty() { Err(unknown()) } else { Ok(Self::Pipe(pipe.replace('\\', "/"))) };
        }
        if text.starts_with("ssh://") {
            return Err(ParseAddressError::Ssh(shown()));
        }
        if text.starts_with("https://") {
            return Err(ParseAddressError::Tls(shown()));
        }
        if let Some(rest) = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://")) {
            let url = url::Url::parse(&format!("http://{rest}")).map_err(|_| unknown())?;
            let host = url.host_str().ok_or_else(unknown)?;
            if tls {
                return Err(ParseAddressError::Tls(shown()));
            }
            // 2375 is the port that Docker's own client takes when none is written.
            let port = if rest.contains(&format!("{host}:")) { url.port_or_known_default() } else { None };
            return Ok(Self::Tcp(format!("{host}:{}", port.unwrap_or(2375))));
        }
        if Path::new(text).is_absolute() && !text.contains("://") {
            return Ok(Self::Unix(text.into()));
        }
        Err(unknown())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host) => write!(f, "tcp://{host}"),
            Self::Pipe(pipe) => write!(f, "npipe://{pipe}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_that_docker_takes_is_understood() {
        for (text, address) in [
            ("unix:///var/run/docker.sock", Address::Unix("/var/run/docker.sock".into())),
            ("/run/podman/podman.sock", Address::Unix("/run/podman/podman.sock".into())),
            (
                "unix:///Users/Ann Lee/.docker/run/docker.sock",
                Address::Unix("/Users/Ann Lee/.docker/run/docker.sock".into()),
            ),
            ("tcp://127.0.0.1:2375", Address::Tcp("127.0.0.1:2375".into())),
            ("tcp://engine.invalid", Address::Tcp("engine.invalid:2375".into())),
            ("tcp://[::1]:80", Address::Tcp("[::1]:80".into())),
            ("npipe:////./pipe/docker_engine", Address::Pipe("//./pipe/docker_engine".into())),
        ] {
            assert_eq!(Address::parse(text, false), Ok(address), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_spoken_is_told_apart() {
        assert!(matches!(Address::parse("ssh://me@host", false), Err(ParseAddressError::Ssh(_))));
        assert!(matches!(Address::parse("tcp://host:2376", true), Err(ParseAddressError::Tls(_))));
        assert!(matches!(Address::parse("https://host", false), Err(ParseAddressError::Tls(_))));
        for text in ["", "docker.sock", "unix://", "unix://relative", "fd://", "npipe://"] {
            assert!(matches!(Address::parse(text, false), Err(ParseAddressError::Unknown(_))), "{text}");
        }
    }
}
