//! What was used and what may be spent, over the API, with a real key service that keeps the books.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::support::{CONTROL, TestCore, write_private};
use crate::events::{ModelUsage, RunStatus};
use crate::ids::{PassId, RunId, SpawnId, StepName};
use crate::keys::serve::{Limits, Service, Settings};
use crate::keys::vault::VaultKey;
use crate::store::NewSpawn;

/// A core beside a key service of its own.
struct Beside {
    core: TestCore,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Beside {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (control, key) = (folder.path().join("control"), folder.path().join("key"));
        write_private(&control, CONTROL);
        write_private(&key, &VaultKey::generate().unwrap());
        let settings = Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: folder.path().join("data"),
            control_file: control,
            vault_key_file: key,
            slots_file: None,
            anthropic: None,
            prices: None,
            limits: Limits { workers: 1, ..Limits::default() },
        };
        let keys = Service::start(settings).await.unwrap();
        let (url, stop) = (format!("http://{}", keys.address()), CancellationToken::new());
        let core = TestCore::beside(&url).await;
        core.tasks.spawn(keys.run(stop.clone()));
        Self { core, stop, _folder: folder }
    }
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let bearer = self.core.bearer();
        let body = body.map(|body| body.to_string());
        let token = [("authorization", bearer.as_str())];
        let answer = self.core.ask(method, path, &token, body.as_deref()).await;
        (answer.status, answer.json())
    }
    async fn refused(&self, method: &str, path: &str, body: Option<Value>) -> (u16, String, String) {
        let (status, answer) = self.ask(method, path, body).await;
        let word = |key: &str| answer["error"][key].as_str().unwrap_or_default().to_owned();
        (status, word("code"), word("message"))
    }
}

#[tokio::test]
async fn budgets_are_set_listed_and_removed() {
    let beside = Beside::start().await;
    assert_eq!(beside.ask("GET", "/api/budgets", None).await, (200, json!({ "budgets": [] })));
    let day = json!({
        "scope": "person-day", "of": "local", "limit": { "value": 5_000_000, "unit": "usd_micros" }, "spent": 0,
    });
    let set = beside.ask("PUT", "/api/budgets/person-day/local", Some(json!({ "limit": "5" }))).await;
    assert_eq!(set, (200, json!({ "budgets": [day] })));
    let tokens = Some(json!({ "limit": "200000tokens" }));
    let (status, both) = beside.ask("PUT", "/api/budgets/slot-month/openrouter", tokens).await;
    assert_eq!((status, both["budgets"].as_array().unwrap().len()), (200, 2));
    assert_eq!(beside.ask("GET", "/api/budgets", None).await.1, both);
    let (status, left) = beside.ask("DELETE", "/api/budgets/person-day/local", None).await;
    assert_eq!((status, &left["budgets"][0]["of"]), (200, &json!("openrouter")));
    let limit = &left["budgets"][0]["limit"];
    assert_eq!(limit, &json!({ "value": 200_000, "unit": "tokens" }));
}

#[tokio::test]
async fn a_budget_that_can_be_none_is_refused_with_a_sentence() {
    let beside = Beside::start().await;
    let five = || Some(json!({ "limit": "5" }));
    for (method, path, body, expected, code, words) in [
        (
            "PUT",
            "person-week/local",
            five(),
            400,
            "parameter-invalid",
            "`person-week` is none of `person-day`",
        ),
        ("PUT", "person-day/Ada%20L", five(), 400, "parameter-invalid", "a person's name"),
        ("PUT", "slot-month/%2e%2e", five(), 400, "parameter-invalid", "`of` is not right"),
        ("PUT", "person-day/ada", Some(json!({ "limit": "0" })), 400, "budget-amount", "`0` is no amount"),
        ("PUT", "person-day/ada", Some(json!({ "limit": 5 })), 400, "body-invalid", "expected a string"),
        ("DELETE", "person-day/ada", None, 404, "budget-none", "there is no person-day budget of `ada`"),
    ] {
        let (status, told, message) = beside.refused(method, &format!("/api/budgets/{path}"), body).await;
        assert_eq!((status, told.as_str()), (expected, code), "{path}: {message}");
        assert!(message.contains(words), "{path}: {message}");
    }
    assert_eq!(beside.ask("GET", "/api/budgets", None).await.1, json!({ "budgets": [] }));
}

#[tokio::test]
async fn costs_are_asked_of_the_books_by_known_words() {
    let beside = Beside::start().await;
    let path = format!("/api/costs?by=day,model&run={}&person=ada&since=0&until=99", RunId::random());
    let (status, costs) = beside.ask("GET", &path, None).await;
    assert_eq!((status, &costs["rows"]), (200, &json!([])), "{costs}");
    assert!(costs["prices"].as_str().unwrap().starts_with("20"), "{costs}");
    for query in ["by=price", "run=x", "person=A%20B", "since=yesterday", "since=-1", "more=1"] {
        let (status, code, message) = beside.refused("GET", &format!("/api/costs?{query}"), None).await;
        assert_eq!((status, code.as_str()), (400, "parameter-invalid"), "{query}: {message}");
    }
}

#[tokio::test]
async fn books_that_do_not_answer_are_told_apart_from_nothing_used() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    for path in ["/api/costs", "/api/budgets"] {
        let answer = core.get(path, &[("authorization", bearer.as_str())]).await;
        assert_eq!((answer.status, answer.code().as_str()), (502, "keys-unreachable"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_run_shows_its_budget_and_what_it_used_and_a_new_one_is_refused_for_all_reasons_at_once() {
    let beside = Beside::start().await;
    let core = &beside.core;
    let id = core.run().await;
    let spawn = NewSpawn {
        id: SpawnId::random(),
        run: id.clone(),
        step: StepName::work(),
        program: "Claude Code 2.1.0".into(),
        pass: PassId::random(),
        guardrails: "normal".into(),
        policy_digest: "d".repeat(64),
    };
    core.store().spawn_begins(spawn.clone()).await.unwrap();
    core.store().spawn_ended(&spawn.id, "ended".into()).await.unwrap();
    let row = ModelUsage {
        slot: "anthropic".into(),
        model: "m".into(),
        calls: 2,
        input: 10,
        output: 5,
        cost_micros: 1_500,
        ..ModelUsage::default()
    };
    core.store().close_spawn(&spawn.id, &id, vec![row]).await.unwrap();
    core.store().set_run_status(&id, RunStatus::Parked, Some("why".into())).await.unwrap();
    let (_, run) = beside.ask("GET", &format!("/api/runs/{id}"), None).await;
    assert_eq!((run["cost_micros"].as_u64(), run["tokens"].as_u64()), (Some(1_500), Some(15)), "{run}");
    assert_eq!((&run["budget"], &run["payer"]), (&Value::Null, &json!("local")));
    assert_eq!((&run["usage"][0]["model"], &run["usage"][0]["calls"]), (&json!("m"), &json!(2)));
    assert_eq!((&run["only_models"], &run["warnings"]), (&json!([]), &json!([])));
    let (_, list) = beside.ask("GET", "/api/runs", None).await;
    assert_eq!(list["runs"][0]["tokens"], 15);

    let resume = format!("/api/runs/{id}/resume");
    let (status, code, message) = beside.refused("POST", &resume, Some(json!({ "budget": "much" }))).await;
    assert_eq!((status, code.as_str()), (400, "budget-amount"), "{message}");
    let (status, code, _) = beside.refused("POST", &resume, Some(json!({ "budgets": "5" }))).await;
    assert_eq!((status, code.as_str()), (400, "body-invalid"));
    // No body at all is right; that its repository is not there is another matter.
    let (status, code, _) = beside.refused("POST", &resume, None).await;
    assert_eq!((status, code.as_str()), (422, "project-missing"));

    let folder = tempfile::tempdir().unwrap();
    let new = json!({ "project": folder.path(), "prompt": "x", "budget": "-1" });
    let (status, code, message) = beside.refused("POST", "/api/runs", Some(new)).await;
    assert_eq!((status, code.as_str()), (400, "budget-amount"), "{message}");
    for (more, expected) in [
        (json!({ "only_models": ["a b"] }), "model-pattern"),
        (json!({ "model": "opus", "scenario": "version: 1" }), "scenario"),
        (json!({ "model": "rehearsal/./x.yaml" }), "scenario"),
        (json!({ "model": "rehearsal/none" }), "scenario"),
    ] {
        let mut new = json!({ "project": folder.path(), "prompt": "x" });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, code, message) = beside.refused("POST", "/api/runs", Some(new)).await;
        assert_eq!((status, code.as_str()), (400, expected), "{message}");
    }
}
