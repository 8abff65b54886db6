//! Whether the box's port is free, and who holds it when it is not. Asks and looks; signals nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use super::engine::found::FoundContainer;
use crate::failure::{Exit, Explain};

/// The port is taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("port {port} is taken{}", who(.holder))]
pub struct PortTaken {
    /// The port.
    pub port: u16,
    /// Who has it.
    pub holder: Holder,
    /// The name of the box that wants it.
    pub name: String,
}

/// Who holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Another box of this program.
    Box {
        /// The name of the other box.
        name: String,
    },
    /// A container that is not ours.
    Container {
        /// Its name.
        name: String,
    },
    /// A process of the host.
    Process {
        /// Its name.
        name: String,
        /// Its id.
        pid: u32,
    },
    /// Nobody can say.
    Unknown,
}

fn who(holder: &Holder) -> String {
    match holder {
        Holder::Box { name } => format!(" by the box `{name}`"),
        Holder::Container { name } => format!(" by the container `{name}`"),
        Holder::Process { name, pid } => format!(" by process `{name}` (pid {pid})"),
        Holder::Unknown => String::new(),
    }
}

impl Explain for PortTaken {
    fn code(&self) -> &'static str {
        "port-taken"
    }
    fn hint(&self) -> Option<String> {
        let other = format!(
            "choose another port: `worca container up{} --port {}`",
            super::boxes::flag(&self.name),
            self.port.wrapping_add(1).max(1024)
        );
        Some(match &self.holder {
            Holder::Box { name } => {
                format!("take that box down with `worca container down --name {name}`, or {other}")
            }
            Holder::Container { name } => {
                format!("remove it when it is a leftover (`docker rm -f {name}`), or {other}")
            }
            Holder::Process { .. } | Holder::Unknown => format!("stop it, or {other}"),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Checks that `address:port` can be listened on. A loopback port must be free on both loopbacks: a browser that asks
/// for `localhost` takes whichever answers first.
///
/// # Errors
/// When it is taken; with who has it, when that can be seen.
pub fn check(name: &str, address: IpAddr, port: u16, containers: &[FoundContainer]) -> Result<(), PortTaken> {
    let taken = |holder| Err(PortTaken { port, holder, name: name.to_owned() });
    let holds = |one: &&FoundContainer| {
        one.ports.contains(&port) && !(one.ours && one.of_box.as_deref() == Some(name))
    };
    if let Some(one) = containers.iter().find(holds) {
        return taken(match &one.of_box {
            Some(other) if other != name => Holder::Box { name: other.clone() },
            _ => Holder::Container { name: one.name.clone() },
        });
    }
    let mut addresses = vec![address];
    if address.is_loopback() {
        addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    }
    for address in addresses {
        match TcpListener::bind(SocketAddr::new(address, port)) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => return taken(holder(port)),
            // No IPv6 here, or a port that only the engine may open: the engine will say.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Who listens on `port` according to `/proc`; only what this user may see.
#[cfg(target_os = "linux")]
fn holder(port: u16) -> Holder {
    let wanted = format!(":{port:04X}");
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Local address, state (0A is listening) and the socket's inode, by proc(5).
            if let (Some(local), Some(&"0A"), Some(inode)) = (fields.get(1), fields.get(3), fields.get(9))
                && local.ends_with(&wanted)
            {
                sockets.push(format!("socket:[{inode}]"));
            }
        }
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        if targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str())) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let name = name.chars().filter(|c| !c.is_control()).collect();
            return Holder::Process { name, pid };
        }
    }
    Holder::Unknown
}

#[cfg(not(target_os = "linux"))]
fn holder(_port: u16) -> Holder {
    Holder::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(address: &str) -> Option<(TcpListener, u16)> {
        let listener = TcpListener::bind(address).ok()?;
        let port = listener.local_addr().ok()?.port();
        Some((listener, port))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn c075_a_process_that_holds_the_port_is_named_on_either_loopback() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Some((listener, port)) = listen(address) else { continue };
            let error = check("worca", IpAddr::V4(Ipv4Addr::LOCALHOST), port, &[]).unwrap_err();
            assert!(
                matches!(error.holder, Holder::Process { pid, .. } if pid == std::process::id()),
                "{address}: {error}"
            );
            assert!(error.hint().unwrap().contains("--port"), "{address}");
            drop(listener);
            assert_eq!(check("worca", IpAddr::V4(Ipv4Addr::LOCALHOST), port, &[]), Ok(()));
        }
    }

    #[test]
    fn c075_another_box_and_a_strange_container_are_named() {
        let (listener, port) = listen("127.0.0.1:0").unwrap();
        drop(listener);
        let mut one = FoundContainer {
            name: "old-core-1".into(),
            ports: vec![port],
            of_box: Some("old".into()),
            ..FoundContainer::default()
        };
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let error = check("worca", address, port, std::slice::from_ref(&one)).unwrap_err();
        assert_eq!(error.to_string(), format!("port {port} is taken by the box `old`"));
        assert!(error.hint().unwrap().contains("worca container down --name old"));
        one.of_box = None;
        let error = check("worca", address, port, std::slice::from_ref(&one)).unwrap_err();
        assert_eq!(error.to_string(), format!("port {port} is taken by the container `old-core-1`"));
        (one.of_box, one.ours) = (Some("worca".into()), true);
        assert_eq!(check("worca", address, port, &[one]), Ok(()));
    }
}
