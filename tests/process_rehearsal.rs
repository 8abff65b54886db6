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
use support::{Place, Running, soon, until, wanted};
use tokio::process::{Child, Command};
use worca::keys::client::{MintRequest, Minted};
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;
use worca::keys::wire::Scenario;

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
        self.command(keys, minted).spawn().unwrap()
    }
    fn command(&self, keys: &Running, minted: &Minted) -> Command {
        let mut command = command(claude());
        command
            .args(["-p", "--output-format", "stream-json", "--verbose", "--setting-sources", ""])
            .args(["--allowedTools", "Bash", "Read", "--model", "rehearsal"])
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
            .stderr(Stdio::piped());
        command
    }
}

/// A pass that plays this text.
async fn scripted(keys: &Running, text: &str) -> Minted {
    let scenario = Some(Scenario::Text(text.to_owned()));
    keys.client.mint(&MintRequest { scenario, ..wanted(Some("rehearsal")) }).await.unwrap()
}

/// What the agent makes of a scenario, and how it ends.
async fn plays(text: &str, retries: &str) -> (Vec<Value>, Option<i32>) {
    let (place, sample) = (Place::new(), Sample::new().await);
    let keys = place.start(Origin::anthropic(), unhurried()).await;
    let minted = scripted(&keys, text).await;
    let mut command = sample.command(&keys, &minted);
    let mut child = command.env("CLAUDE_CODE_MAX_RETRIES", retries).spawn().unwrap();
    tell(&mut child, "Play").await;
    finish(child).await
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

#[tokio::test]
async fn the_real_agent_plays_review_reads_two_files_at_once_and_changes_nothing() {
    let (place, sample) = (Place::new(), Sample::new().await);
    let tree = sample.tree();
    std::fs::write(tree.join("README.md"), "# A project\n\nTODO: the rest\n").unwrap();
    std::fs::write(tree.join("zoo.txt"), "a gnu\n").unwrap();
    git(&tree, &["add", "."]).await;
    git(&tree, &["commit", "--quiet", "--message", "Files"]).await;
    let keys = place.start(Origin::anthropic(), unhurried()).await;
    let minted = keys.mint(Some("rehearsal/review")).await;
    let mut child = sample.start(&keys, &minted);
    tell(&mut child, "Review it").await;
    let (events, code) = finish(child).await;
    let result = result(&events);
    assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)), "{events:#?}");
    let report = result["result"].as_str().unwrap();
    assert!(report.contains("I reviewed 2 files with 4 lines and 2 commits"), "{report}");
    assert!(report.contains("`README.md` and `zoo.txt`") && report.contains("XXX): 1."), "{report}");
    let told = serde_json::to_string(&events).unwrap();
    assert!(told.contains("# A project") && told.contains("a gnu"), "{told}");
    let usage = &result["usage"];
    let numbers = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    assert_eq!(numbers.map(|key| usage[key].as_u64().unwrap()), [5200, 580, 9000, 28300], "{usage}");
    assert_eq!(git(&tree, &["status", "--porcelain"]).await, "");
    assert_eq!(git(&tree, &["rev-list", "--count", "--all"]).await, "2");
}

#[tokio::test]
async fn the_real_agent_asks_again_after_429_529_and_500_and_succeeds() {
    for status in [429, 500, 529] {
        let text = format!(
            "version: 1\nturns:\n  - tool: {{name: Bash, input: {{command: 'true', description: Nothing}}}}\n    fail: {{status: {status}, retry_after: 0}}\n  - text: all done\n    fail: {{status: {status}, calls: 2}}\n"
        );
        let (events, code) = plays(&text, "10").await;
        let result = result(&events);
        assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)), "{status}: {events:#?}");
        assert_eq!(result["result"], "all done");
    }
}

#[tokio::test]
async fn the_real_agent_stops_with_the_providers_words_when_they_never_end() {
    for (status, attempts) in [(400, "10"), (401, "10"), (403, "10"), (529, "1")] {
        let text = format!(
            "version: 1\nturns:\n  - text: never\n    fail: {{status: {status}, message: a word of the provider, calls: 1000}}\n"
        );
        let (events, code) = plays(&text, attempts).await;
        let result = result(&events);
        assert_eq!((code, &result["is_error"]), (Some(1), &Value::Bool(true)), "{status}: {events:#?}");
        assert!(result["result"].as_str().unwrap().contains("a word of the provider"), "{result}");
    }
}

/// Longer than what comes before each break below.
const LONG: &str = "All of this is done at last, and there is more to say of it: it went over the wire piece by piece, \
    one after another, up to the end of this text, which is far from its beginning, so that it can be broken in its middle.";

#[tokio::test]
async fn the_real_agent_gets_over_a_stream_that_breaks_off_or_errs_once() {
    for fault in [
        "cut: {after_events: 0}",
        "cut: {after_events: 6}",
        "cut: {after_bytes: 700}",
        "error_event: {type: overloaded_error, message: full, after_events: 6}",
        "error_event: {type: api_error, message: odd}",
    ] {
        let text = format!("version: 1\nturns:\n  - text: '{LONG}'\n    {fault}\n");
        let (events, code) = plays(&text, "10").await;
        let result = result(&events);
        assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)), "{fault}: {events:#?}");
        assert_eq!(result["result"], LONG, "{fault}");
    }
}

#[tokio::test]
async fn the_real_agent_keeps_what_came_whole_before_a_break_and_asks_for_the_rest() {
    // The text is whole after eight events, the tool is not.
    let text = "version: 1
turns:
  - text: I look.
    tool: {name: Bash, input: {command: 'touch never', description: Never done}}
    cut: {after_events: 6}
  - text: This is the rest.
";
    let (events, code) = plays(text, "10").await;
    let result = result(&events);
    assert_eq!((code, &result["is_error"]), (Some(0), &Value::Bool(false)), "{events:#?}");
    assert_eq!(result["result"], "This is the rest.");
    let told = serde_json::to_string(&events).unwrap();
    assert!(
        told.contains("I look.") && told.contains("cut off mid-stream") && !told.contains("touch never"),
        "{told}"
    );
}

#[tokio::test]
async fn the_real_agent_stops_when_every_stream_breaks_off_or_errs() {
    for (fault, words) in [
        ("cut: {after_events: 6, calls: 1000}", "Connection to the API was lost"),
        ("error_event: {type: overloaded_error, message: full, after_events: 6, calls: 1000}", "full"),
    ] {
        let text = format!("version: 1\nturns:\n  - text: '{LONG}'\n    {fault}\n");
        let (events, code) = plays(&text, "1").await;
        let result = result(&events);
        assert_eq!((code, &result["is_error"]), (Some(1), &Value::Bool(true)), "{fault}: {events:#?}");
        assert!(result["result"].as_str().unwrap().contains(words), "{fault}: {result}");
    }
}
