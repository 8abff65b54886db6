//! The command line: clap types and what is printed, one file per group of commands. No decisions.

pub mod keys;
