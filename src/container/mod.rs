//! The box from outside: what `worca container` does on the host, to a Docker or Podman engine.
//!
//! It writes compose files and applies them through the engine's API. It never touches a container, network or
//! volume that does not carry this box's labels, never signals a host process, and knows nothing of runs or core's
//! inside but its HTTP address.

pub mod engine;
