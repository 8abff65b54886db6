//! Listening, and who has the port when we cannot.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::failure::{Exit, Explain};

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else has it.
    #[error("port {port} is taken{}", by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    Taken {
        /// The port.
        port: u16,
        /// Who, where that can be seen.
        by: Option<String>,
    },
    /// Anything else.
    #[error("core cannot listen on `{address}`")]
    Other {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl Explain for ListenError {
    fn code(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "port-taken",
            Self::Other { .. } => "listen-impossible",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Taken { .. } => {
                "stop it, or choose another port: `--listen 127.0.0.1:PORT` (WORCA_LISTEN)".into()
            }
            Self::Other { .. } => "choose an address of this machine: `--listen 127.0.0.1:4317`".into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// How often another free port is tried when the system chose one whose twin is taken.
const TRIES: usize = 8;

/// Listens on `address`. For `127.0.0.1` it takes `[::1]` with the same port too: a browser asks there first for
/// `localhost`, and whoever else held it would be handed the sign-in links.
///
/// # Errors
/// When somebody else does, or the address is not ours.
pub async fn listen(address: SocketAddr) -> Result<Vec<TcpListener>, ListenError> {
    let mut tries = if address.port() == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        let first = bind(address).await?;
        if address.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
            return Ok(vec![first]);
        }
        let port = first.local_addr().map_or(address.port(), |address| address.port());
        match bind((Ipv6Addr::LOCALHOST, port).into()).await {
            Ok(twin) => return Ok(vec![first, twin]),
            // A machine without version 6 of the protocol has no `[::1]` that anybody could take.
            Err(ListenError::Other { .. }) => return Ok(vec![first]),
            Err(taken) if tries == 0 => return Err(taken),
            Err(_) => {}
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let port = address.port();
            let by = tokio::task::spawn_blocking(move || holder(port)).await.ok().flatten();
            Err(ListenError::Taken { port, by })
        }
        Err(source) => Err(ListenError::Other { address, source }),
    }
}

/// The process that listens on this port, as far as this user may see it.
#[cfg(target_os = "linux")]
fn holder(port: u16) -> Option<String> {
    use std::path::Path;
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, port))
        .collect();
    let holds = |process: &Path| {
        std::fs::read_dir(process.join("fd")).is_ok_and(|files| {
            files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
                inodes.iter().any(|inode| target.as_os_str() == format!("socket:[{inode}]").as_str())
            })
        })
    };
    let processes = std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    for process in processes {
        let Some(pid) = process.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else {
            continue;
        };
        if holds(&process) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
            return Some(format!("process `{name}` (pid {pid})"));
        }
    }
    None
}

/// The inodes of the sockets that listen on this port: columns 2, 4 and 10 of `/proc/net/tcp` (proc(5)).
#[cfg(target_os = "linux")]
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    table
        .lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let local = columns.nth(1)?;
            let state = columns.nth(1)?;
            let inode = columns.nth(5)?;
            (local.ends_with(&wanted) && state == LISTEN).then(|| inode.to_owned())
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn holder(_: u16) -> Option<String> {
    None
}
