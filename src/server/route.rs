//! The table of all paths: what each is for, who may use it. Nothing is reachable that is not in it.

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;

use super::app::App;
use super::gate;
use super::reply::{ApiError, RequestError};
use super::routes::{events, guardrails, links, money, openapi, page, runs, settings, status};

/// Who may use a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody: it gives nothing away.
    Open,
    /// Who holds the core token, and a signed-in browser.
    Read,
    /// Who holds the core token.
    Change,
}

/// One path with one method.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, as in the OpenAPI document.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// What answers.
    pub handler: MethodRouter<App>,
}

impl Route {
    /// A path that is read.
    pub fn get(path: &'static str, access: Access, handler: MethodRouter<App>) -> Self {
        Self { method: Method::GET, path, access, handler }
    }
    /// A path that changes something.
    pub fn post(path: &'static str, handler: MethodRouter<App>) -> Self {
        Self::change(Method::POST, path, handler)
    }
    /// A path that changes something, by a method of its own.
    pub fn change(method: Method, path: &'static str, handler: MethodRouter<App>) -> Self {
        Self { method, path, access: Access::Change, handler }
    }
}

/// Every path that core answers.
pub fn table() -> Vec<Route> {
    [
        page::routes(),
        status::routes(),
        links::routes(),
        runs::routes(),
        guardrails::routes(),
        money::routes(),
        events::routes(),
        settings::routes(),
        openapi::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The whole API, checks included.
pub fn router(app: &App) -> Router {
    let mut router = Router::new();
    for route in table() {
        let check = from_fn_with_state((app.clone(), route.access), gate::inner);
        router = router.route(route.path, route.handler.route_layer(check));
    }
    router
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(app.clone(), gate::outer))
        .with_state(app.clone())
}

async fn nothing(request: Request) -> ApiError {
    RequestError::Path(short(&request)).into()
}

async fn other_method(request: Request) -> ApiError {
    let method = request.method().as_str().chars().take(20).collect();
    RequestError::Method { path: short(&request), method }.into()
}

fn short(request: &Request) -> String {
    request.uri().path().chars().take(100).collect()
}
