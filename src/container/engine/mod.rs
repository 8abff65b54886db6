//! Docker and Podman through their API: find one, compare what is wanted with what is there, apply, look inside.
//!
//! The only place that names bollard. Nothing here reads a compose file or decides what a box is.

pub mod address;
pub mod apply;
pub mod connect;
pub mod credentials;
pub mod discover;
pub mod error;
pub mod exec;
pub mod found;
pub mod labels;
pub mod logs;
pub mod oneshot;
pub mod plan;
pub mod pull;
mod translate;
pub mod wait;
pub mod wanted;

pub use address::Address;
pub use connect::{Engine, EngineVersion};
pub use discover::{Surroundings, discover};
pub use error::EngineError;
pub use plan::plan;
pub use wanted::wanted;
