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

/// A value of which no run of eight letters may be told.
const CANARY: &str = "sk-ant-api03-c4nary-q7Xw9Lk2Vb5Nh8Rt1Zp3Md6Fg0Js4";

fn tells_nothing(said: &str) {
    for run in CANARY.as_bytes().windows(8) {
        let run = std::str::from_utf8(run).unwrap();
        assert!(!said.contains(run), "`{run}` of the key stands in: {said}");
    }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn each_place_of_a_key_stops_core_with_78_and_an_ordinary_start_beside_it_succeeds() {
    let home = tempfile::tempdir().unwrap();
    let user = home.path().join("user");
    let json = format!("{{\"key\": \"{CANARY}\"}}");
    for (path, text) in [
        (".claude/.credentials.json", json.clone()),
        (".claude.json", format!("{{\"primaryApiKey\": \"{CANARY}\"}}")),
        (".claude/settings.json", format!("{{\"env\":{{\"ANTHROPIC_API_KEY\":\"{CANARY}\"}}}}")),
        (".claude/settings.json", "{\"apiKeyHelper\": \"/bin/echo\"}".into()),
        (".codex/auth.json", json.clone()),
        (".gemini/oauth_creds.json", json.clone()),
        (".local/share/opencode/auth.json", json.clone()),
        (".aws/credentials", format!("[default]\naws_secret_access_key = {CANARY}\n")),
        (".config/gcloud/application_default_credentials.json", json.clone()),
        (
            ".azure/msal_token_cache.json",
            format!("{{\"AccessToken\":{{\"a\":{{\"secret\":\"{CANARY}\"}}}}}}"),
        ),
        (".bashrc", format!("export X={CANARY}\n")),
    ] {
        let path = user.join(path);
        put(&path, &text);
        let (code, out, err) = said(&worca(home.path()).arg("serve").output().unwrap());
        assert_eq!((code, out.as_str()), (Some(78), ""), "{err}");
        assert!(err.starts_with("error: a model or cloud key is in reach of agents:\n  - `"), "{err}");
        assert!(err.contains(path.to_str().unwrap()) && err.contains("hint: "), "{err}");
        tells_nothing(&err);
        assert!(!home.path().join("worca").exists(), "nothing is made");
        std::fs::remove_file(&path).unwrap();
    }
    put(&user.join(".claude/settings.json"), "{\"model\": \"opus\"}");
    put(&user.join(".bashrc"), "export EDITOR=vi\n");
    drop(Core::start(home.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn what_would_hold_the_look_up_or_lead_it_astray_stops_core_and_does_not_hang_it() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let auth = home.path().join("user/.codex/auth.json");
    std::fs::create_dir_all(auth.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &auth, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600), 0)
        .unwrap();
    let refused = |what: &str| {
        let (code, _, err) = said(&worca(home.path()).arg("serve").output().unwrap());
        assert_eq!(code, Some(78), "{err}");
        assert!(err.contains(auth.to_str().unwrap()) && err.contains(what), "{err}");
        tells_nothing(&err);
        std::fs::remove_file(&auth).unwrap();
    };
    refused("it is a pipe, a socket or a device");
    symlink("/dev/zero", &auth).unwrap();
    refused("it is a pipe, a socket or a device");
    // A link to a key elsewhere: an agent would follow it.
    put(&home.path().join("elsewhere"), CANARY);
    symlink(home.path().join("elsewhere"), &auth).unwrap();
    refused("a sign-in or key (Codex)");
    // A circle opens for nobody.
    symlink(&auth, &auth).unwrap();
    drop(Core::start(home.path()));
}

#[test]
fn the_environment_and_the_folders_that_it_names_are_looked_at_and_nothing_is_told() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("elsewhere");
    put(&folder.join("auth.json"), CANARY);
    put(&home.path().join("worca/models/mine.yaml"), &format!("api_key: {CANARY}\n"));
    let mut command = worca(home.path());
    command.arg("serve").env("CODEX_HOME", &folder).env("AWS_SECRET_ACCESS_KEY", CANARY).env("NOTE", CANARY);
    command.env("WORCA_LOG", "trace").env("GOOGLE_APPLICATION_CREDENTIALS", folder.join("auth.json"));
    let (code, out, err) = said(&command.output().unwrap());
    assert_eq!((code, out.as_str()), (Some(78), ""), "{err}");
    for place in ["`AWS_SECRET_ACCESS_KEY`", "`NOTE`", "elsewhere/auth.json", "models/mine.yaml`, line 1"] {
        assert!(err.contains(place), "{place}: {err}");
    }
    tells_nothing(&err);
}

#[cfg(target_os = "linux")]
#[test]
fn sign_ins_in_the_home_can_be_closed_instead_and_what_core_holds_cannot() {
    if !worca::spawn::kernel_support().files {
        eprintln!("this kernel closes no file");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    put(&home.path().join("user/.codex/auth.json"), CANARY);
    let doctor = |name: &str, value: &str| {
        let output = worca(home.path()).args(["doctor", "--json"]).env(name, value).output().unwrap();
        tells_nothing(&said(&output).1);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = |check: &&serde_json::Value| check["name"] == "keys";
        let checks: Vec<_> = report["checks"].as_array().unwrap().iter().filter(row).cloned().collect();
        let of = |finding: &str| checks.iter().filter(|check| check["finding"] == finding).count();
        let own = checks.iter().any(|check| check["sentence"].as_str().unwrap().contains(".codex/auth.json"));
        (own, of("bad"), of("note") > 0)
    };
    assert_eq!(doctor("X", "1"), (true, 1, false));
    assert_eq!(doctor("WORCA_CLOSE_SIGN_INS", "1"), (true, 0, true));
    let serve = |close: &str, name: &str| {
        let mut command = worca(home.path());
        command.arg("serve").env("WORCA_CLOSE_SIGN_INS", close).env(name, CANARY);
        said(&command.output().unwrap())
    };
    assert_eq!(serve("0", "X_NOT").0, Some(78));
    let (code, _, err) = serve("1", "OPENAI_API_KEY");
    assert!(code == Some(78) && !err.contains("auth.json"), "{err}");
    let mut child = worca(home.path()).args(["serve", "--close-sign-ins"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("Worca is ready on "), "{line}{err}");
    assert!(err.contains("auth.json") && err.contains("closes it to every agent"), "{err}");
    tells_nothing(&err);
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
