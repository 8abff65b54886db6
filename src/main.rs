//! The `worca` program: parse, dispatch, exit code. Nothing else.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use worca::cli::{self, Cli};
use worca::failure::Exit;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = cli::early(&arguments) {
        return code;
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    let _log = cli.log();
    let runtime = match cli.runtime().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "error: the program could not start its threads\n  because: {error}"
            );
            return ExitCode::from(Exit::Failed as u8);
        }
    };
    let exit = match runtime.block_on(cli.run()) {
        Ok(exit) => exit,
        Err(failure) => {
            let _ = write!(std::io::stderr(), "{}", failure.render());
            failure.exit()
        }
    };
    // A read of the terminal cannot be broken off; the program ends all the same.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ExitCode::from(exit as u8)
}
