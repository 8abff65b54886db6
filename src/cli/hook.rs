//! `worca hook pre-tool-use [--policy FILE]`: called by the agent program before each tool call. Starts no runtime
//! and no argument parser; anything unexpected, a panic and a hang too, ends with exit code 2, which denies.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The program takes a hook that is slower than its own limit (60 s) for consent: we deny long before.
const LIMIT: Duration = Duration::from_secs(20);

const USAGE: &str = "\
Judge one tool call of an agent, given as JSON on standard input.

Usage: worca hook pre-tool-use [--policy FILE]

Without --policy the file named by WORCA_HOOK_POLICY holds, and without that the policy of the box.
Prints nothing for a call that may run, one JSON object for a call that is denied; exit code 2 denies as well.

Example:
  worca hook pre-tool-use --policy ~/.worca/runs/r0123456789/policy.json < call.json
";

/// Runs the hook with the arguments after the word `hook`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let policy = match arguments {
        [name] if name == "pre-tool-use" => std::env::var_os("WORCA_HOOK_POLICY").map(PathBuf::from),
        [name, flag, file] if name == "pre-tool-use" && flag == "--policy" => Some(PathBuf::from(file)),
        [.., flag] if flag == "--help" || flag == "-h" => {
            let _ = write!(std::io::stdout(), "{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            let _ = write!(
                std::io::stderr(),
                "error: `worca hook` was called in another way than it knows\n\n{USAGE}"
            );
            return ExitCode::from(2);
        }
    };
    let (told, answer) = std::sync::mpsc::channel();
    // A thread of its own, so that neither a panic nor a hang of it is the answer. It ends with the process.
    std::thread::spawn(move || {
        let code = crate::guardrails::pre_tool_use(
            policy.as_deref(),
            std::io::stdin().lock(),
            std::io::stdout().lock(),
            std::io::stderr().lock(),
        );
        let _ = told.send(code);
    });
    match answer.recv_timeout(LIMIT) {
        Ok(code) => ExitCode::from(code),
        Err(_) => {
            let _ = writeln!(std::io::stderr(), "worca: the hook failed, so this call is denied");
            ExitCode::from(2)
        }
    }
}
