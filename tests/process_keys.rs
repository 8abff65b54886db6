//! `worca keys` as a process: what it prints, its exit codes, and that no key is in what it shows.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test starts the built program, as a person would")]

#[path = "support/keys.rs"]
mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};

use support::{API_KEY, Place, TOKEN};

fn worca(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", place.folder.path())
        .env("WORCA_KEYS_HOME", place.data())
        .env("WORCA_VAULT_KEY_FILE", place.vault_key())
        .env("WORCA_CONTROL_FILE", place.control())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn said(place: &Place, arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = worca(place, arguments).spawn().unwrap();
    // A program that refuses before it reads closes its end: that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_key_goes_in_by_standard_input_is_listed_by_its_end_and_removed() {
    let place = Place::new();
    let put = said(&place, &["keys", "put", "anthropic"], format!("{API_KEY}\n").as_bytes());
    let wanted = "saved: slot anthropic, api-key, for https://api.anthropic.com\n";
    assert_eq!(put, (0, String::new(), wanted.to_owned()));
    let (code, table, _) = said(&place, &["keys", "list"], b"");
    assert_eq!((code, table.lines().count()), (0, 2), "{table}");
    assert!(table.contains("anthropic") && table.contains("WXYZ") && table.contains("never"), "{table}");
    let (code, json, _) = said(&place, &["keys", "list", "--json"], b"");
    let json_value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json_value["keys"][0]["last_four"]), (0, &"WXYZ".into()), "{json}");
    assert!(!format!("{put:?}{table}{json}").contains("canary"));
    let replaced = said(&place, &["keys", "put", "anthropic"], TOKEN.as_bytes());
    assert!(replaced.0 == 0 && replaced.2.contains("subscription"), "{replaced:?}");
    assert_eq!(said(&place, &["keys", "remove", "anthropic"], b"").0, 0);
    let (code, _, error) = said(&place, &["keys", "remove", "anthropic"], b"");
    assert_eq!(code, 1);
    assert!(error.starts_with("error: no key is saved for slot `anthropic`\n\nhint: "), "{error}");
    assert_eq!(said(&place, &["keys", "list"], b""), (0, String::new(), "no key is saved\n".into()));
}

#[test]
fn what_is_no_key_is_refused_with_a_sentence_and_never_repeated() {
    let place = Place::new();
    let long = "canary".repeat(2000);
    for (input, kind, code, wanted) in [
        ("", None, 1, "no key came on the standard input"),
        ("canary-of-nobody", None, 1, "neither its first characters nor `--kind` say"),
        ("sk-ant-api03-canary one", None, 1, "holds a blank"),
        ("sk-ant-api03-canary\nsecond", None, 1, "a line end"),
        (TOKEN, Some("api-key"), 1, "this is a subscription token"),
        (long.as_str(), Some("api-key"), 1, "over 8192 bytes"),
        ("wp_canary", Some("api-key"), 1, "a pass of this service"),
        ("canary", Some("password"), 2, "invalid value"),
    ] {
        let mut arguments = vec!["keys", "put", "anthropic"];
        arguments.extend(kind.iter().flat_map(|kind| ["--kind", kind]));
        let (found, out, error) = said(&place, &arguments, input.as_bytes());
        assert_eq!((found, out.as_str()), (code, ""), "{error}");
        assert!(error.contains(wanted), "{wanted}: {error}");
        assert!(!error.contains("canary"), "{error}");
    }
    let (code, _, error) = said(&place, &["keys", "put", "anthropic", API_KEY], b"");
    assert_eq!(code, 2, "a key is never an argument: {error}");
    for slot in ["rehearsal", "local", "nowhere"] {
        let (code, _, error) = said(&place, &["keys", "put", slot], API_KEY.as_bytes());
        assert!(code == 2 && error.contains("there is `anthropic`"), "{error}");
    }
    let (code, _, error) = said(&place, &["keys", "put", "openai"], API_KEY.as_bytes());
    assert!(code == 1 && error.contains("a key for slot `anthropic`"), "{error}");
    let (code, _, error) = said(&place, &["keys", "put", "openai"], TOKEN.as_bytes());
    assert!(code == 1 && error.contains("for slot `anthropic` alone"), "{error}");
    assert_eq!(said(&place, &["keys", "list"], b"").1, "");
}

#[test]
fn a_vault_key_that_others_can_read_and_an_origin_in_the_clear_are_refused_with_78() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let origin = ["keys", "put", "anthropic", "--anthropic-origin", "http://gate.example"];
    let (code, _, error) = said(&place, &origin, API_KEY.as_bytes());
    assert!(code == 78 && error.contains("is not encrypted"), "{error}");
    let loopback = ["keys", "put", "anthropic", "--anthropic-origin", "http://127.0.0.1:9"];
    assert_eq!(said(&place, &loopback, API_KEY.as_bytes()).0, 0);
    std::fs::set_permissions(place.vault_key(), std::fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["keys", "list"][..], &["keys", "serve", "--listen", "127.0.0.1:0"]] {
        let (code, _, error) = said(&place, arguments, b"");
        assert!(code == 78 && error.contains("can be read by others"), "{error}");
    }
}

#[test]
fn the_service_says_where_it_listens_and_ends_in_order_when_told() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let place = Place::new();
        let mut child = worca(&place, &["keys", "serve", "--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("the key service listens"), "{first}");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(rest.iter().any(|line| line.contains("the key service has ended")), "{rest:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn each_person_has_keys_of_their_own_and_a_list_can_be_narrowed() {
    let place = Place::new();
    let openai = "sk-proj-canary-0123456789-EFGH";
    let put = |arguments: &[&str], key: &str| said(&place, arguments, key.as_bytes());
    assert_eq!(put(&["keys", "put", "anthropic"], API_KEY).0, 0);
    let theirs = put(&["keys", "put", "anthropic", "--person", "ada"], TOKEN);
    assert_eq!(theirs.2, "saved: slot anthropic, person ada, subscription, for https://api.anthropic.com\n");
    assert_eq!(put(&["keys", "put", "openai", "--person", "ada"], openai).0, 0);
    let keys = |arguments: &[&str]| {
        let (code, json, _) = said(&place, &[&["keys", "list", "--json"], arguments].concat(), b"");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let row = |key: &serde_json::Value| {
            format!("{} {}", key["slot"].as_str().unwrap(), key["person"].as_str().unwrap())
        };
        assert!(code == 0 && !json.contains("canary"), "{json}");
        value["keys"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[]), ["anthropic ada", "anthropic local", "openai ada"]);
    assert_eq!(keys(&["--person", "ada"]), ["anthropic ada", "openai ada"]);
    assert_eq!(keys(&["--slot", "anthropic", "--person", "local"]), ["anthropic local"]);
    let (code, _, error) = said(&place, &["keys", "remove", "openai"], b"");
    assert!(code == 1 && error.contains("no key is saved for slot `openai`\n"), "{error}");
    let (code, _, error) = said(&place, &["keys", "remove", "openai", "--person", "bob"], b"");
    assert!(code == 1 && error.contains("for slot `openai`, person bob"), "{error}");
    assert_eq!(said(&place, &["keys", "remove", "anthropic", "--person", "ada"], b"").0, 0);
    assert_eq!(keys(&[]), ["anthropic local", "openai ada"]);
    let (code, _, error) =
        said(&place, &["keys", "put", "anthropic", "--person", "../ada"], API_KEY.as_bytes());
    assert!(code == 2 && error.contains("a person's name"), "{error}");
}

#[test]
fn a_slots_file_of_hostile_content_is_refused_with_78_and_nothing_listens() {
    let place = Place::new();
    let file = place.folder.path().join("slots.yaml");
    let slot = |rest: &str| {
        format!("version: 1\nslots:\n  x: {{origin: 'https://a.example', api: openai, auth: bearer{rest}}}\n")
    };
    let deep = format!("version: 1\nslots: {}{}\n", "[".repeat(20_000), "]".repeat(20_000));
    let many: String = (0..100)
        .map(|n| format!("  s{n}: {{origin: 'https://a.example', api: openai, auth: bearer}}\n"))
        .collect();
    let swelling = "version: 1\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nslots: {x: *b}\n";
    for (what, text, wanted) in [
        ("larger than any", format!("version: 1\n#{}", "x".repeat(70_000)), "larger than 64 KiB"),
        (
            "an alias",
            "version: 1\nslots:\n  a: &a {origin: 'https://a.example', api: openai, auth: none}\n  b: *a\n"
                .to_owned(),
            "alias",
        ),
        ("aliases of aliases", swelling.to_owned(), "line"),
        ("too deep", deep, "line"),
        ("too many", format!("version: 1\nslots:\n{many}"), "more than 64 slots"),
        (
            "a host in the name",
            "version: 1\nslots:\n  '../control': {origin: 'https://a.example'}\n".to_owned(),
            "is not the name of a slot",
        ),
        ("a line end in the prefix", slot(", prefix: \"/a\\r\\nx-api-key: b\""), "is not a path"),
        ("a query in the prefix", slot(", prefix: '/a?x='"), "is not a path"),
        (
            "another scheme",
            slot("").replace("https://a.example", "file:///etc/passwd"),
            "holds more than scheme",
        ),
        (
            "a person in the origin",
            slot("").replace("https://", "https://me:canary@"),
            "holds more than scheme",
        ),
        ("in the clear", slot("").replace("https://", "http://"), "is not encrypted"),
        (
            "the rehearsal",
            "version: 1\nslots: {rehearsal: {origin: 'https://a.example'}}\n".to_owned(),
            "cannot be changed",
        ),
        ("nothing", String::new(), "line"),
    ] {
        std::fs::write(&file, text).unwrap();
        let serve = ["keys", "serve", "--listen", "127.0.0.1:0", "--slots", file.to_str().unwrap()];
        let (code, out, error) = said(&place, &serve, b"");
        assert_eq!((code, out.as_str()), (78, ""), "{what}: {error}");
        assert!(error.contains(wanted), "{what}: {error}");
        assert!(!error.contains("canary") && error.len() < 2000, "{what}: {error}");
    }
    for odd in [place.folder.path().join("none.yaml"), place.folder.path().to_owned(), "/dev/zero".into()] {
        let (code, _, error) =
            said(&place, &["keys", "put", "openai", "--slots", odd.to_str().unwrap()], b"x");
        assert!(code == 78 && error.contains("cannot be read"), "{error}");
    }
    // The one beside them that is as it should be.
    std::fs::write(&file, slot("")).unwrap();
    let put = said(&place, &["keys", "put", "x", "--slots", file.to_str().unwrap()], b"any-key-at-all");
    assert_eq!((put.0, put.2.as_str()), (0, "saved: slot x, api-key, for https://a.example\n"));
}
