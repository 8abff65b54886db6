//! Tries what the rules forbid, from inside the domain. Nothing that is tried does harm where it works: nothing is
//! written, cut or kept, and a signal only asks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, open, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::guardrails::{KernelSupport, Outcome, Probe, Tried};

/// No rules have more.
pub(super) const MAX_PROBES: usize = 256;

/// Tries each one, in order.
pub(super) fn try_all(probes: &[Probe]) -> Vec<Tried> {
    probes.iter().map(|probe| Tried { probe: probe.clone(), outcome: attempt(probe) }).collect()
}

/// Whether this kernel can hold what the probe tries at all.
pub(super) fn can_hold(support: KernelSupport, probe: &Probe) -> bool {
    match probe {
        Probe::Read(_) | Probe::Write(_) | Probe::Create(_) | Probe::List(_) => support.files,
        Probe::Signal(_) => support.signals,
        Probe::Connect(_) => support.tcp,
    }
}

/// What a probe does, in words.
pub(super) fn words(probe: &Probe) -> String {
    match probe {
        Probe::Read(path) => format!("reading `{}`", path.display()),
        Probe::Write(path) => format!("writing `{}`", path.display()),
        Probe::Create(path) => format!("making a file in `{}`", path.display()),
        Probe::List(path) => format!("listing `{}`", path.display()),
        Probe::Signal(pid) => format!("signalling process {pid}"),
        Probe::Connect(port) => format!("connecting to port {port}"),
    }
}

fn attempt(probe: &Probe) -> Outcome {
    match probe {
        Probe::Read(path) => on_file(path, OFlags::RDONLY),
        Probe::Write(path) => on_file(path, OFlags::WRONLY),
        Probe::Create(folder) => create(folder),
        Probe::List(folder) => {
            outcome(open(folder, QUIET | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()))
        }
        Probe::Signal(pid) => match i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            Some(pid) => outcome(rustix::process::test_kill_process(pid)),
            None => Outcome::Absent,
        },
        Probe::Connect(port) => [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            .into_iter()
            .map(|address| reach(SocketAddr::new(address, *port)))
            .fold(Outcome::Absent, |all, one| match (all, one) {
                (Outcome::Open, _) | (_, Outcome::Open) => Outcome::Open,
                (Outcome::Held, _) | (_, Outcome::Held) => Outcome::Held,
                (Outcome::Absent, Outcome::Absent) => Outcome::Absent,
            }),
    }
}

/// Waits for nothing, takes no terminal, leaves nothing open.
const QUIET: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A folder to start a path at; needs no right on it where the system can do that.
#[cfg(target_os = "linux")]
const WAY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const WAY: OFlags = OFlags::RDONLY;

/// Opening a device or a pipe can do something by itself; they are not tried.
fn on_file(path: &Path, how: OFlags) -> Outcome {
    match statat(CWD, path, AtFlags::empty()) {
        Ok(seen) if FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile => {
            outcome(open(path, QUIET | how, Mode::empty()))
        }
        Ok(_) => Outcome::Absent,
        Err(error) => outcome::<()>(Err(error)),
    }
}

fn create(folder: &Path) -> Outcome {
    let folder = match open(folder, WAY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(folder) => folder,
        Err(error) => return outcome::<()>(Err(error)),
    };
    let name = format!(".worca-probe-{}", std::process::id());
    let how = QUIET | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let made = openat(&folder, &name, how, Mode::RUSR | Mode::WUSR);
    if made.is_ok() {
        let _ = unlinkat(&folder, &name, AtFlags::empty());
    }
    outcome(made)
}

/// A connection that is refused by nobody listening has passed the kernel's rules.
fn reach(address: SocketAddr) -> Outcome {
    match connect(address) {
        Err(Errno::ACCESS | Errno::PERM) => Outcome::Held,
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::NETUNREACH) => Outcome::Absent,
        Ok(()) | Err(_) => Outcome::Open,
    }
}

/// Waits for no answer.
#[cfg(target_os = "linux")]
fn connect(address: SocketAddr) -> rustix::io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::connect(socket, &address)
}

/// Waits a moment, where a socket cannot be made without waiting.
#[cfg(not(target_os = "linux"))]
fn connect(address: SocketAddr) -> rustix::io::Result<()> {
    let connected = std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(1));
    connected.map(|_| ()).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::TIMEDOUT))
}

/// Only a refusal is a refusal: whatever else comes is not taken for one.
fn outcome<T>(result: rustix::io::Result<T>) -> Outcome {
    match result {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Outcome::Held,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::SRCH | Errno::TXTBSY | Errno::LOOP) => Outcome::Absent,
        Ok(_) | Err(_) => Outcome::Open,
    }
}
