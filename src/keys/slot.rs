//! Slots: each pins one upstream origin, what may be asked of it, and who may be put on. A request names a
//! slot, never a host.

use std::fmt;

use hyper::Method;

use crate::failure::{Exit, Explain};

/// Where the public Anthropic API lives.
pub const ANTHROPIC_ORIGIN: &str = "https://api.anthropic.com";
/// The scenario that `--model rehearsal` alone plays.
pub const DEFAULT_SCENARIO: &str = "hello";

/// The short name of a slot: 1 to 32 of `a-z`, `0-9`, `-`, the first a letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct SlotName(String);

/// The text is not the name of a slot.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not the name of a slot (1 to 32 of `a-z`, `0-9`, `-`, the first a letter)")]
pub struct ParseSlotNameError(String);

impl SlotName {
    /// Reads a name.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(text: &str) -> Result<Self, ParseSlotNameError> {
        let shaped = text.len() <= 32
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        if shaped {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseSlotNameError(text.chars().take(60).collect()))
        }
    }
    /// The slot of Anthropic's API.
    pub fn anthropic() -> Self {
        Self("anthropic".into())
    }
    /// The slot of the built-in scripted model.
    pub fn rehearsal() -> Self {
        Self("rehearsal".into())
    }
    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SlotName {
    type Err = ParseSlotNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl<'de> serde::Deserialize<'de> for SlotName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

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
        let shown: String = text.rsplit('@').next().unwrap_or("").chars().take(100).collect();
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

/// Who answers what a slot is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// A provider, reached over the network with a saved key.
    Provider(Origin),
    /// The scripted model in this program, which needs no key.
    Rehearsal,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// What requests call it.
    pub name: SlotName,
    /// Who answers.
    pub upstream: Upstream,
}

/// What a request asks for, of the few things that may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// `POST /v1/messages`: the one that costs.
    Messages,
    /// `POST /v1/messages/count_tokens`: free of charge.
    CountTokens,
    /// `GET /v1/models` and `GET /v1/models/{id}`.
    Models,
    /// `HEAD /`, which a client sends to see whether anybody is there; answered here.
    Presence,
}

impl Ask {
    /// Whether a provider takes money for it.
    pub fn costs(self) -> bool {
        matches!(self, Self::Messages)
    }
    /// What `method` on `path` asks for. The path is compared byte for byte, so nothing that would have to
    /// be normalised first (`//`, `..`, `%2f`) is ever taken.
    pub fn of(method: &Method, path: &str) -> Option<Self> {
        match (method.as_str(), path) {
            ("POST", "/v1/messages") => Some(Self::Messages),
            ("POST", "/v1/messages/count_tokens") => Some(Self::CountTokens),
            ("GET", "/v1/models") => Some(Self::Models),
            ("HEAD", "" | "/") => Some(Self::Presence),
            ("GET", path) => {
                path.strip_prefix("/v1/models/").filter(|id| is_model_id(id)).map(|_| Self::Models)
            }
            _ => None,
        }
    }
}

fn is_model_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && id.bytes().any(|byte| byte != b'.')
}

/// The slots that this service has.
#[derive(Debug, Clone)]
pub struct Slots(Vec<Slot>);

impl Slots {
    /// The built-in ones: `anthropic` at its origin, and `rehearsal`.
    pub fn built_in(anthropic: Origin) -> Self {
        Self(vec![
            Slot { name: SlotName::anthropic(), upstream: Upstream::Provider(anthropic) },
            Slot { name: SlotName::rehearsal(), upstream: Upstream::Rehearsal },
        ])
    }
    /// The slot of this name.
    pub fn get(&self, name: &str) -> Option<&Slot> {
        self.0.iter().find(|slot| slot.name.as_str() == name)
    }
    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter()
    }
}

/// Which slot, and in rehearsal which scenario, a model name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The slot.
    pub slot: SlotName,
    /// The scenario, for the rehearsal slot alone.
    pub scenario: Option<String>,
}

impl Choice {
    /// `rehearsal` and `rehearsal/<scenario>` are played by the scripted model; anything else, or nothing, is
    /// Anthropic's.
    pub fn for_model(model: Option<&str>) -> Self {
        match model {
            Some("rehearsal") => Self::scripted(DEFAULT_SCENARIO),
            Some(model) => match model.strip_prefix("rehearsal/") {
                Some(scenario) => Self::scripted(scenario),
                None => Self { slot: SlotName::anthropic(), scenario: None },
            },
            None => Self { slot: SlotName::anthropic(), scenario: None },
        }
    }
    fn scripted(scenario: &str) -> Self {
        Self { slot: SlotName::rehearsal(), scenario: Some(scenario.to_owned()) }
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
    fn only_the_listed_paths_are_asked_for_and_no_odd_spelling_of_them() {
        let ask = |method: &str, path: &str| Ask::of(&method.parse().unwrap(), path);
        assert_eq!(ask("POST", "/v1/messages"), Some(Ask::Messages));
        assert_eq!(ask("POST", "/v1/messages/count_tokens"), Some(Ask::CountTokens));
        assert_eq!(ask("GET", "/v1/models"), Some(Ask::Models));
        assert_eq!(ask("GET", "/v1/models/claude-x.1_2"), Some(Ask::Models));
        assert_eq!(ask("HEAD", "/"), Some(Ask::Presence));
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("DELETE", "/v1/messages"),
            ("POST", "/v1/complete"),
            ("POST", "/v1/messages/"),
            ("POST", "//v1/messages"),
            ("POST", "/v1//messages"),
            ("POST", "/v1/messages/../admin"),
            ("POST", "/v1/%6dessages"),
            ("POST", "/v1%2fmessages"),
            ("POST", "/v1/messages;x"),
            ("GET", "/v1/models/.."),
            ("GET", "/v1/models/a/b"),
            ("GET", "/v1/models/%2e%2e"),
            ("GET", "/v1/models/"),
            ("GET", "/"),
        ] {
            assert_eq!(ask(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_model_name_chooses_the_slot() {
        assert_eq!(Choice::for_model(None).slot, SlotName::anthropic());
        assert_eq!(Choice::for_model(Some("opus")).slot, SlotName::anthropic());
        assert_eq!(Choice::for_model(Some("rehearsal")).scenario.as_deref(), Some("hello"));
        assert_eq!(Choice::for_model(Some("rehearsal/slow")).scenario.as_deref(), Some("slow"));
        assert_eq!(Choice::for_model(Some("rehearsals")).slot, SlotName::anthropic());
    }
}
