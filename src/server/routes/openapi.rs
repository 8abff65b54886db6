//! The document of all paths. A test holds it against the table.

use axum::Json;
use axum::routing::get;
use utoipa::OpenApi;

use super::{events, guardrails, links, money, runs, settings, status};
use crate::server::route::{Access, Route};
use crate::server::wire;

/// The OpenAPI document of core.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Worca core",
        description = "Runs of coding agents and what happens in them. \
          Send the core token as a Bearer; a signed-in browser can read."
    ),
    paths(
        status::health,
        status::session,
        status::status,
        links::make,
        links::sign_in,
        runs::list,
        runs::create,
        runs::show,
        runs::stop,
        runs::resume,
        runs::diff,
        guardrails::list,
        guardrails::show,
        guardrails::put,
        guardrails::delete,
        money::costs,
        money::list,
        money::set,
        money::remove,
        events::of_run,
        events::of_all,
        settings::list,
        settings::change,
        document,
    ),
    components(schemas(wire::StreamEnd))
)]
pub struct Document;

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", responses((status = 200, description = "OpenAPI, as JSON.")))]
pub async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![Route::get("/api/openapi.json", Access::Read, get(document))]
}
