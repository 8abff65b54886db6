//! A core on port 0 with a real store, asked over real sockets.

mod errors;
mod events;
mod gate;
mod guardrails;
mod links;
mod lock;
mod money;
mod routes;
pub(crate) mod support;
