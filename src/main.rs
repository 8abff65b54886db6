//! The `worca` program: dispatch and exit code, nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    worca::cli::early(&arguments).unwrap_or(ExitCode::from(2))
}
