//! The service as a process: starting, ending, what it tells, what it hides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{
    API_KEY, CONTROL, Place, Script, Stage, call, client, message, one_stream, request, soon, until,
};
use hyper::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use worca::failure::{Exit, Explain as _};
use worca::keys::credential::Kind;
use worca::keys::serve::{Limits, Service};
use worca::keys::slot::Origin;

use crate::{ok, raw};

#[tokio::test]
async fn health_tells_nobody_anything() {
    let stage = Stage::set(ok).await;
    let answer = call(request(Method::GET, &stage.keys.url("/health"), None, "")).await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, r#"{"status":"ok"}"#));
}

#[tokio::test]
async fn a_service_that_is_told_to_end_ends_although_a_stream_is_open() {
    let (sender, script) = one_stream();
    let limits = Limits { drain: Duration::from_millis(200), ..Limits::default() };
    let stage = Stage::with(Kind::ApiKey, API_KEY, limits, script).await;
    let minted = stage.keys.mint(None).await;
    let response = client().request(message(&stage.keys, &minted.pass)).await.unwrap();
    stage.keys.end().await;
    soon("the provider's side is dropped", sender.closed()).await;
    drop(response);
}

#[tokio::test]
async fn a_caller_that_sends_its_headers_too_slowly_or_too_many_of_them_is_dropped() {
    let limits = Limits { headers: Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::with(Kind::ApiKey, API_KEY, limits, ok).await;
    let mut slow = TcpStream::connect(stage.keys.address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nhost: k").await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the slow one is dropped", slow.read_to_end(&mut answer)).await;
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    let many = "x: y\r\n".repeat(500);
    let answer = raw(&stage, &format!("GET /health HTTP/1.1\r\nhost: k\r\n{many}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let large = "y".repeat(200_000);
    let answer = raw(&stage, &format!("GET /health HTTP/1.1\r\nhost: k\r\nx: {large}\r\n\r\n")).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    let ordinary = call(request(Method::GET, &stage.keys.url("/health"), None, "")).await;
    assert_eq!(ordinary.status, StatusCode::OK);
}

#[tokio::test]
async fn a_service_without_its_secrets_or_on_a_taken_port_does_not_start_and_says_why() {
    let place = Place::new();
    let settings = || place.settings(Origin::anthropic(), Limits::default());
    let refused = async |settings| Service::start(settings).await.err().expect("it does not start");
    let mut missing = settings();
    missing.vault_key_file = place.folder.path().join("none");
    let error = refused(missing).await;
    assert_eq!((error.code(), error.exit()), ("vault-key", Exit::Refused));
    crate::support::write_private(&place.control(), "short");
    let error = refused(settings()).await;
    assert_eq!((error.code(), error.exit()), ("control-secret-short", Exit::Refused));
    crate::support::write_private(&place.control(), CONTROL);
    let running = place.start(Origin::anthropic(), Limits::default()).await;
    let mut taken = settings();
    taken.listen = running.address;
    assert_eq!(refused(taken).await.code(), "listen");
    crate::support::write_private(&place.vault_key(), "AAAA");
    assert_eq!(refused(settings()).await.exit(), Exit::Refused);
}

#[tokio::test]
async fn c067_the_key_stands_neither_in_the_log_nor_in_a_file_nor_in_what_is_shown() {
    let log = Log::catch();
    let stage = Stage::set(|seen| {
        if seen.target.contains("count_tokens") {
            Script::json(400, &format!("no: {API_KEY}"))
        } else {
            ok(seen)
        }
    })
    .await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    let count = stage.keys.url("/anthropic/v1/messages/count_tokens");
    let answer = call(request(Method::POST, &count, Some(&minted.pass), "{}")).await;
    let status = format!("{:?}", stage.keys.client.status().await.unwrap());
    let listed = serde_json::to_string(&stage.place.vault().list().unwrap()).unwrap();
    stage.keys.client.revoke(&minted.id).await.unwrap();
    stage.ask(&minted.pass).await;
    let text = until("the log tells of the requests", || async {
        let text = log.text();
        if text.contains("a pass was revoked") && text.contains("revoked") { Ok(text) } else { Err(text) }
    })
    .await;
    assert!(text.contains(minted.id.as_str()), "{text}");
    stage.keys.end().await;
    let mut places = vec![
        ("log", log.text().into_bytes()),
        ("answer", answer.body.to_vec()),
        ("status", status.into()),
        ("list", listed.into()),
    ];
    places.push(("debug", format!("{:?} {minted:?}", stage.place.vault()).into()));
    for file in std::fs::read_dir(stage.place.data()).unwrap() {
        places.push(("file", std::fs::read(file.unwrap().path()).unwrap()));
    }
    let pass = minted.pass.expose();
    for (place, bytes) in places {
        for secret in [API_KEY, API_KEY.trim_end_matches("-WXYZ"), pass, CONTROL] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "a secret stands in the {place}");
        }
    }
}

/// All that is logged in this process, down to the finest level of every crate.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn catch() -> Self {
        static ONE: std::sync::OnceLock<Log> = std::sync::OnceLock::new();
        ONE.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .init();
            log
        })
        .clone()
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
