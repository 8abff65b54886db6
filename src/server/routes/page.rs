//! The page and its files. The same for everybody: what it shows, it reads from the API.

use axum::routing::get;

use crate::server::page;
use crate::server::route::{Access, Route};

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/", Access::Open, get(|| async { page::index() })),
        Route::get("/assets/style.css", Access::Open, get(|| async { page::style() })),
        Route::get("/assets/page.js", Access::Open, get(|| async { page::script() })),
        Route::get("/assets/icon.svg", Access::Open, get(|| async { page::icon() })),
        Route::get("/favicon.ico", Access::Open, get(|| async { page::icon() })),
    ]
}
