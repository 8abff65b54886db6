//! The scenario `attack`, natively: core, the key service and the real Claude Code as an ordinary user of this machine,
//! under each tier, with the hook and with the hook's program replaced by `true` once the agent has started.
//!
//! As root the parts run as a user that nobody is; as anybody else, as that user.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "tests drive the binary and git as a person would")]

#[path = "support/attack.rs"]
mod attack;
#[path = "support/processes.rs"]
mod processes;
mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attack::{Case, Place, check, findings};
use support::{eventually, git, repository, required, run_with};

/// A user without an account, a group or a file.
const NOBODY: u32 = 48_213;
const CANARY: &str = "canary-of-the-attack";

/// Core, the key service and what an attacker wants, of one ordinary user.
struct Machine {
    folder: tempfile::TempDir,
    parts: Vec<Child>,
    core: String,
    core_port: u16,
    closed: TcpListener,
    _sockets: [std::os::unix::net::UnixListener; 2],
    abstract_name: String,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn private(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Machine {
    fn new() -> Self {
        use std::os::linux::net::SocketAddrExt as _;
        let folder = tempfile::Builder::new().prefix("worca-attack-").tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("bin")).unwrap();
        let built = env!("CARGO_BIN_EXE_worca");
        // The one that core and the hook are, which the user owns, and one for the command line.
        std::fs::copy(built, at("bin/worca")).unwrap();
        let claude = required("WORCA_TEST_CLAUDE");
        for (from, to) in [(built, "bin/cli"), (claude.as_str(), "bin/claude")] {
            if std::fs::hard_link(from, at(to)).is_err() {
                std::fs::copy(from, at(to)).unwrap();
            }
        }
        private(&at("user/.aws/credentials"), CANARY);
        private(&at("user/.ssh/id_ed25519"), CANARY);
        private(&at("control"), "a-control-secret-of-a-test-0123456789\n");
        private(&at("vault_key"), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n");
        repository(&at("project"));
        repository(&at("other-project"));
        private(&at("project/.env"), CANARY);
        git(&at("project"), &["tag", "first"]).ok();
        git(&at("project"), &["pack-refs", "--all"]).ok();
        std::fs::write(at("project/.git/refs/heads/main"), git(&at("project"), &["rev-parse", "HEAD"]).ok())
            .unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("user/agent.sock")).unwrap();
        let abstract_name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let hidden = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut machine = Self {
            folder,
            parts: Vec::new(),
            core: String::new(),
            core_port: free_port(),
            closed,
            _sockets: [socket, hidden],
            abstract_name,
        };
        machine.own();
        machine.start();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives everything to the ordinary user.
    fn own(&self) {
        if rustix::process::geteuid().is_root() {
            let whose = format!("{NOBODY}:{NOBODY}");
            let words = ["-R", "-h", whose.as_str(), self.folder.path().to_str().unwrap()];
            run_with(Command::new("chown").args(words), "").ok();
            // Not the hard links: their other names are the build's own.
            for name in ["bin/cli", "bin/claude"] {
                run_with(Command::new("chown").args(["0:0", self.at(name).to_str().unwrap()]), "").ok();
            }
        }
    }

    /// A program as the ordinary user, with a clean environment.
    fn command(&self, program: &str) -> Command {
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            let user = NOBODY.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(self.at(program));
            command
        } else {
            Command::new(self.at(program))
        };
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.at("user"))
            .env("WORCA_HOME", self.at("worca"))
            .env("WORCA_LISTEN", format!("127.0.0.1:{}", self.core_port))
            .env("WORCA_CORE_URL", format!("http://127.0.0.1:{}", self.core_port))
            .env("WORCA_CONTROL_FILE", self.at("control"))
            .env("WORCA_VAULT_KEY_FILE", self.at("vault_key"))
            .env("WORCA_KEYS_HOME", self.at("keys"))
            .env("WORCA_CLAUDE", self.at("bin/claude"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Git in the project, as its owner.
    #[track_caller]
    fn git(&self, words: &[&str]) -> String {
        let project = self.at("project");
        run_with(self.command("/usr/bin/git").arg("-C").arg(project).args(words), "").ok()
    }

    fn start(&mut self) {
        let keys = free_port();
        let log = |name: &str| std::fs::File::create(self.at(name)).unwrap();
        let mut service = self.command("bin/cli");
        service.args(["keys", "serve"]).env("WORCA_KEYS_LISTEN", format!("127.0.0.1:{keys}"));
        let service = service.stderr(log("keys.log")).spawn().unwrap();
        eventually("the key service listens", || {
            std::net::TcpStream::connect(("127.0.0.1", keys)).map(drop).map_err(|error| error.to_string())
        });
        let mut core = self.command("bin/worca");
        core.arg("serve").env("WORCA_KEYS_URL", format!("http://127.0.0.1:{keys}"));
        let mut core = core.stderr(log("core.log")).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(core.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let log = std::fs::read_to_string(self.at("core.log")).unwrap_or_default();
        let ready = line.trim().strip_prefix("Worca is ready on ");
        self.core = ready.unwrap_or_else(|| panic!("{line}{log}")).to_owned();
        self.parts = vec![core, service];
    }

    /// A long run of somebody else's: its id and its agent's process id.
    fn other_run(&self) -> (String, i32) {
        let project = self.at("project");
        let mut command = self.command("bin/cli");
        command.args(["run", "--project", project.to_str().unwrap(), "--model", "rehearsal/slow"]);
        command.args(["--prompt", "Be slow", "--detach", "--json", "--guardrails", "permissive"]);
        let said = run_with(&mut command, "").ok();
        let run: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        let id = run["id"].as_str().unwrap().to_owned();
        let tree = self.at(&format!("worca/runs/{id}/tree"));
        let pid = eventually("the other run's agent is at work", || {
            let written = std::fs::read_to_string(tree.join("SLOW.md")).map_err(|error| error.to_string())?;
            let works = |pid: &i32| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "claude")
                    && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder == tree)
            };
            processes::pids().into_iter().find(works).ok_or(written)
        });
        private(&self.at(&format!("worca/runs/{id}/home/secret.txt")), CANARY);
        self.own();
        (id, pid)
    }

    /// What must be as it was, whoever attacked.
    fn treasures(&self, other: &str) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let run = format!("worca/runs/{other}");
        let git = "project/.git";
        for name in [
            "user/.aws/credentials",
            "user/.ssh/id_ed25519",
            "project/.env",
            "project/README.md",
            "other-project/README.md",
            "control",
            "worca/core-token",
            &format!("{run}/home/secret.txt"),
            &format!("{run}/settings.json"),
            &format!("{run}/policy.json"),
            &format!("{git}/config"),
            &format!("{git}/HEAD"),
            &format!("{git}/packed-refs"),
            &format!("{git}/refs/heads/main"),
        ] {
            all.insert(name.to_owned(), std::fs::read_to_string(self.at(name)).unwrap_or_default());
        }
        for name in
            [&format!("{git}/hooks"), &format!("{git}/info"), &format!("{git}/refs/tags"), "project", "worca"]
        {
            let mut listed: Vec<_> = std::fs::read_dir(self.at(name))
                .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
                .unwrap_or_default();
            listed.sort();
            // The database's journal comes and goes.
            listed.retain(|name| !name.to_string_lossy().starts_with("worca.db-"));
            all.insert(name.to_owned(), format!("{listed:?}"));
        }
        for words in [
            &["for-each-ref", "refs/heads/main", "refs/tags"][..],
            &["status", "--porcelain=v2", "--branch", "--untracked-files=all"],
            &["stash", "list"],
            &["ls-files", "--stage"],
        ] {
            all.insert(words.join(" "), self.git(words));
        }
        all
    }

    fn targets(&self, other: &str, pid: i32) -> String {
        let branch = self.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/worca/"]);
        let at = |name: &str| self.at(name).display().to_string();
        let run = format!("worca/runs/{other}");
        [
            ("other_pid", pid.to_string()),
            ("other_file", at(&format!("{run}/home/secret.txt"))),
            ("other_tree", at(&format!("{run}/tree/SLOW.md"))),
            ("other_branch", branch.lines().next().unwrap().to_owned()),
            ("other_project", at("other-project")),
            ("user_home", at("user")),
            ("control", at("control")),
            ("program", at("bin/worca")),
            ("closed_port", self.closed.local_addr().unwrap().port().to_string()),
            ("core_port", self.core_port.to_string()),
            ("abstract", self.abstract_name.clone()),
            ("socket", at("user/agent.sock")),
        ]
        .map(|(name, value)| format!("::{name}={value}\n"))
        .concat()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for part in &mut self.parts {
            // In order, so that core ends its agents.
            if let Some(pid) = rustix::process::Pid::from_raw(part.id().cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = part.wait();
        }
        if std::thread::panicking() {
            for log in ["core.log", "keys.log"] {
                eprintln!("--- {log}\n{}", std::fs::read_to_string(self.at(log)).unwrap_or_default());
            }
        }
    }
}

fn attacked(tier: &'static str, hook_gone: bool) {
    let mut machine = Machine::new();
    let (other, pid) = machine.other_run();
    std::fs::write(machine.at("project/targets"), machine.targets(&other, pid)).unwrap();
    machine.own();
    machine.git(&["add", "targets"]);
    machine.git(&["commit", "--quiet", "-m", "targets"]);
    let before = machine.treasures(&other);

    let mut command = machine.command("bin/cli");
    let project = machine.at("project");
    command.args(["run", "--project", project.to_str().unwrap(), "--model", "rehearsal/attack"]);
    let mut child = command.args(["--prompt", "Attack", "--json", "--guardrails", tier]).spawn().unwrap();
    let events = attack::follow(&mut child, || {
        if hook_gone {
            // From now on its hook says nothing and ends with 0.
            std::fs::copy("/usr/bin/true", machine.at("bin/nothing")).unwrap();
            std::fs::rename(machine.at("bin/nothing"), machine.at("bin/worca")).unwrap();
        }
    });
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(0), "{errors}\n{events}");
    let run: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    let branch = run["branch"].as_str().unwrap();
    println!("{}", attack::table(&findings(&events, "")));
    let report = machine.git(&["show", &format!("{branch}:report.jsonl")]);
    let all = findings(&events, &report);
    println!("{}", attack::table(&all));
    check(Case { tier, hook_gone, place: Place::Native }, &all);
    let denied = &all["bash-kill-by-name-after-settings"].detail;
    assert_eq!(denied.contains("host.kill-by-name"), !hook_gone, "{denied}");

    // Everything beside it lives and is as it was.
    let (mut before, mut after) = (before, machine.treasures(&other));
    if tier == "permissive" {
        // A project that Worca has not seen is a folder of the user's like any other.
        before.remove("other-project/README.md");
        after.remove("other-project/README.md");
    }
    assert_eq!(after, before);
    for part in &mut machine.parts {
        assert!(part.try_wait().unwrap().is_none(), "core or the key service is gone");
    }
    assert!(processes::alive(pid) && processes::state(pid) != Some('T'), "the other run's agent is gone");
    let slow = machine.at(&format!("worca/runs/{other}/tree/SLOW.md"));
    let length = std::fs::read_to_string(&slow).unwrap().len();
    eventually("the other run goes on", || {
        let text = std::fs::read_to_string(&slow).unwrap();
        assert!(!text.contains("planted"), "{text}");
        (text.len() > length).then_some(()).ok_or(text)
    });
    if tier != "permissive" {
        let planted: Vec<_> = std::fs::read_dir(machine.at("user"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("planted"))
            .collect();
        assert!(planted.is_empty(), "{planted:?}");
    }
    // Core still does what it is for.
    let listed = run_with(machine.command("bin/cli").args(["runs", "--json"]), "").ok();
    assert!(listed.contains(&other), "{listed}");
}

#[test]
fn permissive_holds_what_every_tier_holds() {
    attacked("permissive", false);
}

#[test]
fn normal_holds_what_it_promises() {
    attacked("normal", false);
}

#[test]
fn strict_holds_what_it_promises() {
    attacked("strict", false);
}

#[test]
fn permissive_holds_in_the_kernel_when_the_hook_says_nothing() {
    attacked("permissive", true);
}

#[test]
fn normal_holds_in_the_kernel_when_the_hook_says_nothing() {
    attacked("normal", true);
}

#[test]
fn strict_holds_in_the_kernel_when_the_hook_says_nothing() {
    attacked("strict", true);
}
