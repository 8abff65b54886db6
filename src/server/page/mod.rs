//! The page's files, built into the binary. They hold no data, so they are open; no script stands in the page
//! itself, and nothing is loaded from elsewhere.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

const INDEX: &str = include_str!("index.html");
const LINK_DEAD: &str = include_str!("link-dead.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");
const ICON: &str = include_str!("icon.svg");

fn file(status: StatusCode, kind: &'static str, text: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// The page itself.
pub fn index() -> Response {
    file(StatusCode::OK, "text/html; charset=utf-8", INDEX)
}

/// What a browser sees of a link that does not work any more.
pub fn link_is_dead() -> Response {
    file(StatusCode::FORBIDDEN, "text/html; charset=utf-8", LINK_DEAD)
}

/// Its looks.
pub fn style() -> Response {
    file(StatusCode::OK, "text/css; charset=utf-8", STYLE)
}

/// What it does.
pub fn script() -> Response {
    file(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT)
}

/// Its icon.
pub fn icon() -> Response {
    file(StatusCode::OK, "image/svg+xml", ICON)
}
