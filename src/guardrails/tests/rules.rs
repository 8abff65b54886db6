//! The rules of a set, as the hook judges tool calls by them.

use super::*;

/// A stage with the rules of a set, as `(kind, pattern)`.
fn judged(rules: &[(RuleKind, &str)], tool: &str, input: Value) -> Result<Verdict, String> {
    judged_on(&Stage::new(), rules, tool, input)
}

fn rule(kind: RuleKind, pattern: &str) -> Rule {
    Rule { set: SetName::parse("mine").unwrap(), kind, pattern: pattern.into() }
}

fn judged_on(stage: &Stage, rules: &[(RuleKind, &str)], tool: &str, input: Value) -> Result<Verdict, String> {
    let home = stage.run().join("home");
    let policy = Policy {
        rules: rules.iter().map(|(kind, pattern)| rule(*kind, pattern)).collect(),
        homes: vec![home.clone(), "/home/dev".into()],
        ..stage.policy()
    };
    let call = json!({ "tool_name": tool, "tool_input": input });
    judge(&policy, &call, &stage.tree(), Some(&home))
}

#[track_caller]
fn denied_by(verdict: Result<Verdict, String>, name: &str) -> String {
    match verdict {
        Ok(Verdict::Deny(denial)) => {
            assert_eq!(denial.rule.to_string(), name, "{}", denial.reason);
            denial.reason
        }
        other => panic!("not denied by {name}: {other:?}"),
    }
}

const PATHS: [(RuleKind, &str); 9] = [
    (RuleKind::Paths, "**/.env*"),
    (RuleKind::Paths, "*.pem"),
    (RuleKind::Paths, "id_rsa"),
    (RuleKind::Paths, "~/.ssh"),
    (RuleKind::Paths, "~/.aws/**"),
    (RuleKind::Paths, "/srv/keys/**"),
    (RuleKind::Paths, "**/secrets/**"),
    (RuleKind::Paths, "config/live.json"),
    (RuleKind::Paths, "*.tfstate*"),
];

#[test]
fn a_path_rule_holds_for_every_tool_and_spelling() {
    let denied = [
        ("**/.env*", ".env"),
        ("**/.env*", "./.env"),
        ("**/.env*", "a/b/.env.local"),
        ("**/.env*", "/etc/x/.env"),
        ("**/.env*", "src/../.env"),
        ("**/.env*", "a//.env"),
        ("**/.env*", ".envs/inner/file"),
        ("*.pem", "server.pem"),
        ("*.pem", "/a/b/server.pem"),
        ("id_rsa", "keys/id_rsa"),
        ("~/.ssh", "~/.ssh/config"),
        ("~/.ssh", "/home/dev/.ssh"),
        ("~/.ssh", "/home/dev/.ssh/id_ed25519"),
        ("~/.aws/**", "/home/dev/.aws/credentials"),
        ("~/.aws/**", "~/.aws/sso/cache/x.json"),
        ("/srv/keys/**", "/srv/keys/a/b"),
        ("**/secrets/**", "deploy/secrets/db"),
        ("config/live.json", "config/live.json"),
        ("config/live.json", "/home/dev/api/config/live.json"),
        ("*.tfstate*", "terraform.tfstate.backup"),
    ];
    for (pattern, path) in denied {
        for (tool, field) in [
            ("Read", "file_path"),
            ("Edit", "file_path"),
            ("MultiEdit", "file_path"),
            ("Write", "file_path"),
            ("NotebookEdit", "notebook_path"),
            ("LS", "path"),
            ("mcp__files__get", "path"),
        ] {
            let reason =
                denied_by(judged(&PATHS, tool, json!({ field: path })), &format!("mine.paths[{pattern}]"));
            assert!(reason.contains(path) && reason.contains("made-up"), "{reason}");
        }
    }
    for path in [
        "env",
        "src/environment.ts",
        "a.env",
        "server.pem.md",
        "my_id_rsa",
        "id_rsa.pub",
        "/home/other/.ssh/config",
        "ssh/.sshrc",
        "/srv/keysmith/a",
        "src/secrets.rs",
        "secretsx/a",
        "config/live.json5",
        "xconfig/live.json",
        "tfstate.md",
    ] {
        assert_eq!(judged(&PATHS, "Read", json!({ "file_path": path })), Ok(Verdict::Allow), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn c014_a_path_rule_holds_where_a_link_leads() {
    use std::os::unix::fs::symlink;
    let stage = Stage::new();
    let tree = stage.tree();
    std::fs::write(tree.join(".env"), "x").unwrap();
    symlink("/srv/app/.env", tree.join("ok.txt")).unwrap();
    symlink(".env", tree.join("config.txt")).unwrap();
    symlink("/home/dev", tree.join("docs")).unwrap();
    symlink("src", tree.join(".envrc")).unwrap();
    for (path, pattern) in [
        ("ok.txt", "**/.env*"),
        ("config.txt", "**/.env*"),
        ("docs/.ssh/id", "~/.ssh"),
        // Its own name is denied, wherever it leads.
        (".envrc/a", "**/.env*"),
    ] {
        for tool in ["Read", "Write", "Edit"] {
            denied_by(
                judged_on(&stage, &PATHS, tool, json!({ "file_path": path })),
                &format!("mine.paths[{pattern}]"),
            );
        }
    }
    let reason = denied_by(
        judged_on(&stage, &PATHS, "Read", json!({ "file_path": "config.txt" })),
        "mine.paths[**/.env*]",
    );
    assert!(reason.contains("`config.txt` leads to"), "{reason}");
}

#[test]
fn a_search_for_denied_names_is_denied_and_one_around_them_is_not() {
    for (tool, input) in [
        ("Glob", json!({ "pattern": "**/.env*" })),
        ("Glob", json!({ "pattern": "**/.env" })),
        ("Glob", json!({ "pattern": ".en?" })),
        ("Glob", json!({ "pattern": "**/*.pem" })),
        ("Glob", json!({ "pattern": "**/{a.txt,.env.local}" })),
        ("Glob", json!({ "pattern": "secrets/**/*" })),
        ("Glob", json!({ "pattern": "*", "path": "deploy/secrets" })),
        ("Glob", json!({ "pattern": "/home/dev/.ssh/*" })),
        ("Grep", json!({ "pattern": "KEY", "path": ".env" })),
        ("Grep", json!({ "pattern": "KEY", "path": "deploy/secrets" })),
        ("Grep", json!({ "pattern": "KEY", "path": "/home/dev/.aws" })),
        ("Grep", json!({ "pattern": "KEY", "glob": ".env*" })),
        ("Grep", json!({ "pattern": "KEY", "glob": "*.{rs,pem}" })),
        ("Grep", json!({ "pattern": "KEY", "glob": "*.rs, .env" })),
        ("Grep", json!({ "pattern": "KEY", "glob": "id_r*" })),
        ("LS", json!({ "path": "/srv/keys" })),
    ] {
        let verdict = judged(&PATHS, tool, input.clone());
        assert!(
            matches!(&verdict, Ok(Verdict::Deny(denial)) if denial.rule.to_string().starts_with("mine.paths[")),
            "{tool} {input}: {verdict:?}"
        );
    }
    for (tool, input) in [
        ("Glob", json!({ "pattern": "**/*" })),
        ("Glob", json!({ "pattern": "*" })),
        ("Glob", json!({ "pattern": "**/*.json" })),
        ("Glob", json!({ "pattern": "src/**/*.{ts,tsx}" })),
        ("Glob", json!({ "pattern": "**/environment*" })),
        ("Glob", json!({ "pattern": ".*" })),
        ("Grep", json!({ "pattern": ".env" })),
        ("Grep", json!({ "pattern": "x", "path": "deploy" })),
        ("Grep", json!({ "pattern": "x", "glob": "!.env*" })),
        ("Grep", json!({ "pattern": "x", "glob": "*.rs" })),
        ("LS", json!({ "path": "/home/dev" })),
    ] {
        assert_eq!(judged(&PATHS, tool, input.clone()), Ok(Verdict::Allow), "{tool} {input}");
    }
}

#[test]
fn a_tool_rule_holds_by_name_glob_and_server() {
    let rules = [
        (RuleKind::Tools, "WebSearch"),
        (RuleKind::Tools, "mcp__browser__*"),
        (RuleKind::Tools, "mcp__shell"),
        (RuleKind::Tools, "Task"),
        (RuleKind::Tools, "Cron*"),
    ];
    for (tool, pattern) in [
        ("WebSearch", "WebSearch"),
        ("websearch", "WebSearch"),
        ("mcp__browser__open", "mcp__browser__*"),
        ("mcp__shell__run", "mcp__shell"),
        ("Task", "Task"),
        ("Agent", "Task"),
        ("CronCreate", "Cron*"),
    ] {
        let reason = denied_by(judged(&rules, tool, json!({})), &format!("mine.tools[{pattern}]"));
        assert!(reason.contains(tool), "{reason}");
    }
    for tool in ["Search", "mcp__browserx__open", "mcp__shellx__run", "TaskOutput", "Skill", "TodoWrite"] {
        assert_eq!(judged(&rules, tool, json!({})), Ok(Verdict::Allow), "{tool}");
    }
}

#[test]
fn a_host_rule_holds_for_every_spelling_of_an_address() {
    let rules = [
        (RuleKind::Tools, "WebFetch(domain:evil.example)"),
        (RuleKind::Tools, "WebFetch(domain:*.corp.example)"),
        (RuleKind::Tools, "WebFetch(domain:bücher.example)"),
        (RuleKind::Tools, "WebFetch(domain:127.0.0.1)"),
    ];
    let fetch = |url: &str| judged(&rules, "WebFetch", json!({ "url": url, "prompt": "x" }));
    for (url, domain) in [
        ("https://evil.example/x", "evil.example"),
        ("HTTPS://EVIL.example", "evil.example"),
        ("https://evil.example.:8443/", "evil.example"),
        ("https://good.example@evil.example/", "evil.example"),
        ("https://good.example:80@evil.example:443/", "evil.example"),
        ("https:\\\\evil.example\\x", "evil.example"),
        ("  https://evil.example", "evil.example"),
        ("https:/evil.example", "evil.example"),
        ("https://ev\til.example", "evil.example"),
        ("https://%65vil.example/", "evil.example"),
        ("https://a.b.corp.example/", "*.corp.example"),
        ("https://xn--bcher-kva.example/", "bücher.example"),
        ("https://BÜCHER.example/", "bücher.example"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
    ] {
        denied_by(fetch(url), &format!("mine.tools[WebFetch(domain:{domain})]"));
    }
    for url in [
        "https://notevil.example/",
        "https://evil.example.attacker.example/",
        "https://good.example/?to=evil.example",
        "https://evil.example@good.example/",
        "https://corp.example/",
        "https://xcorp.example/",
    ] {
        assert_eq!(fetch(url), Ok(Verdict::Allow), "{url}");
    }
    for url in ["evil.example", "", "https://", "data:text/plain,x", "https://a b/"] {
        assert!(fetch(url).is_err(), "{url}");
    }
    denied_by(
        judged(&rules, "mcp__net__get", json!({ "options": { "url": ["https://evil.example/"] } })),
        "mine.tools[WebFetch(domain:evil.example)]",
    );
    assert_eq!(judged(&[], "WebFetch", json!({ "url": "evil.example" })), Ok(Verdict::Allow));
}

#[test]
fn tools_that_are_not_known_are_judged_by_every_field_that_looks_like_a_path() {
    for input in [
        json!({ "filename": ".env" }),
        json!({ "paths": ["a.txt", "sub/.env"] }),
        json!({ "files": [{ "name": "a", "path": ".env" }] }),
        json!({ "uri": "file:///home/dev/.ssh/id" }),
        json!({ "query": "/home/dev/.ssh/id" }),
        json!({ "options": { "outputDir": "deploy/secrets/x" } }),
        json!({ "source": "~/.aws/credentials" }),
        json!({ "files": { "deploy/.env": "x" } }),
    ] {
        let verdict = judged(&PATHS, "mcp__files__any", input.clone());
        assert!(matches!(verdict, Ok(Verdict::Deny(_))), "{input}: {verdict:?}");
    }
    let stage = Stage::new();
    let token = stage.home().join("core-token");
    assert!(matches!(
        judged_on(&stage, &[], "mcp__x__y", json!({ "deep": [{ "targetFile": token }] })),
        Ok(Verdict::Deny(_))
    ));
    for input in [
        json!({ "text": ".env" }),
        json!({ "file_text": "A=1\n.env\n" }),
        json!({ "url": "https://host/.env" }),
        json!({ "file": "src/a.rs", "count": 7, "none": null }),
    ] {
        assert_eq!(judged(&PATHS, "mcp__files__any", input.clone()), Ok(Verdict::Allow), "{input}");
    }
    // What our own tools say in words is no path.
    let said = json!({ "prompt": "/run/secrets is closed", "description": "~/.ssh", "subagent_type": "x" });
    assert_eq!(judged(&PATHS, "Task", said), Ok(Verdict::Allow));
}

#[test]
fn a_line_is_judged_in_whatever_tool_it_stands_and_a_command_of_another_form_is_not_understood() {
    for tool in ["Bash", "PowerShell", "Monitor", "mcp__x__run"] {
        assert_eq!(judged(&PATHS, tool, json!({ "command": "ls src" })), Ok(Verdict::Allow), "{tool}");
        assert!(judged(&PATHS, tool, json!({ "command": 7 })).is_err(), "{tool}");
        assert!(judged(&PATHS, tool, json!({ "command": ["ls", 7] })).is_err(), "{tool}");
    }
    for tool in ["Bash", "PowerShell"] {
        assert!(judged(&PATHS, tool, json!({})).is_err(), "{tool}");
        assert!(judged(&PATHS, tool, json!({ "command": null })).is_err(), "{tool}");
    }
}

#[test]
fn a_message_that_names_a_denied_file_is_no_path_and_a_file_with_a_blank_is_one() {
    let stage = Stage::new();
    let policy = Policy {
        rules: PATHS.iter().map(|(kind, pattern)| rule(*kind, pattern)).collect(),
        ..stage.policy()
    };
    let tree = stage.tree();
    let places = super::super::places::Places::new(&policy, &tree, None);
    for word in [".env handling", "move src/secrets/x out", "a", "*", "*.rs", "src/*", ".*", "test*", "-m"] {
        assert_eq!(places.word(word), Ok(None), "{word}");
    }
    std::fs::write(tree.join(".env handling"), "x").unwrap();
    for word in [
        ".env handling",
        ".env",
        ".env*",
        ".en?",
        ".e*",
        "src/*.pem",
        "id_r*",
        "id_rs[a]",
        "deploy/secrets/*",
    ] {
        assert!(matches!(places.word(word), Ok(Some(_))), "{word}");
    }
    assert!(
        matches!(places.word("/run/secrets/a b"), Ok(Some(denial)) if denial.rule == RuleId::Built("worca.own-state"))
    );
}

#[test]
fn a_rule_of_the_repository_on_editing_leaves_reading() {
    let rules = [(RuleKind::Tools, "Edit(/migrations/**)"), (RuleKind::Tools, "Edit(package-lock.json)")];
    for tool in ["Edit", "Write", "MultiEdit"] {
        denied_by(
            judged(&rules, tool, json!({ "file_path": "migrations/0001.sql" })),
            "mine.tools[Edit(/migrations/**)]",
        );
        denied_by(
            judged(&rules, tool, json!({ "file_path": "web/package-lock.json" })),
            "mine.tools[Edit(package-lock.json)]",
        );
        assert_eq!(judged(&rules, tool, json!({ "file_path": "package.json" })), Ok(Verdict::Allow));
    }
    assert_eq!(judged(&rules, "Read", json!({ "file_path": "migrations/0001.sql" })), Ok(Verdict::Allow));
}

#[test]
fn a_denial_names_the_rule_the_set_and_what_to_do() {
    let set = SetName::parse("payments").unwrap();
    let denial = |rule| Denial { rule, part: Some("git push".into()), reason: "ask a person".into() };
    assert_eq!(
        sentence(&denial(RuleId::Set(rule(RuleKind::Commands, "git push"))), &set),
        "denied by mine.commands[git push] (guardrail set `payments`): `git push`: ask a person"
    );
    assert_eq!(
        sentence(&denial(RuleId::Built("host.kill-by-name")), &set),
        "denied by host.kill-by-name (in every guardrail set): `git push`: ask a person"
    );
    assert_eq!(
        sentence(&denial(RuleId::Built("shell.undecided")), &set),
        "denied by shell.undecided (guardrail set `payments`): `git push`: ask a person"
    );
}

#[test]
fn c035_c036_a_policy_that_is_half_written_denies() {
    let stage = Stage::new();
    let file = stage.folder.path().join("policy.json");
    let whole = stage.policy().to_json();
    let call =
        json!({ "tool_name": "Read", "tool_input": { "file_path": "a" }, "cwd": stage.tree() }).to_string();
    for end in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, whole.get(..end).unwrap()).unwrap();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        assert_eq!(pre_tool_use(Some(&file), call.as_bytes(), &mut output, &mut errors), 2, "{end}");
        assert!(output.is_empty() && !errors.is_empty());
    }
    // And half a call.
    std::fs::write(&file, &whole).unwrap();
    for end in [1, call.len() / 2, call.len() - 1] {
        let code = pre_tool_use(Some(&file), &call.as_bytes()[..end], Vec::new(), std::io::sink());
        assert_eq!(code, 2, "{end}");
    }
}

#[test]
fn globs_fit_what_they_say() {
    use super::super::glob::{alternatives, fits, plain};
    for (pattern, text, expected) in [
        ("*", "", true),
        ("*", "a", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-b-b", false),
        ("?", "ä", true),
        ("?", "", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[", "[", true),
        ("[a", "[a", true),
        ("\\*", "*", true),
        ("\\*", "x", false),
        ("a\\", "a\\", true),
        (".env*", ".env", true),
        (".env*", "x.env", false),
        ("**", "a", true),
    ] {
        assert_eq!(fits(pattern, text, false), expected, "{pattern} {text}");
    }
    assert!(fits("WebF*", "webfetch", true) && !fits("WebF*", "webfetch", false));
    assert_eq!(plain("a\\*b").as_deref(), Some("a*b"));
    assert_eq!(plain("a*b"), None);
    let sorted = |text: &str, most| {
        let mut all = alternatives(text, most);
        all.sort();
        all.join(" ")
    };
    assert_eq!(sorted("a{b,c{d,e}}f", 9), "abf acdf acef");
    assert_eq!(sorted("a{b", 9), "a{b");
    assert_eq!(sorted("{a,b}{a,b}{a,b}{a,b}", 8), "{a,b}{a,b}{a,b}{a,b}");
}

#[test]
fn long_patterns_and_paths_are_judged_at_once() {
    let pattern = "*a".repeat(120);
    let path = format!("x/{}", "a".repeat(4_000));
    let began = std::time::Instant::now();
    let _ = judged(&[(RuleKind::Paths, &pattern)], "Read", json!({ "file_path": path }));
    let deep = format!("{}**/x", "**/a/".repeat(90));
    let far = "a/".repeat(2_000);
    let _ = judged(&[(RuleKind::Paths, &deep)], "Read", json!({ "file_path": far }));
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
}
