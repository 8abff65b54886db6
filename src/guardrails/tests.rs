#![allow(clippy::needless_pass_by_value, reason = "the callers read better")]
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;

mod project;
mod rules;

/// A worca home with a run, and its policy.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(stage.tree().join("src")).unwrap();
        std::fs::create_dir_all(stage.run().join("home")).unwrap();
        std::fs::create_dir_all(stage.home().join("runs/other/tree")).unwrap();
        std::fs::write(stage.home().join("core-token"), "x").unwrap();
        stage
    }
    fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("worca")
    }
    fn run(&self) -> PathBuf {
        self.home().join("runs/r0123456789")
    }
    fn tree(&self) -> PathBuf {
        self.run().join("tree")
    }
    fn policy(&self) -> Policy {
        Policy {
            closed: vec!["/run/secrets".into(), self.home()],
            open: vec![self.tree(), self.run().join("home")],
            ..Policy::bare()
        }
    }
    fn judge(&self, tool: &str, input: Value) -> Result<Verdict, String> {
        let call = json!({ "tool_name": tool, "tool_input": input });
        judge(&self.policy(), &call, &self.tree(), Some(&self.run().join("home")))
    }
    fn read(&self, path: impl AsRef<Path>) -> Result<Verdict, String> {
        self.judge("Read", json!({ "file_path": path.as_ref() }))
    }
}

#[track_caller]
fn denied(verdict: Result<Verdict, String>) -> String {
    match verdict {
        Ok(Verdict::Deny(denial)) => {
            assert_eq!(denial.rule.to_string(), "worca.own-state");
            denial.reason
        }
        other => panic!("not denied: {other:?}"),
    }
}

#[track_caller]
fn allowed(verdict: Result<Verdict, String>) {
    assert_eq!(verdict, Ok(Verdict::Allow));
}

#[test]
fn worcas_own_state_is_closed_by_every_spelling_and_the_runs_folders_are_open() {
    let stage = Stage::new();
    for path in [
        "a.txt",
        "./a.txt",
        "src/../a.txt",
        "/etc/hostname",
        "~/notes",
        "..a/b",
        "new/deep/file",
        "/run/secretsx",
    ] {
        allowed(stage.read(path));
    }
    allowed(stage.read(stage.tree().join("a.txt")));
    allowed(stage.read(stage.run().join("home/.claude/x")));
    for path in [
        "../settings.json",
        "..",
        "../../other/tree/x",
        "src/../../policy.json",
        "~/../policy.json",
        "/run/secrets",
    ] {
        denied(stage.read(path));
    }
    for path in
        ["core-token", "worca.db", "worca.db-wal", "runs", "runs/other/tree/x", "", "runs/r0123456789"]
    {
        denied(stage.read(stage.home().join(path)));
    }
    for path in [
        "/run/secrets/core_token",
        "/run/./secrets//x",
        "/run/x/../secrets/x",
        "//run/secrets/x",
        "/proc/self/root/run/secrets/x",
    ] {
        denied(stage.read(path));
    }
    let reason = denied(stage.read(stage.home().join("core-token")));
    assert!(reason.contains("core-token") && reason.contains(&*stage.tree().to_string_lossy()), "{reason}");
}

#[cfg(unix)]
#[test]
fn c014_a_link_is_judged_by_where_it_leads_also_when_its_target_is_not_there_yet() {
    use std::os::unix::fs::symlink;
    let stage = Stage::new();
    let tree = stage.tree();
    symlink("../../../core-token", tree.join("ok.txt")).unwrap();
    symlink(stage.home(), tree.join("docs")).unwrap();
    symlink(stage.home().join("not-yet"), tree.join("dangling")).unwrap();
    symlink("docs", tree.join("chain")).unwrap();
    symlink("loop", tree.join("loop")).unwrap();
    symlink("/etc", tree.join("etc")).unwrap();
    symlink("src", tree.join("alias")).unwrap();
    for path in ["ok.txt", "docs/core-token", "dangling", "chain/worca.db", "chain/../worca/worca.db"] {
        denied(stage.read(path));
        denied(stage.judge("Write", json!({ "file_path": path, "content": "" })));
    }
    assert!(stage.read("loop").is_err());
    allowed(stage.read("etc/hostname"));
    allowed(stage.read("alias/main.rs"));
    // Typed, it stays in the tree; for the kernel `..` goes up from where the link leads.
    symlink(stage.home().join("runs/other/tree"), tree.join("deep")).unwrap();
    denied(stage.read("deep/../../../core-token"));
}

#[test]
fn every_tool_that_names_a_path_is_judged() {
    let stage = Stage::new();
    let token = stage.home().join("core-token");
    for (tool, field) in [
        ("Read", "file_path"),
        ("Edit", "file_path"),
        ("MultiEdit", "file_path"),
        ("Write", "file_path"),
        ("NotebookEdit", "notebook_path"),
        ("mcp__files__get", "path"),
        ("Anything", "file_path"),
    ] {
        denied(stage.judge(tool, json!({ field: token })));
        allowed(stage.judge(tool, json!({ field: "src/a.rs" })));
    }
    for (tool, input) in [
        ("Read", json!({})),
        ("Write", json!({ "file_path": 7 })),
        ("NotebookEdit", json!({ "path": "a" })),
        ("Other", json!({ "path": ["a"] })),
        ("Read", json!({ "file_path": "a\u{0}b" })),
    ] {
        assert!(stage.judge(tool, input.clone()).is_err(), "{tool} {input}");
    }
    for (tool, input) in [
        ("EnterWorktree", json!({})),
        ("ExitWorktree", json!({})),
        ("Agent", json!({ "prompt": "x", "isolation": "worktree" })),
        ("Task", json!({ "prompt": "x", "isolation": 7 })),
    ] {
        let verdict = stage.judge(tool, input);
        assert!(
            matches!(&verdict, Ok(Verdict::Deny(why)) if why.rule == RuleId::Built("worca.one-worktree")),
            "{tool}: {verdict:?}"
        );
    }
    allowed(stage.judge("Agent", json!({ "prompt": "x", "isolation": null })));
    allowed(stage.judge("Bash", json!({ "command": "git status" })));
    allowed(stage.judge("Task", json!({ "prompt": "x", "description": "y" })));
    allowed(stage.judge("WebFetch", json!({ "url": "https://worca.invalid/run/secrets" })));
}

#[test]
fn a_search_is_judged_by_what_lies_below_it() {
    let stage = Stage::new();
    allowed(stage.judge("Grep", json!({ "pattern": "x" })));
    allowed(stage.judge("Grep", json!({ "pattern": "/run/secrets", "path": "src", "glob": "*.rs" })));
    allowed(stage.judge("Glob", json!({ "pattern": "**/*.rs" })));
    allowed(stage.judge("Glob", json!({ "pattern": "/etc/*.conf" })));
    for input in [
        json!({ "pattern": "x", "path": "/" }),
        json!({ "pattern": "x", "path": "/run" }),
        json!({ "pattern": "x", "path": stage.folder.path() }),
        json!({ "pattern": "x", "path": "../.." }),
        json!({ "pattern": "x", "glob": "../../../*" }),
    ] {
        denied(stage.judge("Grep", input));
    }
    assert!(stage.judge("Glob", json!({ "pattern": "src/*/../../../../core-token" })).is_err());
    for pattern in ["/run/secrets/*", "/**/token", "/{run,etc}/secrets/*", "../../../core-t*", "/run/s*/x"] {
        denied(stage.judge("Glob", json!({ "pattern": pattern })));
    }
}

#[test]
fn a_call_that_is_not_understood_is_denied_by_exit_code() {
    let stage = Stage::new();
    let policy = stage.folder.path().join("policy.json");
    std::fs::write(&policy, stage.policy().to_json()).unwrap();
    let run = |policy: Option<&Path>, input: &[u8]| {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let code = pre_tool_use(policy, input, &mut output, &mut errors);
        (code, String::from_utf8(output).unwrap(), String::from_utf8(errors).unwrap())
    };
    let call = |path: &str| {
        json!({ "tool_name": "Read", "tool_input": { "file_path": path }, "cwd": stage.tree() }).to_string()
    };
    assert_eq!(run(Some(&policy), call("a").as_bytes()), (0, String::new(), String::new()));
    let (code, output, errors) = run(Some(&policy), call("/run/secrets/x").as_bytes());
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "PreToolUse");
    assert!(
        answer["hookSpecificOutput"]["permissionDecisionReason"]
            .as_str()
            .unwrap()
            .contains("worca.own-state")
    );

    let odd: [&[u8]; 7] = [
        b"",
        b"{",
        b"null",
        b"{\"tool_name\":\"Read\"",
        b"\xff",
        b"{\"cwd\":\"relative\",\"tool_name\":\"Bash\",\"tool_input\":{}}",
        b"{\"cwd\":\"/\",\"tool_input\":{}}",
    ];
    for input in odd {
        let (code, output, errors) = run(Some(&policy), input);
        assert!(
            code == 2 && output.is_empty() && errors.starts_with("worca: this call could not be judged"),
            "{errors}"
        );
    }
    let deep = format!("{{\"cwd\":\"/\",\"tool_name\":\"Read\",\"tool_input\":{}", "[".repeat(200_000));
    assert_eq!(run(Some(&policy), deep.as_bytes()).0, 2);
    let missing = stage.folder.path().join("missing.json");
    assert_eq!(run(Some(&missing), call("a").as_bytes()).0, 2);
    for bad in [
        "",
        "{}",
        r#"{"version":2,"closed":[],"open":[]}"#,
        r#"{"version":1,"closed":["relative"],"open":[]}"#,
        r#"{"version":1,"closed":[],"open":[],"more":1}"#,
    ] {
        std::fs::write(&missing, bad).unwrap();
        assert_eq!(run(Some(&missing), call("a").as_bytes()).0, 2, "{bad}");
    }
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(pre_tool_use(Some(&policy), call("/run/secrets/x").as_bytes(), Broken, std::io::sink()), 2);
}

#[test]
fn without_a_file_the_policy_of_the_box_holds() {
    let policy = Policy::of_the_box(Path::new("/worca/runs/r0123456789/tree/src"));
    let judged = |policy: &Policy, path: &str| {
        judge(
            policy,
            &json!({ "tool_name": "Read", "tool_input": { "file_path": path } }),
            Path::new("/"),
            None,
        )
    };
    allowed(judged(&policy, "/worca/runs/r0123456789/tree/a"));
    allowed(judged(&policy, "/home/dev/api/a"));
    for path in [
        "/worca/runs/r0123456789/settings.json",
        "/worca/runs/r9999999999/tree/a",
        "/worca/worca.db",
        "/run/secrets/core_token",
    ] {
        denied(judged(&policy, path));
    }
    for elsewhere in [
        "/",
        "/worca",
        "/worca/runs",
        "/worca/runs/../tree",
        "/worca/runs/not-an-id/tree",
        "/worcax/runs/r0123456789",
    ] {
        denied(judged(&Policy::of_the_box(Path::new(elsewhere)), "/worca/runs/r0123456789/tree/a"));
    }
}
