//! Runs by a scenario of the person's own, in which the provider has a bad day: the built binary as core, a real key
//! service, the real Claude Code.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test drives the binary and git as a person would")]

#[path = "support/core.rs"]
mod core_stage;
#[path = "support/keys.rs"]
mod support;

use core_stage::{Said, Stage, git};

/// Core and an agent that does not ask again for minutes.
async fn impatient() -> Stage {
    let stage = Stage::set().await;
    let program = stage.path("bin/claude");
    let script = std::fs::read_to_string(&program).unwrap();
    let script = script.replacen("#!/bin/sh\n", "#!/bin/sh\nexport CLAUDE_CODE_MAX_RETRIES=1\n", 1);
    std::fs::write(program, script).unwrap();
    stage
}

/// A run that plays these turns.
async fn play(stage: &Stage, turns: &str) -> Said {
    let file = stage.path("scenario.yaml");
    std::fs::write(&file, format!("version: 1\nturns:\n{turns}")).unwrap();
    stage.run(&["--model", &format!("rehearsal/{}", file.display()), "--prompt", "Play"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gets_over_a_provider_that_fails_is_cut_and_errs_and_uses_several_tools_at_once() {
    let stage = impatient().await;
    play(
        &stage,
        "  - text: Two at once.
    tools:
      - {name: Bash, input: {command: 'echo one > one.txt && echo ::said=both', description: Write one}}
      - {name: Bash, input: {command: 'echo two > two.txt', description: Write two}}
    fail: {status: 529, message: Overloaded}
  - text: Commit.
    tool: {name: Bash, input: {command: 'git add . && git commit -qm {{said}}', description: Commit}}
    error_event: {type: overloaded_error}
  - text: Done.
    cut: {after_events: 3}
    usage: {input: 7, output: 5, cache_read: 3}
",
    )
    .await
    .ends(0);
    let run = stage.show(&stage.newest().await).await;
    assert_eq!(run["status"], "done", "{run}");
    let branch = run["branch"].as_str().unwrap();
    assert_eq!(git(&stage.project(), &["log", "-1", "--format=%s", branch]), "both");
    assert_eq!(git(&stage.project(), &["ls-tree", "--name-only", branch]), "one.txt\ntwo.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_provider_ends_says_why() {
    let stage = impatient().await;
    for (fault, code, status, words) in [
        (
            "fail: {status: 400, message: a word of the provider, calls: 1000}",
            1,
            "failed",
            "a word of the provider",
        ),
        ("fail: {status: 529, message: too much to do, calls: 1000}", 1, "failed", "too much to do"),
        ("fail: {status: 401, message: expired, calls: 1000}", 3, "parked", "refused the key (401): expired"),
        ("cut: {after_events: 3, calls: 1000}", 1, "failed", "Connection to the API was lost"),
        ("error_event: {type: api_error, message: odd day, calls: 1000}", 1, "failed", "odd day"),
    ] {
        play(&stage, &format!("  - text: never said\n    {fault}\n")).await.ends(code);
        let run = stage.show(&stage.newest().await).await;
        assert_eq!(run["status"], status, "{fault}: {run}");
        assert!(run["reason"].as_str().unwrap_or_default().contains(words), "{fault}: {run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_scenario_is_refused_with_its_place_before_anything_is_made() {
    let stage = Stage::set().await;
    let refused = play(&stage, "  - text: a\n    txet: b\n").await.ends(2);
    assert!(refused.err.contains("line 4, column 5: there is no key `txet`"), "{refused:?}");
    assert_eq!(stage.say(&["runs", "--json"]).await.ends(0).out.trim(), "[]");
    assert_eq!(git(&stage.project(), &["branch", "--list", "worca/*"]), "");
}
