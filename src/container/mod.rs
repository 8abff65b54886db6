//! The box from outside: what `worca container` writes, plans and applies on a container engine.
//!
//! It never imports `runs` or `server`, never signals a host process, and never touches a container, network or
//! volume that does not carry this box's labels.

pub mod boxes;
pub mod compose;
pub mod engine;
pub mod files;
pub mod image;
pub mod port;
pub mod projects;
pub mod report;
pub mod secrets;
pub mod verbs;
