//! The answers that are this service's own, and the body type of all answers.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// A body was cut.
#[derive(Debug, thiserror::Error)]
pub(super) enum CutError {
    /// The other side broke off.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
    /// Nothing came for too long.
    #[error("nothing came for too long")]
    Idle,
    /// More came than is taken.
    #[error("more came than is taken")]
    TooLarge,
    /// A scenario says so.
    #[error("the scenario breaks off here")]
    Scripted,
    /// The call is not made.
    #[error("the call is not made")]
    Denied,
}

/// What every answer carries.
pub(super) type Reply = UnsyncBoxBody<Bytes, CutError>;

/// What a caller is told of any pass that does not open what it asked for: dead, foreign, missing or misused.
pub(super) const NO_PASS: &str = "worca: this pass is not valid here (key service)";

/// An answer with a JSON text.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer with a value as JSON.
pub(super) fn value(status: StatusCode, value: &impl serde::Serialize) -> Response<Reply> {
    // Only types of `wire` come here: none of them can fail.
    json(status, serde_json::to_vec(value).unwrap_or_default())
}

/// Nothing.
pub(super) fn no_body() -> Reply {
    Full::default().map_err(|never| match never {}).boxed_unsync()
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(no_body());
    *response.status_mut() = status;
    response
}

/// An error in the shape that the Messages API gives its own.
pub(super) fn error(status: StatusCode, kind: &str, message: &str) -> Response<Reply> {
    json(status, error_text(kind, message))
}

/// The JSON text of such an error, also for an `error` event in a stream.
pub(super) fn error_text(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

/// The one answer to every pass that is not valid: the same bytes each time. Never 401, which an agent retries.
pub(super) fn no_pass() -> Response<Reply> {
    error(StatusCode::FORBIDDEN, "permission_error", NO_PASS)
}

/// What is asked for does not exist here.
pub(super) fn not_found() -> Response<Reply> {
    error(StatusCode::NOT_FOUND, "not_found_error", "worca: the key service does not offer this path")
}

/// The body is over the limit.
pub(super) fn too_large(limit: u64) -> Response<Reply> {
    let message = format!("worca: the request is over {} MB", limit / (1024 * 1024));
    error(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", &message)
}
