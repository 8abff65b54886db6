//! One start of the real Claude Code, with a tier's rules as core compiles them, against a scripted model.

#![allow(dead_code, reason = "each test program uses its part")]

use std::path::PathBuf;

use worca::agents::claude::{Event, Finish, Launch, Parser};
use worca::guardrails::{Facts, Library, SetName, compile};
use worca::secret::Secret;
use worca::spawn::{self, AgentExit, SpawnError, SpawnRequest};

use crate::model::Model;
use crate::processes::PATIENCE;

pub const PASS: &str = "wp_canary-pass-0123456789";

/// A Worca home with one run in it, a repository beside it, and a tier.
pub struct Stage {
    pub folder: tempfile::TempDir,
    pub tier: &'static str,
}

/// What an agent said and how it ended.
pub struct Done {
    pub events: Vec<Event>,
    pub exit: AgentExit,
    pub stderr: String,
}

impl Done {
    pub fn finish(&self) -> &Finish {
        let last = self.events.iter().rev().find_map(|event| match event {
            Event::Finished(finish) => Some(&**finish),
            _ => None,
        });
        last.unwrap_or_else(|| panic!("no result: {:?} {}", self.events, self.stderr))
    }
    /// Of each tool call in order: its name and whether it went well.
    pub fn calls(&self) -> Vec<(String, bool)> {
        let result = |id: &str| {
            self.events.iter().find_map(|event| match event {
                Event::ToolResult { id: of, is_error, .. } if of == id => Some(!is_error),
                _ => None,
            })
        };
        let call = |event: &Event| match event {
            Event::ToolUse { id, name, .. } => Some((name.clone(), result(id).unwrap_or(false))),
            _ => None,
        };
        self.events.iter().filter_map(call).collect()
    }
    /// Of each tool call in order: whether it went well, and the beginning of its answer.
    pub fn answers(&self) -> Vec<(bool, &str)> {
        let answer = |event| match event {
            &Event::ToolResult { is_error, ref summary, .. } => Some((!is_error, summary.as_str())),
            _ => None,
        };
        self.events.iter().filter_map(answer).collect()
    }
    pub fn texts(&self) -> Vec<&str> {
        self.answers().into_iter().map(|(_, text)| text).collect()
    }
    pub fn well(&self) -> Vec<bool> {
        self.answers().into_iter().map(|(well, _)| well).collect()
    }
}

impl Stage {
    pub fn new(tier: &'static str) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap(), tier };
        for folder in
            ["worca/runs/r0123456789/tree", "repository/.git/hooks", "repository/.git/worktrees/tree"]
        {
            std::fs::create_dir_all(stage.at(folder)).unwrap();
        }
        std::fs::write(stage.at("worca/core-token"), "token-canary").unwrap();
        std::fs::write(stage.at("repository/.git/config"), "").unwrap();
        stage
    }
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub fn run(&self, name: &str) -> PathBuf {
        self.at("worca/runs/r0123456789").join(name)
    }
    /// A path in the worktree, as a tool's input has it.
    pub fn in_tree(&self, name: &str) -> String {
        self.run("tree").join(name).to_str().unwrap().to_owned()
    }
    pub fn plant(&self, name: &str, text: &str) {
        let path = self.run("").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    pub fn facts(&self) -> Facts {
        let claude = PathBuf::from(claude());
        let worca = PathBuf::from(env!("CARGO_BIN_EXE_worca"));
        let programs = [claude.parent(), worca.parent(), Some("/usr/bin".as_ref())];
        Facts {
            programs: programs.into_iter().flatten().map(PathBuf::from).collect(),
            worca,
            worca_home: self.at("worca"),
            folder: self.run(""),
            worktree: self.run("tree"),
            home: self.run("home"),
            temporary: self.run("home/tmp"),
            common_dir: self.at("repository/.git"),
            worktree_admin: self.at("repository/.git/worktrees/tree"),
            branch: "worca/r0123456789/a-task".into(),
            checkout: self.at("repository"),
            projects: vec![self.at("repository")],
            protected: vec![self.at("worca/core-token")],
            user_home: None,
            found: Vec::new(),
            service_ports: Vec::new(),
            closed_port: None,
            host: std::process::id(),
        }
    }
    /// A start as core makes it. The scripted model is the one service that its agent may reach.
    pub fn launch(&self, model: &Model, prompt: &str) -> Launch {
        let mut facts = self.facts();
        facts.service_ports = vec![model.url.rsplit_once(':').unwrap().1.parse().unwrap()];
        let set = Library::embedded().resolve(&SetName::parse(self.tier).unwrap()).unwrap();
        Launch {
            program: claude(),
            model: None,
            compiled: compile(&set, &[], &facts),
            facts,
            base_url: model.url.clone(),
            pass: Secret::new(PASS.into()),
            prompt: prompt.into(),
            resume: None,
            environment: Vec::new(),
        }
    }
    pub async fn go(&self, model: &Model, prompt: &str) -> Done {
        started(self.launch(model, prompt).prepare().unwrap()).await.unwrap()
    }
}

/// Starts the agent and hears it to its end.
pub async fn started(mut request: SpawnRequest) -> Result<Done, SpawnError> {
    request.shim = Some(env!("CARGO_BIN_EXE_worca").into());
    let parser = Parser::new(vec![Secret::new(PASS.into())]);
    let mut agent = spawn::start(request).await?;
    let work = async {
        let mut events = Vec::new();
        while let Some(line) = agent.next_line().await {
            events.extend(parser.parse(&line));
        }
        (events, agent.wait().await)
    };
    let (events, exit) = tokio::time::timeout(3 * PATIENCE, work).await.expect("the agent ends");
    let stderr = parser.scrub(&agent.stderr_tail());
    Ok(Done { events, exit, stderr })
}

pub fn claude() -> std::ffi::OsString {
    std::env::var_os("WORCA_TEST_CLAUDE").expect(
        "these tests run the real Claude Code: set `WORCA_TEST_CLAUDE` to its path (scripts/test does)",
    )
}
