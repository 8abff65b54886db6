//! Whether core answers and whether the caller is signed in (open, and nothing more than that), and how core is
//! doing.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::get;

use crate::server::App;
use crate::server::gate;
use crate::server::reply::ApiResult;
use crate::server::route::{Access, Route};
use crate::server::wire::guard::KernelAnswer;
use crate::server::wire::{ErrorAnswer, HealthAnswer, SessionAnswer, StatusAnswer};

/// Says that core answers.
#[utoipa::path(get, path = "/health", responses((status = 200, body = HealthAnswer)))]
pub async fn health() -> Json<HealthAnswer> {
    Json(HealthAnswer { status: "ok".into() })
}

/// Says whether the caller is signed in. Open, so that a page that is not need not fail to learn it.
#[utoipa::path(get, path = "/api/session", responses((status = 200, body = SessionAnswer)))]
pub async fn session(State(app): State<App>, headers: HeaderMap) -> Json<SessionAnswer> {
    Json(SessionAnswer { signed_in: gate::may_read(&app, &headers) })
}

/// Says how core is doing.
#[utoipa::path(get, path = "/api/status", responses(
    (status = 200, body = StatusAnswer),
    (status = 401, body = ErrorAnswer),
))]
pub async fn status(State(app): State<App>) -> ApiResult<Json<StatusAnswer>> {
    let last_event = *app.store().watch_events().borrow();
    let alive_runs = app.store().alive_runs().await?.len();
    Ok(Json(StatusAnswer {
        version: env!("CARGO_PKG_VERSION").into(),
        last_event,
        alive_runs: number(alive_runs),
        streams: number(app.open_streams()),
        sessions: number(app.sessions().count(Instant::now())),
        kernel: KernelAnswer::of_this_machine(),
    }))
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/health", Access::Open, get(health)),
        Route::get("/api/session", Access::Open, get(session)),
        Route::get("/api/status", Access::Read, get(status)),
    ]
}
