//! The key service: model keys in a vault, short-lived passes for agents, a proxy that puts the key on.
//!
//! A small program of its own that shares the binary. It never imports runs, server, spawn or store, never
//! follows a redirect, never retries, never buffers a model's answer, and never lets a key out: not in an
//! answer, a log line, a `Debug` print or a file that is not sealed.

mod admission;
mod answer;
mod books;
pub mod client;
mod control;
pub mod credential;
mod harden;
mod headers;
mod keyring;
pub mod meter;
mod own_file;
pub mod pass;
mod pattern;
mod proxy;
pub mod reach;
mod rehearsal;
pub mod secret_file;
pub mod serve;
mod shapes;
pub mod slot;
mod transfer;
mod upstream;
pub mod vault;
pub mod wire;

pub use books::BooksError;
pub use harden::harden;
pub use rehearsal::{check_scenario, scenario_names};
