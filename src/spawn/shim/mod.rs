//! The `shim` role: one small process above each agent. It confines, starts, watches and ends; it copies no
//! stream, keeps no thread pool and knows nothing of runs. See the parent for what it holds.
//!
//! Two stages, because nothing may run between fork and exec in safe code: `worca shim` is the one that stays, outside
//! the agent's domain; `worca shim --exec PARENT -- PROGRAM …` puts itself into it, tries it, and becomes the agent.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
use other as system;

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::wire::{Description, MAX_DESCRIPTION, Refusal, Report};
use crate::guardrails::Receipt;

/// Runs the role; `arguments` are those after the word `shim`.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [] => hold(),
        [stage, parent, dashes, program, rest @ ..] if stage == "--exec" && dashes == "--" => {
            system::become_agent(parent, program, rest)
        }
        _ => refuse("`worca shim` takes no arguments: core starts it"),
    }
}

fn refuse(sentence: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {sentence}");
    ExitCode::from(2)
}

fn hold() -> ExitCode {
    close_inherited();
    let stdin = std::io::stdin();
    let socket = rustix::fs::fstat(stdin.as_fd())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket);
    let control = match stdin.as_fd().try_clone_to_owned() {
        Ok(descriptor) if socket => UnixStream::from(descriptor),
        _ => return refuse("`worca shim` is started by core, which talks to it over its standard input"),
    };
    match start(&control) {
        Ok((agent, receipt)) => {
            tell(&control, &Report::Started { pid: agent, receipt });
            let (report, code) = system::watch(&control, agent);
            tell(&control, &report);
            code
        }
        Err(why) => {
            tell(&control, &Report::Refused(why));
            ExitCode::FAILURE
        }
    }
}

/// A core that is gone cannot be told anything; what had to be ended was ended before.
fn tell(mut control: &UnixStream, report: &impl serde::Serialize) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = control.write_all(&line);
    }
}

/// Descriptors that whoever started core left open would be the agent's too.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir(system::DESCRIPTORS) else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The one of the listing itself is closed by now: an error here says just that.
        let _ = nix::unistd::close(descriptor);
    }
}

fn start(control: &UnixStream) -> Result<(u32, Receipt), Refusal> {
    rustix::process::setsid().map_err(|error| format!("no session of its own: {error}"))?;
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::setrlimit(rustix::process::Resource::Core, none)
        .map_err(|error| format!("core dumps could not be switched off: {error}"))?;
    system::confine()?;

    let mut reader = BufReader::new(control);
    let mut line = Vec::new();
    reader
        .by_ref()
        .take(MAX_DESCRIPTION as u64)
        .read_until(b'\n', &mut line)
        .map_err(|error| format!("the description did not arrive: {error}"))?;
    // No detail of a parse error: it could quote a value.
    let description: Description =
        serde_json::from_slice(&line).map_err(|_| "the description is not one of this version".to_owned())?;
    let stdin = system::standard_input(&mut reader, description.stdin)?;
    let program = find(&description)?;
    let directory = Path::new(&description.directory);
    if !directory.is_dir() {
        return Err(format!("the working folder `{}` is not a folder", directory.display()).into());
    }
    system::begin(control, &program, &description, stdin)
}

/// The file that will be executed: looked up here so that a missing one is an error and not an exit code.
fn find(description: &Description) -> Result<PathBuf, String> {
    let name = Path::new(&description.program);
    let runs = |file: &Path| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if description.program.as_bytes().contains(&b'/') {
        let file = Path::new(&description.directory).join(name);
        return runs(&file)
            .then_some(file)
            .ok_or_else(|| format!("`{}` is not a program that can be run", name.display()));
    }
    let path =
        description.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    std::env::split_paths(path.unwrap_or(OsStr::new("")))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| runs(file))
        .ok_or_else(|| format!("the program `{}` was not found in PATH", name.display()))
}

/// Copies exactly `size` bytes.
fn copy_exactly(from: &mut impl Read, to: &mut impl std::io::Write, size: u64) -> std::io::Result<()> {
    let copied = std::io::copy(&mut from.take(size), to)?;
    if copied == size { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is spawn's shim: the one place where an agent is started"
)]
fn new_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command
}
