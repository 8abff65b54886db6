//! The wall: attacks on the real kernel, from where an agent is. Each script tries what is forbidden by every way that
//! we know, and the ordinary work beside it; a line tells what came of each.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../support/processes.rs"]
mod proc;
#[path = "../support/spawned.rs"]
mod spawned;

mod receipt;
mod stage;

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use serde_json::json;
use worca::spawn;

use stage::{Stage, is_capable};

/// What a script said, and that it said enough.
struct Said {
    lines: Vec<(String, String, String)>,
    text: String,
}

impl Said {
    fn names(&self, kind: &str) -> Vec<&str> {
        self.lines.iter().filter(|line| line.0 == kind).map(|line| line.1.as_str()).collect()
    }
    #[track_caller]
    fn held(&self, forbidden: usize, ordinary: usize) {
        assert_eq!(self.names("OPEN"), Vec::<&str>::new(), "got through:\n{}", self.text);
        assert_eq!(self.names("BROKEN"), Vec::<&str>::new(), "does not work:\n{}", self.text);
        let counts = (self.names("held").len(), self.names("works").len());
        assert!(counts.0 >= forbidden && counts.1 >= ordinary, "only {counts:?}:\n{}", self.text);
    }
}

fn said(text: String) -> Said {
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Some((parts.next()?, parts.next()?, parts.next().unwrap_or_default()))
    };
    Said { lines: text.lines().filter_map(line).collect(), text }
}

/// Runs this test once more as the same user without any capability, which is what an ordinary user is (and what the
/// user of the box is). Root with its capabilities is no promise, but most holds for it as well.
fn without_capabilities(test: &str) {
    if !is_capable() {
        return;
    }
    #[allow(clippy::disallowed_methods, reason = "the test starts itself without capabilities")]
    let done = std::process::Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && text.contains("1 passed"), "without capabilities: {text}");
}

#[tokio::test]
async fn what_is_closed_or_read_only_stays_so_by_every_way_to_a_file() {
    let stage = Stage::new();
    let said = said(stage.run(include_str!("files.py"), stage.rules(), json!({})).await);
    said.held(62, 17);
    stage.is_untouched();
    without_capabilities("what_is_closed_or_read_only_stays_so_by_every_way_to_a_file");
}

#[tokio::test]
async fn of_the_repository_only_what_belongs_to_the_run_can_be_written() {
    let stage = Stage::new();
    let said = said(stage.run(include_str!("git.py"), stage.rules(), json!({})).await);
    said.held(27, 9);
    stage.is_untouched();
    without_capabilities("of_the_repository_only_what_belongs_to_the_run_can_be_written");
}

#[tokio::test]
async fn nothing_outside_can_be_signalled_traced_or_read() {
    let stage = Stage::new();
    let other_place = spawned::Place::new();
    let other = spawn::start(other_place.request("sleep", &["600"])).await.unwrap();
    #[allow(clippy::disallowed_methods, reason = "something of the machine's, to be left alone")]
    let mut victim = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let name = format!("worca-test-{}", stage.place.mark);
    let address = |end: &str| SocketAddr::from_abstract_name(format!("{name}{end}")).unwrap();
    let stream = UnixListener::bind_addr(&address("")).unwrap();
    let datagram = UnixDatagram::bind_addr(&address("-d")).unwrap();
    let more = json!({
        "core": std::process::id(), "other": other.pid(), "victim": victim.id(), "abstract": name,
    });
    // The kernel refuses reads of core to who is under no rules, too, once core is what it is in earnest; what is
    // tried here is the rule.
    let said = said(stage.run(include_str!("signals.py"), stage.rules(), more).await);
    said.held(88, 7);
    assert!(victim.try_wait().unwrap().is_none(), "the process of the machine's was ended");
    assert!(proc::alive(other.pid() as i32), "the other agent was ended");
    victim.kill().unwrap();
    victim.wait().unwrap();
    other.stop(std::time::Duration::ZERO).await;
    drop((stream, datagram));
    without_capabilities("nothing_outside_can_be_signalled_traced_or_read");
}

#[tokio::test]
async fn a_closed_port_is_reached_by_no_way() {
    let stage = Stage::new();
    let listen = |address: &str| TcpListener::bind(address).unwrap();
    let (closed, closed6, allowed) = (listen("127.0.0.1:0"), listen("[::1]:0"), listen("127.0.0.1:0"));
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let mut rules = stage.rules();
    rules.connect = Some(vec![port(&allowed)]);
    let more = json!({ "closed": port(&closed), "closed6": port(&closed6), "allowed": port(&allowed) });
    let said = said(stage.run(include_str!("ports.py"), rules, more).await);
    said.held(18, 6);
    for (name, listener) in [("4", &closed), ("6", &closed6)] {
        listener.set_nonblocking(true).unwrap();
        let came = listener.accept().map(|(_, from)| from);
        assert!(came.is_err(), "version {name}: {came:?}");
    }
    without_capabilities("a_closed_port_is_reached_by_no_way");
}

/// The scripts find every way open where nothing holds: so a domain that is not put on would be seen.
#[tokio::test]
async fn without_rules_the_same_attacks_get_through() {
    let stage = Stage::new();
    let said = said(stage.run(include_str!("files.py"), spawned::open(), json!({})).await);
    let open = said.names("OPEN");
    assert!(open.len() > 30 && open.contains(&"cat") && open.contains(&"hard link"), "{}", said.text);
}
