//! The box from outside: what `worca container` writes, plans and applies on a container engine.
//!
//! It never imports `runs` or `server`, and it never touches what does not carry this box's labels.

pub mod compose;
