//! The command line: one file per command. It parses, calls the library and prints; it decides nothing.

pub mod client;
pub mod health;
pub mod interrupt;
pub mod progress;
pub mod run;
pub mod runs;
pub mod serve;
pub mod show;
pub mod stop;
pub mod text;
