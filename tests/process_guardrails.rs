//! `worca guardrails` as a process: what it prints, its exit codes, what it leaves on disk.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test starts the built program, as a person would")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home of its own, with a folder to work in.
struct Place(tempfile::TempDir);

/// What a command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.0.path().join("project")).unwrap();
        place
    }
    fn project(&self) -> PathBuf {
        self.0.path().join("project")
    }
    fn file(&self, set: &str) -> PathBuf {
        self.0.path().join("worca/guardrails").join(format!("{set}.yaml"))
    }
    fn write(&self, set: &str, text: &str) {
        std::fs::create_dir_all(self.file(set).parent().unwrap()).unwrap();
        std::fs::write(self.file(set), text).unwrap();
    }
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
        command
            .arg("guardrails")
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .env("WORCA_HOME", self.0.path().join("worca"))
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
    fn said(&self, arguments: &[&str]) -> Said {
        self.of(self.command(arguments), b"")
    }
    fn of(&self, mut command: Command, input: &[u8]) -> Said {
        let mut child = command.spawn().unwrap();
        // A program that refuses before it reads closes its end: that is its right.
        let _ = child.stdin.take().unwrap().write_all(input);
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| self.tidy(&String::from_utf8(bytes).unwrap());
        Said { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
    }
    fn tidy(&self, text: &str) -> String {
        let real = self.0.path().canonicalize().unwrap();
        text.replace(&real.display().to_string(), "HOME")
            .replace(&self.0.path().display().to_string(), "HOME")
    }
    /// An editor that runs this script on the file.
    fn edit(&self, set: &str, script: &str) -> Said {
        let editor = self.0.path().join("my editor");
        std::fs::write(&editor, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
        std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = self.command(&["edit", set]);
        command.env("EDITOR", format!("'{}' --wait", editor.display())).env("TERM", "dumb");
        self.of(command, b"")
    }
}

impl Said {
    fn shown(&self, arguments: &[&str]) -> String {
        format!("$ worca guardrails {}\n[{}]\n{}{}", arguments.join(" "), self.code, self.out, self.err)
    }
}

fn session(place: &Place, lines: &[&[&str]]) -> String {
    let seen = lines.iter().map(|line| place.said(line).shown(line));
    place.tidy(&seen.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_set_is_made_listed_shown_copied_compared_and_deleted() {
    let place = Place::new();
    let seen = session(
        &place,
        &[
            &["list"],
            &["new", "pay", "--from", "strict"],
            &["copy", "pay", "shop"],
            &["diff", "pay", "strict"],
            &["list", "--json"],
            &["show", "pay", "--json"],
            &["show", "permissive"],
            &["show", "permissive", "--resolved"],
            &["show", "permissive", "--resolved", "--json"],
            &["diff", "permissive", "permissive", "--json"],
            &["delete", "shop"],
            &["delete", "pay"],
            &["list"],
        ],
    );
    insta::assert_snapshot!(seen);
    let resolved = place.said(&["show", "strict", "--resolved"]).out;
    place.write("flat", &resolved.replace("name: strict", "name: flat"));
    let difference = place.said(&["diff", "strict", "flat"]);
    assert_eq!((difference.code, difference.out.as_str()), (0, ""), "{}", difference.err);
}

#[test]
fn each_refusal_is_a_sentence_with_a_hint() {
    let place = Place::new();
    place.write("base", "name: base\n");
    place.write("above", "name: above\nextends: base\n");
    place.write("broken", "name: broken\ndeny:\n  comands: []\n");
    place.write("orphan", "name: orphan\nextends: strikt\n");
    let seen = session(
        &place,
        &[
            &["show", "strct"],
            &["show", "Strict"],
            &["show", "broken", "--resolved"],
            &["explain", "orphan"],
            &["list"],
            &["new", "strict"],
            &["new", "base"],
            &["new", "x", "--from", "nothing"],
            &["copy", "nothing", "x"],
            &["copy", "strict", "base"],
            &["copy", "broken", "x"],
            &["edit", "strict"],
            &["edit", "nothing"],
            &["delete", "normal"],
            &["delete", "base"],
            &["delete", "nothing"],
            &["diff", "base", "broken"],
            &["check"],
            &["check", "--set", "nothing", "--", "ls"],
            &["check", "--tool", "Read"],
            &["check", "--tool", "WebFetch"],
            &["check", "--shell", "cmd", "--", "a", "b"],
            &["check", "--shell", "fish", "--", "a"],
            &["check", "--stdin", "--", "a"],
        ],
    );
    insta::assert_snapshot!(seen);
    assert!(place.file("base").exists() && place.file("above").exists());
}

#[test]
fn a_broken_set_is_still_shown_and_can_be_edited_and_deleted() {
    let place = Place::new();
    place.write("broken", "name: broken\nwhat: 1\n");
    assert_eq!(place.said(&["show", "broken"]).out, "name: broken\nwhat: 1\n");
    let mended = place.edit("broken", "echo 'name: broken' > \"$2\"");
    assert_eq!(mended.code, 0, "{}", mended.err);
    assert_eq!(std::fs::read_to_string(place.file("broken")).unwrap(), "name: broken\n");
    place.write("broken", "name: broken\nwhat: 1\n");
    assert_eq!(place.said(&["delete", "broken"]).code, 0);
    assert!(!place.file("broken").exists());
}

#[test]
fn an_edit_counts_once_it_is_right_and_a_wrong_one_is_kept_beside_the_set() {
    let place = Place::new();
    assert_eq!(place.said(&["new", "pay"]).code, 0);
    let before = std::fs::read_to_string(place.file("pay")).unwrap();
    let mut seen = Vec::new();
    let mut step = |what: &str, said: Said| {
        seen.push(format!("{what}: [{}]\n{}{}", said.code, said.out, said.err));
    };
    step("nothing changed", place.edit("pay", "true"));
    step("the editor fails", place.edit("pay", "echo 'name: x' > \"$2\"; exit 3"));
    assert_eq!(std::fs::read_to_string(place.file("pay")).unwrap(), before);
    step("a wrong key", place.edit("pay", "echo 'dney: {}' >> \"$2\""));
    assert_eq!(std::fs::read_to_string(place.file("pay")).unwrap(), before);
    let kept = place.file("pay").with_file_name("pay.yaml.rejected");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), format!("{before}dney: {{}}\n"));
    step("another name", place.edit("pay", "echo 'name: other' > \"$2\""));
    let other = format!("echo '# by hand' >> '{}'; echo '# mine' >> \"$2\"", place.file("pay").display());
    step("changed meanwhile", place.edit("pay", &other));
    assert_eq!(std::fs::read_to_string(place.file("pay")).unwrap(), format!("{before}# by hand\n"));
    step("right", place.edit("pay", "test \"$1\" = --wait; echo '# mine' >> \"$2\""));
    assert_eq!(std::fs::read_to_string(place.file("pay")).unwrap(), format!("{before}# by hand\n# mine\n"));
    let mut none = place.command(&["edit", "pay"]);
    none.env("TERM", "dumb");
    step("no editor", place.of(none, b""));
    insta::assert_snapshot!(seen.join("\n"));
    let mut left: Vec<_> = std::fs::read_dir(place.file("pay").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["pay.yaml", "pay.yaml.rejected"], "no draft is left");
}

#[test]
fn a_set_that_a_run_needs_is_not_deleted_and_a_newer_database_is_not_passed_over() {
    let place = Place::new();
    place.write("pay", "name: pay\n");
    let database = place.0.path().join("worca/worca.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = worca::store::Store::open(&database).unwrap();
    let id = runtime.block_on(async {
        let project = worca::store::NewProject {
            common_dir: "/p/.git".into(),
            checkout: "/p".into(),
            first_commit: "0".repeat(40),
            origin: None,
        };
        let project = store.register_project(project).await.unwrap();
        let id = worca::ids::RunId::random();
        let run = worca::store::Run {
            id: id.clone(),
            project: project.id,
            checkout: "/p".into(),
            title: "t".into(),
            prompt: "p".into(),
            model: None,
            guardrails: "pay".into(),
            payer: worca::ids::PersonId::local(),
            budget: None,
            models: Vec::new(),
            author_name: "A".into(),
            author_email: "a@example.invalid".into(),
            branch: format!("worca/{id}/t"),
            base_commit: "1".repeat(40),
            status: worca::events::RunStatus::Preparing,
            reason: None,
            created_at: worca::clock::Millis::now(),
            ended_at: None,
            end: worca::store::RunEnd::default(),
            worktree_present: true,
        };
        store.insert_run(run).await.unwrap();
        store.set_run_status(&id, worca::events::RunStatus::Interrupted, None).await.unwrap();
        id
    });
    // While a core has it open, and after it.
    let needed = format!("error: the guardrail set `pay` is needed by run `{id}`\n");
    let refused = place.said(&["delete", "pay"]);
    assert!(refused.code == 2 && refused.err.starts_with(&needed), "{}", refused.err);
    drop(store);
    assert_eq!(place.said(&["delete", "pay"]).code, 2);

    let newer = rusqlite_version(&database, 999);
    let refused = place.said(&["delete", "pay"]);
    assert!(refused.code == 78 && refused.err.contains("newer Worca"), "{}", refused.err);
    rusqlite_version(&database, newer);
    assert!(place.file("pay").exists());

    let store = worca::store::Store::open(&database).unwrap();
    runtime.block_on(store.worktree_removed(&id)).unwrap();
    assert_eq!(place.said(&["delete", "pay"]).code, 0);
}

/// Sets the schema number in the file's header (SQLite's file format, offset 60), and gives the one before.
fn rusqlite_version(database: &Path, version: u32) -> u32 {
    let mut bytes = std::fs::read(database).unwrap();
    let before = u32::from_be_bytes(bytes[60..64].try_into().unwrap());
    bytes[60..64].copy_from_slice(&version.to_be_bytes());
    std::fs::write(database, bytes).unwrap();
    before
}

#[test]
fn a_check_says_what_the_hook_says() {
    let place = Place::new();
    std::fs::write(place.project().join(".env"), "x").unwrap();
    std::os::unix::fs::symlink(".env", place.project().join("ok.txt")).unwrap();
    place.write(
        "pay",
        "name: pay\nextends: normal\ndeny:\n  tools: [mcp__browser__*, 'WebFetch(domain:*.bad.example)']\n",
    );
    let own = place.0.path().join("worca/worca.db").display().to_string();
    let allowed: &[&[&str]] = &[
        &["--", "ls -la && git status"],
        &["--", "git", "commit", "-m", "why git push; pkill are denied"],
        &["--set", "permissive", "--", "git push"],
        &["--set", "permissive", "--host-pid", "4242", "--", "kill 4243"],
        &["--shell", "cmd", "--", "taskkill /PID 4242"],
        &["--shell", "powershell", "--", "Stop-Process -Id 4242"],
        &["--", "x=ls; $x"],
        &["--tool", "Read", "--path", "src/main.rs"],
        &["--set", "permissive", "--tool", "Read", "--path", ".env"],
        &["--set", "pay", "--tool", "WebFetch", "--url", "https://example.com"],
        &["--set", "pay", "--tool", "mcp__files__open", "--path", "src/main.rs"],
        &["--tool", "WebSearch"],
    ];
    let denied: &[(&str, &[&str])] = &[
        ("normal.commands[git push]", &["--", "true; git -C .. push"]),
        ("normal.commands[git push]", &["--", "sh -c 'git push'"]),
        ("normal.commands[git push]", &["--", "git", "push", "a b"]),
        ("host.kill-by-name", &["--set", "permissive", "--", "pkill -f node"]),
        ("host.host-id", &["--set", "permissive", "--host-pid", "4242", "--", "kill 4242"]),
        ("host.kill-by-name", &["--shell", "cmd", "--", "taskkill /F /IM node.exe"]),
        ("host.kill-by-name", &["--shell", "powershell", "--", "gps node | spps"]),
        ("shell.undecided", &["--set", "strict", "--", "x=$(cat name); $x"]),
        ("normal.paths[**/.env*]", &["--tool", "Read", "--path", ".env"]),
        ("normal.paths[**/.env*]", &["--tool", "Edit", "--path", "ok.txt"]),
        ("normal.paths[**/.env*]", &["--shell", "cmd", "--", "type .env"]),
        ("worca.own-state", &["--set", "permissive", "--tool", "Write", "--path", &own]),
        (
            "strict.tools[WebFetch]",
            &["--set", "strict", "--tool", "WebFetch", "--url", "https://example.com"],
        ),
        (
            "pay.tools[WebFetch(domain:*.bad.example)]",
            &["--set", "pay", "--tool", "WebFetch", "--url", "https://a.bad.example/x"],
        ),
        ("pay.tools[mcp__browser__*]", &["--set", "pay", "--tool", "mcp__browser__open"]),
        ("worca.one-worktree", &["--tool", "EnterWorktree"]),
    ];
    let mut wrong = Vec::new();
    let ask = |arguments: &[&str]| {
        let said = place.said(&[&["check", "--json"], arguments].concat());
        let answer: serde_json::Value =
            serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        (said.code, answer)
    };
    for arguments in allowed {
        let (code, answer) = ask(arguments);
        if (code, &answer["verdict"]) != (0, &"allow".into()) {
            wrong.push(format!("{arguments:?}: {answer}"));
        }
    }
    for (rule, arguments) in denied {
        let (code, answer) = ask(arguments);
        let reason = answer["reason"].as_str().is_some_and(|reason| reason.len() > 20);
        if (code, &answer["verdict"], &answer["rule"]) != (1, &"deny".into(), &(*rule).into()) || !reason {
            wrong.push(format!("{arguments:?}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let text = place.said(&["check", "--tool", "Read", "--path", ".env"]).out;
    assert!(text.starts_with("deny\nrule:   normal.paths[**/.env*]\nreason: "), "{text}");
    assert_eq!(place.said(&["check", "--", "ls"]).out, "allow\n");
}

#[test]
fn a_line_of_any_size_is_judged_from_standard_input() {
    let place = Place::new();
    let check = |line: &[u8]| place.of(place.command(&["check", "--stdin", "--json"]), line);
    assert_eq!(check(b"ls\n").code, 0);
    assert_eq!(check(b"git push\n").code, 1);
    assert_eq!(check("true; ".repeat(60).as_bytes()).code, 0);
    let long = check(&b"true; ".repeat(400_000));
    assert!(long.code == 1 && long.out.contains("\"deny\""), "{}", long.out);
    let bytes = check(b"ls \xff");
    assert!(bytes.code == 2 && bytes.err.contains("not UTF-8"), "{}", bytes.err);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let mut child = place.command(&["show", "strict"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
