//! One-time sign-in links: made by who holds the core token, opened by a browser.

use std::time::Instant;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::server::App;
use crate::server::page;
use crate::server::route::{Access, Route};
use crate::server::sessions::{LINK_LIFE, SESSION_LIFE};
use crate::server::wire::{ErrorAnswer, LinkAnswer};

/// Makes a sign-in link.
#[utoipa::path(post, path = "/api/links", responses(
    (status = 201, body = LinkAnswer),
    (status = 401, body = ErrorAnswer),
))]
pub async fn make(State(app): State<App>) -> (StatusCode, Json<LinkAnswer>) {
    (StatusCode::CREATED, Json(link(&app)))
}

/// A new link of this core.
pub fn link(app: &App) -> LinkAnswer {
    let secret = app.sessions().make_link(Instant::now());
    LinkAnswer {
        url: format!("{}/sign-in?token={}", app.public_url(), secret.expose()),
        expires_in_seconds: LINK_LIFE.as_secs(),
    }
}

/// Opens a session with a link's token, which is dead from then on.
#[utoipa::path(get, path = "/sign-in", params(("token" = String, Query, description = "From a sign-in link.")), responses(
    (status = 303, description = "Signed in: a session cookie, and on to the page."),
    (status = 403, description = "The link was used, or is too old."),
))]
pub async fn sign_in(State(app): State<App>, request: Request) -> Response {
    // A browser that only looks ahead must not use the link up.
    if looks_ahead(request.headers()) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let token = request
        .uri()
        .query()
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("token=")))
        .unwrap_or_default();
    let Some(session) = app.sessions().sign_in(token, Instant::now()) else {
        return page::link_is_dead();
    };
    let secure = if app.public_url().starts_with("https:") { "; Secure" } else { "" };
    let cookie = format!(
        "{}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{secure}",
        app.cookie(),
        session.expose(),
        SESSION_LIFE.as_secs()
    );
    let Ok(cookie) = HeaderValue::from_str(&cookie) else { return page::link_is_dead() };
    (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, HeaderValue::from_static("/"))])
        .into_response()
}

fn looks_ahead(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose"].into_iter().any(|name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("prefetch"))
    })
}

async fn no_head() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/links", post(make)),
        // A link checker's HEAD must not use the link up either.
        Route::get("/sign-in", Access::Open, get(sign_in).head(no_head)),
    ]
}
