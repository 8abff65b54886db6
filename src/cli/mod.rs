//! The command line: clap types and terminal output, one file per command group. Decides nothing.

pub mod hook;
pub mod shim;

use std::ffi::OsString;
use std::process::ExitCode;

/// The roles that must start in a moment and need no runtime and no parser: `worca shim` and `worca hook`.
/// `main` asks this before anything else; `None` means that the command line is an ordinary one.
pub fn early(arguments: &[OsString]) -> Option<ExitCode> {
    let (role, rest) = arguments.get(1..)?.split_first()?;
    match role.to_str()? {
        "shim" => Some(shim::run(rest)),
        "hook" => Some(hook::run(rest)),
        _ => None,
    }
}
