//! Every sentence that a start of core can end with.

use std::path::PathBuf;

use super::support::{runs, settings};
use crate::failure::Failure;
use crate::home::Home;
use crate::server::port::ListenError;
use crate::server::serve::{Settings, Start, start};
use crate::server::token;

async fn refused(settings: Settings) -> String {
    let home = settings.home.clone();
    let result = start(settings, async |store, _| runs(&home, store).await).await;
    match result {
        Ok(Start::Ready(_)) => panic!("it started"),
        Ok(Start::Running(_)) => panic!("another one runs"),
        Err(failure) => format!("{}exit: {}\n", failure.render(), failure.exit() as u8),
    }
}

#[tokio::test]
async fn a_start_that_cannot_be_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let other = settings(folder.path());
    let mut seen = String::new();
    let mut see = |name: &str, text: String| seen.push_str(&format!("--- {name}\n{text}"));

    see("public url", refused(Settings { public_url: Some("localhost:4317".into()), ..other.clone() }).await);
    let with_path = Settings { public_url: Some("http://localhost:4317/worca".into()), ..other.clone() };
    see("public url with a path", refused(with_path).await);
    see("allow host", refused(Settings { allow_hosts: vec!["http://x".into()], ..other.clone() }).await);
    let gone = Settings { core_token_file: Some(PathBuf::from("/nowhere/token")), ..other.clone() };
    see("token not there", refused(gone).await);
    let short = folder.path().join("short");
    std::fs::write(&short, "abc\n").unwrap();
    see("token short", refused(Settings { core_token_file: Some(short), ..other.clone() }).await);
    see("home is a file", {
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        refused(Settings { home: Home::at(file), ..other.clone() }).await
    });
    see("address", refused(Settings { listen: "192.0.2.1:0".parse().unwrap(), ..other.clone() }).await);
    let seen = seen.replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(seen);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_taken_port_is_refused_and_its_holder_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = other.local_addr().unwrap();
    let text = refused(Settings { listen, ..settings(folder.path()) }).await;
    assert!(text.contains(&format!("port {} is taken by process `", listen.port())), "{text}");
    assert!(text.contains(&format!("(pid {})", std::process::id())), "{text}");
    assert!(text.contains("--listen"), "{text}");
    assert!(!folder.path().join("worca.db").exists(), "nothing is made by a start that cannot be");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn core_also_holds_the_other_loopback_address_so_that_nobody_else_is_localhost() {
    let core = super::support::TestCore::start().await;
    let port = core.address.port();
    let twin = tokio::net::TcpListener::bind(("::1", port)).await;
    assert!(twin.is_err(), "somebody else can be `localhost:{port}`");

    let folder = tempfile::tempdir().unwrap();
    let other = tokio::net::TcpListener::bind("[::1]:0").await.unwrap();
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], other.local_addr().unwrap().port()));
    let text = refused(Settings { listen, ..settings(folder.path()) }).await;
    assert!(text.contains("is taken by process `"), "{text}");
}

#[test]
fn a_taken_port_without_a_known_holder_is_still_a_sentence() {
    let failure = Failure::from(ListenError::Taken { port: 4317, by: None });
    insta::assert_snapshot!(failure.render());
}

#[cfg(unix)]
#[test]
fn the_core_token_is_made_once_and_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/core-token");
    let first = token::read_or_make(&path).unwrap();
    assert_eq!(first.expose().len(), 43);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(token::read_or_make(&path).unwrap().expose(), first.expose());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let failure = Failure::from(token::read_or_make(&path).unwrap_err());
    assert!(failure.render().contains("mode 644") && failure.render().contains("chmod 600"), "{failure:?}");
}
