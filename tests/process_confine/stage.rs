//! A user's home as it is in earnest: a repository with two runs' worktrees, secrets, Worca's home, and the rules of a
//! set that reads everywhere and writes in the project.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use worca::guardrails::{
    Access::{Closed, Read, Write},
    KERNEL_RULES_VERSION, KernelRules,
};
use worca::spawn::{self, SpawnRequest};

use crate::spawned::{Place, finish, output};

pub struct Stage {
    pub place: Place,
}

/// What is compared after an attack.
const KEPT: [&str; 9] = [
    "secret/key",
    "half/closed",
    "read/readonly",
    "repository/.git/config",
    "repository/.git/HEAD",
    "repository/.git/refs/heads/main",
    "repository/.git/refs/heads/worca/r2/task",
    "repository/.git/worktrees/r2/HEAD",
    "repository/file",
];

impl Stage {
    pub fn new() -> Self {
        let stage = Self { place: Place::new() };
        for folder in ["secret", "half", "read", "repository", "worca/runs/r1", "worca/runs/r2"] {
            std::fs::create_dir_all(stage.at(folder)).unwrap();
        }
        for (file, text) in [
            ("secret/key", "canary"),
            ("half/closed", "canary"),
            ("half/beside", "x"),
            ("read/readonly", "fine"),
        ] {
            std::fs::write(stage.at(file), text).unwrap();
        }
        std::fs::copy("/bin/true", stage.at("secret/program")).unwrap();
        stage.git("repository", &["init", "-q", "-b", "main"]);
        std::fs::write(stage.at("repository/file"), "base\n").unwrap();
        stage.git("repository", &["add", "-A"]);
        stage.git("repository", &["commit", "-qm", "base"]);
        for run in ["r1", "r2"] {
            let (tree, branch) = (stage.text(&format!("worca/runs/{run}/tree")), format!("worca/{run}/task"));
            stage.git("repository", &["worktree", "add", "-q", "-b", &branch, &tree]);
            // The folder of its administration is named after the last part, `tree`: give it the run's name.
            let admin = if run == "r1" { "tree" } else { "tree1" };
            let (from, to) =
                (format!("repository/.git/worktrees/{admin}"), format!("repository/.git/worktrees/{run}"));
            std::fs::rename(stage.at(&from), stage.at(&to)).unwrap();
            std::fs::write(
                stage.at(&format!("worca/runs/{run}/tree/.git")),
                format!("gitdir: {}\n", stage.text(&to)),
            )
            .unwrap();
            if run == "r1" {
                // So that the next one is not named after it.
                std::fs::create_dir(stage.at("repository/.git/worktrees/tree")).unwrap();
                std::fs::write(stage.at("repository/.git/worktrees/tree/locked"), "").unwrap();
            }
        }
        std::fs::remove_dir_all(stage.at("repository/.git/worktrees/tree")).unwrap();
        stage
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.place.folder.path().canonicalize().unwrap().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        #[allow(clippy::disallowed_methods, reason = "the test plays the user")]
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .current_dir(self.at(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn rules(&self) -> KernelRules {
        let mut places: std::collections::BTreeMap<PathBuf, _> = [
            ("/", Read),
            ("/dev/null", Write),
            ("/dev/ptmx", Write),
            ("/dev/pts", Write),
            ("/dev/tty", Write),
            ("/dev/urandom", Read),
            ("/dev/vda", Closed),
            ("/dev/kmsg", Closed),
            ("/dev/mem", Closed),
            ("/dev/sda", Closed),
            ("/proc", Write),
        ]
        .map(|(path, access)| (path.into(), access))
        .into();
        let mut own = |name: &str, access| places.insert(self.at(name), access);
        for (name, access) in [
            ("secret", Closed),
            ("half", Write),
            ("half/closed", Closed),
            ("half/none", Closed),
            ("worca", Closed),
            ("worca/runs/r1/tree", Write),
            ("home", Write),
            ("tmp", Write),
            ("repository/.git/objects", Write),
            ("repository/.git/refs/heads/worca/r1", Write),
            ("repository/.git/logs/refs/heads/worca/r1", Write),
            ("repository/.git/worktrees/r1", Write),
        ] {
            own(name, access);
        }
        KernelRules {
            version: KERNEL_RULES_VERSION,
            places,
            connect: None,
            required: true,
            probes: Vec::new(),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the callers read better")]
    pub fn request(&self, script: &str, rules: KernelRules, more: Value) -> SpawnRequest {
        let mut all = json!({
            "tree": self.at("worca/runs/r1/tree"), "key": self.at("secret/key"), "program": self.at("secret/program"),
            "half": self.at("half"), "beside": self.at("half/beside"), "readonly": self.at("read/readonly"),
            "git": self.at("repository/.git"), "config": self.at("repository/.git/config"),
            "checkout": self.at("repository"), "other_tree": self.at("worca/runs/r2/tree"),
            "other_admin": self.at("repository/.git/worktrees/r2"), "capable": is_capable(),
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut request = self.place.request("python3", &["-", "worca"]);
        request.directory = self.at("worca/runs/r1/tree");
        request.stdin = format!("{}\n{script}", include_str!("common.py")).into_bytes();
        request.environment.push(("PLACES".into(), all.to_string().into()));
        request.kernel = rules;
        request
    }

    /// What the script printed. It must have come to its end.
    pub async fn run(&self, script: &str, rules: KernelRules, more: Value) -> String {
        let mut agent = spawn::start(self.request(script, rules, more)).await.unwrap();
        let text = output(&mut agent).await;
        let exit = finish(&mut agent).await;
        assert!(exit.is_success(), "{exit:?}\n{text}\n{}", agent.stderr_tail());
        text
    }

    /// Nothing that was forbidden has happened.
    pub fn is_untouched(&self) {
        let fresh = Self::new();
        let same = |file: &str, text: &[u8]| {
            // Commits have times in them, and paths the name of the folder.
            let changes =
                file.contains("refs/heads") || file.ends_with("/HEAD") && file.contains("worktrees");
            let fresh = std::fs::read(fresh.at(file)).unwrap();
            if changes { fresh.len() == text.len() } else { fresh == text }
        };
        for file in KEPT {
            let text = std::fs::read(self.at(file)).unwrap();
            assert!(same(file, &text), "{file}: {}", String::from_utf8_lossy(&text));
        }
        let names = |folder: &Path| -> Vec<String> {
            let all = std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name());
            let mut all: Vec<String> = all.map(|name| name.into_string().unwrap()).collect();
            all.sort();
            all
        };
        for folder in [
            "secret",
            "half",
            "read",
            "repository",
            "repository/.git/hooks",
            "repository/.git/refs/heads/worca",
        ] {
            assert_eq!(names(&self.at(folder)), names(&fresh.at(folder)), "{folder}");
        }
    }
}

/// Whether this process may do what no ordinary user may.
pub fn is_capable() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    !status.lines().any(|line| line.starts_with("CapEff") && line.ends_with("0000000000000000"))
}
