//! Core's API: runs and their events over HTTP, sessions, and one plain page.
//!
//! It decides nothing about a run: it asks `runs` and reads `store`. It must never answer a request whose Host
//! it does not know, never hand out the core token, and never keep more of a stream than one page of it.

pub mod assemble;
pub mod gate;
pub mod hosts;
pub mod listen;
pub mod lock;
pub mod page;
pub mod port;
pub mod reply;
pub mod route;
pub mod routes;
pub mod serve;
pub mod sessions;
pub mod stream;
pub mod token;
pub mod wire;

mod app;
#[cfg(test)]
pub(crate) mod tests;

pub use app::App;
pub use route::router;
