//! Opens an address in the user's browser: one of the few places that start a process.

use std::process::{Command, Stdio};

/// Opens it, and gives whether the system's opener was started. Never a shell: the address is one argument.
pub fn open(url: &str) -> bool {
    // A text terminal of another machine has no browser worth opening.
    let remote = std::env::var_os("SSH_CONNECTION").is_some() && std::env::var_os("DISPLAY").is_none();
    if remote || !(url.starts_with("http://") || url.starts_with("https://")) {
        return false;
    }
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    #[expect(clippy::disallowed_methods, reason = "the system's own way to open an address")]
    let mut command = Command::new(program);
    command.args(first).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
