//! A small JSON client for our own services: plain HTTP, one origin, a bearer.
//!
//! Every answer has a size limit and every call a time limit. It follows no redirect, reads no proxy setting
//! and never puts a header or a body into an error: only the status and the service's own sentence.

pub mod sse;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::client::legacy::{Client as Pool, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Exit, Explain};
use crate::secret::Secret;

/// How long one call may take, from the connection to the last byte, unless the client says otherwise.
pub const CALL_TIME: Duration = Duration::from_secs(10);
/// How many bytes an answer may have: a diff is paged far below this.
pub const ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// A client of one origin.
#[derive(Clone)]
pub struct Client {
    base: String,
    bearer: Option<Secret>,
    time: Duration,
    pool: Pool<HttpConnector, Full<Bytes>>,
}

/// A call did not end in what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The address is not one of plain HTTP.
    #[error("`{0}` is not an address such as `http://127.0.0.1:4317`")]
    Address(String),
    /// Nobody answers there.
    #[error("nothing answers on {base}")]
    Unreachable {
        /// The origin that was called.
        base: String,
        /// What the connection said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The time limit passed.
    #[error("{base} did not answer within {} s", .time.as_secs())]
    TooSlow {
        /// The origin that was called.
        base: String,
        /// The limit that passed.
        time: Duration,
    },
    /// The service refused or failed.
    #[error("{sentence}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The service's stable word, when it sent one.
        word: Option<String>,
        /// The service's sentence, or one made from the status.
        sentence: String,
        /// The service's hint, when it sent one.
        hint: Option<String>,
        /// The exit code that the service asks for, when it sent one.
        exit: Option<u8>,
    },
    /// The answer is larger than the limit, broken off, or not the JSON that was expected.
    #[error("{base} gave an answer that cannot be read: {why}")]
    Answer {
        /// The origin that was called.
        base: String,
        /// What is wrong with it, without its text.
        why: String,
    },
}

impl Explain for CallError {
    fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "address-invalid",
            Self::Unreachable { .. } => "service-unreachable",
            Self::TooSlow { .. } => "service-too-slow",
            Self::Refused { .. } => "service-refused",
            Self::Answer { .. } => "service-answer",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { hint, .. } => hint.clone(),
            Self::Unreachable { .. } | Self::TooSlow { .. } => Some(
                "start it with `worca container up` (in a box) or `worca serve`; with a box up, ask inside: \
                     `worca container shell core -- worca runs`"
                    .into(),
            ),
            Self::Address(_) | Self::Answer { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Address(_) | Self::Refused { exit: Some(2), .. } => Exit::Usage,
            Self::Refused { exit: Some(78), .. } => Exit::Refused,
            Self::Refused { exit: Some(3), .. } => Exit::Parked,
            _ => Exit::Failed,
        }
    }
}

impl Client {
    /// A client of the origin `base`, such as `http://127.0.0.1:4317`.
    ///
    /// # Errors
    /// When `base` is not a plain HTTP origin.
    pub fn new(base: &str) -> Result<Self, CallError> {
        let wrong = || CallError::Address(base.chars().take(200).collect());
        let url = url::Url::parse(base).map_err(|_| wrong())?;
        if url.scheme() != "http" || url.host_str().is_none() || !matches!(url.path(), "" | "/") {
            return Err(wrong());
        }
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CALL_TIME));
        connector.set_nodelay(true);
        let pool = Pool::builder(TokioExecutor::new()).pool_idle_timeout(CALL_TIME).build(connector);
        let base = url.origin().ascii_serialization();
        Ok(Self { base, bearer: None, time: CALL_TIME, pool })
    }

    /// The same client, which shows this bearer on each call.
    #[must_use]
    pub fn with_bearer(mut self, bearer: Secret) -> Self {
        self.bearer = Some(bearer);
        self
    }

    /// The same client with another time limit per call.
    #[must_use]
    pub fn with_time_limit(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// The origin that it calls.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for `path` and reads the JSON answer.
    ///
    /// # Errors
    /// When nobody answers in time, the service refuses, or the answer is not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let bytes = self.call(Method::GET, path, None).await?;
        self.read_json(&bytes)
    }

    /// Sends `body` as JSON to `path` and reads the JSON answer.
    ///
    /// # Errors
    /// When nobody answers in time, the service refuses, or the answer is not a `T`.
    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, CallError> {
        let bytes = self.call(Method::POST, path, Some(self.write_json(body)?)).await?;
        self.read_json(&bytes)
    }

    /// Puts `body` as JSON at `path` and reads the JSON answer.
    ///
    /// # Errors
    /// When nobody answers in time, the service refuses, or the answer is not a `T`.
    pub async fn put<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T, CallError> {
        let bytes = self.call(Method::PUT, path, Some(self.write_json(body)?)).await?;
        self.read_json(&bytes)
    }

    /// One call whose answer is read whole, whatever it is. A status of 400 or more is an error.
    ///
    /// # Errors
    /// When nobody answers in time, the service refuses, or the answer is over [`ANSWER_BYTES`].
    pub async fn call(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Bytes, CallError> {
        let work = async {
            let answer = self.send(method, path, body, &[]).await?;
            self.read(answer).await
        };
        tokio::time::timeout(self.time, work).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// One call whose answer is handed on while it arrives (an event stream). The time limit covers the answer's
    /// head alone; the caller limits the rest. A status of 400 or more is an error.
    ///
    /// # Errors
    /// When nobody answers in time, or the service refuses.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(header::HeaderName, String)],
    ) -> Result<Incoming, CallError> {
        let work = async {
            let answer = self.send(method, path, None, headers).await?;
            if answer.status().as_u16() >= 400 {
                return Err(self.read(answer).await.err().unwrap_or_else(|| self.too_slow()));
            }
            Ok(answer.into_body())
        };
        tokio::time::timeout(self.time, work).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        headers: &[(header::HeaderName, String)],
    ) -> Result<Response<Incoming>, CallError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", bearer.expose()));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|_| CallError::Address(format!("{}{path}", self.base).chars().take(200).collect()))?;
        self.pool
            .request(request)
            .await
            .map_err(|error| CallError::Unreachable { base: self.base.clone(), source: Box::new(error) })
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<Bytes, CallError> {
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES);
        let bytes = body.collect().await.map_err(|error| self.answer(error.to_string()))?.to_bytes();
        if status.as_u16() >= 400 { Err(refusal(status, &bytes)) } else { Ok(bytes) }
    }

    fn read_json<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, CallError> {
        serde_json::from_slice(bytes).map_err(|error| self.answer(describe_json(&error)))
    }

    fn write_json<B: Serialize>(&self, body: &B) -> Result<Bytes, CallError> {
        serde_json::to_vec(body).map(Bytes::from).map_err(|error| self.answer(describe_json(&error)))
    }

    fn answer(&self, why: String) -> CallError {
        CallError::Answer { base: self.base.clone(), why }
    }

    fn too_slow(&self) -> CallError {
        CallError::TooSlow { base: self.base.clone(), time: self.time }
    }
}

/// Where the JSON is wrong, without quoting it: an answer may hold anything.
fn describe_json(error: &serde_json::Error) -> String {
    format!("it is not the expected JSON (line {}, column {})", error.line(), error.column())
}

/// The service's own words: `{"error": {"code", "message", "hint"?, "exit"?}}`, or the same keys at the top.
fn refusal(status: StatusCode, body: &[u8]) -> CallError {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let inner = value.get("error").filter(|inner| inner.is_object()).unwrap_or(&value);
    let text = |key: &str| inner.get(key).and_then(|text| text.as_str()).map(one_line);
    CallError::Refused {
        status: status.as_u16(),
        word: text("code"),
        sentence: text("message").unwrap_or_else(|| format!("the service answered {status}")),
        hint: text("hint"),
        exit: inner.get("exit").and_then(serde_json::Value::as_u64).and_then(|exit| u8::try_from(exit).ok()),
    }
}

/// Text of another program, fit for a terminal: no control characters, not longer than a paragraph.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(600).collect()
}

#[cfg(test)]
mod tests;
