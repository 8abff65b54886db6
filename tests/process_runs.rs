//! Runs under their guardrail sets: the built binary as core, a real key service with the rehearsal, the real Claude
//! Code behind a script that can take a set away in the moment before its start. `WORCA_TEST_CLAUDE` names the
//! program; without it these tests fail with a sentence.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test drives the binary and git as a person would")]

#[path = "support/core.rs"]
mod core_stage;
#[path = "support/keys.rs"]
mod support;

use std::io::Read as _;

use core_stage::{Stage, git};
use support::until;

/// A set of the user's own.
const SET: &str = "name: mine\nextends: normal\ndeny:\n  commands: [\"make deploy\"]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_set_goes_missing_waits_and_is_taken_up_again() {
    let mut stage = Stage::set().await;
    std::fs::write(stage.own_set(), SET).unwrap();
    std::fs::write(stage.path("take"), "").unwrap();
    let said =
        stage.run(&["--guardrails", "mine", "--model", "rehearsal", "--prompt", "Say hello"]).await.ends(3);
    assert!(said.out.contains("`mine`") && said.out.contains("worca resume r"), "{said:?}");
    let id = stage.newest().await;
    let run = stage.show(&id).await;
    assert_eq!(run["status"], "parked");
    assert!(run["reason"].as_str().unwrap().contains("there is no guardrail set `mine`"), "{run}");
    assert!(run["ended_at"].is_null() && run["policy"].is_null(), "no agent was started: {run}");
    let branch = run["branch"].as_str().unwrap().to_owned();
    let tree = stage.path("worca/runs").join(&id).join("tree");
    assert!(tree.is_dir());
    git(&stage.project(), &["rev-parse", "--verify", "--quiet", &branch]);

    // It waits over a killed core, and is not taken up while its set is missing.
    stage.kill_core();
    assert_eq!(stage.show(&id).await["status"], "parked");
    let refused = stage.say(&["resume", &id]).await.ends(2);
    assert!(
        refused.err.contains("there is no guardrail set `mine`") && refused.err.contains("hint: "),
        "{refused:?}"
    );
    assert_eq!(stage.show(&id).await["status"], "parked");

    std::fs::remove_file(stage.path("take")).unwrap();
    std::fs::write(stage.own_set(), SET).unwrap();
    let resumed = stage.say(&["resume", &id]).await.ends(0);
    assert!(!resumed.out.contains("parked"), "what was before is not shown again: {resumed:?}");
    let run = stage.show(&id).await;
    assert_eq!(
        (run["status"].as_str(), run["worktree_present"].as_bool()),
        (Some("done"), Some(false)),
        "{run}"
    );
    assert_eq!(run["branch"], branch.as_str());
    assert_eq!(git(&stage.project(), &["log", "--format=%s", &format!("main..{branch}")]).lines().count(), 2);
    // Over for good.
    let refused = stage.say(&["resume", &id]).await.ends(1);
    assert!(refused.err.contains("does not go on"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_run_is_stopped_and_a_broken_set_parks_too() {
    let stage = Stage::set().await;
    std::fs::write(stage.own_set(), SET).unwrap();
    let script = stage.path("bin/claude");
    let text = std::fs::read_to_string(&script).unwrap();
    // Broken in the same moment, instead of taken away.
    std::fs::write(&script, text.replace("rm -f", "echo 'nonsense: [' >")).unwrap();
    std::fs::write(stage.path("take"), "").unwrap();
    stage.run(&["--guardrails", "mine", "--model", "rehearsal", "--prompt", "Say hello"]).await.ends(3);
    let id = stage.newest().await;
    let run = stage.show(&id).await;
    assert!(run["reason"].as_str().unwrap().contains("`mine` cannot be read"), "{run}");
    stage.say(&["stop", &id]).await.ends(0);
    until("the run is stopped", || async {
        let run = stage.show(&id).await;
        if run["status"] == "stopped" { Ok(()) } else { Err(run.to_string()) }
    })
    .await;
    let run = stage.show(&id).await;
    assert_eq!(run["worktree_present"], false, "nothing of it would be missed: {run}");
    git(&stage.project(), &["rev-parse", "--verify", "--quiet", run["branch"].as_str().unwrap()]);
    assert!(stage.say(&["stop", &id]).await.ends(1).err.contains("has ended already"));
    let states: Vec<String> = stage
        .events(&id)
        .await
        .iter()
        .filter_map(|event| event["event"]["status"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(states, ["preparing", "running", "parked", "finishing", "stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_or_broken_set_is_refused_before_anything_is_made() {
    let stage = Stage::set().await;
    let ask = |set: &'static str| {
        let stage = &stage;
        async move { stage.run(&["--guardrails", set, "--model", "rehearsal", "--prompt", "x"]).await.ends(2).err }
    };
    let unknown = ask("strickt").await;
    assert!(
        unknown.contains("there is no guardrail set `strickt`") && unknown.contains("`strict`"),
        "{unknown}"
    );
    assert!(ask("../x").await.contains("is not a guardrail set's name"));
    std::fs::write(stage.own_set(), "name: mine\nextends: normal\nallow: everything\n").unwrap();
    let broken = ask("mine").await;
    assert!(broken.contains("`mine`") && broken.contains("allow"), "{broken}");
    assert_eq!(stage.say(&["runs", "--json"]).await.ends(0).out.trim(), "[]");
    assert_eq!(git(&stage.project(), &["branch", "--list", "worca/*"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_goes_on_with_its_own_session() {
    let mut stage = Stage::set().await;
    let slow = ["--model", "rehearsal/slow", "--prompt", "Take your time", "--detach"];
    stage.run(&slow).await.ends(0);
    let id = stage.newest().await;
    let file = stage.path("worca/runs").join(&id).join("tree/SLOW.md");
    let lines = |text: &str| text.lines().count();
    let seen = |least: usize| {
        let file = file.clone();
        async move {
            until("the slow rehearsal goes on", || async {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if lines(&text) >= least { Ok(text) } else { Err(text) }
            })
            .await
        }
    };
    seen(2).await;
    stage.kill_core();
    let run = stage.show(&id).await;
    assert_eq!(
        (run["status"].as_str(), run["worktree_present"].as_bool()),
        (Some("interrupted"), Some(true))
    );
    let before = std::fs::read_to_string(&file).unwrap();

    stage.say(&["resume", &id, "--detach"]).await.ends(0);
    // At work: it is not taken up twice.
    let twice = stage.say(&["resume", &id]).await.ends(1);
    assert!(twice.err.contains("is at work already"), "{twice:?}");
    let after = seen(lines(&before) + 1).await;
    assert!(after.starts_with(&before) && after.matches("begun").count() == 1, "not begun anew: {after}");
    stage.say(&["stop", &id]).await.ends(0);
    until("the run is stopped", || async {
        let run = stage.show(&id).await;
        if run["status"] == "stopped" { Ok(()) } else { Err(run.to_string()) }
    })
    .await;
    let events = stage.events(&id).await;
    let sessions: Vec<&str> = events.iter().filter_map(|event| event["event"]["session"].as_str()).collect();
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}");
    // Its whole work is on its one branch.
    let run = stage.show(&id).await;
    let kept = git(&stage.project(), &["show", &format!("{}:SLOW.md", run["branch"].as_str().unwrap())]);
    assert!(lines(&kept) > lines(&before), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_held_an_agent_is_stored_and_shown() {
    let stage = Stage::set().await;
    stage.run(&["--model", "rehearsal", "--prompt", "Say hello"]).await.ends(0);
    let id = stage.newest().await;
    let run = stage.show(&id).await;
    assert_eq!((run["guardrails"].as_str(), run["policy"]["set"].as_str()), (Some("normal"), Some("normal")));
    assert_eq!(run["policy"]["digest"].as_str().unwrap().len(), 64);
    let receipt = &run["policy"]["receipt"];
    assert_eq!(receipt["hook"], true, "{receipt}");
    let tried = receipt["tried"].as_array().unwrap();
    let abi = receipt["kernel_abi"].as_u64().unwrap();
    if abi >= 6 {
        assert_eq!(receipt["kernel_lacks"].as_array().unwrap().len(), 0, "{receipt}");
        assert!(tried.iter().any(|one| one["outcome"] == "held"), "{receipt}");
        assert!(tried.iter().all(|one| one["outcome"] != "open"), "{receipt}");
    }
    let shown = stage.say(&["show", &id]).await.ends(0).out;
    assert!(shown.contains("normal, policy ") && shown.contains("Tried before the agent's start"), "{shown}");
    let document = stage.say(&["settings", "list", "--json"]).await.ends(0).json();
    assert_eq!(
        (document[0]["key"].as_str(), document[0]["value"].as_str()),
        (Some("spawn-diagnostics"), Some("off"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spawn_diagnostics_hold_from_the_next_start_on_and_tell_no_secret() {
    const CANARY: &str = "canary-of-the-prompt-31415926535";
    let stage = Stage::set().await;
    let notes = async |stage: &Stage| {
        let id = stage.newest().await;
        let events = stage.events(&id).await;
        let texts = events.iter().filter_map(|event| event["event"]["text"].as_str());
        texts.filter(|text| text.starts_with("spawn diagnostics")).map(str::to_owned).collect::<Vec<_>>()
    };
    let run = ["--model", "rehearsal", "--prompt", CANARY];
    stage.run(&run).await.ends(0);
    assert!(notes(&stage).await.is_empty(), "off until it is switched on");

    stage.say(&["settings", "set", "spawn-diagnostics", "on"]).await.ends(0);
    assert_eq!(stage.say(&["settings", "get", "spawn-diagnostics"]).await.ends(0).out, "on\n");
    stage.run(&run).await.ends(0);
    let told = notes(&stage).await;
    let [told] = told.as_slice() else { panic!("{told:?}") };
    for word in [
        "program: ",
        "--setting-sources=",
        "folder: ",
        "ANTHROPIC_AUTH_TOKEN",
        "slot rehearsal at http://127.0.0.1:",
        "set normal, digest ",
        "receipt: Landlock ABI",
    ] {
        assert!(told.contains(word), "{word} in {told}");
    }
    let log = stage.log();
    assert!(log.contains("spawn diagnostics"), "{log}");
    for text in [told, &log] {
        assert!(!text.contains(CANARY) && !text.contains("wp_"), "{text}");
        assert!(!text.contains(support::CONTROL), "{text}");
        let token = std::fs::read_to_string(stage.path("worca/core-token")).unwrap();
        assert!(!text.contains(token.trim()), "{text}");
    }

    // No value but these two, no other setting; and off again without a restart.
    assert!(
        stage
            .say(&["settings", "set", "spawn-diagnostics", "maybe"])
            .await
            .ends(2)
            .err
            .contains("`on` or `off`")
    );
    assert!(stage.say(&["settings", "set", "other", "on"]).await.ends(2).err.contains("`spawn-diagnostics`"));
    assert!(stage.say(&["settings", "get", "other"]).await.ends(2).err.contains("`spawn-diagnostics`"));
    stage.say(&["settings", "set", "spawn-diagnostics", "off"]).await.ends(0);
    stage.run(&run).await.ends(0);
    assert!(notes(&stage).await.is_empty());
    let mut rest = String::new();
    std::fs::File::open(stage.path("core.log")).unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest.matches("spawn diagnostics").count(), log.matches("spawn diagnostics").count());
}

/// A value of which nothing may be told.
const CANARY: &str = "sk-ant-api03-c4nary-q7Xw9Lk2Vb5Nh8Rt1Zp3Md6Fg0Js4";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_refused_when_a_key_came_into_reach_after_the_start_and_goes_when_it_is_gone() {
    let stage = Stage::set().await;
    let ask = ["--model", "rehearsal", "--prompt", "Say hello"];
    let auth = stage.path("user/.codex/auth.json");
    std::fs::create_dir_all(auth.parent().unwrap()).unwrap();
    std::fs::write(&auth, CANARY).unwrap();
    let refused = stage.run(&ask).await.ends(78);
    assert!(
        refused.err.contains("key is in reach of agents") && refused.err.contains("hint: "),
        "{refused:?}"
    );
    assert!(refused.err.contains(auth.to_str().unwrap()) && !refused.err.contains("c4nary"), "{refused:?}");
    assert_eq!(stage.say(&["runs", "--json"]).await.ends(0).out.trim(), "[]");
    assert_eq!(git(&stage.project(), &["branch", "--list", "worca/*"]), "");
    assert_eq!(std::fs::read_dir(stage.path("worca/runs")).map_or(0, Iterator::count), 0);
    std::fs::remove_file(&auth).unwrap();
    stage.run(&ask).await.ends(0);
    assert!(!stage.log().contains("c4nary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_comes_up_just_before_the_agent_parks_the_run_and_a_resume_looks_again() {
    let stage = Stage::set().await;
    let auth = stage.path("user/.aws/credentials");
    std::fs::create_dir_all(auth.parent().unwrap()).unwrap();
    let script = stage.path("bin/claude");
    let text = std::fs::read_to_string(&script).unwrap();
    let plant = format!("printf %s {CANARY} > '{}' ; :", auth.display());
    std::fs::write(&script, text.replace("rm -f", &plant)).unwrap();
    std::fs::write(stage.path("take"), "").unwrap();
    stage.run(&["--model", "rehearsal", "--prompt", "Say hello"]).await.ends(3);
    let id = stage.newest().await;
    let run = stage.show(&id).await;
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.contains(auth.to_str().unwrap()) && !reason.contains("c4nary"), "{reason}");
    assert!(run["policy"].is_null(), "no agent was started: {run}");
    let refused = stage.say(&["resume", &id]).await.ends(78);
    assert!(refused.err.contains(auth.to_str().unwrap()), "{refused:?}");
    std::fs::remove_file(stage.path("take")).unwrap();
    std::fs::remove_file(&auth).unwrap();
    stage.say(&["resume", &id]).await.ends(0);
    assert_eq!(stage.show(&id).await["status"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_repository_itself_warns_with_file_and_line_and_refuses_nothing() {
    let stage = Stage::set().await;
    let project = stage.project();
    std::fs::write(project.join(".env"), format!("DEBUG=1\nANTHROPIC_API_KEY={CANARY}\n")).unwrap();
    git(&project, &["add", ".env"]);
    git(&project, &["commit", "--quiet", "--message", "Oops"]);
    std::fs::write(project.join(".env.local"), format!("X={CANARY}\n")).unwrap();
    let said = stage.run(&["--model", "rehearsal", "--prompt", "Say hello"]).await.ends(0);
    let id = stage.newest().await;
    let notes: Vec<String> = stage
        .events(&id)
        .await
        .iter()
        .filter(|event| event["event"]["kind"] == "note")
        .map(|event| event["event"]["text"].as_str().unwrap().to_owned())
        .collect();
    for place in ["`.env`, line 2 in the branch", "`.env.local`, line 1 in the checkout"] {
        assert!(notes.iter().any(|note| note.contains(place)), "{place}: {notes:?}");
        assert!(said.out.contains(place) || said.err.contains(place), "{place}: {said:?}");
    }
    assert!(!format!("{notes:?}{said:?}{}", stage.log()).contains("c4nary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_is_closed_instead_is_tried_to_be_read_before_each_start_in_the_loosest_set() {
    let mut stage = Stage::set().await;
    if !worca::spawn::kernel_support().files {
        eprintln!("this kernel closes no file");
        return;
    }
    stage.end_core();
    let auth = stage.path("user/.claude/.credentials.json");
    std::fs::create_dir_all(auth.parent().unwrap()).unwrap();
    std::fs::write(&auth, CANARY).unwrap();
    stage.serve_with(&["--close-sign-ins"]);
    let ask = ["--guardrails", "permissive", "--model", "rehearsal", "--prompt", "Say hello"];
    let tried = |run: &serde_json::Value| {
        let tried = run["policy"]["receipt"]["tried"].as_array().cloned().unwrap_or_default();
        let name = auth.display().to_string();
        tried.into_iter().filter(|row| row["target"] == name.as_str() && row["outcome"] == "held").count()
    };
    stage.run(&ask).await.ends(0);
    let run = stage.show(&stage.newest().await).await;
    assert_eq!(tried(&run), 1, "{run}");
    // One that comes up later is closed from the next start on, and nothing is refused.
    let later = stage.path("user/.codex/auth.json");
    std::fs::create_dir_all(later.parent().unwrap()).unwrap();
    std::fs::write(&later, CANARY).unwrap();
    stage.run(&ask).await.ends(0);
    let run = stage.show(&stage.newest().await).await;
    assert!(run.to_string().contains(later.to_str().unwrap()), "{run}");
    assert!(!run.to_string().contains("c4nary"));
}
