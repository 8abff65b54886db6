use proptest::prelude::*;

use super::stream::{Event, Parser};
use super::*;
use std::path::Path;

use crate::guardrails::{self, Confine, Environment, Facts, Filesystem, GuardrailSet, SetName};
use crate::secret::Secret;
use crate::spawn::Line;

const PASS: &str = "wp_0123456789abcdef";

fn facts(worca_home: &Path, worca: &Path) -> Facts {
    let folder = worca_home.join("runs/r0123456789");
    Facts {
        worca: worca.into(),
        worca_home: worca_home.into(),
        worktree: folder.join("tree"),
        home: folder.join("home"),
        temporary: folder.join("home/tmp"),
        folder,
        common_dir: "/repository/.git".into(),
        worktree_admin: "/repository/.git/worktrees/r0123456789".into(),
        branch: "worca/r0123456789/a-task".into(),
        checkout: "/repository".into(),
        projects: Vec::new(),
        protected: Vec::new(),
        programs: Vec::new(),
        user_home: None,
        found: Vec::new(),
        service_ports: Vec::new(),
        closed_port: None,
        host: 4242,
    }
}

fn open_set() -> GuardrailSet {
    GuardrailSet {
        name: SetName::parse("permissive").unwrap(),
        extends: Vec::new(),
        rules: Vec::new(),
        deny_undecided: false,
        honor_project_rules: false,
        environment: Environment::default(),
        confine: Confine { filesystem: Filesystem::Open, tcp: None },
        require_kernel: false,
    }
}

fn parse(text: &[u8]) -> Vec<Event> {
    Parser::new(vec![Secret::new(PASS.into())]).parse(&Line { bytes: text.to_vec(), dropped: 0 })
}

#[test]
fn the_lines_of_a_whole_session_are_understood() {
    let lines = [
        r#"{"type":"system","subtype":"init","session_id":"s1","model":"m","claude_code_version":"2.1.332","tools":["Bash"]}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls\nrm x"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no\nsuch"}]}]}}"#,
        r#"{"type":"assistant","parent_tool_use_id":"t9","message":{"content":[{"type":"text","text":"sub"}]}}"#,
        r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"error_status":529}"#,
        r#"{"type":"system","subtype":"permission_denied","tool_name":"Read","message":"denied by x"}"#,
        r#"{"type":"system","subtype":"task_started"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":3,"duration_ms":900,"total_cost_usd":0.25,"session_id":"s1","usage":{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":11,"cache_creation_input_tokens":13},"permission_denials":[{"tool_name":"Read"}]}"#,
    ];
    let events: Vec<Event> = lines.iter().flat_map(|line| parse(line.as_bytes())).collect();
    insta::assert_debug_snapshot!(events);
}

#[test]
fn c105_a_success_that_is_an_error_is_no_success() {
    let line = br#"{"type":"result","subtype":"success","is_error":true,"result":"Weekly limit hit"}"#;
    let events = parse(line);
    assert!(
        matches!(&events[..], [Event::Finished(finish)] if !finish.succeeded() && finish.text == "Weekly limit hit")
    );
    assert!(
        matches!(&parse(br#"{"type":"result","subtype":"success"}"#)[..], [Event::Finished(finish)] if !finish.succeeded())
    );
}

#[test]
fn odd_lines_become_a_note_and_never_a_panic() {
    let deep = format!("{{\"type\":{}", "[".repeat(100_000));
    let odd: [&[u8]; 12] = [
        b"{",
        b"null",
        b"[]",
        b"7",
        b"\xff\xfe{}",
        b"not json",
        deep.as_bytes(),
        b"\x1b[31mred",
        b"{\"type\":1}",
        b"{\"type\":\"assistant\",\"message\":7}",
        b"{\"type\":\"user\",\"message\":{\"content\":\"text\"}}",
        b"{\"type\":\"result\",\"is_error\":\"no\",\"num_turns\":-1,\"total_cost_usd\":-5,\"usage\":[]}",
    ];
    for line in odd {
        let events = parse(line);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(!format!("{events:?}").contains('\x1b'));
    }
    assert!(parse(b"").is_empty() && parse(b"  \r").is_empty());
    let cut = Parser::new(Vec::new()).parse(&Line { bytes: b"{\"type\":\"assistant\"".to_vec(), dropped: 9 });
    assert!(matches!(&cut[..], [Event::Unreadable { note }] if note.contains("9 bytes too long")));
}

#[test]
fn no_form_of_the_pass_leaves_in_an_event() {
    let escaped = PASS.replace("wp_", r"\u0077\u0070_");
    let lines = [
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"it is {PASS}!"}}]}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"it is {escaped}!"}}]}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{PASS}","name":"{PASS}","input":{{"command":"echo {escaped}"}}}}]}}}}"#
        ),
        format!(r#"{{"type":"{PASS}","subtype":"{escaped}"}}"#),
        format!(
            r#"{{"type":"result","result":"{escaped}","session_id":"{PASS}","permission_denials":[{{"tool_name":"{PASS}"}}]}}"#
        ),
        format!("not json {PASS}"),
    ];
    for line in lines {
        let shown = format!("{:?}", parse(line.as_bytes()));
        assert!(!shown.contains(PASS) && shown.contains("[pass]"), "{shown}");
    }
    let parser = Parser::new(vec![Secret::new(PASS.into()), Secret::new(String::new())]);
    assert_eq!(parser.scrub(&format!("a {PASS} b")), "a [pass] b");
    assert_eq!(parser.scrub("plain"), "plain");
}

#[test]
fn long_texts_are_cut_between_letters() {
    let text = "→".repeat(300_000);
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"1","name":"n","input":{{"command":"{text}"}}}}]}}}}"#
    );
    let events = parse(line.as_bytes());
    assert!(
        matches!(&events[0], Event::Text { text, .. } if text.chars().count() == 200_001 && text.ends_with("→…"))
    );
    assert!(matches!(&events[1], Event::ToolUse { summary, .. } if summary.chars().count() == 241));
}

#[test]
fn a_version_is_read_only_from_this_program() {
    assert_eq!(Version::parse("2.1.332 (Claude Code)\n").unwrap().to_string(), "2.1.332");
    for odd in [
        "",
        "2.1.332",
        "2.1 (Claude Code)",
        "2.1.3.4 (Claude Code)",
        "v2.1.3 (Claude Code)",
        "git version 2.47",
    ] {
        assert_eq!(Version::parse(odd), None, "{odd}");
    }
    assert!(Version::parse("2.1.332 (Claude Code)") > Version::parse("2.1.99 (Claude Code)"));
}

#[test]
fn a_name_that_could_be_a_flag_or_a_shell_word_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let worca = folder.path().join("it's here");
    let launch = |model: &str| Launch {
        program: "claude".into(),
        model: Some(model.into()),
        compiled: guardrails::compile(&open_set(), &[], &facts(folder.path(), &worca)),
        facts: facts(folder.path(), &worca),
        base_url: "http://keys:4318/rehearsal".into(),
        pass: Secret::new(PASS.into()),
        prompt: "the prompt".into(),
        resume: None,
        environment: Vec::new(),
    };
    let missing = launch("m").prepare().map(|_| ()).unwrap_err();
    assert!(missing.to_string().contains("hook's program"), "{missing}");
    std::fs::write(&worca, "").unwrap();
    for odd in ["--dangerously-skip-permissions", "", "a b", "a\nb", "$(x)"] {
        assert!(launch(odd).prepare().is_err(), "{odd}");
    }
    let request = launch("rehearsal/hello").prepare().unwrap();
    let arguments = format!("{:?}", request.arguments);
    assert!(!arguments.contains("the prompt") && !arguments.contains(PASS), "{arguments}");
    assert!(arguments.contains("\"--setting-sources=\", \"--strict-mcp-config\""), "{arguments}");
    assert!(!arguments.contains("bypassPermissions") && !arguments.contains("dangerously"), "{arguments}");
    assert_eq!(request.stdin, b"the prompt");
    let settings = std::fs::read_to_string(folder.path().join("runs/r0123456789/settings.json")).unwrap();
    assert!(settings.contains(r"it'\\''s here' hook pre-tool-use --policy '"), "{settings}");
    assert!(!settings.contains(PASS));
}

#[cfg(unix)]
#[test]
fn a_file_that_another_left_in_the_runs_folder_is_replaced_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let facts = facts(folder.path(), &std::env::current_exe().unwrap());
    let run = facts.folder.clone();
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(folder.path().join("victim"), "whole").unwrap();
    for name in ["policy.new", "settings.new", "project.new", "policy.json", "settings.json", "project.md"] {
        std::os::unix::fs::symlink(folder.path().join("victim"), run.join(name)).unwrap();
    }
    let launch = Launch {
        program: "claude".into(),
        model: None,
        compiled: guardrails::compile(&open_set(), &[], &facts),
        facts,
        base_url: String::new(),
        pass: Secret::new(PASS.into()),
        prompt: String::new(),
        resume: None,
        environment: Vec::new(),
    };
    launch.prepare().unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("victim")).unwrap(), "whole");
    for name in ["settings.json", "policy.json", "project.md"] {
        use std::os::unix::fs::PermissionsExt as _;
        let made = run.join(name).symlink_metadata().unwrap();
        assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600, "{name}");
    }
}

#[test]
fn the_projects_text_is_limited_and_stays_in_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    std::fs::create_dir_all(tree.join(".claude")).unwrap();
    assert_eq!(ProjectText::read(&tree), None);
    std::fs::write(tree.join(".claude/CLAUDE.md"), "second").unwrap();
    assert_eq!(ProjectText::read(&tree).unwrap().text, "second");
    std::fs::write(tree.join("CLAUDE.md"), "x".repeat(MAX_PROJECT_TEXT + 5)).unwrap();
    let long = ProjectText::read(&tree).unwrap();
    assert!(long.cut && long.text.len() == MAX_PROJECT_TEXT && long.prompt().contains("is cut"));
    std::fs::remove_file(tree.join("CLAUDE.md")).unwrap();
    std::fs::create_dir(tree.join("CLAUDE.md")).unwrap();
    assert_eq!(ProjectText::read(&tree).unwrap().file, ".claude/CLAUDE.md");
    #[cfg(unix)]
    {
        std::fs::write(folder.path().join("outside"), "secret").unwrap();
        std::fs::remove_file(tree.join(".claude/CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("../../outside", tree.join(".claude/CLAUDE.md")).unwrap();
        assert_eq!(ProjectText::read(&tree), None);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic_or_leak(bytes in proptest::collection::vec(any::<u8>(), 0..400), at in 0usize..400) {
        let mut line = bytes;
        let at = at.min(line.len());
        line.splice(at..at, PASS.bytes());
        let shown = format!("{:?}", parse(&line));
        prop_assert!(!shown.contains(PASS));
    }

    #[test]
    fn no_json_makes_the_parser_panic(kind in "(assistant|user|result|system|x)", key in "[a-z_]{0,12}", text in ".{0,40}", number in any::<f64>()) {
        let value = serde_json::json!({ "type": kind, key: text, "usage": number, "message": { "content": [number, text, { "type": "text", "text": number }, { "type": "tool_use", "input": text }] } });
        prop_assert!(!parse(value.to_string().as_bytes()).is_empty());
    }
}
