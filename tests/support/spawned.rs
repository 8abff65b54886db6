//! Agents of a test: small programs in folders of their own, through the real shim of the built binary.
#![allow(dead_code, reason = "each test program uses a part")]

use std::ffi::OsString;
use std::path::PathBuf;

use worca::guardrails::{Access, KERNEL_RULES_VERSION, KernelRules};
use worca::spawn::{self, Agent, AgentExit, SpawnRequest};

use crate::proc::{self, PATIENCE, until};

/// One agent's folders. The mark stands in its environment, so that whatever it starts can be found.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub mark: String,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "tmp", "tree"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mark = format!("mark-{}", worca::ids::SpawnId::random());
        Self { folder, mark }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub fn request(&self, program: &str, arguments: &[&str]) -> SpawnRequest {
        SpawnRequest {
            shim: Some(env!("CARGO_BIN_EXE_worca").into()),
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: self.path("tree"),
            home: self.path("home"),
            temporary: self.path("tmp"),
            environment: vec![("MARK".into(), self.mark.clone().into())],
            keep: Vec::new(),
            stdin: Vec::new(),
            kernel: open(),
            trial: None,
        }
    }
    pub async fn sh(&self, script: &str) -> Agent {
        spawn::start(self.request("sh", &["-c", script])).await.unwrap()
    }
    pub async fn python(&self, script: &str) -> Agent {
        spawn::start(self.request("python3", &["-c", script])).await.unwrap()
    }
    pub fn living(&self) -> Vec<i32> {
        proc::marked(&self.mark)
    }
    pub async fn all_gone(&self) {
        until("everything of the agent is gone", || match self.living() {
            left if left.is_empty() => Ok(()),
            left => Err(left),
        })
        .await;
    }
    pub async fn number(&self, name: &str) -> i32 {
        let path = self.path("tree").join(name);
        until("the agent wrote a number", || proc::number_in(&path)).await
    }
}

/// Rules that hold nothing but signals.
pub fn open() -> KernelRules {
    KernelRules {
        version: KERNEL_RULES_VERSION,
        places: [("/".into(), Access::Write)].into(),
        connect: None,
        required: false,
        probes: Vec::new(),
    }
}

pub async fn output(agent: &mut Agent) -> String {
    let mut all = String::new();
    while let Some(line) = agent.next_line().await {
        all.push_str(&line.text());
        all.push('\n');
    }
    all
}

pub async fn finish(agent: &mut Agent) -> AgentExit {
    tokio::time::timeout(PATIENCE, agent.wait()).await.expect("the agent's end is told")
}
