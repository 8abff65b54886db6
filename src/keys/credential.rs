//! A provider's credential: its kind, the check of what somebody pasted, and how it is put on a request.
//! Only this file and the vault name the value.

use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::failure::{Exit, Explain};
use crate::keys::slot::{Auth, Endpoint, SlotName};
use crate::secret::Secret;

/// The longest credential that is taken, in bytes.
pub const LONGEST: usize = 8 * 1024;
/// From this length on, the last four characters of a credential are shown, to tell one from another.
const SHOWN_FROM: usize = 16;
const API_KEY_PREFIX: &str = "sk-ant-api";
const SUBSCRIPTION_PREFIX: &str = "sk-ant-oat";
/// The beta that Anthropic's API asks for beside a subscription token.
const SUBSCRIPTION_BETA: &str = "oauth-2025-04-20";

pub(super) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(super) const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// The kinds of credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A key of the provider's console, billed by use.
    ApiKey,
    /// The long-lived token of a subscription, as Claude Code's own `setup-token` prints it.
    Subscription,
}

impl Kind {
    /// The word for it, in the vault and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::Subscription => "subscription",
        }
    }
    /// Whether each use of it is billed.
    pub fn is_billed(self) -> bool {
        match self {
            Self::ApiKey => true,
            Self::Subscription => false,
        }
    }
    /// The kind with this word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::ApiKey, Self::Subscription].into_iter().find(|kind| kind.as_str() == text)
    }
    fn of_prefix(secret: &str) -> Option<Self> {
        if secret.starts_with(API_KEY_PREFIX) {
            Some(Self::ApiKey)
        } else if secret.starts_with(SUBSCRIPTION_PREFIX) {
            Some(Self::Subscription)
        } else {
            None
        }
    }
}

/// The text is no kind of credential.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there are `api-key` and `subscription`")]
pub struct ParseKindError;

impl std::str::FromStr for Kind {
    type Err = ParseKindError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or(ParseKindError)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What was given cannot be a credential.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CheckCredentialError {
    /// Nothing came.
    #[error("no key came on the standard input")]
    Empty,
    /// More than any provider hands out.
    #[error("what came on the standard input is over {LONGEST} bytes, which no key is")]
    Long,
    /// White space, a line end or a character that no header can carry.
    #[error("what came on the standard input holds a blank, a line end or another character that no key has")]
    Characters,
    /// The prefix says another kind.
    #[error("this is {found}, by its first characters, and not {asked}", found = article(*.found), asked = article(*.asked))]
    Kind {
        /// What was asked for.
        asked: Kind,
        /// What the prefix says.
        found: Kind,
    },
    /// No prefix that is known, and nobody said.
    #[error("neither its first characters nor `--kind` say what kind of key this is")]
    Unknown,
    /// The prefix is that of another slot's provider, and nobody said that it is meant.
    #[error("this is a key for slot `{maker}`, by its first characters, and not for slot `{slot}`")]
    Maker {
        /// The slot that its prefix belongs to.
        maker: &'static str,
        /// The slot that was asked for.
        slot: SlotName,
    },
    /// No other provider takes one.
    #[error("a subscription token is for slot `anthropic` alone, and not for slot `{0}`")]
    Subscription(SlotName),
    /// One of our own passes.
    #[error("this is a pass of this service, which is no key of a provider")]
    Pass,
}

fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::ApiKey => "an API key",
        Kind::Subscription => "a subscription token",
    }
}

impl Explain for CheckCredentialError {
    fn code(&self) -> &'static str {
        "key-refused"
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Kind { .. } => "leave `--kind` out, or give the other one".into(),
            Self::Unknown => "add `--kind api-key` or `--kind subscription`".into(),
            Self::Maker { .. } => "name the other slot, or add `--kind api-key` if it is meant".into(),
            Self::Subscription(_) => "save an API key of that slot's provider".into(),
            Self::Empty | Self::Long | Self::Characters | Self::Pass => {
                "give the key alone, on one line, such as `worca keys put anthropic < key.txt`".into()
            }
        })
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// The kind of a credential that somebody gave for a slot, once it has been looked at.
///
/// # Errors
/// When it cannot be one, is of another kind than `asked`, or of another provider than the slot's.
pub fn check(secret: &Secret, slot: &SlotName, asked: Option<Kind>) -> Result<Kind, CheckCredentialError> {
    let text = secret.expose();
    if text.is_empty() {
        return Err(CheckCredentialError::Empty);
    }
    if text.len() > LONGEST {
        return Err(CheckCredentialError::Long);
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CheckCredentialError::Characters);
    }
    if text.starts_with(super::pass::PREFIX) {
        return Err(CheckCredentialError::Pass);
    }
    let kind = match (asked, Kind::of_prefix(text)) {
        (Some(asked), Some(found)) if asked != found => {
            return Err(CheckCredentialError::Kind { asked, found });
        }
        (Some(kind), _) | (None, Some(kind)) => kind,
        (None, None) if *slot == SlotName::anthropic() => return Err(CheckCredentialError::Unknown),
        (None, None) => Kind::ApiKey,
    };
    if kind == Kind::Subscription && *slot != SlotName::anthropic() {
        return Err(CheckCredentialError::Subscription(slot.clone()));
    }
    // A slot of the person's own may stand for anybody; what is built in has a provider of its own.
    let built_in = [SlotName::anthropic(), SlotName::openai(), SlotName::openrouter()].contains(slot);
    match maker(text).filter(|maker| built_in && asked.is_none() && *maker != slot.as_str()) {
        Some(maker) => Err(CheckCredentialError::Maker { maker, slot: slot.clone() }),
        None => Ok(kind),
    }
}

/// The slot of the provider whose keys begin like this one.
fn maker(text: &str) -> Option<&'static str> {
    let makers = [("sk-ant-", "anthropic"), ("sk-or-", "openrouter"), ("sk-proj-", "openai")];
    makers.into_iter().find(|(prefix, _)| text.starts_with(prefix)).map(|(_, maker)| maker)
}

/// The last four characters, when enough stays hidden beside them.
pub(super) fn last_four(secret: &Secret) -> Option<String> {
    let text = secret.expose();
    if text.len() < SHOWN_FROM {
        return None;
    }
    text.get(text.len() - 4..).map(str::to_owned)
}

/// What the vault gives out.
pub(super) struct Saved {
    pub(super) kind: Kind,
    /// What it was saved for.
    pub(super) endpoint: Endpoint,
    pub(super) secret: Secret,
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Saved({}, {})", self.kind, self.endpoint)
    }
}

/// A credential, ready to be put on requests to the one endpoint that it was saved for.
pub(super) struct Credential {
    pub(super) kind: Kind,
    pub(super) endpoint: Endpoint,
    secret: Secret,
    name: HeaderName,
    header: HeaderValue,
}

impl Credential {
    /// `auth` is the slot's way with API keys; a subscription's token has one way. `None` when no header can carry
    /// it, which [`check`] rules out, or the slot takes none.
    pub(super) fn new(saved: Saved, auth: Auth) -> Option<Self> {
        let Saved { kind, endpoint, secret } = saved;
        let bare = match (kind, auth) {
            (Kind::Subscription, Auth::XApiKey | Auth::Bearer) | (Kind::ApiKey, Auth::Bearer) => false,
            (Kind::ApiKey, Auth::XApiKey) => true,
            (Kind::ApiKey | Kind::Subscription, Auth::None) => return None,
        };
        let (name, header) = if bare {
            (X_API_KEY, HeaderValue::from_str(secret.expose()))
        } else {
            (AUTHORIZATION, HeaderValue::try_from(format!("Bearer {}", secret.expose())))
        };
        let mut header = header.ok()?;
        header.set_sensitive(true);
        Some(Self { kind, endpoint, secret, name, header })
    }
    /// Puts the credential on. The caller's own credential headers are gone already.
    pub(super) fn put_on(&self, headers: &mut HeaderMap) {
        headers.insert(self.name.clone(), self.header.clone());
        if self.kind == Kind::Subscription {
            merge_beta(headers);
        }
    }
    /// The bytes that must never come back from an upstream.
    pub(super) fn needle(&self) -> &[u8] {
        self.secret.expose().as_bytes()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({}, {})", self.kind, self.endpoint)
    }
}

/// Adds the subscription's beta to those that the caller asked for, if it is not among them.
fn merge_beta(headers: &mut HeaderMap) {
    let asked: Vec<&[u8]> = headers.get_all(ANTHROPIC_BETA).iter().map(HeaderValue::as_bytes).collect();
    let there = asked
        .iter()
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|beta| beta.trim_ascii() == SUBSCRIPTION_BETA.as_bytes());
    if there {
        return;
    }
    let mut merged = asked.join(&b","[..]);
    if !merged.is_empty() {
        merged.push(b',');
    }
    merged.extend_from_slice(SUBSCRIPTION_BETA.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&merged) {
        headers.insert(ANTHROPIC_BETA, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }
    fn saved(kind: Kind, text: &str) -> Saved {
        Saved { kind, endpoint: crate::keys::slot::Origin::anthropic().into(), secret: secret(text) }
    }
    fn check(text: &str, asked: Option<Kind>) -> Result<Kind, CheckCredentialError> {
        super::check(&secret(text), &SlotName::anthropic(), asked)
    }

    #[test]
    fn the_kind_is_read_from_the_prefix_and_a_contradiction_is_refused() {
        assert_eq!(check("sk-ant-api03-abc", None), Ok(Kind::ApiKey));
        assert_eq!(check("sk-ant-oat01-abc", None), Ok(Kind::Subscription));
        assert_eq!(check("gateway-key", Some(Kind::ApiKey)), Ok(Kind::ApiKey));
        assert_eq!(check("gateway-key", None), Err(CheckCredentialError::Unknown));
        assert_eq!(
            check("sk-ant-oat01-abc", Some(Kind::ApiKey)),
            Err(CheckCredentialError::Kind { asked: Kind::ApiKey, found: Kind::Subscription })
        );
    }

    #[test]
    fn a_key_of_another_provider_is_refused_unless_it_is_meant() {
        let slot = |name| SlotName::parse(name).unwrap();
        let check = |name, text, asked| super::check(&secret(text), &slot(name), asked);
        assert_eq!(check("openai", "sk-proj-abc", None), Ok(Kind::ApiKey));
        assert_eq!(check("openai", "sk-abc", None), Ok(Kind::ApiKey));
        assert_eq!(check("openrouter", "sk-or-v1-abc", None), Ok(Kind::ApiKey));
        assert_eq!(check("gateway", "sk-ant-api03-abc", None), Ok(Kind::ApiKey));
        assert_eq!(check("gateway", "anything", None), Ok(Kind::ApiKey));
        for (name, text, maker) in [
            ("openai", "sk-ant-api03-abc", "anthropic"),
            ("openai", "sk-or-v1-abc", "openrouter"),
            ("openrouter", "sk-proj-abc", "openai"),
        ] {
            let refused = CheckCredentialError::Maker { maker, slot: slot(name) };
            assert_eq!(check(name, text, None), Err(refused));
            assert_eq!(check(name, text, Some(Kind::ApiKey)), Ok(Kind::ApiKey));
        }
        for (text, asked) in [("sk-ant-oat01-abc", None), ("anything", Some(Kind::Subscription))] {
            let refused = CheckCredentialError::Subscription(slot("gateway"));
            assert_eq!(check("gateway", text, asked), Err(refused));
        }
    }

    #[test]
    fn an_api_key_goes_where_its_slot_says() {
        for (auth, name, value) in
            [(Auth::XApiKey, X_API_KEY, "key-1"), (Auth::Bearer, AUTHORIZATION, "Bearer key-1")]
        {
            let key = Credential::new(saved(Kind::ApiKey, "key-1"), auth).unwrap();
            let mut headers = HeaderMap::new();
            key.put_on(&mut headers);
            assert_eq!((headers.len(), headers.get(name).unwrap().to_str().unwrap()), (1, value));
        }
        assert!(Credential::new(saved(Kind::ApiKey, "key-1"), Auth::None).is_none());
    }

    #[test]
    fn what_cannot_be_a_key_is_refused_and_a_pasted_line_end_is_not_part_of_it() {
        assert_eq!(check(" \n", None), Err(CheckCredentialError::Empty));
        assert_eq!(check("sk-ant-api03-a b", None), Err(CheckCredentialError::Characters));
        assert_eq!(check("sk-ant-api03-a\nb", None), Err(CheckCredentialError::Characters));
        assert_eq!(check("sk-ant-api03-ключ", None), Err(CheckCredentialError::Characters));
        assert_eq!(check(&"k".repeat(LONGEST + 1), None), Err(CheckCredentialError::Long));
        assert_eq!(check("wp_AAAA", Some(Kind::ApiKey)), Err(CheckCredentialError::Pass));
        assert_eq!(check("sk-ant-api03-abc\n", None), Ok(Kind::ApiKey));
    }

    #[test]
    fn the_last_four_of_a_short_key_stay_hidden() {
        assert_eq!(last_four(&secret("123456789012345")), None);
        assert_eq!(last_four(&secret("1234567890123456")), Some("3456".into()));
    }

    #[test]
    fn the_subscription_beta_is_merged_once_into_what_the_caller_asked_for() {
        let token = Credential::new(saved(Kind::Subscription, "sk-ant-oat01-abc"), Auth::XApiKey).unwrap();
        for (asked, wanted) in [
            (vec![], "oauth-2025-04-20"),
            (vec!["a-1,b-2"], "a-1,b-2,oauth-2025-04-20"),
            (vec!["a-1", "b-2"], "a-1,b-2,oauth-2025-04-20"),
            (vec!["a-1, oauth-2025-04-20"], "a-1, oauth-2025-04-20"),
        ] {
            let mut headers = HeaderMap::new();
            for value in &asked {
                headers.append(ANTHROPIC_BETA, HeaderValue::from_static(value));
            }
            token.put_on(&mut headers);
            assert_eq!(headers.get(ANTHROPIC_BETA).unwrap(), wanted, "{asked:?}");
            assert_eq!(headers.get(AUTHORIZATION).unwrap(), "Bearer sk-ant-oat01-abc");
            assert!(!format!("{headers:?} {token:?}").contains("oat01"));
        }
    }
}
