//! What happens, live: of one run until it has ended, or of all runs for as long as the client stays.

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::runs::{RunPath, RunRequestError};
use crate::events::StoredEvent;
use crate::failure::{Exit, Explain};
use crate::ids::RunId;
use crate::server::App;
use crate::server::app::STREAMS;
use crate::server::gate::Caller;
use crate::server::reply::{ApiResult, RequestError};
use crate::server::route::{Access, Route};
use crate::server::stream::Follow;
use crate::server::wire::ErrorAnswer;

/// All places are taken.
#[derive(Debug, thiserror::Error)]
#[error("core already has {STREAMS} open event streams")]
pub struct StreamsFull;

impl Explain for StreamsFull {
    fn code(&self) -> &'static str {
        "streams-full"
    }
    fn hint(&self) -> Option<String> {
        Some("close a page or a `worca run` that follows, and try again".into())
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Where to go on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    after: Option<i64>,
}

type AfterQuery = Result<Query<After>, QueryRejection>;

/// Follows one run. Ends with an event named `end` once the run has ended.
#[utoipa::path(get, path = "/api/runs/{id}/events", params(
    ("id" = String, Path, description = "The run."),
    ("after" = Option<i64>, Query, description = "Only events after this number."),
    ("Last-Event-ID" = Option<i64>, Header, description = "The same, and it counts more."),
), responses(
    (status = 200, body = StoredEvent, content_type = "text/event-stream",
     description = "Server-sent events: `id` is the number, `data` one event as JSON; the last is `event: end`."),
    (status = 401, body = ErrorAnswer),
    (status = 404, body = ErrorAnswer),
    (status = 503, body = ErrorAnswer, description = "Too many streams are open."),
))]
pub async fn of_run(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RunPath(id): RunPath,
    query: AfterQuery,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let after = after(&app, query, &headers)?;
    if app.store().run(&id).await?.is_none() {
        return Err(RunRequestError::Unknown(id).into());
    }
    follow(app, Some(id), after, caller)
}

/// Follows all runs.
#[utoipa::path(get, path = "/api/events", params(
    ("after" = Option<i64>, Query, description = "Only events after this number."),
    ("Last-Event-ID" = Option<i64>, Header, description = "The same, and it counts more."),
), responses(
    (status = 200, body = StoredEvent, content_type = "text/event-stream",
     description = "Server-sent events: `id` is the number, `data` one event as JSON."),
    (status = 401, body = ErrorAnswer),
    (status = 503, body = ErrorAnswer, description = "Too many streams are open."),
))]
pub async fn of_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    query: AfterQuery,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let after = after(&app, query, &headers)?;
    follow(app, None, after, caller)
}

/// A browser that comes back sends the header and still has the first address, so the header counts more.
fn after(app: &App, query: AfterQuery, headers: &HeaderMap) -> Result<i64, RequestError> {
    let wrong = |name, why: &str| RequestError::Parameter { name, why: why.into() };
    let Query(query) = query.map_err(|error| wrong("after", &error.body_text()))?;
    let (name, after) = match headers.get("last-event-id") {
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.parse().ok());
            ("Last-Event-ID", number.ok_or_else(|| wrong("Last-Event-ID", "it is not a number"))?)
        }
        None => ("after", query.after.unwrap_or(0)),
    };
    let newest = *app.store().watch_events().borrow();
    if (0..=newest).contains(&after) {
        return Ok(after);
    }
    // Of another database, then: waiting for that number would be waiting in silence.
    Err(wrong(name, &format!("there is no event {after} here; the newest is {newest}")))
}

fn follow(app: App, run: Option<RunId>, after: i64, caller: Caller) -> ApiResult<Response> {
    let place = app.stream_place().ok_or(StreamsFull)?;
    let body = Body::from_stream(Follow::new(app, run, after, caller, place).into_stream());
    let kind = HeaderValue::from_static("text/event-stream");
    // Tells a proxy that holds answers back to hand this one on at once.
    let no_buffer = (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(([(header::CONTENT_TYPE, kind), no_buffer], body).into_response())
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/runs/{id}/events", Access::Read, get(of_run)),
        Route::get("/api/events", Access::Read, get(of_all)),
    ]
}
