//! Who pays for a run and what it may spend: the built binary as core, a real key service, the real Claude Code.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test drives the binary and git as a person would")]

#[path = "support/core.rs"]
mod core_stage;
#[path = "support/model.rs"]
mod model;
#[path = "support/keys.rs"]
mod support;

use core_stage::{Stage, git};
use model::{Model, Step};
use serde_json::json;
use support::{API_KEY, Place, until};
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;

/// A model that has a price.
const MODEL: &str = "claude-sonnet-4-5";

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_key_is_refused_before_anything_is_made() {
    let stage = Stage::set().await;
    let refused = stage.run(&["--prompt", "Say hello"]).await.ends(78);
    for word in ["`local` cannot pay for this run", "`anthropic`", "hint: ", "--model rehearsal"] {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    assert_eq!(stage.say(&["runs", "--json"]).await.ends(0).out.trim(), "[]");
    assert_eq!(git(&stage.project(), &["branch", "--list", "worca/*"]), "");
    assert!(
        !stage.path("worca/runs").exists()
            || std::fs::read_dir(stage.path("worca/runs")).unwrap().count() == 0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_may_spend_is_said_by_it_or_by_the_setting_and_changed_when_it_is_taken_up_again() {
    let mut stage = Stage::set().await;
    let budget = async |stage: &Stage| stage.show(&stage.newest().await).await["budget"].clone();
    let hello = ["--model", "rehearsal", "--prompt", "Say hello"];
    stage.run(&hello).await.ends(0);
    assert!(budget(&stage).await.is_null(), "none stands until one is set");

    let said = stage.say(&["settings", "set", "run-budget", "$2.50"]).await.ends(0);
    assert!(said.err.contains("run-budget is 2.50"), "{said:?}");
    stage.run(&hello).await.ends(0);
    assert_eq!(budget(&stage).await, json!({ "value": 2_500_000, "unit": "usd_micros" }));
    stage.run(&[&hello[..], &["--budget", "none"]].concat()).await.ends(0);
    assert!(budget(&stage).await.is_null());
    let refused = stage.say(&["settings", "set", "run-budget", "much"]).await.ends(2);
    assert!(refused.err.contains("dollars (`5`)"), "{refused:?}");
    let refused = stage.run(&[&hello[..], &["--budget", "0"]].concat()).await.ends(2);
    assert!(refused.err.contains("`0` is no amount"), "{refused:?}");
    let refused = stage.run(&[&hello[..], &["--only-model", "a b"]].concat()).await.ends(2);
    assert!(refused.err.contains("`a b` is not the name of a model"), "{refused:?}");

    let slow = ["--model", "rehearsal/slow", "--prompt", "Be slow", "--detach", "--budget", "90000tokens"];
    stage.run(&slow).await.ends(0);
    let id = stage.newest().await;
    let file = stage.path("worca/runs").join(&id).join("tree/SLOW.md");
    let seen = |least: usize| {
        let file = file.clone();
        async move {
            until("the slow rehearsal goes on", || async {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if text.lines().count() >= least { Ok(()) } else { Err(text) }
            })
            .await;
        }
    };
    seen(1).await;
    stage.kill_core();
    stage.say(&["resume", &id, "--detach", "--budget", "1000000tokens"]).await.ends(0);
    assert_eq!(budget(&stage).await, json!({ "value": 1_000_000, "unit": "tokens" }));
    seen(3).await;
    let shown = stage.say(&["show", &id]).await.ends(0).out;
    assert!(shown.contains(" of 1,000,000 tokens"), "{shown}");
    stage.say(&["stop", &id]).await.ends(0);
}

/// A stage whose `anthropic` slot goes to a scripted provider that counts 15 tokens a call.
async fn with_provider(model: &Model) -> Stage {
    let place = Place::new();
    let origin = Origin::parse(&model.url, false).unwrap();
    place.put(Kind::ApiKey, &origin, API_KEY);
    let keys = place.start(origin, Limits::default()).await;
    Stage::beside(place, keys)
}

fn write(name: &str) -> Step {
    Step::Tool("Bash", json!({ "command": format!("echo x > {name}"), "description": "x" }))
}

/// The kinds of a run's events.
async fn kinds(stage: &Stage, run: &str) -> Vec<String> {
    let events = stage.events(run).await;
    events.iter().map(|event| event["event"]["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_budget_is_spent_waits_and_goes_on_with_a_larger_one() {
    let steps =
        ["a", "b", "c", "d"].map(write).into_iter().chain([Step::Say("all is well".into())]).collect();
    let model = Model::start(vec![("write four", steps)]).await;
    let stage = with_provider(&model).await;
    let words = ["--model", MODEL, "--prompt", "write four", "--budget", "40tokens"];
    let said = stage.run(&words).await.ends(3);
    let id = stage.newest().await;
    let run = stage.show(&id).await;
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("the budget of run {id} is spent: ")), "{run}");
    assert!(reason.contains(&format!("`worca resume {id}`")) && reason.contains("--budget AMOUNT"), "{run}");
    assert!(said.out.contains(reason), "{said:?}");
    // Gone over by less than one call.
    let spent = run["tokens"].as_u64().unwrap();
    assert!((40..55).contains(&spent), "{run}");
    assert!(run["cost_micros"].as_u64().unwrap() > 0, "{run}");
    let tree = stage.path("worca/runs").join(&id).join("tree");
    assert!(tree.join("a").exists() && !tree.join("d").exists());

    // What was spent counts, also over a killed core; nothing of it is asked of the agent.
    let refused = stage.say(&["resume", &id]).await.ends(78);
    assert!(refused.err.contains("is spent") && refused.err.contains("--budget AMOUNT"), "{refused:?}");
    assert_eq!(stage.show(&id).await["status"], "parked");
    stage.say(&["resume", &id, "--budget", "100000tokens"]).await.ends(0);
    let run = stage.show(&id).await;
    assert_eq!((&run["status"], &run["answer"]), (&json!("done"), &json!("all is well")), "{run}");
    assert!(run["tokens"].as_u64().unwrap() > spent, "{run}");
    let used = run["usage"].as_array().unwrap();
    assert!(used.iter().any(|row| row["slot"] == "anthropic" && row["model"] == MODEL), "{run}");
    let sum: u64 = used.iter().map(|row| row["cost_micros"].as_u64().unwrap()).sum();
    assert_eq!(run["cost_micros"].as_u64(), Some(sum), "the run costs what the books say");
    let kinds = kinds(&stage, &id).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "usage").count(), 2, "{kinds:?}");

    // The same numbers from the books themselves, put together in other ways.
    let costs = stage.say(&["costs", "--run", &id, "--by", "run,step,model", "--json"]).await.ends(0).json();
    let rows = costs.as_array().unwrap();
    assert!(rows.iter().all(|row| row["run"] == id.as_str() && row["step"] == "work"), "{costs}");
    let booked: u64 = rows.iter().map(|row| row["cost_micros"].as_u64().unwrap()).sum();
    assert_eq!(booked, sum, "{costs}");
    let table = stage.say(&["costs", "--by", "person,day"]).await.ends(0);
    assert!(table.out.starts_with("PERSON  DAY") && table.out.contains("\nlocal   20"), "{table:?}");
    assert!(table.err.contains("by the prices of "), "{table:?}");
    assert!(stage.say(&["costs", "--until", "1d"]).await.ends(0).err.contains("nothing was used"));
    let shown = stage.say(&["show", &id]).await.ends(0).out;
    assert!(
        shown.contains(&format!("{MODEL} of anthropic: ")) && shown.contains(" of 100,000 tokens"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_budget_is_set_refuses_a_run_that_would_count_and_is_removed() {
    let model = Model::start(Vec::new()).await;
    let stage = with_provider(&model).await;
    let words = ["--model", MODEL, "--prompt", "say something"];
    assert!(stage.say(&["budgets", "list"]).await.ends(0).err.contains("no budget stands"));
    let set = stage.say(&["budgets", "set", "day", "1token"]).await.ends(0);
    assert!(set.err.contains("the day's budget of local is 1 token; 0 tokens of it is spent"), "{set:?}");
    stage.say(&["budgets", "set", "month", "5", "--slot", "anthropic"]).await.ends(0);
    // The first call is made: nothing is spent yet.
    stage.run(&words).await;
    let listed = stage.say(&["budgets", "list", "--json"]).await.ends(0).json();
    let day = listed.as_array().unwrap().iter().find(|budget| budget["scope"] == "person-day").unwrap();
    assert!(day["of"] == "local" && day["spent"].as_u64().unwrap() > 0, "{listed}");
    let before = stage.say(&["runs", "--json"]).await.ends(0).json();
    let refused = stage.run(&words).await.ends(78);
    for word in ["`local` cannot pay for this run", "the day's budget of local is spent", "worca budgets set"]
    {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    assert_eq!(stage.say(&["runs", "--json"]).await.ends(0).json(), before, "nothing was made");

    let gone = stage.say(&["budgets", "remove", "day"]).await.ends(0);
    assert!(gone.err.contains("the day's budget of local is gone"), "{gone:?}");
    let again = stage.say(&["budgets", "remove", "day"]).await.ends(2);
    assert!(again.err.contains("there is no person-day budget of `local`"), "{again:?}");
    stage.run(&words).await.ends(0);
    let table = stage.say(&["budgets", "list"]).await.ends(0).out;
    assert!(table.contains("month   slot anthropic") && !table.contains("local"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_provider_refuses_leaves_the_run_waiting_and_a_model_that_is_closed_fails_it() {
    let model = Model::refusing(401).await;
    let stage = with_provider(&model).await;
    stage.run(&["--model", MODEL, "--prompt", "say something"]).await.ends(3);
    let run = stage.show(&stage.newest().await).await;
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.contains("refused the key saved for slot `anthropic`"), "{run}");
    assert!(reason.contains("once there is a key, `worca resume r"), "{run}");

    let model = Model::start(Vec::new()).await;
    let stage = with_provider(&model).await;
    let words = ["--model", MODEL, "--prompt", "say something", "--only-model", "claude-haiku-*"];
    stage.run(&words).await.ends(1);
    let run = stage.show(&stage.newest().await).await;
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["reason"], format!("this pass does not open the model `{MODEL}`"), "{run}");
    assert_eq!(run["only_models"], json!(["claude-haiku-*"]));
    assert!(model.requests().is_empty(), "the provider saw none of it");
    // Beside it a pattern that fits.
    let words = ["--model", MODEL, "--prompt", "say something", "--only-model", "claude-*"];
    stage.run(&words).await.ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_core_did_not_ask_for_is_asked_by_the_next_and_a_warning_is_an_event() {
    let mut stage = Stage::set().await;
    let slow = ["--model", "rehearsal/slow", "--prompt", "Be slow", "--detach"];
    stage.run(&slow).await.ends(0);
    let id = stage.newest().await;
    let file = stage.path("worca/runs").join(&id).join("tree/SLOW.md");
    until("the slow rehearsal goes on", || async {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.lines().count() >= 2 { Ok(()) } else { Err(text) }
    })
    .await;
    assert_eq!(stage.show(&id).await["usage"], json!([]), "its agent is at work");
    stage.kill_core();
    let run = until("the books are asked", || async {
        let run = stage.show(&id).await;
        if run["usage"].as_array().unwrap().is_empty() { Err(run.to_string()) } else { Ok(run) }
    })
    .await;
    let spent = run["tokens"].as_u64().unwrap();
    assert!(spent > 0 && run["cost_micros"] == 0 && run["usage"][0]["slot"] == "rehearsal", "{run}");

    // Nine tenths are spent already: the first renewal says so.
    let budget = format!("{}tokens", spent * 10 / 9);
    stage.say(&["resume", &id, "--budget", &budget]).await.ends(3);
    let run = stage.show(&id).await;
    assert!(run["reason"].as_str().unwrap().contains("is spent"), "{run}");
    let kinds = kinds(&stage, &id).await;
    assert!(kinds.iter().any(|kind| kind == "budget_warning"), "{kinds:?}");
    let warning = &run["warnings"][0];
    assert!(warning["spent"].as_u64().unwrap() * 5 >= warning["limit"].as_u64().unwrap() * 4, "{run}");
    assert!(stage.say(&["show", &id]).await.ends(0).out.contains(&format!("the budget of run {id}: ")));
}
