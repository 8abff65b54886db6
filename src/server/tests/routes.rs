use std::collections::BTreeSet;

use utoipa::OpenApi as _;

use super::support::TestCore;
use crate::events::RunStatus;
use crate::guardrails::{KernelSupport, Outcome, Probe, Receipt, Tried};
use crate::ids::{PassId, RunId, SpawnId, StepName};
use crate::server::reply::BODY_BYTES;
use crate::server::route::table;
use crate::server::routes::openapi::Document;
use crate::store::{NewSpawn, RunEnd};

#[test]
fn every_path_is_in_the_document_and_no_other() {
    let document = serde_json::to_value(Document::openapi()).unwrap();
    let written: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
        })
        .collect();
    // The page's own files are no part of the API.
    let page = |path: &str| path == "/" || path.starts_with("/assets/") || path == "/favicon.ico";
    let answered: BTreeSet<String> = table()
        .iter()
        .filter(|route| !page(route.path))
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    assert_eq!(written, answered);
}

#[test]
fn what_the_document_names_it_also_describes() {
    let document = serde_json::to_value(Document::openapi()).unwrap();
    let text = document.to_string();
    let described = document["components"]["schemas"].as_object().unwrap();
    for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(described.contains_key(name), "{name}");
    }
    assert!(described.contains_key("StoredEvent") && described.contains_key("StreamEnd"));
}

#[tokio::test]
async fn a_run_is_listed_and_shown() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let empty = core.get("/api/runs", &token).await;
    assert_eq!(empty.body, r#"{"runs":[]}"#);

    let id = core.run().await;
    let end = RunEnd { files_changed: Some(2), turns: Some(4), ..RunEnd::default() };
    core.store().set_run_end(&id, end).await.unwrap();
    core.store().set_run_status(&id, RunStatus::Done, None).await.unwrap();
    let list = core.get("/api/runs?limit=1", &token).await.json();
    assert_eq!(list["runs"][0]["id"], id.as_str());
    assert!(list["runs"][0].get("prompt").is_none(), "a list does not carry prompts");
    let run = core.get(&format!("/api/runs/{id}"), &token).await.json();
    assert_eq!((run["status"].as_str(), run["prompt"].as_str()), (Some("done"), Some("do it")));
    assert_eq!((run["files_changed"].as_u64(), run["turns"].as_u64()), (Some(2), Some(4)));
    let status = core.get("/api/status", &token).await.json();
    assert_eq!((status["alive_runs"].as_u64(), status["last_event"].as_i64()), (Some(0), Some(2)));
}

#[tokio::test]
async fn a_diff_is_served_as_plain_text_once_there_is_one() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let id = core.run().await;
    let path = format!("/api/runs/{id}/diff");
    assert_eq!(core.get(&path, &token).await.code(), "diff-none");
    let backup = format!("refs/worca/backup/{id}/1");
    let end = RunEnd { backup: Some(backup.clone()), ..RunEnd::default() };
    core.store().set_run_end(&id, end).await.unwrap();
    let refused = core.get(&path, &token).await.json();
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("`git diff 1111111111..{backup}`")), "{hint}");
    let file = core.app.runs().diff_file(&id);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "+<script>alert(1)</script>\n").unwrap();
    let answer = core.get(&path, &token).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(answer.body.contains("+<script>alert(1)</script>\n"));
}

#[tokio::test]
async fn a_body_that_is_not_what_was_asked_for_is_refused_with_a_sentence() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let mut seen = Vec::new();
    let longer = format!(r#"{{"project":"/p","prompt":"{}"}}"#, "x".repeat(1024 * 1024 + 1));
    for (name, body) in [
        ("no json", "prompt=x".to_owned()),
        ("unknown key", r#"{"project":"/p","prompt":"x","dangerously":true}"#.into()),
        ("missing key", r#"{"project":"/p"}"#.into()),
        ("wrong type", r#"{"project":"/p","prompt":["x"]}"#.into()),
        ("long prompt", longer),
        ("large body", " ".repeat(BODY_BYTES + 1)),
        ("empty prompt", r#"{"project":"/p","prompt":""}"#.into()),
    ] {
        let answer = core.post("/api/runs", &token, &body).await;
        seen.push(format!("{name}: {} {}", answer.status, answer.body));
    }
    let form = [token[0], ("content-type", "text/plain")];
    let answer = core.post("/api/runs", &form, "{}").await;
    seen.push(format!("form: {} {}", answer.status, answer.body));
    insta::assert_snapshot!(seen.join("\n"));
}

#[tokio::test]
async fn errors_have_a_fitting_status_and_one_form() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = ("authorization", bearer.as_str());
    let unknown = RunId::parse("r0000000000").unwrap();
    let id = core.run().await;
    let mut seen = Vec::new();
    for (method, path, headers) in [
        ("GET", "/api/runs".to_owned(), vec![]),
        ("GET", "/api/nothing".into(), vec![token]),
        ("DELETE", "/api/runs".into(), vec![token]),
        ("GET", format!("/api/runs/{unknown}"), vec![token]),
        ("GET", "/api/runs/..%2f..%2fetc".into(), vec![token]),
        ("GET", format!("/api/runs/{unknown}/events"), vec![token]),
        ("POST", format!("/api/runs/{unknown}/stop"), vec![token]),
        ("GET", "/api/runs?limit=0".into(), vec![token]),
        ("GET", "/api/runs?limit=x".into(), vec![token]),
        ("GET", "/api/runs?other=1".into(), vec![token]),
        ("GET", "/api/events?after=-1".into(), vec![token]),
        ("GET", "/api/events?after=999".into(), vec![token]),
        ("GET", "/api/events".into(), vec![token, ("last-event-id", "x")]),
        ("GET", format!("/api/runs/{id}"), vec![token, ("host", "evil.invalid")]),
    ] {
        let answer = core.ask(method, &path, &headers, None).await;
        let path = path.replace(id.as_str(), "ID");
        seen.push(format!("{method} {path}: {} {}", answer.status, answer.body));
    }
    insta::assert_snapshot!(seen.join("\n"));
}

#[tokio::test]
async fn what_held_the_last_agent_of_a_run_is_told_and_the_kernel_of_the_machine() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let id = core.run().await;
    let path = format!("/api/runs/{id}");
    assert!(core.get(&path, &token).await.json()["policy"].is_null(), "no agent was started yet");
    let spawn = NewSpawn {
        id: SpawnId::random(),
        run: id.clone(),
        step: StepName::work(),
        program: "Claude Code 2.1.0".into(),
        pass: PassId::random(),
        guardrails: "strict".into(),
        policy_digest: "d".repeat(64),
    };
    core.store().spawn_begins(spawn.clone()).await.unwrap();
    let receipt = Receipt {
        kernel: KernelSupport { abi: 4, files: true, tcp: true, signals: false },
        probes: vec![
            Tried { probe: Probe::Read("/home/ann/.worca/core-token".into()), outcome: Outcome::Held },
            Tried { probe: Probe::Signal(7), outcome: Outcome::Open },
            Tried { probe: Probe::Connect(4317), outcome: Outcome::Absent },
        ],
        hook: Some(true),
    };
    let text = serde_json::to_string(&receipt).unwrap();
    core.store().spawn_receipt(&spawn.id, text).await.unwrap();
    let policy = core.get(&path, &token).await.json()["policy"].clone();
    assert_eq!(
        policy,
        serde_json::json!({
            "spawn": spawn.id,
            "program": "Claude Code 2.1.0",
            "set": "strict",
            "digest": "d".repeat(64),
            "receipt": {
                "kernel_abi": 4,
                "kernel_lacks": ["signals to other processes (Linux 6.12)"],
                "tried": [
                    { "what": "read", "target": "/home/ann/.worca/core-token", "outcome": "held" },
                    { "what": "signal", "target": "process 7", "outcome": "open" },
                    { "what": "connect to", "target": "port 4317", "outcome": "absent" },
                ],
                "hook": true,
            },
        })
    );
    let kernel = core.get("/api/status", &token).await.json()["kernel"].clone();
    assert_eq!(kernel["default_set"], "normal");
    assert_eq!(kernel["abi"].as_u64().unwrap() == 0, kernel["files"] == false && kernel["signals"] == false);
    // A receipt of another version is left out, and the run is shown all the same.
    core.store().spawn_receipt(&spawn.id, "{\"other\":1}".into()).await.unwrap();
    let policy = core.get(&path, &token).await.json()["policy"].clone();
    assert!(policy["receipt"].is_null() && policy["set"] == "strict", "{policy}");
}

#[tokio::test]
async fn settings_are_listed_and_changed_by_the_token_alone() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let cookie = core.cookie().await;
    let put = async |headers: &[(&str, &str)], body: &str| {
        core.ask("PUT", "/api/settings", headers, Some(body)).await
    };
    let on = r#"{"key":"spawn-diagnostics","value":"on"}"#;
    assert_eq!(put(&[("cookie", cookie.as_str())], on).await.status, 403);
    assert_eq!(put(&[], on).await.status, 401);
    for (body, code) in [
        (r#"{"key":"spawn-diagnostics","value":"ON"}"#, "setting-value"),
        (r#"{"key":"other","value":"on"}"#, "setting-unknown"),
        (r#"{"key":"spawn-diagnostics","value":"on","more":1}"#, "body-invalid"),
    ] {
        let answer = put(&token, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code));
    }
    let value = async || {
        let list = core.get("/api/settings", &token).await.json();
        list["settings"][0]["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(value().await, "off");
    assert_eq!(put(&token, on).await.status, 200);
    assert_eq!(value().await, "on");
}
