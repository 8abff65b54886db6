//! Bad input, each kind: a sentence with a hint, the documented exit code, and nothing left half-made.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "tests drive the binary, docker and git as a person would")]

mod support;

use std::net::TcpListener;
use std::process::Command;

use support::{Said, TestBox, git, repository, run, run_with};

/// A refusal as a person sees it: what is wrong and what to do, and no inside of the program.
#[track_caller]
fn explained(said: Said, code: i32, words: &[&str]) {
    let text = said.refused(code);
    assert!(text.contains("error: ") && text.contains("hint: "), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
    for inside in ["panicked", "RUST_BACKTRACE", "Err(", "Os {"] {
        assert!(!text.contains(inside), "{text}");
    }
}

#[track_caller]
fn nothing_was_made(test: &TestBox) {
    let label = format!("label=com.docker.compose.project={}", test.name);
    for list in
        [vec!["ps", "--all", "--quiet"], vec!["network", "ls", "--quiet"], vec!["volume", "ls", "--quiet"]]
    {
        let found = run("docker", list.iter().copied().chain(["--filter", &label])).ok();
        assert_eq!(found, "", "docker {list:?}");
    }
}

#[test]
fn no_engine_is_a_sentence_that_lists_where_it_was_looked_for() {
    let test = TestBox::new();
    let project = test.project.to_str().unwrap().to_owned();
    let up = ["container", "--name", &test.name, "up", "--project", &project];
    let named = run_with(test.worca().env("DOCKER_HOST", "unix:///nowhere/docker.sock").args(up), "");
    explained(named, 1, &["/nowhere/docker.sock"]);
    nothing_was_made(&test);
    test.up();
}

#[test]
fn an_engine_that_lets_only_others_in_is_told_apart() {
    let test = TestBox::new();
    // A user of no group, with a copy of the binary where that user can run it.
    let binary = test.home.path().join("worca");
    std::fs::copy(env!("CARGO_BIN_EXE_worca"), &binary).unwrap();
    run("chmod", ["-R", "a+rX", test.home.path().to_str().unwrap()]).ok();
    let home = test.home.path().join("theirs");
    std::fs::create_dir(&home).unwrap();
    run("chown", ["65534", home.to_str().unwrap()]).ok();
    let mut up = Command::new("setpriv");
    up.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
    up.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &home).env("WORCA_IMAGE", &test.image);
    up.args(["container", "--name", &test.name, "status"]);
    explained(run_with(&mut up, ""), 1, &["permission"]);
}

#[test]
fn a_port_that_is_taken_is_found_before_anything_is_made() {
    let test = TestBox::new();
    let holder = TcpListener::bind(("127.0.0.1", test.port)).unwrap();
    let project = test.project.to_str().unwrap();
    let said = test.container(&["up", "--project", project]);
    explained(said, 1, &[&test.port.to_string(), "--port"]);
    nothing_was_made(&test);
    drop(holder);
    test.up();
}

#[test]
fn folders_that_must_not_be_mounted_are_refused_each_with_its_reason() {
    let test = TestBox::new();
    let secret = test.home.path().join("projects/with-ssh");
    std::fs::create_dir_all(secret.join(".ssh")).unwrap();
    let home = test.home.path().to_str().unwrap().to_owned();
    for (folder, word) in [
        ("/", "/"),
        (home.as_str(), "home"),
        (secret.to_str().unwrap(), ".ssh"),
        ("/nowhere/at/all", "exist"),
    ] {
        explained(test.container(&["up", "--project", folder]), 78, &[word]);
        nothing_was_made(&test);
    }
    test.up();
}

#[test]
fn what_is_no_project_is_refused_before_a_branch_or_a_row() {
    let test = TestBox::new();
    let projects = test.home.path().join("projects");
    let make = |name: &str| {
        let path = projects.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (empty, plain) = (make("no-commit"), make("no-repository"));
    git(empty.as_ref(), &["init", "--quiet", "-b", "trunk"]).ok();
    let bare = projects.join("bare.git").to_str().unwrap().to_owned();
    run("git", ["init", "--quiet", "--bare", &bare]).ok();
    let blocked = projects.join("blocked");
    repository(&blocked);
    git(&blocked, &["branch", "worca"]).ok();
    let blocked = blocked.to_str().unwrap().to_owned();
    let outside = test.home.path().join("elsewhere");
    repository(&outside);
    let outside = outside.to_str().unwrap().to_owned();

    test.container(&["up", "--projects", projects.to_str().unwrap()]).ok();
    let rehearse = |project: &str| {
        test.container(&["run", "--", "--project", project, "--model", "rehearsal", "--prompt", "x"])
    };
    explained(rehearse(&empty), 78, &["no commit"]);
    explained(rehearse(&plain), 78, &["not in a git repository"]);
    explained(rehearse(&bare), 78, &["bare"]);
    explained(rehearse(&blocked), 1, &["`worca`"]);
    explained(rehearse(&outside), 78, &["not mounted", "worca container up"]);
    let project = test.project.to_str().unwrap();
    let with = |flags: &[&str]| test.container(&[&["run", "--", "--project", project], flags].concat());
    explained(
        with(&["--model", "rehearsal", "--prompt", "x", "--guardrails", "strictest"]),
        2,
        &["permissive"],
    );
    explained(with(&["--model", "rehearsal/nothing", "--prompt", "x"]), 2, &["`nothing`", "hello"]);
    explained(with(&["--model=--version", "--prompt", "x"]), 2, &["--version"]);
    explained(with(&["--model", "rehearsal", "--prompt", "   "]), 2, &["empty"]);

    assert_eq!(test.api("/api/runs")["runs"].as_array().unwrap().len(), 0, "a refused run left a row");
    assert_eq!(git(blocked.as_ref(), &["for-each-ref", "--format=%(refname)"]).ok().lines().count(), 2);
    assert_eq!(test.inside("core", "ls /worca/runs 2>/dev/null").out, "");
    // And one that is fine works beside them.
    assert_eq!(test.rehearse("hello")["status"], "done");
}

#[test]
fn a_path_with_a_space_a_colon_a_quote_and_unicode_works() {
    let test = TestBox::with_project("sp ace:ü 'q\" $HOME");
    test.up();
    let run = test.rehearse("hello");
    assert_eq!(run["status"], "done", "{run:#}");
    let files = git(&test.project, &["diff", "--name-only", "main", run["branch"].as_str().unwrap()]).ok();
    assert!(files.contains("HELLO.md"), "{files}");
}

#[test]
fn a_verb_of_a_box_that_is_not_up_says_so() {
    let test = TestBox::new();
    let project = test.project.to_str().unwrap();
    explained(
        test.container(&["run", "--", "--project", project, "--model", "rehearsal", "--prompt", "x"]),
        1,
        &["worca container up"],
    );
    test.container(&["down"]).ok();
    explained(test.container_with(&["login"], ""), 2, &["--api-key"]);
    nothing_was_made(&test);
}

#[test]
fn c092_a_full_disk_holds_runs_up_and_loses_nothing() {
    let test = TestBox::new();
    test.container(&["init", "--project", test.project.to_str().unwrap()]).ok();
    // Core's data on a small disk.
    std::fs::write(
        test.files().join("compose.override.yaml"),
        "services:\n  core:\n    volumes:\n      - type: tmpfs\n        target: /worca\n        tmpfs:\n          size: 40000000\n",
    )
    .unwrap();
    test.container(&["up"]).ok();
    let id = test.slow_run();
    test.inside("core", "cat /dev/zero > /worca/filler");
    support::eventually("core says that the disk is full", || {
        let logs = test.container(&["logs", "core"]);
        (logs.out + &logs.err).contains("the disk is full").then_some(()).ok_or("not in the log".into())
    });
    // Pages still load, and the run has not ended.
    let held = test.api(&format!("/api/runs/{id}"));
    assert_eq!(held["status"], "running", "{held:#}");
    let before = test.api("/api/status")["last_event"].as_i64().unwrap();
    test.inside("core", "rm /worca/filler").ok();
    support::eventually("it goes on by itself", || {
        let now = test.api("/api/status")["last_event"].as_i64().unwrap();
        (now > before).then_some(()).ok_or(format!("event {now}"))
    });
    // Full again, and stopped in the middle of it: once there is space the run ends, with its work on its branch.
    test.inside("core", "cat /dev/zero > /worca/filler");
    test.inside("core", &format!("worca stop {id}")).ok();
    test.inside("core", "rm /worca/filler").ok();
    let ended = support::eventually("the run ends as stopped", || {
        let found = test.api(&format!("/api/runs/{id}"));
        (found["status"] == "stopped").then_some(found.clone()).ok_or(found.to_string())
    });
    let kept = git(&test.project, &["show", "--stat", ended["branch"].as_str().unwrap()]).ok();
    assert!(kept.contains("SLOW.md"), "{kept}");
}
