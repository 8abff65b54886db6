//! `worca serve` as a process: one per home, freed by any death, a sentence for each refusal.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test drives the binary as a person would")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far above what anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program with a clean environment on this home.
fn worca(home: &Path) -> Command {
    let control = home.join("control");
    if !control.exists() {
        std::fs::write(&control, "a-control-secret-of-a-test-0123456789\n").unwrap();
        std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.join("user"))
        .env("WORCA_HOME", home.join("worca"))
        .env("WORCA_LISTEN", "127.0.0.1:0")
        .env("WORCA_CONTROL_FILE", &control)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A core that has said where it is.
struct Core {
    child: Child,
    url: String,
}

impl Core {
    fn start(home: &Path) -> Self {
        let mut child = worca(home).arg("serve").spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("Worca is ready on ") else {
            let _ = child.kill();
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line}{said}");
        };
        Self { url: url.to_owned(), child }
    }
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
    fn address(&self) -> String {
        self.url.replace("http://localhost", "http://127.0.0.1")
    }
    fn end(&mut self) -> Option<i32> {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "core does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_second_serve_points_at_the_first_and_ends_with_0() {
    let home = tempfile::tempdir().unwrap();
    let core = Core::start(home.path());
    let (code, out, err) = said(&worca(home.path()).arg("serve").output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, format!("Worca is already running on {} (pid {})\n", core.url, core.child.id()));
    // The one beside it, on another home, starts.
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Core::start(other.path()).url, core.url);
}

#[test]
fn a_killed_core_leaves_nothing_in_the_way() {
    let home = tempfile::tempdir().unwrap();
    let mut first = Core::start(home.path());
    first.signal(rustix::process::Signal::KILL);
    assert_eq!(first.end(), None);
    let second = Core::start(home.path());
    let health = format!("{}/health", second.address());
    let (code, out, err) = said(&worca(home.path()).args(["health", "--url", &health]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(0), "ok\n"), "{err}");
}

#[test]
fn core_ends_with_0_when_it_is_told_to() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let home = tempfile::tempdir().unwrap();
        let mut core = Core::start(home.path());
        core.signal(signal);
        assert_eq!(core.end(), Some(0), "{signal:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_port_that_another_program_has_is_a_sentence_with_its_name() {
    let home = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let (code, out, err) = said(&worca(home.path()).args(["serve", "--listen", &listen]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with(&format!("error: port {port} is taken by process `")), "{err}");
    assert!(err.contains(&format!("(pid {})", std::process::id())) && err.contains("hint: "), "{err}");
    // Nothing half-made is in the way of the next start.
    drop(Core::start(home.path()));
}

#[test]
fn a_key_in_reach_stops_core_and_the_place_is_named_and_not_the_value() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("user/.claude")).unwrap();
    let credentials = home.path().join("user/.claude/.credentials.json");
    std::fs::write(&credentials, "{\"accessToken\":\"canary\"}").unwrap();
    let output = worca(home.path()).arg("serve").env("ANTHROPIC_API_KEY", "canary").output().unwrap();
    let (code, out, err) = said(&output);
    assert_eq!((code, out.as_str()), (Some(78), ""), "{err}");
    assert!(err.contains("`ANTHROPIC_API_KEY`") && err.contains(credentials.to_str().unwrap()), "{err}");
    assert!(!err.contains("canary"), "{err}");
    assert!(!home.path().join("worca").exists(), "nothing is made");
    std::fs::remove_file(&credentials).unwrap();
    drop(Core::start(home.path()));
}

#[test]
fn no_output_of_a_start_holds_the_token_or_a_link_when_nobody_reads_it_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let mut core = Core::start(home.path());
    let token = std::fs::read_to_string(home.path().join("worca/core-token")).unwrap();
    core.signal(rustix::process::Signal::TERM);
    core.end();
    let mut said = String::new();
    core.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    core.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains(token.trim()) && !said.contains("sign-in"), "{said}");
}

#[test]
fn the_command_line_says_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let core = Core::start(home.path());
    let run = |arguments: &[&str]| {
        let output =
            worca(home.path()).env("WORCA_CORE_URL", core.address()).args(arguments).output().unwrap();
        let (code, out, err) = said(&output);
        let shown = arguments.join(" ");
        format!("$ worca {shown}\n{out}{err}exit: {}\n\n", code.unwrap_or(-1))
            .replace(&core.address(), "CORE")
    };
    let mut seen = String::new();
    seen.push_str(&run(&["runs"]));
    seen.push_str(&run(&["runs", "--json"]));
    seen.push_str(&run(&["runs", "--limit", "0"]));
    seen.push_str(&run(&["show", "r0123456789"]));
    seen.push_str(&run(&["show", "../etc"]));
    seen.push_str(&run(&["stop", "r0123456789"]));
    seen.push_str(&run(&["run", "--project", "/nowhere"]));
    seen.push_str(&run(&["run", "--project", "/nowhere", "--file", "/nowhere/task.md"]));
    seen.push_str(&run(&["run", "--project", "/nowhere", "--prompt", "a", "--file", "b"]));
    seen.push_str(&run(&["runs", "--core-url", "https://127.0.0.1:1"]));
    seen.push_str(&run(&["runs", "--core-url", "http://127.0.0.1:1"]));
    seen.push_str(&run(&["runs", "--core-token-file", "/nowhere/token"]));
    insta::assert_snapshot!(seen);
}

#[test]
fn a_wrong_token_is_refused_with_78() {
    let home = tempfile::tempdir().unwrap();
    let core = Core::start(home.path());
    let wrong = home.path().join("wrong");
    std::fs::write(&wrong, "a-token-that-is-long-enough-but-wrong\n").unwrap();
    let mut command = worca(home.path());
    command.args(["runs", "--core-url", &core.address(), "--core-token-file"]).arg(&wrong);
    let (code, _, err) = said(&command.output().unwrap());
    assert_eq!(code, Some(78), "{err}");
    assert!(err.starts_with("error: this needs the core token"), "{err}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let home = tempfile::tempdir().unwrap();
    let core = Core::start(home.path());
    let mut child =
        worca(home.path()).args(["runs", "--json", "--core-url", &core.address()]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let (code, _, err) = said(&output);
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

/// The writing end of a pipe that nobody reads.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_closed_output_is_no_panic_whatever_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("vault_key");
    std::fs::write(&key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let list = ["keys", "list", "--json", "--vault-key-file", key.to_str().unwrap()];
    let prints: [&[&str]; 6] = [
        &["completions", "fish"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &["--help"],
        &["--version"],
        &list,
    ];
    for arguments in prints {
        let (code, _, err) = said(&worca(home.path()).args(arguments).stdout(unread()).output().unwrap());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // What is said on standard error alone changes no exit code either.
    let quiet: [(&[&str], i32); 4] = [
        (&list[..2], 2),
        (&["keys", "list", "--vault-key-file", key.to_str().unwrap()], 0),
        (&["runs", "--core-token-file", "/nowhere/token"], 78),
        (&["nonsense"], 2),
    ];
    for (arguments, expected) in quiet {
        let (code, out, _) = said(&worca(home.path()).args(arguments).stderr(unread()).output().unwrap());
        assert_eq!((code, out.as_str()), (Some(expected), ""), "{arguments:?}");
    }
}
