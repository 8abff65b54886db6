//! What a pass opens, and what ends with it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{
    API_KEY, CONTROL, Place, Script, Stage, call, client, message, one_stream, request, soon, until, wanted,
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use worca::ids::PassId;
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;
use worca::keys::wire::{Closing, RefusalKind};
use worca::secret::Secret;

use crate::{DEAD, ok, short_leases};

#[tokio::test]
async fn c062_every_pass_that_is_not_valid_gets_the_same_403_and_a_valid_one_works_beside_it() {
    let stage = Stage::with(Kind::ApiKey, API_KEY, short_leases(), ok).await;
    let expired = stage.keys.mint(None).await;
    let earlier = {
        let other = stage.place.start(stage.upstream.origin.clone(), Limits::default()).await;
        let minted = other.mint(None).await;
        other.end().await;
        minted.pass
    };
    until("the lease ends", || async {
        let renewed = stage.keys.client.status().await.unwrap().passes;
        if renewed == 0 { Ok(()) } else { Err(format!("{renewed} alive")) }
    })
    .await;
    let rehearsal = stage.keys.mint(Some("rehearsal")).await;
    let revoked = stage.keys.mint(None).await;
    stage.keys.client.revoke(&revoked.id).await.unwrap();
    let secret = |text: &str| Secret::new(text.to_owned());
    let mut bodies = Vec::new();
    for (what, pass) in [
        ("unknown", Some(secret("wp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))),
        ("no pass at all", Some(secret("sk-ant-api03-mine"))),
        ("missing", None),
        ("expired", Some(expired.pass)),
        ("revoked", Some(revoked.pass)),
        ("of an earlier start", Some(earlier)),
        ("for another slot", Some(rehearsal.pass.clone())),
        ("its public name", Some(secret(rehearsal.id.as_str()))),
        ("the control secret", Some(secret(CONTROL))),
        ("the saved key", Some(secret(API_KEY))),
    ] {
        for path in ["/anthropic/v1/messages", "/nothing/v1/messages", "/", "/anthropic/../control/status"] {
            let answer = call(request(Method::POST, &stage.keys.url(path), pass.as_ref(), "{}")).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what} {path}");
            bodies.push(answer.text());
        }
    }
    // Misused: two passes at once, another scheme, a live pass on the wrong slot.
    let live = stage.keys.mint(None).await;
    for (name, value) in [
        ("authorization", format!("Basic {}", live.pass.expose())),
        ("x-api-key", rehearsal.pass.expose().into()),
    ] {
        let mut request = message(&stage.keys, &live.pass);
        if name == "authorization" {
            request.headers_mut().clear();
        }
        request.headers_mut().insert(name, value.parse().unwrap());
        let answer = call(request).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}");
        bodies.push(answer.text());
    }
    let wrong_slot = request(Method::POST, &stage.keys.url("/rehearsal/v1/messages"), Some(&live.pass), "{}");
    bodies.push(call(wrong_slot).await.text());
    assert!(bodies.iter().all(|body| body == DEAD), "{bodies:#?}");
    assert!(stage.upstream.seen().is_empty());

    let fresh = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&fresh.pass).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_revoked_pass_cuts_its_open_stream_on_both_sides_and_no_other() {
    let (first_sender, first) = mpsc::channel(1);
    let (second_sender, second) = mpsc::channel(1);
    let streams = Mutex::new(vec![second, first]);
    let stage = Stage::set(move |_| Script::events(streams.lock().unwrap().pop().unwrap())).await;
    let (one, two) = (stage.keys.mint(None).await, stage.keys.mint(None).await);
    let mut first = client().request(message(&stage.keys, &one.pass)).await.unwrap().into_body();
    let mut second = client().request(message(&stage.keys, &two.pass)).await.unwrap().into_body();
    first_sender.send(Bytes::from_static(b"a")).await.unwrap();
    soon("the first byte arrives", first.frame()).await.unwrap().unwrap();
    stage.keys.client.revoke(&one.id).await.unwrap();
    soon("the provider's side is dropped", first_sender.closed()).await;
    assert!(soon("the caller's side is cut", first.frame()).await.unwrap().is_err());
    second_sender.send(Bytes::from_static(b"b")).await.unwrap();
    assert_eq!(
        soon("the other one goes on", second.frame()).await.unwrap().unwrap().into_data().unwrap(),
        "b"
    );
}

#[tokio::test]
async fn a_pass_that_is_not_renewed_cuts_its_stream_and_a_renewed_one_does_not() {
    let (sender, script) = one_stream();
    let stage = Stage::with(Kind::ApiKey, API_KEY, short_leases(), script).await;
    let minted = stage.keys.mint(None).await;
    let mut body = client().request(message(&stage.keys, &minted.pass)).await.unwrap().into_body();
    // Renewed for longer than two leases: the stream is alive all the while.
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while tokio::time::Instant::now() < end {
        let renewed = stage.keys.client.renew(std::slice::from_ref(&minted.id)).await.unwrap();
        assert_eq!((renewed.alive.len(), renewed.gone.len()), (1, 0));
        sender.send(Bytes::from_static(b"a")).await.unwrap();
        soon("a byte arrives", body.frame()).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    soon("the lease ends and the provider's side is dropped", sender.closed()).await;
    assert!(soon("the caller's side is cut", body.frame()).await.unwrap().is_err());
    let renewed = stage.keys.client.renew(&[minted.id.clone(), PassId::random()]).await.unwrap();
    assert_eq!((renewed.alive.len(), renewed.gone.len()), (0, 2));
}

#[tokio::test]
async fn a_stream_that_its_caller_does_not_read_is_cut_with_its_pass_too() {
    let (sender, script) = one_stream();
    let stage = Stage::set(script).await;
    let minted = stage.keys.mint(None).await;
    let mut caller = TcpStream::connect(stage.keys.address).await.unwrap();
    let text = format!(
        "POST /anthropic/v1/messages HTTP/1.1\r\nhost: keys\r\nx-api-key: {}\r\ncontent-length: 13\r\n\r\n{{\"model\":\"m\"}}",
        minted.pass.expose()
    );
    caller.write_all(text.as_bytes()).await.unwrap();
    // Until nothing goes on any more: every buffer on the way is full.
    let megabyte = Bytes::from(vec![b'x'; 1024 * 1024]);
    while let Ok(sent) = tokio::time::timeout(Duration::from_secs(1), sender.send(megabyte.clone())).await {
        sent.unwrap();
    }
    stage.keys.client.revoke(&minted.id).await.unwrap();
    soon("the provider's side is dropped", sender.closed()).await;
}

#[tokio::test]
async fn c055_a_caller_that_goes_away_ends_the_providers_stream_too() {
    let (sender, script) = one_stream();
    let stage = Stage::set(script).await;
    let minted = stage.keys.mint(None).await;
    let mut body = client().request(message(&stage.keys, &minted.pass)).await.unwrap().into_body();
    for _ in 0..4 {
        sender.send(Bytes::from_static(b"event: ping\ndata: {}\n\n")).await.unwrap();
        soon("a piece arrives", body.frame()).await.unwrap().unwrap();
    }
    drop(body);
    soon("the provider's side is dropped", sender.closed()).await;
    assert_eq!(stage.keys.client.status().await.unwrap().passes, 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_before_the_answer_begins_ends_the_request_too() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap()), false).unwrap();
    let place = Place::new();
    place.put(Kind::ApiKey, &origin, API_KEY);
    let keys = place.start(origin, Limits::default()).await;
    let minted = keys.mint(None).await;
    let mut caller = tokio::task::JoinSet::new();
    let asked = message(&keys, &minted.pass);
    caller.spawn(async move { client().request(asked).await.map(drop) });
    let (mut provider, _) = soon("the request arrives", listener.accept()).await.unwrap();
    let mut head = [0u8; 16];
    soon("its head arrives", provider.read_exact(&mut head)).await.unwrap();
    caller.shutdown().await;
    let mut rest = Vec::new();
    let _ = soon("the connection to the provider closes", provider.read_to_end(&mut rest)).await;
}

/// What a caller at `source` gets back, whole.
#[cfg(target_os = "linux")]
async fn asked_from(stage: &Stage, source: &str, pass: &Secret) -> String {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(stage.keys.address).await.unwrap();
    let head =
        "POST /anthropic/v1/messages HTTP/1.1\r\nhost: keys\r\nconnection: close\r\ncontent-length: 2\r\n";
    stream.write_all(format!("{head}x-api-key: {}\r\n\r\n{{}}", pass.expose()).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon("an answer comes", stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
#[cfg(target_os = "linux")] // Elsewhere loopback is one address.
async fn a_pass_opens_nothing_from_another_address_than_the_one_that_asked_for_it() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    for source in ["127.0.0.2", "127.1.2.3"] {
        let answer = asked_from(&stage, source, &minted.pass).await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with(DEAD), "{source}: {answer}");
    }
    assert!(stage.upstream.seen().is_empty());
    let answer = asked_from(&stage, "127.0.0.1", &minted.pass).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Whoever tried it from elsewhere changed nothing about it.
    assert_eq!(stage.keys.client.revoke(&minted.id).await.unwrap().refused, None);
}

#[tokio::test]
async fn of_200_passes_minted_at_once_no_two_are_the_same_and_each_opens_for_its_own() {
    let stage = Stage::set(ok).await;
    let mut minting = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let client = stage.keys.client.clone();
        minting.spawn(async move { client.mint(&wanted(None)).await.unwrap() });
    }
    let minted = minting.join_all().await;
    let passes: HashSet<&str> = minted.iter().map(|minted| minted.pass.expose()).collect();
    let ids: HashSet<&PassId> = minted.iter().map(|minted| &minted.id).collect();
    assert_eq!((passes.len(), ids.len()), (200, 200));
    assert_eq!(stage.keys.client.status().await.unwrap().passes, 200);
    // Every second one is taken back: only those are dead.
    for minted in minted.iter().step_by(2) {
        stage.keys.client.revoke(&minted.id).await.unwrap();
    }
    for (number, minted) in minted.iter().enumerate() {
        let wanted = if number % 2 == 0 { StatusCode::FORBIDDEN } else { StatusCode::OK };
        assert_eq!(stage.ask(&minted.pass).await.status, wanted, "{number}");
    }
}

#[tokio::test]
async fn what_became_of_a_pass_is_told_again_when_it_is_asked_again() {
    let stage = Stage::with(Kind::ApiKey, API_KEY, short_leases(), ok).await;
    let minted = stage.keys.mint(None).await;
    until("its lease ends", || async {
        match stage.keys.client.status().await.unwrap().passes {
            0 => Ok(()),
            alive => Err(format!("{alive} alive")),
        }
    })
    .await;
    assert_eq!(stage.ask(&minted.pass).await.text(), DEAD);
    let first = stage.keys.client.revoke(&minted.id).await.unwrap();
    let refused = first.refused.clone().unwrap();
    assert_eq!(refused.kind, RefusalKind::Pass);
    assert!(DEAD.contains(&refused.message), "{refused:?}");
    assert_eq!(stage.keys.client.revoke(&minted.id).await.unwrap(), first);
    assert_eq!(stage.keys.client.revoke(&PassId::random()).await.unwrap(), Closing::default());
}
