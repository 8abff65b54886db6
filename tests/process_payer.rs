//! The real Claude Code against a scripted provider, through the key service: who has signed in, what a refused
//! sign-in comes to, and what a budget that is spent comes to.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/keys.rs"]
mod support;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use serde_json::Value;
use tokio::process::Command;
use tokio::task::JoinSet;
use worca::amount::Amount;
use worca::keys::client::{MintRequest, Minted};
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;
use worca::keys::wire::RefusalKind;

use support::{Script, Seen, Stage, TOKEN, soon, wanted};

const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",",
    "\"model\":\"claude-opus-5\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"All is well.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn provider(seen: &Seen) -> Script {
    if seen.target.contains("count_tokens") {
        return Script::json(200, r#"{"input_tokens":1}"#);
    }
    let response = Response::builder().header("content-type", "text/event-stream");
    Script::Whole(response.body(Bytes::from_static(ANSWER.as_bytes())).unwrap())
}

fn claude() -> PathBuf {
    match std::env::var_os("WORCA_TEST_CLAUDE") {
        Some(path) => path.into(),
        None => panic!("set `WORCA_TEST_CLAUDE` to the real Claude Code program: this test runs it"),
    }
}

/// Nobody renews a pass here, and the agent program may be slow to start.
async fn stage(script: impl Fn(&Seen) -> Script + Send + Sync + 'static) -> Arc<Stage> {
    let limits = Limits { lease: Duration::from_secs(600), ..Limits::default() };
    Arc::new(Stage::with(Kind::Subscription, TOKEN, limits, script).await)
}

/// What an agent came to: its exit code, its last word, and everything that it printed.
struct Ended {
    code: Option<i32>,
    result: String,
    printed: String,
    home: tempfile::TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the test is the one that starts the agent program here")]
async fn agent(stage: &Stage, minted: &Minted) -> Ended {
    let home = tempfile::tempdir().unwrap();
    let child = Command::new(claude())
        .kill_on_drop(true)
        .args([
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--setting-sources",
            "",
            "--model",
            "claude-opus-5",
        ])
        .arg("How are you?")
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("CLAUDE_CONFIG_DIR", home.path().join("claude"))
        .env("ANTHROPIC_BASE_URL", stage.keys.url("/anthropic"))
        .env("ANTHROPIC_AUTH_TOKEN", minted.pass.expose())
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = soon("the agent ends", child.wait_with_output()).await.unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut events = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = events.rfind(|event| event["type"] == "result").unwrap_or_else(|| panic!("{printed}"));
    let result = last["result"].as_str().unwrap_or_default().to_owned();
    Ended { code: output.status.code(), result, printed, home }
}

async fn four_at_once(stage: &Arc<Stage>) -> Vec<Ended> {
    let mut agents = JoinSet::new();
    for _ in 0..4 {
        let stage = stage.clone();
        let minted = stage.keys.mint(None).await;
        agents.spawn(async move { agent(&stage, &minted).await });
    }
    agents.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn c066_four_agents_at_once_work_with_a_sign_in_that_none_of_them_has_or_can_lose() {
    let refused = Arc::new(AtomicBool::new(false));
    let refuses = refused.clone();
    let stage = stage(move |seen| {
        if refuses.load(Ordering::Relaxed) {
            return Script::json(401, r#"{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired"}}"#);
        }
        provider(seen)
    })
    .await;
    let saved = stage.place.vault().list().unwrap();
    for ended in four_at_once(&stage).await {
        assert_eq!((ended.code, ended.result.as_str()), (Some(0), "All is well."), "{}", ended.printed);
    }
    // The token runs out at the provider, with four agents about to start.
    refused.store(true, Ordering::Relaxed);
    for ended in four_at_once(&stage).await {
        assert_eq!(ended.code, Some(1), "{}", ended.printed);
        assert!(
            ended.result.contains("the provider refused the key saved for slot `anthropic`"),
            "{}",
            ended.result
        );
        assert!(!ended.printed.contains("/login"), "{}", ended.printed);
        assert!(!ended.home.path().join("claude/.credentials.json").exists());
    }
    for seen in stage.upstream.seen() {
        assert!(seen.target.starts_with("/v1/messages"), "a refresh, or whatever this is: {}", seen.target);
        assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
    }
    // What is saved is what was saved: nobody refreshes it, and nobody can write it.
    let now = stage.place.vault().list().unwrap();
    let shown = |rows: &[worca::keys::vault::Listed]| {
        rows.iter().map(|row| (row.added.clone(), row.last_four.clone())).collect::<Vec<_>>()
    };
    assert_eq!(shown(&now), shown(&saved));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_agent_stops_at_a_spent_budget_with_the_words_that_name_it() {
    let stage = stage(provider).await;
    let wanted = MintRequest { cap: Some(Amount::Tokens(0)), ..wanted(None) };
    let minted = stage.keys.client.mint(&wanted).await.unwrap();
    let ended = agent(&stage, &minted).await;
    assert_eq!(ended.code, Some(1), "{}", ended.printed);
    let words = format!("the budget of run {} is spent: 0 tokens of 0 tokens", wanted.run);
    assert!(ended.result.contains(&words), "{}", ended.result);
    // Looking at the models is free; nothing that costs has reached the provider.
    let targets: Vec<String> = stage.upstream.seen().into_iter().map(|seen| seen.target).collect();
    assert!(!targets.iter().any(|target| target.split('?').next() == Some("/v1/messages")), "{targets:?}");
    let refused = stage.keys.client.revoke(&minted.id).await.unwrap().refused.unwrap();
    assert_eq!(refused.kind, RefusalKind::Budget);
}
