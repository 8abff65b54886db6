//! The built binary as core, a real key service with the rehearsal, the real Claude Code behind a script that can take a
//! guardrail set away in the moment before its start. `WORCA_TEST_CLAUDE` names the program; without it these tests fail
//! with a sentence.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;

use crate::support::{Place, Running};

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A home, a repository, a key service and a core.
pub struct Stage {
    folder: tempfile::TempDir,
    pub place: Place,
    pub keys: Running,
    core: Option<Core>,
}

struct Core {
    child: Child,
    url: String,
}

impl Drop for Core {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Stage {
    pub async fn set() -> Self {
        let place = Place::new();
        let keys = place.start(Origin::anthropic(), Limits::default()).await;
        Self::beside(place, keys)
    }
    /// The same beside a key service that runs already.
    pub fn beside(place: Place, keys: Running) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Self { folder, place, keys, core: None };
        for name in ["user", "bin", "worca/guardrails"] {
            std::fs::create_dir_all(stage.path(name)).unwrap();
        }
        let project = stage.project();
        std::fs::create_dir_all(&project).unwrap();
        git(&project, &["init", "--quiet", "--initial-branch", "main"]);
        git(&project, &["config", "user.name", "Ada Tester"]);
        git(&project, &["config", "user.email", "ada@example.invalid"]);
        git(&project, &["commit", "--quiet", "--allow-empty", "--message", "First"]);
        stage.write_claude();
        stage.serve();
        stage
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }
    pub fn own_set(&self) -> PathBuf {
        self.path("worca/guardrails/mine.yaml")
    }
    /// The real program behind a script: where `take` stands, asking its version takes the set away.
    pub fn write_claude(&self) {
        let Some(real) = std::env::var_os("WORCA_TEST_CLAUDE") else {
            panic!("set `WORCA_TEST_CLAUDE` to the real Claude Code program: this test runs it")
        };
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ] && [ -e '{take}' ]; then rm -f '{set}'; fi\nexec '{real}' \"$@\"\n",
            take = self.path("take").display(),
            set = self.own_set().display(),
            real = real.display(),
        );
        std::fs::write(self.path("bin/claude"), script).unwrap();
        std::fs::set_permissions(self.path("bin/claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    pub fn worca(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("user"))
            .env("WORCA_HOME", self.path("worca"))
            .env("WORCA_LISTEN", "127.0.0.1:0")
            .env("WORCA_CONTROL_FILE", self.place.control())
            .env("WORCA_KEYS_URL", self.keys.url(""))
            .env("WORCA_CLAUDE", self.path("bin/claude"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(core) = &self.core {
            command.env("WORCA_CORE_URL", &core.url);
        }
        command
    }
    pub fn serve(&mut self) {
        self.serve_with(&[]);
    }
    /// Starts core with more arguments.
    pub fn serve_with(&mut self, more: &[&str]) {
        let log = std::fs::File::options().create(true).append(true).open(self.path("core.log")).unwrap();
        let mut child = self.worca().arg("serve").args(more).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("Worca is ready on ") else {
            panic!("{line}{}", self.log())
        };
        let url = url.replace("http://localhost", "http://127.0.0.1");
        self.core = Some(Core { child, url });
    }
    /// Kills core.
    pub fn end_core(&mut self) {
        drop(self.core.take());
    }
    /// Kills core and starts it again.
    pub fn kill_core(&mut self) {
        self.end_core();
        self.serve();
    }
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("core.log")).unwrap_or_default()
    }
    pub async fn say(&self, arguments: &[&str]) -> Said {
        let mut command = self.worca();
        command.args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
    pub async fn run(&self, more: &[&str]) -> Said {
        let project = self.project();
        let first = ["run", "--project", project.to_str().unwrap()];
        self.say(&[&first, more].concat()).await
    }
    /// The id of the newest run.
    pub async fn newest(&self) -> String {
        let runs = self.say(&["runs", "--json"]).await.ends(0).json();
        runs[0]["id"].as_str().expect("a run").to_owned()
    }
    pub async fn show(&self, run: &str) -> Value {
        self.say(&["show", run, "--json"]).await.ends(0).json()
    }
    /// The events of a run that does not move.
    pub async fn events(&self, run: &str) -> Vec<Value> {
        let said = self.say(&["show", run, "--events", "--json"]).await.ends(0);
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- core ---\n{}", self.log());
        }
    }
}
