//! `worca hook pre-tool-use [--policy FILE]`: called by the agent program before each tool call. Starts no runtime
//! and no argument parser; anything unexpected, a panic and a hang too, ends with exit code 2, which denies.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// The program takes a hook that is slower than its own limit (60 s) for consent: we deny long before.
const LIMIT_SECONDS: u32 = 20;

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
    if let Err(error) = watch() {
        let _ = writeln!(
            std::io::stderr(),
            "worca: the hook could not start its watch, so this call is denied: {error}"
        );
        return ExitCode::from(2);
    }
    // Neither a panic nor a hang is an answer: both deny.
    let judged = std::panic::catch_unwind(|| {
        let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        crate::guardrails::pre_tool_use(policy.as_deref(), input.lock(), output.lock(), errors.lock())
    });
    ExitCode::from(judged.unwrap_or_else(|_| {
        let _ = writeln!(std::io::stderr(), "worca: the hook failed, so this call is denied");
        2
    }))
}

/// Ends this process with 2 after the limit, whatever it hangs in. By an alarm and not by a thread: a process of one
/// thread costs less, above all on a busy machine (it need not wait for the other one to end), and this is paid before
/// each tool call.
#[cfg(unix)]
fn watch() -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, Signal};

    let always = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(Signal::SIGALRM as i32, 2, always)?;
    SigSet::from(Signal::SIGALRM).thread_unblock()?;
    nix::unistd::alarm::set(LIMIT_SECONDS);
    Ok(())
}

#[cfg(not(unix))]
fn watch() -> std::io::Result<()> {
    let limit = std::time::Duration::from_secs(u64::from(LIMIT_SECONDS));
    let slept = move || {
        std::thread::sleep(limit);
        std::process::exit(2);
    };
    std::thread::Builder::new().stack_size(64 * 1024).spawn(slept).map(drop)
}
