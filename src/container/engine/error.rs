//! What an engine answered, as a sentence. Never a raw body without the call that it belongs to.

use crate::failure::{Exit, Explain};

/// One call of the engine's API failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine said no, in its own words.
    #[error("the engine could not {what}: {message}")]
    Refused {
        /// What was asked, as an infinitive with the resource's name.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The engine's message, on one line.
        message: String,
    },
    /// Docker has given away every subnet of its address pools.
    #[error("the engine has no free subnet left to {what}")]
    NoSubnet {
        /// What was asked.
        what: String,
    },
    /// Another program or container has the port.
    #[error("port {port} is taken: the engine could not {what}")]
    PortTaken {
        /// What was asked.
        what: String,
        /// The port on the host.
        port: String,
    },
    /// The connection broke or was never made.
    #[error("the engine did not answer while it was asked to {what}")]
    Broken {
        /// What was asked.
        what: String,
        /// What the connection said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What came from the engine could not be written here. A reader that has gone away is `BrokenPipe`.
    #[error("the output cannot be written")]
    Output(#[source] std::io::Error),
    /// A time limit passed.
    #[error("the engine took longer than {seconds} s to {what}")]
    TooSlow {
        /// What was asked.
        what: String,
        /// The limit.
        seconds: u64,
    },
}

impl EngineError {
    /// Whether the engine says that the thing does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
    /// Whether whoever read our output has gone away, which is no failure.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
    /// Whether the engine says that the name is in use, or the state does not allow it.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
    /// Takes the client library's error apart. `what` is an infinitive such as "create network `worca_work`".
    pub(super) fn of(what: impl Into<String>, error: bollard::errors::Error) -> Self {
        let what = what.into();
        match error {
            bollard::errors::Error::DockerResponseServerError { status_code, message } => {
                Self::refused(what, status_code, &message)
            }
            bollard::errors::Error::DockerStreamError { error } => Self::refused(what, 500, &error),
            bollard::errors::Error::RequestTimeoutError => {
                Self::TooSlow { what, seconds: super::connect::CALL_SECONDS }
            }
            other => Self::Broken { what, source: Box::new(other) },
        }
    }
    /// Sorts an engine's own message.
    pub(super) fn refused(what: String, status: u16, message: &str) -> Self {
        let message = one_line(message);
        if message.contains("address pools have been fully subnetted")
            || message.contains("could not find an available, non-overlapping")
            || message.contains("could not find free subnet")
        {
            return Self::NoSubnet { what };
        }
        if message.contains("port is already allocated") || message.contains("address already in use") {
            let port = port_in(&message).unwrap_or_else(|| "of the box".into());
            return Self::PortTaken { what, port };
        }
        Self::Refused { what, status, message }
    }
}

/// The first number after a `:` that ends a host part, as in `0.0.0.0:4317 failed`.
fn port_in(message: &str) -> Option<String> {
    message.split([' ', '/', '"', ',']).find_map(|word| {
        let (_, port) = word.trim_end_matches(':').rsplit_once(':')?;
        port.parse::<u16>().ok().map(|port| port.to_string())
    })
}

/// Engine text, fit for a terminal.
pub(super) fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(600).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Explain for EngineError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "engine-refused",
            Self::NoSubnet { .. } => "engine-no-subnet",
            Self::PortTaken { .. } => "port-taken",
            Self::Broken { .. } => "engine-broken",
            Self::TooSlow { .. } => "engine-too-slow",
            Self::Output(_) => "output",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSubnet { .. } => Some(
                "list networks with `docker network ls` and remove unused ones (`docker network prune` removes every \
                 unused one, not only ours), or give the engine more `default-address-pools` in its daemon.json; \
                 `worca container down --name NAME` frees the networks of a box that you no longer need"
                    .into(),
            ),
            Self::PortTaken { .. } => {
                Some("stop what holds it, or choose another port: `worca container up --port PORT`".into())
            }
            Self::Broken { .. } | Self::TooSlow { .. } => {
                Some("see whether the engine still runs; `worca container up` repairs what is half-made".into())
            }
            Self::Refused { .. } | Self::Output(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c074_a_used_up_address_pool_is_told_with_what_to_do() {
        for message in [
            "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
            "all predefined address pools have been fully subnetted",
        ] {
            let error = EngineError::refused("create network `worca_work`".into(), 400, message);
            assert_eq!(
                error.to_string(),
                "the engine has no free subnet left to create network `worca_work`"
            );
            let hint = error.hint().unwrap();
            assert!(
                hint.contains("prune")
                    && hint.contains("daemon.json")
                    && hint.contains("worca container down"),
                "{hint}"
            );
        }
    }

    #[test]
    fn a_taken_port_is_named() {
        for message in [
            "driver failed programming external connectivity on endpoint x: Bind for 127.0.0.1:4317 failed: port is already allocated",
            "Error starting userland proxy: listen tcp4 127.0.0.1:4317: bind: address already in use",
        ] {
            let error = EngineError::refused("start container `worca-core-1`".into(), 500, message);
            assert!(matches!(&error, EngineError::PortTaken { port, .. } if port == "4317"), "{error}");
        }
    }

    #[test]
    fn engine_text_stays_on_one_line_without_control_characters() {
        let error = EngineError::refused("look".into(), 500, "bad\n\u{1b}[31mthing\t here");
        assert_eq!(error.to_string(), "the engine could not look: bad [31mthing here");
    }
}
