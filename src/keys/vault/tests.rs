use super::*;
use crate::keys::slot::Origin;

mod rotation;

const CANARY: &str = "sk-ant-api03-canary-0123456789abcdef-WXYZ";

fn key_file(folder: &Path) -> PathBuf {
    let path = folder.join("vault_key");
    write_private(&path, VaultKey::generate().unwrap().as_bytes());
    path
}

fn write_private(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

struct Place {
    folder: tempfile::TempDir,
    key: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = key_file(folder.path());
        Self { folder, key }
    }
    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
    fn open(&self) -> Result<Vault, VaultError> {
        Vault::open(&self.data(), VaultKey::read(&self.key).unwrap())
    }
    fn with_canary(&self) -> Vault {
        let mut vault = self.open().unwrap();
        let secret = Secret::new(CANARY.into());
        vault
            .put(
                &SlotName::anthropic(),
                &PersonId::local(),
                Kind::ApiKey,
                &Origin::anthropic().into(),
                &secret,
            )
            .unwrap();
        vault
    }
}

#[test]
fn a_saved_key_comes_back_after_a_restart_and_shows_only_its_last_four() {
    let place = Place::new();
    drop(place.with_canary());
    let mut vault = place.open().unwrap();
    let credential = vault.get(&SlotName::anthropic(), &PersonId::local()).unwrap().unwrap();
    assert_eq!(credential.secret.expose(), CANARY);
    let listed = vault.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].last_four.as_deref(), Some("WXYZ"));
    assert_eq!((listed[0].kind.as_str(), listed[0].person.as_str()), ("api-key", "local"));
    assert_eq!(listed[0].last_used, None);
    assert!(!format!("{listed:?} {vault:?} {credential:?}").contains("canary"));
}

#[test]
fn the_key_stands_in_no_file_of_the_vault_also_after_it_was_replaced_and_removed() {
    let place = Place::new();
    let mut vault = place.with_canary();
    let other = Secret::new("sk-ant-oat01-canary-second-one-0123456789".into());
    let sealed_before: Vec<u8> =
        vault.database.query_row("SELECT sealed FROM credential", [], |row| row.get(0)).unwrap();
    vault
        .put(
            &SlotName::anthropic(),
            &PersonId::local(),
            Kind::Subscription,
            &Origin::anthropic().into(),
            &other,
        )
        .unwrap();
    assert!(vault.remove(&SlotName::anthropic(), &PersonId::local()).unwrap());
    assert!(!vault.remove(&SlotName::anthropic(), &PersonId::local()).unwrap());
    assert!(vault.get(&SlotName::anthropic(), &PersonId::local()).unwrap().is_none());
    for file in std::fs::read_dir(place.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for needle in [b"canary".as_slice(), b"sk-ant", &sealed_before[..16]] {
            assert!(!bytes.windows(needle.len()).any(|window| window == needle));
        }
    }
}

#[test]
fn another_vault_key_is_told_apart_and_changes_nothing() {
    let place = Place::new();
    drop(place.with_canary());
    let before = std::fs::read(place.data().join(FILE)).unwrap();
    let right = std::fs::read(&place.key).unwrap();
    write_private(&place.key, VaultKey::generate().unwrap().as_bytes());
    let error = place.open().unwrap_err();
    assert!(matches!(error, VaultError::WrongKey { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Refused);
    assert_eq!(std::fs::read(place.data().join(FILE)).unwrap(), before);
    write_private(&place.key, &right);
    assert!(place.open().unwrap().get(&SlotName::anthropic(), &PersonId::local()).unwrap().is_some());
}

#[test]
fn a_row_that_was_moved_relabelled_or_changed_does_not_open() {
    for change in [
        "UPDATE credential SET origin = 'https://evil.example'",
        "UPDATE credential SET kind = 'subscription'",
        "UPDATE credential SET slot = 'rehearsal'",
        "UPDATE credential SET sealed = zeroblob(length(sealed))",
        "UPDATE credential SET nonce = zeroblob(12)",
    ] {
        let place = Place::new();
        let mut vault = place.with_canary();
        assert!(vault.get(&SlotName::anthropic(), &PersonId::local()).unwrap().is_some());
        vault.database.execute_batch(change).unwrap();
        let slot = if change.contains("slot =") { SlotName::rehearsal() } else { SlotName::anthropic() };
        assert!(matches!(vault.get(&slot, &PersonId::local()), Err(VaultError::Damaged { .. })), "{change}");
    }
}

#[test]
fn a_vault_of_a_newer_program_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let vault = place.with_canary();
    vault.database.pragma_update(None, "user_version", 99).unwrap();
    drop(vault);
    let before = std::fs::read(place.data().join(FILE)).unwrap();
    let error = place.open().unwrap_err();
    assert!(matches!(error, VaultError::Newer { found: 99, .. }), "{error}");
    assert_eq!(std::fs::read(place.data().join(FILE)).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_a_sentence_and_left_as_it_is() {
    let place = Place::new();
    std::fs::create_dir_all(place.data()).unwrap();
    let garbage = b"this is not a database, but somebody may need it".repeat(40);
    std::fs::write(place.data().join(FILE), &garbage).unwrap();
    assert!(matches!(place.open(), Err(VaultError::Database { .. })));
    assert_eq!(std::fs::read(place.data().join(FILE)).unwrap(), garbage);
}

#[test]
fn a_vault_key_of_another_shape_is_refused_without_being_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault_key");
    for text in ["c2hvcnQ=", "not base64 at all !", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        write_private(&path, text.as_bytes());
        let error = VaultKey::read(&path).unwrap_err();
        assert!(matches!(error, ReadVaultKeyError::Shape { .. }), "{text}");
        assert_eq!(error.exit(), Exit::Refused);
        assert!(!format!("{error} {error:?}").contains(text));
    }
    write_private(&path, format!("{}\n", VaultKey::generate().unwrap().as_str()).as_bytes());
    assert!(VaultKey::read(&path).is_ok());
}

#[test]
#[cfg(unix)]
fn the_vault_file_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    drop(place.with_canary());
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.data().join(FILE)), 0o600);
}

#[test]
fn two_at_once_write_one_after_the_other() {
    let place = Place::new();
    let mut first = place.with_canary();
    let mut second = place.open().unwrap();
    let secret = Secret::new("sk-ant-api03-another-0123456789".into());
    first
        .put(&SlotName::anthropic(), &PersonId::local(), Kind::ApiKey, &Origin::anthropic().into(), &secret)
        .unwrap();
    second.touch(&SlotName::anthropic(), &PersonId::local()).unwrap();
    assert_eq!(
        second.get(&SlotName::anthropic(), &PersonId::local()).unwrap().unwrap().secret.expose(),
        secret.expose()
    );
    assert!(first.list().unwrap()[0].last_used.is_some());
}
