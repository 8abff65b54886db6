//! How long a pass outlives its agent: real runs with core, the shim and the key service as processes, and a stand-in for
//! the agent program that ends in four ways in turn. The end is seen by the kernel's own notice (a pidfd), the death of
//! the pass by asking the key service with it over and over.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::load::share;
use crate::peers::{self, CONTROL, Peer};

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two questions with a pass: what is seen is late by at most this and one answer.
const PAUSE: Duration = Duration::from_micros(500);
/// The aim, in milliseconds.
const AIM: f64 = 100.0;

/// What an agent program needs to be one, for this: it says its version, tells where it is, and waits for its end.
const STAND_IN: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.0 (Claude Code)'; exit 0; fi
trap 'exit 0' USR1
echo "$$ $ANTHROPIC_AUTH_TOKEN" > told.new && mv told.new told
while :; do sleep 300 & wait; done
"#;

/// How an agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exit,
    Crash,
    Kill,
    Stop,
}

const ENDS: [(End, &str); 4] =
    [(End::Exit, "exit"), (End::Crash, "crash (SIGSEGV)"), (End::Kill, "SIGKILL"), (End::Stop, "worca stop")];

/// Core, with a project of its own.
struct Core {
    worca: PathBuf,
    place: tempfile::TempDir,
    keys: SocketAddr,
    child: Option<Child>,
    url: String,
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Core {
    fn start(worca: &Path, keys: &Peer) -> Self {
        let place = tempfile::Builder::new().prefix("worca-bench-").tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["user", "bin", "worca", "project"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("control"), CONTROL).unwrap();
        std::fs::set_permissions(at("control"), std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(at("bin/claude"), STAND_IN).unwrap();
        std::fs::set_permissions(at("bin/claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
        for words in [
            &["init", "--quiet"][..],
            &["config", "user.name", "Bench"],
            &["config", "user.email", "bench@example.invalid"],
            &["commit", "--quiet", "--allow-empty", "--message", "First"],
        ] {
            let done = Command::new("git").arg("-C").arg(at("project")).args(words).status().unwrap();
            assert!(done.success(), "git {words:?}");
        }
        let mut core =
            Self { worca: worca.into(), place, keys: keys.target.address, child: None, url: String::new() };
        let log = std::fs::File::create(core.at("core.log")).unwrap();
        let mut child = core.command(&["serve"]).stderr(log).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
            .unwrap();
        core.child = Some(child);
        let url = line.trim().strip_prefix("Worca is ready on ");
        core.url = url.unwrap_or_else(|| panic!("{line}{}", core.log())).replace("localhost", "127.0.0.1");
        core
    }
    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
    fn log(&self) -> String {
        std::fs::read_to_string(self.at("core.log")).unwrap_or_default()
    }
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.worca);
        command.args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.at("user")).env("WORCA_HOME", self.at("worca"));
        command.env("WORCA_LISTEN", "127.0.0.1:0").env("WORCA_CONTROL_FILE", self.at("control"));
        command
            .env("WORCA_KEYS_URL", format!("http://{}", self.keys))
            .env("WORCA_CLAUDE", self.at("bin/claude"));
        if !self.url.is_empty() {
            command.env("WORCA_CORE_URL", &self.url);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
    fn say(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {text}{error}{}", self.log());
        text
    }
    /// Starts a run; gives its id, and its agent's process and pass once the agent is at work.
    fn agent(&self) -> (String, Pid, String) {
        let project = self.at("project");
        let words = ["--model", "rehearsal", "--prompt", "x", "--detach", "--json"];
        let said = self.say(&[&["run", "--project", project.to_str().unwrap()], &words[..]].concat());
        let run: serde_json::Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap();
        let run = run.get("id").and_then(serde_json::Value::as_str).unwrap().to_owned();
        let told = self.at("worca/runs").join(&run).join("tree/told");
        let until = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(&told).unwrap_or_default();
            if let Some((pid, pass)) = text.trim().split_once(' ') {
                return (run, Pid::from_raw(pid.parse().unwrap()).unwrap(), pass.to_owned());
            }
            assert!(Instant::now() < until, "the agent does not start\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The answer to a question with this pass: whether it opens anything.
fn opens(keys: SocketAddr, pass: &str, stream: &mut Option<std::net::TcpStream>) -> bool {
    use std::io::{Read as _, Write as _};
    let question =
        format!("GET /rehearsal/v1/models HTTP/1.1\r\nhost: {keys}\r\nauthorization: Bearer {pass}\r\n\r\n");
    let mut answer = [0; 4096];
    let asked = |stream: &mut std::net::TcpStream, answer: &mut [u8]| {
        stream.write_all(question.as_bytes())?;
        stream.read(answer)
    };
    let mut fresh = || std::net::TcpStream::connect(keys).unwrap();
    let read = match asked(stream.get_or_insert_with(&mut fresh), &mut answer) {
        Ok(read) if read > 0 => read,
        // The connection died with the pass, or between two questions: another one tells.
        Ok(_) | Err(_) => asked(stream.insert(fresh()), &mut answer).unwrap(),
    };
    let answer = String::from_utf8_lossy(answer.get(..read).unwrap_or_default());
    let code = answer.get(9..12).unwrap_or_default();
    assert!(code == "200" || code == "403", "{answer}");
    code == "200"
}

/// One agent's end: from the moment when its process was gone to the moment when its pass opened nothing, in
/// nanoseconds; 0 when the pass went first.
fn one(core: &Core, keys: SocketAddr, end: End) -> u64 {
    let (run, pid, pass) = core.agent();
    let notice = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let mut stream = None;
    assert!(opens(keys, &pass, &mut stream), "the pass works while its agent lives");
    std::thread::scope(|scope| {
        let gone = scope.spawn(move || {
            let mut wanted = [PollFd::new(&notice, PollFlags::IN)];
            poll(&mut wanted, None).unwrap();
            Instant::now()
        });
        let dead = scope.spawn(move || {
            let until = Instant::now() + PATIENCE;
            while opens(keys, &pass, &mut stream) {
                assert!(Instant::now() < until, "the pass does not die");
                std::thread::sleep(PAUSE);
            }
            Instant::now()
        });
        match end {
            End::Exit => kill_process(pid, Signal::USR1).unwrap(),
            End::Crash => kill_process(pid, Signal::SEGV).unwrap(),
            End::Kill => kill_process(pid, Signal::KILL).unwrap(),
            End::Stop => drop(core.say(&["stop", &run])),
        }
        let (gone, dead) = (gone.join().unwrap(), dead.join().unwrap());
        u64::try_from(dead.saturating_duration_since(gone).as_nanos()).unwrap()
    })
}

/// Ends so many agents, prints how long their passes lived on, and says whether the aim is met.
pub fn all(worca: &Path, ends: usize) -> bool {
    let keys = peers::worca(worca, SocketAddr::from(([127, 0, 0, 1], 9)));
    let core = Core::start(worca, &keys);
    let mut seen: [Vec<u64>; ENDS.len()] = Default::default();
    for turn in 0..ends {
        if let (Some((end, _)), Some(seen)) = (ENDS.get(turn % ENDS.len()), seen.get_mut(turn % ENDS.len())) {
            seen.push(one(&core, keys.target.address, *end));
        }
    }
    println!("| the agent's end | ends | median ms | p99 ms | longest ms |\n| --- | --- | --- | --- | --- |");
    let mut all: Vec<u64> = seen.iter().flatten().copied().collect();
    let row = |name: &str, seen: &mut Vec<u64>| {
        seen.sort_unstable();
        let [median, p99, longest] = [0.5, 0.99, 1.0].map(|part| share(seen, part));
        println!("| {name} | {} | {median:.1} | {p99:.1} | {longest:.1} |", seen.len());
        p99
    };
    for ((_, name), seen) in ENDS.iter().zip(&mut seen) {
        row(name, seen);
    }
    let met = row("all", &mut all) <= AIM;
    println!("\nThe aim, p99 at most {AIM:.0} ms, is {}.", if met { "met" } else { "MISSED" });
    met
}
