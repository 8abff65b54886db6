use super::support::TestCore;
use crate::events::RunStatus;

const YAML: (&str, &str) = ("content-type", "application/yaml");

#[tokio::test]
async fn a_set_is_saved_shown_listed_replaced_and_deleted() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = ("authorization", bearer.as_str());
    let list = core.get("/api/guardrails", &[token]).await.json();
    let names: Vec<_> = list["sets"].as_array().unwrap().iter().map(|set| set["name"].clone()).collect();
    assert_eq!(names, ["permissive", "normal", "strict"]);
    assert_eq!(list["sets"][2]["tier"], "strict");

    let text = "# mine\nname: pay\nextends: strict\ndeny:\n  commands: [make deploy] # why\n";
    let path = "/api/guardrails/pay";
    let made = core.ask("PUT", path, &[token, YAML], Some(text)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let shown = core.get(path, &[token]).await.json();
    assert_eq!(shown, made.json());
    assert_eq!((shown["yaml"].as_str(), &shown["summary"]["tier"]), (Some(text), &"strict".into()));
    let own = shown["rules"].as_array().unwrap().iter().filter(|rule| rule["set"] == "pay").count();
    assert_eq!(own, 1);
    let file = core.app.runs().own_sets().file(&"pay".parse().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "comments stay");

    let replaced = core.ask("PUT", path, &[token], Some(r#"{"name":"pay","extends":"normal"}"#)).await;
    assert_eq!(
        (replaced.status, &replaced.json()["summary"]["tier"]),
        (200, &"normal".into()),
        "{replaced:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "name: pay\nextends: normal\n");
    let gone = core.ask("DELETE", path, &[token], None).await;
    assert_eq!((gone.status, file.exists()), (204, false), "{gone:?}");
    assert_eq!(core.get(path, &[token]).await.code(), "guardrails-none");
}

#[tokio::test]
async fn what_cannot_be_saved_or_deleted_is_refused_and_changes_nothing() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = ("authorization", bearer.as_str());
    let save = async |name: &str, text: &str| {
        core.ask("PUT", &format!("/api/guardrails/{name}"), &[token, YAML], Some(text)).await
    };
    assert_eq!(save("base", "name: base\n").await.status, 201);
    assert_eq!(save("above", "name: above\nextends: base\n").await.status, 201);
    let mut seen = Vec::new();
    for (name, text) in [
        ("strict", "name: strict\n"),
        ("Strict", "name: strict\n"),
        ("..%2fx", "name: x\n"),
        ("pay", "name: other\n"),
        ("pay", "name: pay\ndeny:\n  comands: []\n"),
        ("pay", "name: pay\nextends: strct\n"),
        ("base", "name: base\nextends: above\n"),
        ("pay", ""),
    ] {
        let answer = save(name, text).await;
        seen.push(format!("PUT {name} {text:?}: {} {}", answer.status, answer.body));
    }
    let form = [token, ("content-type", "text/plain")];
    let form = core.ask("PUT", "/api/guardrails/pay", &form, Some("name: pay\n")).await;
    seen.push(format!("PUT as a form: {} {}", form.status, form.body));
    for name in ["strict", "base", "gone"] {
        let answer = core.ask("DELETE", &format!("/api/guardrails/{name}"), &[token], None).await;
        seen.push(format!("DELETE {name}: {} {}", answer.status, answer.body));
    }
    insta::assert_snapshot!(seen.join("\n"));
    let names = core.app.runs().own_sets().library().unwrap().names();
    assert_eq!(names, ["permissive", "normal", "strict", "above", "base"]);
}

#[tokio::test]
async fn a_set_that_a_run_needs_stays() {
    let core = TestCore::start().await;
    let bearer = core.bearer();
    let token = ("authorization", bearer.as_str());
    let id = core.run_with("pay").await;
    let path = "/api/guardrails/pay";
    assert_eq!(core.ask("PUT", path, &[token, YAML], Some("name: pay\n")).await.status, 201);
    for status in [RunStatus::Running, RunStatus::Parked] {
        core.store().set_run_status(&id, status, None).await.unwrap();
        let refused = core.ask("DELETE", path, &[token], None).await;
        assert_eq!((refused.status, refused.code().as_str()), (409, "guardrails-needed"), "{refused:?}");
        assert!(refused.body.contains(id.as_str()), "{refused:?}");
    }
    core.store().unpark_run(&id).await.unwrap();
    core.store().set_run_status(&id, RunStatus::Done, None).await.unwrap();
    assert_eq!(core.ask("DELETE", path, &[token], None).await.status, 204);
}

#[tokio::test]
async fn a_browser_reads_the_sets_and_changes_none() {
    let core = TestCore::start().await;
    let cookie = core.cookie().await;
    let browser = ("cookie", cookie.as_str());
    assert_eq!(core.get("/api/guardrails", &[browser]).await.status, 200);
    assert_eq!(core.get("/api/guardrails/normal", &[browser]).await.status, 200);
    for method in ["PUT", "DELETE"] {
        let body = (method == "PUT").then_some("name: pay\n");
        let answer = core.ask(method, "/api/guardrails/pay", &[browser, YAML], body).await;
        assert_eq!(answer.code(), "session-reads-only", "{answer:?}");
        let answer = core.ask(method, "/api/guardrails/pay", &[YAML], body).await;
        assert_eq!(answer.code(), "signed-out", "{answer:?}");
    }
    for path in ["/api/guardrails", "/api/guardrails/normal"] {
        assert_eq!(core.get(path, &[]).await.status, 401);
    }
}
