//! `worca hook pre-tool-use [--policy FILE]`: called by the agent program before each tool call. Starts no runtime
//! and no argument parser; anything unexpected, a panic and a hang too, ends with exit code 2, which denies.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The program takes a hook that is slower than its own limit (60 s) for consent: we deny long before.
const LIMIT: Duration = Duration::from_secs(20);

/// The watch sleeps, writes one line and ends the process.
const WATCH_STACK: usize = 64 * 1024;

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
    // The watch is the thread and the judging is not: what a process of one thread does costs least, and this is
    // paid before each tool call. Neither a panic nor a hang is an answer: both deny.
    #[expect(clippy::disallowed_methods, reason = "the thread is there to wait, and nothing else runs on it")]
    let watch = std::thread::Builder::new().stack_size(WATCH_STACK).spawn(|| {
        std::thread::sleep(LIMIT);
        let _ = writeln!(std::io::stderr(), "worca: the hook took too long, so this call is denied");
        std::process::exit(2);
    });
    if watch.is_err() {
        let _ =
            writeln!(std::io::stderr(), "worca: the hook could not start its watch, so this call is denied");
        return ExitCode::from(2);
    }
    let judged = std::panic::catch_unwind(|| {
        let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        crate::guardrails::pre_tool_use(policy.as_deref(), input.lock(), output.lock(), errors.lock())
    });
    ExitCode::from(judged.unwrap_or_else(|_| {
        let _ = writeln!(std::io::stderr(), "worca: the hook failed, so this call is denied");
        2
    }))
}
