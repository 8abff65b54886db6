//! The real Claude Code against the scripted model of the key service: no account, no key, no internet.
//! `WORCA_TEST_CLAUDE` names the program; without it these tests fail with a sentence, so that nothing is
//! skipped in silence.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/keys.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use support::{Place, Running, soon, until};
use tokio::process::{Child, Command};
use worca::keys::client::Minted;
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;

fn claude() -> PathBuf {
    match std::env::var_os("WORCA_TEST_CLAUDE") {
        Some(path) => path.into(),
        None => panic!("set `WORCA_TEST_CLAUDE` to the real Claude Code program: this test runs it"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the test is the one that starts the agent program here")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    command
}

async fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = command("git").current_dir(folder).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with one commit, and an agent's home beside it.
struct Sample(tempfile::TempDir);

impl Sample {
    async fn new() -> Self {
        let sample = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(sample.home()).unwrap();
        std::fs::create_dir_all(sample.tree()).unwrap();
        let tree = sample.tree();
        git(&tree, &["init", "--quiet", "--initial-branch", "main"]).await;
        git(&tree, &["config", "user.name", "Test"]).await;
        git(&tree, &["config", "user.email", "test@worca.invalid"]).await;
        git(&tree, &["commit", "--quiet", "--allow-empty", "--message", "First"]).await;
        sample
    }
    fn tree(&self) -> PathBuf {
        self.0.path().join("tree")
    }
    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }
    fn start(&self, keys: &Running, minted: &Minted) -> Child {
        command(claude())
            .args(["-p", "--output-format", "stream-json", "--verbose", "--setting-sources", ""])
            .args(["--allowedTools", "Bash", "--model", "rehearsal"])
            .current_dir(self.tree())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("CLAUDE_CONFIG_DIR", self.home().join("claude"))
            .env("ANTHROPIC_BASE_URL", keys.url("/rehearsal"))
            .env("ANTHROPIC_AUTH_TOKEN", minted.pass.expose())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

async fn tell(child: &mut Child, prompt: &str) {
    use tokio::io::AsyncWriteExt as _;
    let mut input = child.stdin.take().unwrap();
    input.write_all(prompt.as_bytes()).await.unwrap();
}

/// The events of the stream, and the exit code.
async fn finish(child: Child) -> (Vec<Value>, Option<i32>) {
    let output = soon("the agent ends", child.wait_with_output()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(!events.is_empty(), "no events; stderr: {}", String::from_utf8_lossy(&output.stderr));
    (events, output.status.code())
}

fn result(events: &[Value]) -> &Value {
    events
        .last()
        .filter(|event| event["type"] == "result")
        .unwrap_or_else(|| panic!("no result: {events:#?}"))
}

/// Nobody renews a pass here, and the agent program may be slow to start.
fn unhurried() -> Limits {
    Limits { lease: std::time::Duration::from_secs(600), ..Limits::default() }
}

#[tokio::test]
async fn the_real_agent_plays_hello_and_leaves_a_commit_and_an_uncommitted_file() {
    let (place, sample) = (Place::new(), Sample::new().await);
    let keys = place.start(Origin::anthropic(), unhurried()).await;
    let minted = keys.mint(Some("rehearsal")).await;
    let mut child = sample.start(&keys, &minted);
    tell(&mut child, "Say hello").await;
    let (events, code) = finish(child).await;
    let result = result(&events);
    assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)), "{events:#?}");
    assert!(result["result"].as_str().unwrap().contains("The rehearsal is done"), "{result}");
    assert!(result["usage"]["output_tokens"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(git(&sample.tree(), &["log", "-1", "--format=%s"]).await, "Add a greeting");
    assert_eq!(git(&sample.tree(), &["status", "--porcelain"]).await, "?? HELLO-NOTES.md");
    assert!(std::fs::read_to_string(sample.tree().join("HELLO.md")).unwrap().starts_with("# Hello\n"));
}

#[tokio::test]
async fn the_real_agent_stops_at_once_with_our_words_when_its_pass_is_revoked() {
    let (place, sample) = (Place::new(), Sample::new().await);
    let keys = place.start(Origin::anthropic(), unhurried()).await;
    let minted = keys.mint(Some("rehearsal/slow")).await;
    let mut child = sample.start(&keys, &minted);
    tell(&mut child, "Take your time").await;
    let file = sample.tree().join("SLOW.md");
    until("the slow rehearsal makes two steps", || async {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.contains("one more step") { Ok(()) } else { Err(text) }
    })
    .await;
    keys.client.revoke(&minted.id).await.unwrap();
    let (events, code) = finish(child).await;
    let result = result(&events);
    assert_eq!((code, &result["is_error"]), (Some(1), &Value::Bool(true)), "{result}");
    assert!(result["result"].as_str().unwrap().contains("this pass is not valid here"), "{result}");
}
