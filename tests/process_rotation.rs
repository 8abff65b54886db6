//! `worca keys rotate` as a process that is killed, beside a service that goes on: every key stays readable by exactly the
//! vault key that stands.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test starts and kills the built program")]

#[path = "support/keys.rs"]
mod support;

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hyper::StatusCode;
use support::{API_KEY, Place, Stage, message, write_private};
use worca::ids::PersonId;
use worca::keys::credential::Kind;
use worca::keys::slot::{Endpoint, Origin, SlotName};
use worca::keys::vault::{Vault, VaultError, VaultKey};

/// So many that sealing them anew takes a while, in which a kill can fall.
const PEOPLE: usize = 200;

fn rotate(place: &Place, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worca"));
    command
        .args(["keys", "rotate"])
        .args(more)
        .env_clear()
        .env("HOME", place.folder.path())
        .env("WORCA_KEYS_HOME", place.data())
        .env("WORCA_VAULT_KEY_FILE", place.vault_key())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn said(mut command: Command) -> (i32, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

fn person(number: usize) -> PersonId {
    PersonId::parse(&format!("p{number}")).unwrap()
}

fn lines(place: &Place) -> Vec<String> {
    std::fs::read_to_string(place.vault_key()).unwrap().lines().map(str::to_owned).collect()
}

/// How the vault opens with this key alone: with every row, or not at all. A copy is opened, because opening writes.
fn opens_with(place: &Place, key: &str) -> bool {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(place.data()).unwrap().flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let file = copy.path().join("only");
    write_private(&file, key);
    let vault = Vault::open(copy.path(), VaultKey::read(&file).unwrap());
    if let Err(error) = vault {
        assert!(matches!(error, VaultError::WrongKey { .. }), "{error}");
        return false;
    }
    drop(vault);
    // A rotation opens every row with the key that stands, and refuses when one does not open.
    let done = worca::keys::vault::rotate(copy.path(), &file, true).unwrap();
    assert_eq!(done.keys, PEOPLE + 1, "every row is there and opens");
    true
}

fn filled() -> Place {
    let place = Place::new();
    place.put(Kind::ApiKey, &Origin::anthropic(), API_KEY);
    let mut vault = place.vault();
    let endpoint = Endpoint::from(Origin::anthropic());
    for number in 0..PEOPLE {
        let secret = worca::secret::Secret::new(format!("key-of-{number}-0123456789"));
        vault.put(&SlotName::openai(), &person(number), Kind::ApiKey, &endpoint, &secret).unwrap();
    }
    place
}

#[test]
fn killed_at_any_moment_a_rotation_loses_nothing_and_the_next_one_goes_on() {
    let place = filled();
    let inode = |place: &Place| std::fs::metadata(place.vault_key()).unwrap().ino();
    let before = inode(&place);
    // How long one takes here, so that the kills fall all over it.
    let began = std::time::Instant::now();
    let (code, told) = said(rotate(&place, &[]));
    assert_eq!((code, told.as_str()), (0, "rotated: 201 saved keys are sealed with a new vault key\n"));
    let whole = began.elapsed();
    let (mut two, mut moved) = (0, 0);
    for step in 0..16u32 {
        let old = lines(&place).remove(0);
        let mut child = rotate(&place, &[]).spawn().unwrap();
        std::thread::sleep(whole.saturating_mul(step) / 13);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = lines(&place);
        assert!((1..=2).contains(&found.len()), "{} lines", found.len());
        two += usize::from(found.len() == 2);
        moved += usize::from(found[0] != old);
        let opening = found.iter().filter(|key| opens_with(&place, key)).count();
        let distinct = found.len() - usize::from(found.len() == 2 && found[0] == found[1]);
        assert_eq!(opening.min(distinct), 1, "one key that stands opens everything, the other nothing");
        // The program itself, with the file as it stands.
        assert_eq!(place.vault().list().unwrap().len(), PEOPLE + 1);
        assert_eq!(inode(&place), before);
    }
    assert!(two + moved > 0, "no kill fell into a rotation");
    let old = lines(&place);
    assert_eq!(said(rotate(&place, &[])).0, 0);
    assert_eq!(lines(&place).len(), 1);
    assert!(!old.contains(&lines(&place)[0]) || old.len() == 2);
    assert!(opens_with(&place, &lines(&place)[0]));
}

#[test]
fn killed_as_soon_as_the_new_key_is_in_the_file_one_of_the_two_opens_everything() {
    let place = filled();
    for _ in 0..6 {
        let mut child = rotate(&place, &[]).spawn().unwrap();
        let end = std::time::Instant::now() + support::DEADLINE;
        while lines(&place).len() < 2 && child.try_wait().unwrap().is_none() {
            assert!(std::time::Instant::now() < end, "it never began");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = lines(&place);
        let mut standing = found.clone();
        standing.dedup();
        assert_eq!(standing.iter().filter(|key| opens_with(&place, key)).count(), 1);
        let next = found.last().unwrap().clone();
        assert_eq!(said(rotate(&place, &[])).0, 0);
        assert_eq!(lines(&place).len(), 1);
        assert!(opens_with(&place, &lines(&place)[0]));
        if standing.len() == 2 && opens_with(&place, &next) {
            assert_eq!(lines(&place), [next], "it went on with the key that was there");
        }
    }
}

#[tokio::test]
async fn a_service_that_runs_goes_on_through_a_rotation_and_through_a_broken_one() {
    let stage = Stage::set(|_| support::Script::json(200, r#"{"type":"message"}"#)).await;
    let minted = stage.keys.mint(None).await;
    let ask = async || {
        let answer = support::call(message(&stage.keys, &minted.pass)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(stage.upstream.seen().pop().unwrap().headers["x-api-key"], API_KEY);
    };
    // What was read is remembered for a second: it must be read anew after each step.
    let forgotten = || tokio::time::sleep(Duration::from_millis(1100));
    ask().await;
    assert_eq!(said(rotate(&stage.place, &[])).0, 0);
    forgotten().await;
    ask().await;
    VaultKey::begin(&stage.place.vault_key()).unwrap();
    forgotten().await;
    ask().await;
    assert_eq!(said(rotate(&stage.place, &["--seal-only"])).0, 0);
    forgotten().await;
    ask().await;
    VaultKey::finish(&stage.place.vault_key()).unwrap();
    forgotten().await;
    ask().await;
    assert_eq!(lines(&stage.place).len(), 1);
}

#[test]
fn a_rotation_that_cannot_be_done_is_a_sentence_and_changes_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.put(Kind::ApiKey, &Origin::anthropic(), API_KEY);
    let before = lines(&place);
    let (code, told) = said(rotate(&place, &["--seal-only"]));
    assert!(code == 1 && told.contains("holds no second key"), "{told}");
    std::fs::set_permissions(place.vault_key(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, told) = said(rotate(&place, &[]));
    assert!(code == 78 && told.contains("can be read by others"), "{told}");
    std::fs::set_permissions(place.vault_key(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let other = VaultKey::generate().unwrap();
    write_private(&place.vault_key(), &other);
    let (code, told) = said(rotate(&place, &[]));
    assert!(code == 78 && told.contains("sealed with another vault key"), "{told}");
    assert_eq!(lines(&place), [other.as_str().to_owned()]);
    write_private(&place.vault_key(), &before[0]);
    assert_eq!(said(rotate(&place, &[])).0, 0);
}
