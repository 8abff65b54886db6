use std::ffi::{OsStr, OsString};

use super::*;

#[test]
fn only_the_kept_names_of_core_go_on() {
    let own = [
        "PATH",
        "LANG",
        "LC_ALL",
        "LC_TIME",
        "TZ",
        "TERM",
        "HOME",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "PATHX",
        "lang",
        "GIT_DIR",
        "SSH_AUTH_SOCK",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "WORCA_CONTROL_FILE",
        "DOCKER_HOST",
    ];
    let own = own.map(|name| (OsString::from(name), OsString::from("canary")));
    let given =
        [("LANG".to_owned(), OsString::from("C.UTF-8")), ("ANTHROPIC_AUTH_TOKEN".to_owned(), "pass".into())];
    let built = environment::build(own.clone(), &request(&given, &[])).unwrap();
    let names: Vec<&str> = built.keys().map(|name| name.to_str().unwrap()).collect();
    let expected =
        "ANTHROPIC_AUTH_TOKEN HOME LANG LC_ALL LC_TIME PATH TERM TMPDIR TZ WORCA_HOST_PID".split(' ');
    assert_eq!(names, expected.collect::<Vec<_>>());
    assert_eq!(built[OsStr::new("LANG")], "C.UTF-8");
    assert_eq!(built[OsStr::new("ANTHROPIC_AUTH_TOKEN")], "pass");
    assert_eq!(built[OsStr::new("HOME")], "/h");
    assert_eq!(built[OsStr::new("WORCA_HOST_PID")], *std::process::id().to_string());

    // A set keeps more, by exact name, and where core has it; what is given still wins.
    let kept = environment::build(own.clone(), &request(&given, &["SSH_AUTH_SOCK", "LANG", "CI"])).unwrap();
    let more: Vec<&OsString> = kept.keys().filter(|name| !built.contains_key(*name)).collect();
    assert_eq!(more, ["SSH_AUTH_SOCK"]);
    assert_eq!(kept[OsStr::new("LANG")], "C.UTF-8");
}

#[test]
fn no_set_keeps_a_credential_of_cores_and_nothing_replaces_what_spawn_sets() {
    for name in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "WORCA_CONTROL_FILE",
        "WORCA_HOST_PID",
        "HOME",
        "TERM",
        "LD_PRELOAD",
        "A=B",
        "",
    ] {
        let own = [(OsString::from(name), OsString::from("canary"))];
        let refused = environment::build(own, &request(&[], &[name])).unwrap_err().to_string();
        assert!(refused.contains("may not be given") && !refused.contains("canary"), "{refused}");
    }
    for name in ["HOME", "TMPDIR", "LD_AUDIT"] {
        assert!(environment::build([], &request(&[(name.into(), "1".into())], &[])).is_err(), "{name}");
    }
}

fn request(given: &[(String, OsString)], keep: &[&str]) -> SpawnRequest {
    SpawnRequest {
        shim: None,
        program: "p".into(),
        arguments: Vec::new(),
        directory: "/".into(),
        home: "/h".into(),
        temporary: "/t".into(),
        environment: given.to_vec(),
        keep: keep.iter().map(|name| (*name).to_owned()).collect(),
        stdin: Vec::new(),
        kernel: KernelRules {
            version: crate::guardrails::KERNEL_RULES_VERSION,
            places: std::collections::BTreeMap::new(),
            connect: None,
            required: false,
            probes: Vec::new(),
        },
        trial: None,
    }
}

#[tokio::test]
async fn a_reader_that_is_dropped_half_way_loses_nothing() {
    use tokio::io::AsyncWriteExt as _;
    let (mut write, read) = tokio::io::duplex(64);
    let mut lines = lines::Lines::new(read, 10);
    write.write_all(b"ab").await.unwrap();
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(1), lines.next());
    assert!(waiting.await.is_err());
    write.write_all(b"c\n\n0123456789abc\ntail").await.unwrap();
    drop(write);
    let mut all = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        all.push((line.text().into_owned(), line.dropped));
    }
    let expected = [("abc", 0), ("", 0), ("0123456789", 3), ("tail", 0)];
    assert_eq!(all, expected.map(|(text, dropped)| (text.to_owned(), dropped)));
    assert!(lines.next().await.unwrap().is_none());
}
