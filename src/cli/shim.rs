//! `worca shim`: started by core, never by a person.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the role with the arguments after its name.
#[cfg(unix)]
pub fn run(arguments: &[OsString]) -> ExitCode {
    crate::spawn::shim_main(arguments)
}

/// Refuses: nothing here can hold a process and all its children.
#[cfg(not(unix))]
pub fn run(_arguments: &[OsString]) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(
        std::io::stderr(),
        "error: agents do not run on this system\n\nhint: use `worca container up`"
    );
    ExitCode::from(crate::failure::Exit::Refused as u8)
}
