//! What is measured, each as a process of its own on loopback, in a folder that goes when it does.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use worca::ids::{PersonId, RunId, SpawnId, StepName};
use worca::keys::client::{KeysClient, MintRequest};
use worca::keys::slot::SlotName;
use worca::keys::vault::VaultKey;
use worca::secret::Secret;

use crate::load::Target;

/// The control secret of the key service that is measured.
pub const CONTROL: &str = "control-secret-of-the-measurement-0123456789";
/// LiteLLM takes most of a minute on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A process that ends with this value.
pub struct Peer {
    child: Child,
    pub target: Target,
    folder: tempfile::TempDir,
}

impl Peer {
    fn start(command: &mut Command, folder: tempfile::TempDir, target: Target) -> Self {
        let log = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let child = command.stdin(Stdio::null()).stdout(log("out")).stderr(log("err")).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, target, folder }
    }

    /// What it wrote to its standard error, or output.
    fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    fn until<T>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < end,
                "{what}: never\n{}{}",
                self.said("out"),
                self.said("err")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How long it and its children have worked so far.
    pub fn worked(&self) -> Duration {
        family(self.child.id()).into_iter().filter_map(worked).sum()
    }

    /// The memory that it and its children hold, in MB.
    pub fn resident(&self) -> f64 {
        let kilobytes: u64 = family(self.child.id()).into_iter().filter_map(|id| field(id, "VmRSS:")).sum();
        kilobytes as f64 / 1024.0
    }
}

/// How long a process has worked so far.
fn worked(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold blanks.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

impl Drop for Peer {
    fn drop(&mut self) {
        let all = family(self.child.id());
        if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end && !matches!(self.child.try_wait(), Ok(Some(_))) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Only what it started itself, by id.
        for pid in all.into_iter().filter_map(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// A process and what it started.
fn family(id: u32) -> Vec<u32> {
    let mut all = vec![id];
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|id: u32| Some((id, u32::try_from(field(id, "PPid:")?).ok()?)))
        .collect();
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        all.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        next += 1;
    }
    all
}

fn field(id: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("worca-bench-").tempdir().unwrap()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn target(port: u16, path: &str, headers: &str) -> Target {
    Target { address: at(port), path: path.into(), headers: headers.into() }
}

fn write(path: PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The upstream itself, asked without anything between.
pub fn direct() -> Peer {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut peer =
        Peer::start(command.arg("upstream"), folder(), target(0, "/v1/messages", "x-api-key: sk-bench\r\n"));
    peer.target.address = at(peer.until("the upstream's port", |peer| peer.said("out").trim().parse().ok()));
    peer
}

/// nginx with as many workers as processors, connections kept to the upstream, nothing buffered, one header put on, and
/// its access log as it comes.
pub fn nginx(program: &Path, upstream: SocketAddr) -> Peer {
    let (folder, port) = (folder(), free_port());
    let place = folder.path().display();
    let text = format!(
        "worker_processes auto; pid {place}/pid; error_log {place}/error.log; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log {place}/access.log;
  client_body_temp_path {place}/1; proxy_temp_path {place}/2; fastcgi_temp_path {place}/3; uwsgi_temp_path {place}/4;
  scgi_temp_path {place}/5;
  keepalive_requests 1000000000; client_max_body_size 32m;
  upstream provider {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen {}; tcp_nodelay on;
    location / {{
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection \"\";
      proxy_set_header x-api-key sk-bench; proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
",
        at(port)
    );
    let file = folder.path().join("nginx.conf");
    write(file.clone(), &text);
    let mut command = Command::new(program);
    command.arg("-c").arg(file).arg("-p").arg(folder.path()).args(["-g", "daemon off;"]);
    let mut peer = Peer::start(&mut command, folder, target(port, "/v1/messages", "x-api-key: sk-pass\r\n"));
    peer.until("nginx listens", |_| std::net::TcpStream::connect(at(port)).ok());
    peer
}

/// `worca keys serve` as a box runs it, with a key in its vault, and its log in a file.
pub fn worca(program: &Path, upstream: SocketAddr) -> Peer {
    use std::io::Write as _;
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    write(place("control"), CONTROL);
    write(place("vault_key"), &VaultKey::generate().unwrap());
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env_clear().env("HOME", folder.path()).env("WORCA_KEYS_HOME", place("data"));
        command.env("WORCA_VAULT_KEY_FILE", place("vault_key")).env("WORCA_CONTROL_FILE", place("control"));
        command.env("WORCA_ANTHROPIC_ORIGIN", format!("http://{upstream}"));
        command
    };
    let mut put =
        command(&["keys", "put", "anthropic"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    put.stdin.take().unwrap().write_all(b"sk-ant-api03-aKeyOfTheMeasurementThatOpensNothing-0123\n").unwrap();
    assert!(put.wait().unwrap().success(), "the key is saved");
    let mut serve = command(&["keys", "serve", "--listen", "127.0.0.1:0"]);
    let mut peer = Peer::start(&mut serve, folder, target(0, "/anthropic/v1/messages", ""));
    peer.target.address = peer.until("worca listens", |peer| {
        let said = peer.said("err");
        let (_, rest) = said.split_once("address=")?;
        rest.split_whitespace().next()?.parse().ok()
    });
    peer
}

/// A client of core's part of the service.
pub fn control(peer: &Peer) -> KeysClient {
    KeysClient::new(&format!("http://{}", peer.target.address), &Secret::new(CONTROL.into())).unwrap()
}

/// What core asks for before it starts an agent.
pub fn wanted() -> MintRequest {
    MintRequest {
        run: RunId::random(),
        step: StepName::work(),
        spawn: SpawnId::random(),
        person: PersonId::local(),
        slot: SlotName::anthropic(),
        models: Vec::new(),
        cap: None,
        scenario: None,
    }
}

/// LiteLLM's proxy with its own defaults, one model at the same upstream, and a key that callers show.
pub fn litellm(program: &Path, upstream: SocketAddr) -> Peer {
    let (folder, port) = (folder(), free_port());
    let file = folder.path().join("config.yaml");
    let text = format!(
        "model_list:\n- model_name: claude-sonnet-4-5\n  litellm_params:\n    model: anthropic/claude-sonnet-4-5\n    api_base: \
         http://{upstream}\n    api_key: sk-bench\ngeneral_settings:\n  master_key: sk-pass\n"
    );
    write(file.clone(), &text);
    let mut command = Command::new(program);
    command.arg("--config").arg(file).args([
        "--host",
        "127.0.0.1",
        "--telemetry",
        "False",
        "--port",
        &port.to_string(),
    ]);
    // Its price list from the package: nothing is fetched.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").current_dir(folder.path());
    let mut peer =
        Peer::start(&mut command, folder, target(port, "/v1/messages", "authorization: Bearer sk-pass\r\n"));
    peer.until("LiteLLM listens", |_| std::net::TcpStream::connect(at(port)).ok());
    peer
}
