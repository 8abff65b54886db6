//! Worca: a container-first orchestrator for coding agents.
//!
//! A folder is a room with one job. Upper floors use lower ones, never the other way; `tests/architecture.rs`
//! holds the house together and docs/architecture.md draws it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod agents;
pub mod amount;
pub mod cli;
pub mod clock;
pub mod container;
pub mod events;
pub mod failure;
pub mod findings;
pub mod git;
pub mod guardrails;
pub mod home;
pub mod http;
pub mod ids;
pub mod keys;
pub mod runs;
pub mod secret;
pub mod server;
pub mod spawn;
pub mod store;
