//! The command line: clap types and terminal output, one file per group of commands. Decides nothing.

pub mod browser;
pub mod container;
