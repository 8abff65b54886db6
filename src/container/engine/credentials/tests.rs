use super::*;
use std::os::unix::fs::PermissionsExt as _;

/// A settings folder and a folder of helpers, the only one on the helpers' PATH beside the shell's.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        Self { folder }
    }
    fn helper(self, name: &str, script: &str) -> Self {
        let path = self.folder.path().join(format!("docker-credential-{name}"));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }
    async fn find(&self, reference: &str) -> Credentials {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        credentials(reference, Some(self.folder.path()), Some(path.into()), Duration::from_millis(500)).await
    }
}

#[tokio::test]
async fn c070_a_helper_that_is_not_installed_is_a_warning_and_the_pull_is_anonymous() {
    let found = Place::new(r#"{"auths":{},"credsStore":"desktop"}"#).find("alpine:3").await;
    assert!(found.found.is_none());
    let warning = found.warning.unwrap();
    assert!(warning.contains("`docker-credential-desktop` is not installed"), "{warning}");
}

#[tokio::test]
async fn c070_a_helper_without_a_credential_is_no_warning_and_one_that_fails_is() {
    let config = r#"{"credsStore":"pass"}"#;
    let place = Place::new(config)
        .helper("pass", "echo 'No stored credential for https://index.docker.io/v1/'; exit 1");
    let found = place.find("alpine").await;
    assert!(found.found.is_none() && found.warning.is_none(), "{:?}", found.warning);
    let place = Place::new(config).helper("pass", "echo 'the key ring is locked'; exit 1");
    assert!(place.find("alpine").await.warning.unwrap().contains("failed"));
}

#[tokio::test]
async fn c070_a_helper_that_hangs_is_ended_by_the_time_limit() {
    let place =
        Place::new(r#"{"credHelpers":{"registry.example":"slow"}}"#).helper("slow", "exec sleep 1000");
    let found = place.find("registry.example/team/worca:1").await;
    assert!(found.found.is_none());
    assert!(found.warning.unwrap().contains("did not answer within"));
}

#[tokio::test]
async fn a_helper_of_the_registry_gives_its_credentials_and_hears_the_registry_by_standard_input() {
    let place = Place::new(r#"{"credHelpers":{"registry.example":"ok"},"credsStore":"never"}"#)
        .helper("ok", r#"read server; [ "$1" = get ] && printf '{"ServerURL":"%s","Username":"ann","Secret":"s3cret"}' "$server""#);
    let found = place.find("registry.example/team/worca:1").await.found.unwrap();
    assert_eq!((found.username.as_deref(), found.password.as_deref()), (Some("ann"), Some("s3cret")));
    assert_eq!(found.serveraddress.as_deref(), Some("registry.example"));
}

#[tokio::test]
async fn credentials_in_the_file_are_used_and_a_broken_file_is_a_warning() {
    let place = Place::new(r#"{"auths":{"registry.example":{"auth":"YW5uOnBhc3M6d29yZA=="}}}"#);
    let found = place.find("registry.example/worca").await.found.unwrap();
    assert_eq!((found.username.as_deref(), found.password.as_deref()), (Some("ann"), Some("pass:word")));
    assert!(place.find("alpine").await.found.is_none());
    assert!(Place::new("{").find("alpine").await.warning.is_some());
}

#[test]
fn the_registry_is_the_first_part_that_looks_like_a_host() {
    for (reference, registry) in [
        ("alpine", DOCKER_HUB),
        ("team/worca:1", DOCKER_HUB),
        ("registry.example/worca", "registry.example"),
        ("localhost/worca", "localhost"),
        ("127.0.0.1:5000/a/b@sha256:00", "127.0.0.1:5000"),
    ] {
        assert_eq!(registry_of(reference), registry, "{reference}");
    }
}
