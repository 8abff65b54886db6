//! Rotation, step by step. A process that is killed between two steps leaves what these tests leave between two calls.

use std::fs::File;

use super::*;

fn ada() -> PersonId {
    PersonId::parse("ada").unwrap()
}

/// A vault with two people's keys, and what is read back of it with the file as it stands.
fn filled() -> Place {
    let place = Place::new();
    let mut vault = place.with_canary();
    let theirs = Secret::new("adas-key-0123456789".into());
    let endpoint = Endpoint::from(Origin::anthropic());
    vault.put(&SlotName::openai(), &ada(), Kind::ApiKey, &endpoint, &theirs).unwrap();
    place
}

fn readable(vault: &mut Vault) {
    let mine = vault.get(&SlotName::anthropic(), &PersonId::local()).unwrap().unwrap();
    let theirs = vault.get(&SlotName::openai(), &ada()).unwrap().unwrap();
    assert_eq!((mine.secret.expose(), theirs.secret.expose()), (CANARY, "adas-key-0123456789"));
}

fn lines(place: &Place) -> Vec<String> {
    std::fs::read_to_string(&place.key).unwrap().lines().map(str::to_owned).collect()
}

/// Opens with exactly this key and no other.
fn opens_with(place: &Place, key: &str) -> bool {
    let file = place.folder.path().join("only");
    write_private(&file, key.as_bytes());
    match Vault::open(&place.data(), VaultKey::read(&file).unwrap()) {
        Ok(mut vault) => {
            readable(&mut vault);
            true
        }
        Err(VaultError::WrongKey { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
#[cfg(unix)]
fn after_a_rotation_the_new_key_alone_opens_the_vault_and_the_file_is_the_same_one() {
    use std::os::unix::fs::MetadataExt as _;
    let place = filled();
    let old = lines(&place).remove(0);
    let inode = |place: &Place| {
        let found = std::fs::metadata(&place.key).unwrap();
        (found.ino(), found.mode() & 0o777)
    };
    let before = inode(&place);
    assert_eq!(rotate(&place.data(), &place.key, true).unwrap(), Rotated { keys: 2 });
    assert_eq!(inode(&place), before);
    let [new] = lines(&place).try_into().unwrap();
    assert_ne!(new, old);
    assert!(opens_with(&place, &new) && !opens_with(&place, &old));
    readable(&mut place.open().unwrap());
    rotate(&place.data(), &place.key, true).unwrap();
    assert!(!opens_with(&place, &new));
    readable(&mut place.open().unwrap());
}

#[test]
fn broken_off_after_the_new_key_was_added_the_old_one_still_opens_and_a_second_call_goes_on() {
    let place = filled();
    let old = lines(&place).remove(0);
    VaultKey::begin(&place.key).unwrap();
    let added = lines(&place);
    assert_eq!((added.len(), &added[0]), (2, &old));
    readable(&mut place.open().unwrap());
    assert_eq!(lines(&place), added, "nothing is finished that was not sealed anew");
    rotate(&place.data(), &place.key, true).unwrap();
    assert_eq!(lines(&place), added[1..]);
    assert!(opens_with(&place, &added[1]) && !opens_with(&place, &old));
}

#[test]
fn broken_off_after_the_vault_was_sealed_anew_the_new_key_opens_and_opening_finishes_it() {
    let place = filled();
    VaultKey::begin(&place.key).unwrap();
    let [old, new] = lines(&place).try_into().unwrap();
    assert_eq!(rotate(&place.data(), &place.key, false).unwrap(), Rotated { keys: 2 });
    assert_eq!(lines(&place), [old.clone(), new.clone()], "the file is somebody else's");
    assert_eq!(rotate(&place.data(), &place.key, false).map(|done| done.keys).ok(), None, "there is no next");
    assert!(opens_with(&place, &new) && !opens_with(&place, &old));
    readable(&mut place.open().unwrap());
    assert_eq!(lines(&place), [new]);
}

#[test]
fn broken_off_before_the_second_line_was_cut_off_a_rotation_makes_a_new_key_all_the_same() {
    let place = filled();
    let only = lines(&place).remove(0);
    let twice = format!("{only}\n{only}\n");
    write_private(&place.key, twice.as_bytes());
    readable(&mut place.open().unwrap());
    assert_eq!(lines(&place), std::slice::from_ref(&only), "opening finishes it");
    write_private(&place.key, twice.as_bytes());
    VaultKey::begin(&place.key).unwrap();
    let begun = lines(&place);
    assert!(begun[0] == only && begun[1] != only);
    write_private(&place.key, twice.as_bytes());
    rotate(&place.data(), &place.key, true).unwrap();
    let [new] = lines(&place).try_into().unwrap();
    assert!(new != only && opens_with(&place, &new) && !opens_with(&place, &only));
}

#[test]
fn a_line_that_a_loss_of_power_left_unfinished_is_none() {
    let place = filled();
    let old = lines(&place).remove(0);
    for torn in
        [format!("{old}\nAAAA"), format!("{old}\n\0\0\0\0"), format!("AAAA\n{old}\n"), format!("{old}\n\n")]
    {
        write_private(&place.key, torn.as_bytes());
        readable(&mut place.open().unwrap());
    }
    rotate(&place.data(), &place.key, true).unwrap();
    readable(&mut place.open().unwrap());
    assert!(!opens_with(&place, &old));
    for (what, text) in [("none", "AAAA\nBBBB\n".to_owned()), ("three", format!("{old}\n{old}\n{old}\n"))] {
        write_private(&place.key, text.as_bytes());
        assert!(matches!(VaultKey::read(&place.key), Err(ReadVaultKeyError::Shape { .. })), "{what}");
    }
}

#[test]
fn a_damaged_row_stops_a_rotation_before_anything_is_changed() {
    let place = filled();
    let mut vault = place.open().unwrap();
    vault.database.execute_batch("UPDATE credential SET sealed = zeroblob(20) WHERE person = 'ada'").unwrap();
    let old = lines(&place).remove(0);
    let error = rotate(&place.data(), &place.key, true).unwrap_err();
    assert!(error.to_string().contains("`ada` saved for slot `openai`"), "{error}");
    assert_eq!(lines(&place)[0], old);
    let mine = |vault: &mut Vault| vault.get(&SlotName::anthropic(), &PersonId::local()).unwrap().is_some();
    assert!(mine(&mut vault) && mine(&mut place.open().unwrap()));
    vault.remove(&SlotName::openai(), &ada()).unwrap();
    rotate(&place.data(), &place.key, true).unwrap();
    assert!(mine(&mut vault), "what was open before follows");
}

#[test]
fn what_is_open_while_the_vault_is_rotated_reads_and_writes_with_the_new_key() {
    let place = filled();
    let mut open = place.open().unwrap();
    VaultKey::begin(&place.key).unwrap();
    readable(&mut open);
    rotate(&place.data(), &place.key, false).unwrap();
    readable(&mut open);
    VaultKey::finish(&place.key).unwrap();
    readable(&mut open);
    rotate(&place.data(), &place.key, true).unwrap();
    // Writes first, with a key that was taken away twice over.
    let mut open = place.open().unwrap();
    rotate(&place.data(), &place.key, true).unwrap();
    let endpoint = Endpoint::from(Origin::anthropic());
    let secret = Secret::new("adas-key-0123456789".into());
    open.put(&SlotName::openai(), &ada(), Kind::ApiKey, &endpoint, &secret).unwrap();
    readable(&mut place.open().unwrap());
    readable(&mut open);
}

#[test]
fn two_rotations_at_once_are_one_and_a_refusal() {
    let place = filled();
    let held = File::options().create(true).append(true).open(place.data().join("rotate.lock")).unwrap();
    held.lock().unwrap();
    let before = lines(&place);
    assert!(matches!(rotate(&place.data(), &place.key, true), Err(RotateError::Busy(_))));
    assert_eq!(lines(&place), before);
    drop(held);
    rotate(&place.data(), &place.key, true).unwrap();
}

#[test]
fn nothing_of_the_old_key_stays_in_the_file_and_nothing_sealed_with_it_in_the_vault() {
    let place = filled();
    let old = lines(&place).remove(0);
    let before: Vec<u8> = place
        .open()
        .unwrap()
        .database
        .query_row("SELECT sealed FROM credential WHERE person = 'local'", [], |row| row.get(0))
        .unwrap();
    rotate(&place.data(), &place.key, true).unwrap();
    assert!(!std::fs::read_to_string(&place.key).unwrap().contains(&old));
    for file in std::fs::read_dir(place.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(16).any(|window| window == &before[..16]));
    }
}
