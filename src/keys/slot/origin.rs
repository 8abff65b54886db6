//! Where an upstream is: its origin, and the path that stands before everything that it is asked.

use std::fmt;

use crate::failure::{Exit, Explain};

/// Where the public Anthropic API lives.
pub const ANTHROPIC_ORIGIN: &str = "https://api.anthropic.com";

/// Scheme, host and port of an upstream, in one spelling: lower case, no default port, no path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin(String);

/// The text cannot be an upstream's origin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseOriginError {
    /// Not an absolute address.
    #[error("`{0}` is not an origin such as `https://api.example.com`")]
    Malformed(String),
    /// A name, password, path, query or fragment stands in it.
    #[error("`{0}` holds more than scheme, host and port")]
    More(String),
    /// The key would cross a network in the clear.
    #[error("`{0}` is not encrypted, and a key would cross the network in the clear")]
    Plain(String),
}

impl Explain for ParseOriginError {
    fn code(&self) -> &'static str {
        "origin-refused"
    }
    fn hint(&self) -> Option<String> {
        Some("give `https://HOST[:PORT]`; `http://` is taken for a loopback address alone".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

impl Origin {
    /// Reads an origin. `http` is taken for loopback addresses, and elsewhere only when `plain` says so.
    ///
    /// # Errors
    /// When the text is no origin, holds more than one, or is not encrypted.
    pub fn parse(text: &str, plain: bool) -> Result<Self, ParseOriginError> {
        // What is quoted back never holds what stood before an `@`.
        let shown = text.rsplit('@').next().unwrap_or("");
        let shown: String = shown.chars().filter(|c| !c.is_control()).take(100).collect();
        let url = url::Url::parse(text).map_err(|_| ParseOriginError::Malformed(shown.clone()))?;
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        if !bare {
            return Err(ParseOriginError::More(shown));
        }
        let loopback = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(ParseOriginError::Malformed(shown)),
        };
        match url.scheme() {
            "https" => {}
            "http" if loopback || plain => {}
            "http" => return Err(ParseOriginError::Plain(shown)),
            _ => return Err(ParseOriginError::Malformed(shown)),
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
    /// Anthropic's own.
    pub fn anthropic() -> Self {
        Self(ANTHROPIC_ORIGIN.into())
    }
    /// The text of it, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An origin and the path that stands before everything that is asked there: what a saved key is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    origin: Origin,
    /// Empty, or with a slash at its beginning and none at its end.
    prefix: String,
}

/// The text cannot stand before paths.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a path such as `/api/v2` (letters, digits, `.`, `_`, `-`, no empty part, at most 200)")]
pub struct ParsePrefixError(String);

impl Endpoint {
    /// `prefix` is empty, or a path such as `/api`; a slash at its end is dropped.
    ///
    /// # Errors
    /// When it is no plain path.
    pub fn new(origin: Origin, prefix: &str) -> Result<Self, ParsePrefixError> {
        let path = prefix.strip_suffix('/').unwrap_or(prefix);
        let plain = |part: &str| {
            part.bytes().any(|byte| byte != b'.')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        };
        let shaped = path.is_empty()
            || (path.len() <= 200 && path.strip_prefix('/').is_some_and(|path| path.split('/').all(plain)));
        if shaped {
            Ok(Self { origin, prefix: path.to_owned() })
        } else {
            Err(ParsePrefixError(prefix.chars().filter(|c| !c.is_control()).take(100).collect()))
        }
    }
    /// Reads what [`fmt::Display`] writes. The vault alone does: it binds a key to this text.
    pub(in crate::keys) fn of_text(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self::new(Origin::parse(&format!("{scheme}://{host}"), true).ok()?, prefix).ok()
    }
}

impl From<Origin> for Endpoint {
    fn from(origin: Origin) -> Self {
        Self { origin, prefix: String::new() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_in_one_spelling() {
        for (text, wanted) in [
            ("https://api.anthropic.com", ANTHROPIC_ORIGIN),
            ("HTTPS://API.Anthropic.com:443/", ANTHROPIC_ORIGIN),
            ("https://gate.example:8443", "https://gate.example:8443"),
            ("http://127.0.0.1:9", "http://127.0.0.1:9"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://localhost:9", "http://localhost:9"),
        ] {
            assert_eq!(Origin::parse(text, false).map(|origin| origin.0), Ok(wanted.to_owned()), "{text}");
        }
        for text in [
            "",
            "api.example",
            "https://",
            "ftp://a.example",
            "https://a.example/v1",
            "https://a.example?x=1",
        ] {
            assert!(Origin::parse(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_is_not_sent_in_the_clear_unless_that_was_asked_for_by_name() {
        let text = "http://upstream.example:8080";
        assert_eq!(Origin::parse(text, false), Err(ParseOriginError::Plain(text.into())));
        assert!(Origin::parse(text, true).is_ok());
    }

    #[test]
    fn a_password_in_an_origin_is_refused_and_not_repeated() {
        let error = Origin::parse("https://me:hunter2@a.example", false).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn a_prefix_is_a_plain_path_and_reads_back_with_its_origin() {
        let origin = || Origin::parse("https://gate.example:8443", false).unwrap();
        for (text, wanted) in [
            ("", "https://gate.example:8443"),
            ("/", "https://gate.example:8443"),
            ("/api", "https://gate.example:8443/api"),
            ("/api/v1.2/a_b-c/", "https://gate.example:8443/api/v1.2/a_b-c"),
        ] {
            let endpoint = Endpoint::new(origin(), text).unwrap();
            assert_eq!(endpoint.to_string(), wanted, "{text}");
            assert_eq!(Endpoint::of_text(wanted), Some(endpoint), "{text}");
        }
        for text in ["api", "//", "/a//b", "/..", "/a/../b", "/a?b", "/a#b", "/%2e%2e", "/a b", "/ü", "/a\\b"]
        {
            assert!(Endpoint::new(origin(), text).is_err(), "{text}");
        }
    }
}
