//! What the system tests share: a box of their own, from the built binary, the real engine and the real
//! image. A box has its own name, home and port, and takes everything away when it is dropped.

#![allow(clippy::disallowed_methods, reason = "tests drive the binary, docker and git as a person would")]
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::indexing_slicing, reason = "a missing field fails the test")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up; far above what it takes.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// The variable's value, or a sentence that says who sets it.
pub fn required(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: system tests run through `scripts/test`"))
}

/// What a command said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
    /// Its standard output, when it went well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self.out
    }
    /// Its standard error, when it ended with that code.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self.err
    }
}

/// Runs a program to its end, with a standard input.
pub fn run_with(command: &mut Command, stdin: &str) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    // Beside the reading of its output, or both sides would wait for each other.
    let writer = std::thread::spawn(move || pipe.write_all(stdin.as_bytes()));
    let said = Said::of(&child.wait_with_output().unwrap());
    let _ = writer.join();
    said
}

/// Runs a program to its end.
pub fn run<I, S>(program: &str, args: I) -> Said
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    run_with(Command::new(program).args(args), "")
}

/// Waits until `look` gives something; says what was last seen when it never does.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(seen) if start.elapsed() > DEADLINE => panic!("{what}: last seen: {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A repository with one commit.
pub fn repository(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    let git = |args: &[&str]| git(path, args).ok();
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["config", "user.name", "Ada Tester"]);
    git(&["config", "user.email", "ada@example.invalid"]);
    std::fs::write(path.join("README.md"), "# sample\n").unwrap();
    git(&["add", "README.md"]);
    git(&["commit", "--quiet", "-m", "first"]);
}

/// Runs git in a folder.
pub fn git(path: &Path, args: &[&str]) -> Said {
    run_with(Command::new("git").arg("-C").arg(path).args(args), "")
}

/// Everything of a checkout that a run must leave as it was.
pub fn checkout_state(path: &Path) -> (String, String, String, Vec<u8>) {
    let index = path.join(".git/index");
    (
        git(path, &["status", "--porcelain=v2", "--branch", "--untracked-files=all"]).ok(),
        std::fs::read_to_string(path.join(".git/HEAD")).unwrap(),
        git(path, &["stash", "list"]).ok(),
        // Read after `status`, which may refresh it.
        std::fs::read(index).unwrap(),
    )
}

/// A box of this test alone.
pub struct TestBox {
    pub name: String,
    pub home: tempfile::TempDir,
    pub port: u16,
    pub image: String,
    /// A repository that is mounted.
    pub project: PathBuf,
}

impl TestBox {
    /// A box that is not up yet, with a repository named `sample`.
    pub fn new() -> Self {
        Self::with_project("sample")
    }

    /// A box that is not up yet, with a repository in a folder of that name.
    pub fn with_project(folder: &str) -> Self {
        let home = tempfile::Builder::new().prefix("worca-test-").tempdir().unwrap();
        let name = home.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let project = home.path().join("projects").join(folder);
        repository(&project);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { name, port, image: required("WORCA_TEST_IMAGE"), project, home }
    }

    /// The built binary, in this box's clean environment.
    pub fn worca(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("WORCA_HOME", self.home.path().join(".worca"))
            .env("WORCA_IMAGE", &self.image)
            .env("WORCA_PORT", self.port.to_string())
            .env("GIT_AUTHOR_NAME", "");
        command
    }

    /// `worca container --name <this> <args>`.
    pub fn container(&self, args: &[&str]) -> Said {
        self.container_with(args, "")
    }

    /// The same, with a standard input.
    pub fn container_with(&self, args: &[&str], stdin: &str) -> Said {
        run_with(self.worca().args(["container", "--name", &self.name]).args(args), stdin)
    }

    /// Brings the box up with its project.
    #[track_caller]
    pub fn up(&self) -> String {
        self.container(&["up", "--project", self.project.to_str().unwrap()]).ok()
    }

    /// The full id of one of its containers.
    #[track_caller]
    pub fn container_id(&self, service: &str) -> String {
        let found = run(
            "docker",
            [
                "ps",
                "--all",
                "--no-trunc",
                "--quiet",
                "--filter",
                &format!("label=com.docker.compose.project={}", self.name),
                "--filter",
                &format!("label=com.docker.compose.service={service}"),
            ],
        )
        .ok();
        assert_eq!(found.lines().count(), 1, "containers of `{service}`: {found:?}");
        found.trim().to_owned()
    }

    /// `docker inspect` of one of its containers.
    pub fn inspect(&self, service: &str) -> serde_json::Value {
        let text = run("docker", ["inspect", &self.container_id(service)]).ok();
        serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().remove(0)
    }

    /// Runs a shell line in one of its containers.
    pub fn inside(&self, service: &str, line: &str) -> Said {
        run("docker", ["exec", &self.container_id(service), "sh", "-c", line])
    }

    /// Runs a rehearsal to its end and gives the run as JSON.
    #[track_caller]
    pub fn rehearse(&self, scenario: &str) -> serde_json::Value {
        let out = self
            .container(&[
                "run",
                "--",
                "--project",
                self.project.to_str().unwrap(),
                "--model",
                &format!("rehearsal/{scenario}"),
                "--prompt",
                "Say hello",
                "--json",
            ])
            .ok();
        let last = out.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Starts the long rehearsal and waits until its agent has written something; gives the run.
    #[track_caller]
    pub fn slow_run(&self) -> String {
        let project = self.project.to_str().unwrap();
        let words = ["--model", "rehearsal/slow", "--prompt", "Be slow", "--detach", "--json"];
        let started = self.container(&[&["run", "--", "--project", project], &words[..]].concat()).ok();
        let started: serde_json::Value = serde_json::from_str(started.lines().last().unwrap()).unwrap();
        let id = started["id"].as_str().unwrap().to_owned();
        eventually("the agent is at work", || {
            let found = self.inside("core", &format!("cat /worca/runs/{id}/tree/SLOW.md && pgrep -x claude"));
            (found.code == 0).then_some(()).ok_or(found.out + &found.err)
        });
        id
    }

    /// Asks core's API as the command line does.
    pub fn api(&self, path: &str) -> serde_json::Value {
        let token = std::fs::read_to_string(self.files().join("secrets/core_token")).unwrap();
        let out = run_with(
            Command::new("curl")
                .args(["--silent", "--show-error", "--fail-with-body", "--max-time", "10", "--config", "-"])
                .arg(format!("http://127.0.0.1:{}{path}", self.port)),
            &format!("header = \"Authorization: Bearer {}\"\n", token.trim()),
        )
        .ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The folder of its compose files.
    pub fn files(&self) -> PathBuf {
        self.home.path().join(".worca/containers").join(&self.name)
    }
}

impl Drop for TestBox {
    fn drop(&mut self) {
        let label = format!("label=com.docker.compose.project={}", self.name);
        if std::thread::panicking() {
            let logs = self.container(&["logs", "--tail", "40"]);
            eprintln!("--- logs of the box ---\n{}\n{}", logs.out, logs.err);
        }
        for (list, remove) in [
            (vec!["ps", "--all", "--quiet"], vec!["rm", "--force", "--volumes"]),
            (vec!["network", "ls", "--quiet"], vec!["network", "rm"]),
            (vec!["volume", "ls", "--quiet"], vec!["volume", "rm", "--force"]),
        ] {
            let found = run("docker", list.into_iter().chain(["--filter", &label])).out;
            if !found.trim().is_empty() {
                run("docker", remove.into_iter().chain(found.split_whitespace()));
            }
        }
    }
}
