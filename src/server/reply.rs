//! Answers: how an error looks over HTTP, and how a JSON body is read. A body that is not exactly what was asked
//! for is refused with a sentence.

use std::time::Duration;

use axum::Json;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::wire::{ErrorAnswer, ErrorBody};
use crate::failure::{Exit, Explain};

/// How large a request may be: a prompt of 512 KiB, with room for what JSON adds to it.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;
/// How long a request's body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// An error on its way to a client.
#[derive(Debug)]
pub struct ApiError {
    code: &'static str,
    status: StatusCode,
    body: Box<ErrorBody>,
}

/// A result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

impl<E: Explain> From<E> for ApiError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        let (code, exit) = (error.code(), error.exit());
        let body = Box::new(ErrorBody { code: code.into(), message, hint: error.hint(), exit: exit as u8 });
        Self { code, status: status(code, exit), body }
    }
}

/// The status of an error: by its stable word where HTTP has a fitting one, else by its exit code.
fn status(code: &str, exit: Exit) -> StatusCode {
    match code {
        "signed-out" => StatusCode::UNAUTHORIZED,
        "host-foreign" => StatusCode::MISDIRECTED_REQUEST,
        "origin-foreign" | "session-reads-only" | "link-dead" => StatusCode::FORBIDDEN,
        "path-unknown" | "run-unknown" | "diff-none" | "guardrails-none" | "budget-none" => {
            StatusCode::NOT_FOUND
        }
        "method-unknown" => StatusCode::METHOD_NOT_ALLOWED,
        "run-ended"
        | "run-finishing"
        | "run-moving"
        | "run-alive"
        | "worktree-gone"
        | "branch-exists"
        | "branch-in-the-way"
        | "worktree-folder-exists"
        | "git-locked"
        | "guardrails-tier"
        | "guardrails-exists"
        | "guardrails-extended"
        | "guardrails-needed" => StatusCode::CONFLICT,
        "guardrails-unknown"
        | "guardrails-document"
        | "guardrails-base-unknown"
        | "guardrails-circle"
        | "guardrails-deep"
        | "guardrails-rules"
        | "guardrails-breaks" => StatusCode::UNPROCESSABLE_ENTITY,
        "keys-unreachable" | "keys-refused" | "keys-strange" => StatusCode::BAD_GATEWAY,
        "keys-slow" => StatusCode::GATEWAY_TIMEOUT,
        "body-too-large" | "prompt-too-long" => StatusCode::PAYLOAD_TOO_LARGE,
        "body-type" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "streams-full" | "ending" => StatusCode::SERVICE_UNAVAILABLE,
        "disk-full" => StatusCode::INSUFFICIENT_STORAGE,
        _ => match exit {
            Exit::Usage => StatusCode::BAD_REQUEST,
            Exit::Parked => StatusCode::CONFLICT,
            Exit::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            Exit::Done | Exit::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::warn!(code = self.code, "a request failed: {}", self.body.message);
        }
        let mut response = (self.status, Json(ErrorAnswer { error: *self.body })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// A request that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing is at this path.
    #[error("there is nothing at `{0}`")]
    Path(String),
    /// The path does not take this method.
    #[error("`{path}` does not take `{method}`")]
    Method {
        /// The path.
        path: String,
        /// The method.
        method: String,
    },
    /// The body is not declared to be JSON.
    #[error("the body must be JSON: send `content-type: application/json`")]
    BodyType,
    /// The body is not declared to be YAML or JSON.
    #[error("the body must be YAML or JSON: send `content-type: application/yaml` or `application/json`")]
    YamlBodyType,
    /// The body is over the limit.
    #[error("the body is larger than {} MiB", BODY_BYTES / (1024 * 1024))]
    BodySize,
    /// The body did not come.
    #[error("the body did not arrive whole within {} s", BODY_TIME.as_secs())]
    BodySlow,
    /// The body is not what was asked for.
    #[error("the body is not what this path takes: {0}")]
    Body(String),
    /// A parameter is not what was asked for.
    #[error("`{name}` is not right: {why}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl Explain for RequestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Path(_) => "path-unknown",
            Self::Method { .. } => "method-unknown",
            Self::BodyType | Self::YamlBodyType => "body-type",
            Self::BodySize => "body-too-large",
            Self::BodySlow => "body-too-slow",
            Self::Body(_) => "body-invalid",
            Self::Parameter { .. } => "parameter-invalid",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Path(_) | Self::Method { .. } => Some("`GET /api/openapi.json` lists all there is".into()),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// The body of a request, read as JSON.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        if kind(request.headers()).as_deref() != Some("application/json") {
            return Err(RequestError::BodyType.into());
        }
        let bytes = whole(request).await?;
        serde_json::from_slice(&bytes)
            .map(Body)
            .map_err(|error| RequestError::Body(crate::events::cut_to(&error.to_string(), 300)).into())
    }
}

/// The same for a body that may be left out: then it is what `T` is by default.
pub struct BodyOrNone<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for BodyOrNone<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        if axum::body::HttpBody::is_end_stream(request.body()) {
            return Ok(Self(T::default()));
        }
        Body::from_request(request, state).await.map(|Body(value)| Self(value))
    }
}

/// The body of a request as text: YAML, or JSON, which is YAML too.
pub struct YamlBody(pub String);

impl<S: Send + Sync> FromRequest<S> for YamlBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let known = ["application/json", "application/yaml", "application/x-yaml", "text/yaml"];
        if !kind(request.headers()).is_some_and(|kind| known.contains(&kind.as_str())) {
            return Err(RequestError::YamlBodyType.into());
        }
        let bytes = whole(request).await?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(RequestError::Body("it is not UTF-8".into()).into()),
        }
    }
}

/// The body, read with a limit and in time.
async fn whole(request: Request) -> Result<Bytes, RequestError> {
    match tokio::time::timeout(BODY_TIME, to_bytes(request.into_body(), BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(RequestError::BodySize),
        Err(_) => Err(RequestError::BodySlow),
    }
}

/// The content type without its parameters, in small letters.
fn kind(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next()?.trim().to_ascii_lowercase())
}
