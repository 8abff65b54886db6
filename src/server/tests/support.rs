//! Starts a core in its own folder and speaks plain HTTP to it, so that a test decides each header.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use crate::clock::Millis;
use crate::events::RunStatus;
use crate::failure::Failure;
use crate::home::Home;
use crate::ids::{PersonId, RunId};
use crate::runs::Runs;
use crate::secret::Secret;
use crate::server::assemble::{self, RunSettings};
use crate::server::{App, serve};
use crate::store::{NewProject, Run, RunEnd, Store};

/// Longer than anything here takes; a test that reaches it says what it last saw.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct TestCore {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    pub app: App,
    pub token: Secret,
    pub tasks: TaskTracker,
}

/// What core and a key service beside it know.
pub const CONTROL: &str = "a-control-secret-of-a-test-0123456789";
/// Where nobody answers.
const NOWHERE: &str = "http://127.0.0.1:9";

pub fn write_private(path: &std::path::Path, text: &str) {
    std::fs::write(path, format!("{text}\n")).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Real runs. Their key service is an address where nobody answers: no agent is started here.
pub async fn runs(home: &Home, store: Store) -> Result<Runs, Failure> {
    runs_beside(home, store, NOWHERE).await
}

async fn runs_beside(home: &Home, store: Store, keys_url: &str) -> Result<Runs, Failure> {
    let control = home.path().join("control");
    write_private(&control, CONTROL);
    let settings = RunSettings {
        home: home.clone(),
        keys_url: keys_url.into(),
        control_file: Some(control),
        claude: "claude".into(),
        author: (None, None),
        projects: None,
        protected: vec![],
        reach: crate::runs::Reach::default(),
        listen_port: None,
    };
    assemble::runs(settings, store).await
}

pub fn settings(folder: &std::path::Path) -> serve::Settings {
    serve::Settings {
        home: Home::at(folder),
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: None,
        allow_hosts: vec!["box.example".into()],
        core_token_file: None,
    }
}

impl TestCore {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        Self::start_in(folder, settings, NOWHERE).await
    }

    /// The same beside a key service that answers there.
    pub async fn beside(keys_url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        Self::start_in(folder, settings, keys_url).await
    }

    /// The same core once more, on its home and its address. It must have ended.
    pub async fn again(self) -> Self {
        let settings = serve::Settings { listen: self.address, ..settings(self.folder.path()) };
        drop(self.app);
        Self::start_in(self.folder, settings, NOWHERE).await
    }

    async fn start_in(folder: tempfile::TempDir, settings: serve::Settings, keys_url: &str) -> Self {
        let home = Home::at(folder.path());
        let started = serve::start(settings, async |store, _| runs_beside(&home, store, keys_url).await);
        let serve::Start::Ready(core) = started.await.unwrap() else { panic!("another core runs") };
        let (address, app) = (core.address().unwrap(), core.app().clone());
        let token = crate::server::token::read(&home.core_token()).unwrap();
        let tasks = TaskTracker::new();
        let closing = app.closing().clone();
        tasks.spawn(async move { core.serve(closing.cancelled_owned(), async {}).await });
        Self { folder, address, app, token, tasks }
    }

    pub fn store(&self) -> &Store {
        self.app.store()
    }

    pub async fn run(&self) -> RunId {
        new_run(self.store()).await
    }

    /// A run under this guardrail set.
    pub async fn run_with(&self, guardrails: &str) -> RunId {
        insert_run(self.store(), guardrails).await
    }

    /// A signed-in browser's cookie, as a browser sends it.
    pub async fn cookie(&self) -> String {
        let secret = self.app.sessions().make_link(std::time::Instant::now());
        let answer = self.get(&format!("/sign-in?token={}", secret.expose()), &[]).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token.expose())
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, None).await
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.ask("POST", path, headers, Some(body)).await
    }

    /// One request. `Host` is added when `headers` has none; the answer is read until the stream's first frame
    /// for an event stream, else whole.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("host: localhost:{}\r\n", self.address.port()));
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != "<missing>") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| *name == "content-type") {
                head.push_str("content-type: application/json\r\n");
            }
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses may close before it has read a large body.
        let _ = socket.write_all(body.unwrap_or_default().as_bytes()).await;
        let mut bytes = Vec::new();
        let reading = async {
            let mut chunk = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = socket.read(&mut chunk).await {
                bytes.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&bytes);
                if text.contains("text/event-stream") && text.contains("retry: ") {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the answer ends");
        Answer::parse(&String::from_utf8_lossy(&bytes))
    }
}

pub async fn new_run(store: &Store) -> RunId {
    insert_run(store, "permissive").await
}

async fn insert_run(store: &Store, guardrails: &str) -> RunId {
    let project = NewProject {
        common_dir: "/p/.git".into(),
        checkout: "/p".into(),
        first_commit: "0".repeat(40),
        origin: None,
    };
    let project = store.register_project(project).await.unwrap();
    let id = RunId::random();
    let run = Run {
        id: id.clone(),
        project: project.id,
        checkout: "/p".into(),
        title: "a title".into(),
        prompt: "do it".into(),
        model: None,
        guardrails: guardrails.into(),
        payer: PersonId::local(),
        budget: None,
        models: Vec::new(),
        author_name: "A".into(),
        author_email: "a@example.invalid".into(),
        branch: format!("worca/{id}/a-title"),
        base_commit: "1".repeat(40),
        status: RunStatus::Preparing,
        reason: None,
        created_at: Millis::now(),
        ended_at: None,
        end: RunEnd::default(),
        worktree_present: true,
    };
    store.insert_run(run).await.unwrap();
    id
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Self { status, headers, body: body.to_owned() }
    }
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}
