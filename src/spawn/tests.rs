use std::ffi::{OsStr, OsString};
use std::path::Path;

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
    let built = environment::build(own, Path::new("/h"), Path::new("/t"), &given).unwrap();
    let names: Vec<&OsStr> = built.keys().map(OsString::as_os_str).collect();
    assert_eq!(
        names,
        ["ANTHROPIC_AUTH_TOKEN", "HOME", "LANG", "LC_ALL", "LC_TIME", "PATH", "TERM", "TMPDIR", "TZ"]
    );
    assert_eq!(built[OsStr::new("LANG")], "C.UTF-8");
    assert_eq!(built[OsStr::new("ANTHROPIC_AUTH_TOKEN")], "pass");
    assert_eq!(built[OsStr::new("HOME")], "/h");
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
