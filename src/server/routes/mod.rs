//! The handlers, one file per resource. Each ends with the paths that it adds to the table.

pub mod events;
pub mod guardrails;
pub mod links;
pub mod money;
pub mod openapi;
pub mod page;
pub mod runs;
pub mod settings;
pub mod status;
