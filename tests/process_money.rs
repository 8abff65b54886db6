//! Who pays for a run and what it may spend: the built binary as core, a real key service, the real Claude Code.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test drives the binary and git as a person would")]

#[path = "support/core.rs"]
mod core_stage;
#[path = "support/keys.rs"]
mod support;

use core_stage::{Stage, git};
use serde_json::json;
use support::until;

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
