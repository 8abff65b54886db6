//! The names that core answers to. A page of another site whose name was re-bound to this address sends its own
//! name, and so is refused. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

use super::gate::GateError;

/// The loopback names and addresses, and the names that the settings add. Ports do not count: the published or
/// forwarded port may be another one than core's.
#[derive(Debug, Clone, Default)]
pub struct Hosts(BTreeSet<String>);

impl Hosts {
    /// Answers to this name or address too.
    pub fn add(&mut self, name: &str) {
        if let Some((host, _)) = split(name) {
            self.0.insert(host);
        }
    }
    /// Whether a request that names its host like this may be answered: exactly one `Host`, and, where the
    /// request line names a host as well, the same one.
    ///
    /// # Errors
    /// When it names none, two, or one that is not ours.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), GateError> {
        let mut all = headers.get_all(header::HOST).iter();
        let (Some(value), None) = (all.next(), all.next()) else {
            return Err(GateError::HostCount);
        };
        let named = value.to_str().unwrap_or_default();
        let foreign = |text: &str| GateError::HostForeign(text.chars().take(100).collect());
        let (host, port) = split(named).ok_or_else(|| foreign(named))?;
        if !self.knows(&host) {
            return Err(foreign(named));
        }
        match uri.authority() {
            Some(line) if split(line.as_str()) != Some((host, port)) => Err(foreign(line.as_str())),
            _ => Ok(()),
        }
    }
    fn knows(&self, host: &str) -> bool {
        if host == "localhost" || self.0.contains(host) {
            return true;
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// The host in lower case, without a dot at its end, and the port if one is written.
pub fn split(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = if text.starts_with('[') {
        let end = text.find(']')?;
        let (host, rest) = text.split_at_checked(end + 1)?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port {
        None => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
        Some(_) => return None,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    (!host.is_empty() && host.bytes().all(plain)).then_some((host, port))
}
