//! What core uses to speak with the key service: passes, readiness, usage, caps, and how it is. Each call has a time limit,
//! each answer a size limit, and nothing is tried twice.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

use super::slot::SlotName;
use super::wire::{CapScope, MintAnswer, ReadyRequest, Refusal, RenewRequest, code};
use crate::failure::{Exit, Explain};
use crate::ids::{PassId, PersonId};
use crate::secret::Secret;

pub use super::wire::{Caps, Closing, MintRequest, Ready, Renewed, SlotStatus, Status, Usage, UsageQuery};

/// How long one call may take. Leases last 8 s and are renewed every 2 s: a call that takes longer is lost.
const LIMIT: Duration = Duration::from_secs(5);
/// The largest answer that is read, in bytes.
const LARGEST: usize = 1024 * 1024;
/// How long an unused connection is kept; less than the service keeps it, so that none is used as it closes.
const KEPT: Duration = Duration::from_secs(30);

/// A pass that was given out.
#[derive(Debug)]
pub struct Minted {
    /// Its public name, to renew and revoke it by.
    pub id: PassId,
    /// What the agent gets.
    pub pass: Secret,
    /// How long it lives without being renewed.
    pub lease: Duration,
}

/// A call to the key service failed.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The address that is set cannot be one.
    #[error("`{0}` is not the address of a key service (such as `http://keys:4318`)")]
    Address(String),
    /// Nobody answers there.
    #[error("the key service at `{url}` does not answer")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        #[source]
        cause: hyper_util::client::legacy::Error,
    },
    /// No answer in time.
    #[error("the key service at `{url}` did not answer within {seconds} s", seconds = LIMIT.as_secs())]
    Slow {
        /// Where.
        url: String,
    },
    /// It does not know our control secret.
    #[error("the key service at `{0}` does not accept the control secret")]
    Control(String),
    /// The slot has no key (for the origin that it has now).
    #[error("{message}")]
    NoCredential {
        /// Which slot.
        slot: SlotName,
        /// The service's own sentence.
        message: String,
    },
    /// It will not, for another reason.
    #[error("{message}")]
    Refused {
        /// The service's own word for it.
        code: String,
        /// Its sentence.
        message: String,
    },
    /// What came is not what a key service says.
    #[error("the answer of the key service at `{url}` (status {status}) could not be read")]
    Strange {
        /// Where.
        url: String,
        /// Its status.
        status: u16,
    },
}

impl Explain for KeysError {
    fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "keys-address",
            Self::Unreachable { .. } => "keys-unreachable",
            Self::Slow { .. } => "keys-slow",
            Self::Control(_) => "keys-control",
            Self::NoCredential { .. } => "no-credential",
            Self::Refused { .. } => "keys-refused",
            Self::Strange { .. } => "keys-strange",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Address(_) => Some("set `--keys-url`".into()),
            Self::Unreachable { .. } | Self::Slow { .. } => {
                Some("see `worca container status` and `worca container logs keys`".into())
            }
            Self::Control(_) => Some("core and key service must be given the same control file".into()),
            Self::NoCredential { slot, .. } => Some(format!(
                "run `worca container login`, or try it without a key: `--model rehearsal` (slot `{slot}` needs one)"
            )),
            Self::Strange { .. } => Some("is it a key service of this version that listens there?".into()),
            Self::Refused { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Address(_) | Self::Control(_) => Exit::Refused,
            Self::NoCredential { .. } => Exit::Parked,
            Self::Unreachable { .. } | Self::Slow { .. } | Self::Refused { .. } | Self::Strange { .. } => {
                Exit::Failed
            }
        }
    }
}

/// A connection to the key service, cheap to clone.
#[derive(Clone)]
pub struct KeysClient {
    url: String,
    bearer: HeaderValue,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl std::fmt::Debug for KeysClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeysClient({})", self.url)
    }
}

impl KeysClient {
    /// `url` is the service's own (`http://keys:4318`), `control` the secret that both have.
    ///
    /// # Errors
    /// When the address is none, or the secret cannot be sent.
    pub fn new(url: &str, control: &Secret) -> Result<Self, KeysError> {
        let shown = || KeysError::Address(url.rsplit('@').next().unwrap_or("").chars().take(100).collect());
        let parsed = Url::parse(url).map_err(|_| shown())?;
        let bare = parsed.scheme() == "http"
            && parsed.path() == "/"
            && parsed.query().is_none()
            && parsed.fragment().is_none()
            && parsed.username().is_empty()
            && parsed.password().is_none();
        if !bare {
            return Err(shown());
        }
        let url = parsed.origin().ascii_serialization();
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", control.expose()))
            .map_err(|_| KeysError::Control(url.clone()))?;
        bearer.set_sensitive(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .build(HttpConnector::new());
        Ok(Self { url, bearer, client })
    }

    /// What an agent's `ANTHROPIC_BASE_URL` is for this slot.
    pub fn base_url(&self, slot: &SlotName) -> String {
        format!("{}/{slot}", self.url)
    }

    /// Asks for a pass. A pass that was made although the answer was lost dies with its lease.
    ///
    /// # Errors
    /// When the slot has no key, the service refuses, or does not answer.
    pub async fn mint(&self, wanted: &MintRequest) -> Result<Minted, KeysError> {
        let (status, body) = self.call(Method::POST, "/control/passes", json(wanted)).await?;
        if status != StatusCode::CREATED {
            return Err(self.refusal(status, &body, Some(&wanted.slot)));
        }
        let answer: MintAnswer = self.read(status, &body)?;
        Ok(Minted {
            id: answer.id,
            pass: Secret::new(answer.pass),
            lease: Duration::from_secs(answer.lease_seconds),
        })
    }

    /// Gives passes another lease, and says which of them are dead.
    ///
    /// # Errors
    /// When the service refuses or does not answer.
    pub async fn renew(&self, ids: &[PassId]) -> Result<Renewed, KeysError> {
        let wanted = RenewRequest { ids: ids.to_vec() };
        self.ask(Method::POST, "/control/passes/renew", json(&wanted)).await
    }

    /// Ends a pass, and says what became of it. Asked again, for ten minutes it says the same; what was used
    /// with a pass it says for as long as the books are kept.
    ///
    /// # Errors
    /// When the service refuses or does not answer; the pass then dies with its lease.
    pub async fn revoke(&self, id: &PassId) -> Result<Closing, KeysError> {
        self.ask(Method::DELETE, &format!("/control/passes/{id}"), Bytes::new()).await
    }

    /// Whether a person could use all of these slots now, and which of the caps that would count are reached.
    ///
    /// # Errors
    /// When the service refuses or does not answer.
    pub async fn ready(&self, person: &PersonId, slots: &[SlotName]) -> Result<Ready, KeysError> {
        let wanted = ReadyRequest { person: person.clone(), slots: slots.to_vec() };
        self.ask(Method::POST, "/control/ready", json(&wanted)).await
    }

    /// What was used.
    ///
    /// # Errors
    /// When the query makes no sense, or the service refuses or does not answer.
    pub async fn usage(&self, query: &UsageQuery) -> Result<Usage, KeysError> {
        let path = query_of(query);
        self.ask(Method::GET, &format!("/control/usage{path}"), Bytes::new()).await
    }

    /// The caps that stand, with what is spent of each.
    ///
    /// # Errors
    /// When the service refuses or does not answer.
    pub async fn caps(&self) -> Result<Caps, KeysError> {
        self.ask(Method::GET, "/control/caps", Bytes::new()).await
    }

    /// Sets these caps and leaves all others as they are. Says which stand then.
    ///
    /// # Errors
    /// When the service refuses or does not answer.
    pub async fn set_caps(&self, caps: &Caps) -> Result<Caps, KeysError> {
        self.ask(Method::PUT, "/control/caps", json(caps)).await
    }

    /// Removes these caps, where they stand. Says which stand then.
    ///
    /// # Errors
    /// When the service refuses or does not answer.
    pub async fn remove_caps(&self, scopes: &[CapScope]) -> Result<Caps, KeysError> {
        self.ask(Method::DELETE, "/control/caps", json(&scopes)).await
    }

    /// How the service is.
    ///
    /// # Errors
    /// When it refuses or does not answer.
    pub async fn status(&self) -> Result<Status, KeysError> {
        self.ask(Method::GET, "/control/status", Bytes::new()).await
    }

    /// A call whose answer is 200 with a value.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, KeysError> {
        let (status, body) = self.call(method, path, body).await?;
        if status != StatusCode::OK {
            return Err(self.refusal(status, &body, None));
        }
        self.read(status, &body)
    }

    async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Bytes), KeysError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() =
            format!("{}{path}", self.url).parse().map_err(|_| KeysError::Address(self.url.clone()))?;
        request.headers_mut().insert(AUTHORIZATION, self.bearer.clone());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let whole = async {
            let answer = self
                .client
                .request(request)
                .await
                .map_err(|cause| KeysError::Unreachable { url: self.url.clone(), cause })?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await;
            let body =
                body.map_err(|_| KeysError::Strange { url: self.url.clone(), status: status.as_u16() })?;
            Ok((status, body.to_bytes()))
        };
        tokio::time::timeout(LIMIT, whole)
            .await
            .unwrap_or_else(|_| Err(KeysError::Slow { url: self.url.clone() }))
    }

    fn read<T: serde::de::DeserializeOwned>(&self, status: StatusCode, body: &[u8]) -> Result<T, KeysError> {
        serde_json::from_slice(body)
            .map_err(|_| KeysError::Strange { url: self.url.clone(), status: status.as_u16() })
    }

    fn refusal(&self, status: StatusCode, body: &[u8], slot: Option<&SlotName>) -> KeysError {
        if status == StatusCode::UNAUTHORIZED {
            return KeysError::Control(self.url.clone());
        }
        match (self.read::<Refusal>(status, body), slot) {
            (Ok(refusal), Some(slot)) if refusal.error.code == code::NO_CREDENTIAL => {
                KeysError::NoCredential { slot: slot.clone(), message: refusal.error.message }
            }
            (Ok(refusal), _) => {
                KeysError::Refused { code: refusal.error.code, message: refusal.error.message }
            }
            (Err(error), _) => error,
        }
    }
}

fn json(value: &impl serde::Serialize) -> Bytes {
    // Only types of `wire` come here: none of them can fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// The query as it stands after a path.
fn query_of(query: &UsageQuery) -> String {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    if !query.by.is_empty() {
        pairs.append_pair("by", &query.by);
    }
    let optional = [
        ("run", query.run.as_ref().map(ToString::to_string)),
        ("person", query.person.as_ref().map(ToString::to_string)),
        ("since", query.since.map(|at| at.to_string())),
        ("until", query.until.map(|at| at.to_string())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            pairs.append_pair(name, &value);
        }
    }
    let query = pairs.finish();
    if query.is_empty() { String::new() } else { format!("?{query}") }
}
