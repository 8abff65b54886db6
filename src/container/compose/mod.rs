//! Compose files: read, interpolate, merge, check and write them, by Compose's own rules.
//!
//! Everything here is pure: text in, a model or text out. It never opens a file, a socket or the environment.
//! A key that Worca does not apply is an error that names its file and line, never dropped in silence.

pub mod dotenv;
pub mod interpolate;
pub mod load;
pub mod merge;
pub mod model;
pub mod parse;
pub mod place;
pub mod rules;
#[cfg(test)]
mod testing;
pub mod write;
pub mod yaml;
