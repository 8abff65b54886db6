//! The key service against a scripted provider that notes what it receives. Both are real servers on ports of
//! their own; nothing in between is replaced.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/keys.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Response, StatusCode};
use support::{
    API_KEY, CONTROL, Place, Script, Seen, Stage, TOKEN, Upstream, call, client, fed, message, one_stream,
    request, soon, until, wanted,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use worca::failure::{Exit, Explain as _};
use worca::ids::PassId;
use worca::keys::client::{KeysClient, KeysError};
use worca::keys::credential::Kind;
use worca::keys::serve::{Limits, Service};
use worca::keys::slot::{Origin, SlotName};
use worca::secret::Secret;

const DEAD: &str = r#"{"type":"error","error":{"type":"permission_error","message":"worca: this pass is not valid here (key service)"}}"#;

fn ok(_: &Seen) -> Script {
    Script::json(200, r#"{"type":"message"}"#)
}

fn short_leases() -> Limits {
    Limits { lease: Duration::from_secs(2), ..Limits::default() }
}

/// What a raw client gets back for exactly these bytes, until the service closes.
async fn raw(stage: &Stage, text: &str) -> String {
    let mut stream = TcpStream::connect(stage.keys.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the service answers and closes", stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

// What goes out and what comes back

#[tokio::test]
async fn c059_an_api_key_goes_on_and_all_else_of_the_callers_passes_unchanged() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    let mut request = message(&stage.keys, &minted.pass);
    for (name, value) in [
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "a-2025-01-01,b-2026-02-02"),
        ("anthropic-x-new", "1"),
        ("user-agent", "agent/1.0"),
        ("cookie", "session=1"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    assert_eq!(call(request).await.status, StatusCode::OK);
    let seen = stage.upstream.only();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v1/messages?beta=true"));
    assert_eq!(seen.body, r#"{"model":"m","messages":[]}"#);
    let get = |name: &str| seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(get("x-api-key").as_deref(), Some(API_KEY));
    assert_eq!(get("anthropic-beta").as_deref(), Some("a-2025-01-01,b-2026-02-02"));
    assert_eq!(get("anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(get("anthropic-x-new").as_deref(), Some("1"));
    assert_eq!(get("user-agent").as_deref(), Some("agent/1.0"));
    assert_eq!(get("content-length").as_deref(), Some("27"));
    for gone in ["authorization", "cookie", "x-hop", "connection"] {
        assert_eq!(get(gone), None, "{gone}");
    }
    assert!(!format!("{:?}", seen.headers).contains(minted.pass.expose()));
}

#[tokio::test]
async fn a_subscription_token_goes_on_as_bearer_with_its_beta_beside_the_callers() {
    let stage = Stage::with(Kind::Subscription, TOKEN, Limits::default(), ok).await;
    let minted = stage.keys.mint(None).await;
    let mut request = message(&stage.keys, &minted.pass);
    // A pass may come as either header, or both.
    request.headers_mut().insert("x-api-key", minted.pass.expose().parse().unwrap());
    request.headers_mut().insert("anthropic-beta", "a-1".parse().unwrap());
    assert_eq!(call(request).await.status, StatusCode::OK);
    let seen = stage.upstream.only();
    assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(seen.headers["anthropic-beta"], "a-1,oauth-2025-04-20");
    assert!(!seen.headers.contains_key("x-api-key"));
}

#[tokio::test]
async fn the_first_piece_of_a_stream_arrives_before_the_last_is_sent_both_ways() {
    let (answer, script) = one_stream();
    let stage = Stage::set(script).await;
    let minted = stage.keys.mint(None).await;
    let mut request = message(&stage.keys, &minted.pass);
    let (question, body) = fed();
    *request.body_mut() = body;
    question.send(Bytes::from_static(b"{\"a\":")).await.unwrap();
    let client = client();
    let asked = async {
        question.send(Bytes::from_static(b"1}")).await.unwrap();
        drop(question);
    };
    let (response, ()) = tokio::join!(client.request(request), asked);
    let mut body = response.unwrap().into_body();
    for piece in ["event: a\ndata: {}\n\n", "event: b\ndata: \u{fffd}", "\n\n"] {
        answer.send(piece.into()).await.unwrap();
        // Only once this piece is here is the next one sent.
        let mut got = Vec::new();
        while got.len() < piece.len() {
            let frame = soon("the piece arrives", body.frame()).await.unwrap().unwrap();
            got.extend_from_slice(&frame.into_data().unwrap());
        }
        assert_eq!(got, piece.as_bytes());
    }
    drop(answer);
    assert!(soon("the stream ends", body.frame()).await.is_none());
    assert_eq!(stage.upstream.only().body, "{\"a\":1}");
}

#[tokio::test]
async fn c056_overload_and_rate_limits_pass_through_with_their_headers_and_are_not_tried_again() {
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let answers = Mutex::new(vec![(529, None), (529, Some("7")), (429, Some("3037"))]);
    let stage = Stage::set(move |_| {
        let (status, after) = answers.lock().unwrap().remove(0);
        let mut response =
            Response::builder().status(status).header("anthropic-ratelimit-requests-remaining", "0");
        if let Some(after) = after {
            response = response.header("retry-after", after);
        }
        Script::Whole(response.body(Bytes::from_static(overloaded.as_bytes())).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    for (number, (status, after)) in
        [(529, None), (529, Some("7")), (429, Some("3037"))].into_iter().enumerate()
    {
        let answer = stage.ask(&minted.pass).await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.headers.get("retry-after").map(|value| value.to_str().unwrap()), after);
        assert_eq!(answer.headers["anthropic-ratelimit-requests-remaining"], "0");
        assert_eq!(answer.text(), overloaded);
        assert_eq!(stage.upstream.seen().len(), number + 1);
    }
}

#[tokio::test]
async fn c057_an_error_in_the_middle_of_a_stream_passes_byte_for_byte() {
    let text = "event: message_start\r\ndata: {}\r\n\r\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n";
    let stage = Stage::set(move |_| {
        let response = Response::builder().header("content-type", "text/event-stream");
        Script::Whole(response.body(Bytes::from_static(text.as_bytes())).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.text(), text);
}

#[tokio::test]
async fn c060_no_compression_is_asked_for_and_what_comes_compressed_all_the_same_stays_intact() {
    let packed: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56, 0xff, 0, 0x80, 1];
    let stage = Stage::set(move |_| {
        let response = Response::builder().status(400).header("content-encoding", "gzip");
        Script::Whole(response.body(Bytes::from_static(packed)).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    let mut request = message(&stage.keys, &minted.pass);
    request.headers_mut().insert("accept-encoding", "gzip, br".parse().unwrap());
    let answer = call(request).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-encoding"], &answer.body[..]),
        (400, &"gzip".parse().unwrap(), packed)
    );
    assert_eq!(stage.upstream.only().headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn c061_no_redirect_is_followed_and_none_is_handed_on() {
    let sink = Upstream::start(ok).await;
    let target = format!("{}/v1/messages", sink.origin);
    for status in [301, 302, 303, 307, 308] {
        let target = target.clone();
        let stage = Stage::set(move |_| {
            let response = Response::builder().status(status).header("location", &target);
            Script::Whole(response.body(Bytes::from_static(b"go there")).unwrap())
        })
        .await;
        let minted = stage.keys.mint(None).await;
        let answer = stage.ask(&minted.pass).await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
        assert!(answer.text().contains("redirect"), "{}", answer.text());
        assert!(!answer.headers.contains_key("location"));
        assert_eq!(stage.upstream.seen().len(), 1);
    }
    assert!(sink.seen().is_empty());
}

#[tokio::test]
async fn c063_three_and_31_megabytes_reach_the_provider_and_33_get_a_413_that_can_be_read() {
    const MEGABYTE: usize = 1024 * 1024;
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    for (megabytes, known, wanted) in [
        (3, true, 200),
        (31, true, 200),
        (33, true, 413),
        (3, false, 200),
        (31, false, 200),
        (33, false, 413),
    ] {
        let before = stage.upstream.seen().len();
        let mut request = message(&stage.keys, &minted.pass);
        let client = client();
        let answer = if known {
            *request.body_mut() = Full::new(Bytes::from(vec![b'x'; megabytes * MEGABYTE])).boxed_unsync();
            call(request).await
        } else {
            let (sender, body) = fed();
            *request.body_mut() = body;
            let feed = async {
                for _ in 0..megabytes {
                    if sender.send(Bytes::from(vec![b'x'; MEGABYTE])).await.is_err() {
                        break;
                    }
                }
                drop(sender);
            };
            let (response, ()) = tokio::join!(soon("an answer comes", client.request(request)), feed);
            let (parts, body) = response.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            support::Answer { status: parts.status, headers: parts.headers, body }
        };
        assert_eq!(answer.status.as_u16(), wanted, "{megabytes} MB, length known: {known}");
        if wanted == 413 {
            assert!(answer.text().contains("request_too_large"), "{}", answer.text());
            let whole = stage.upstream.seen().into_iter().skip(before).any(|seen| seen.whole);
            assert!(!whole, "the provider got a request that was refused");
        } else {
            assert_eq!(stage.upstream.seen().last().unwrap().length, (megabytes * MEGABYTE) as u64);
        }
    }
}

#[tokio::test]
async fn c064_count_tokens_and_models_work_and_what_is_not_offered_is_never_forwarded() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    for (method, path, status) in [
        (Method::POST, "/anthropic/v1/messages/count_tokens?beta=true", 200),
        (Method::GET, "/anthropic/v1/models", 200),
        (Method::GET, "/anthropic/v1/models/claude-1?limit=2", 200),
    ] {
        let answer = call(request(method.clone(), &stage.keys.url(path), Some(&minted.pass), "")).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}");
        let seen = stage.upstream.seen().pop().unwrap();
        assert_eq!(format!("/anthropic{}", seen.target), path);
    }
    let forwarded = stage.upstream.seen().len();
    for path in ["/anthropic", "/anthropic/"] {
        let answer = call(request(Method::HEAD, &stage.keys.url(path), Some(&minted.pass), "")).await;
        assert_eq!(answer.status.as_u16(), 200, "HEAD {path}");
    }
    let pass = minted.pass.expose();
    let host = stage.upstream.origin.as_str().trim_start_matches("http://").to_owned();
    for target in [
        "POST /anthropic/v1/complete".to_owned(),
        "GET /anthropic/v1/messages".into(),
        "DELETE /anthropic/v1/messages".into(),
        "POST /anthropic/v1/messages/../admin".into(),
        "POST /anthropic/v1/messages/..%2fadmin".into(),
        "POST /anthropic//v1/messages".into(),
        "POST /anthropic/./v1/messages".into(),
        "POST /anthropic/v1/%6dessages".into(),
        "POST /anthropic/v1\\messages".into(),
        "POST /anthropic/@evil.example/v1/messages".into(),
        format!("POST http://{host}/anthropic/v1/messages"),
        format!("POST http://user@{host}/anthropic/v1/messages"),
    ] {
        let answer =
            raw(&stage, &format!("{target} HTTP/1.1\r\nhost: keys\r\nauthorization: Bearer {pass}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")).await;
        let status = answer.split(' ').nth(1).unwrap_or("").to_owned();
        assert!(status == "404" || status == "400", "{target}: {answer}");
    }
    for target in [
        format!("CONNECT {host}"),
        "OPTIONS *".into(),
        "POST //anthropic/v1/messages".into(),
        "POST /anthropic@evil/v1/messages".into(),
        "POST /..//anthropic/v1/messages".into(),
    ] {
        let answer =
            raw(&stage, &format!("{target} HTTP/1.1\r\nhost: keys\r\nauthorization: Bearer {pass}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 "),
            "{target}: {answer}"
        );
    }
    assert_eq!(stage.upstream.seen().len(), forwarded, "{:?}", stage.upstream.seen().last());
}

#[tokio::test]
async fn c065_a_stream_with_pings_goes_on_and_one_that_falls_silent_ends_with_an_error_event() {
    let limits = Limits { idle: Duration::from_secs(2), ..Limits::default() };
    let (answer, script) = one_stream();
    let stage = Stage::with(Kind::ApiKey, API_KEY, limits, script).await;
    let minted = stage.keys.mint(None).await;
    let mut body = client().request(message(&stage.keys, &minted.pass)).await.unwrap().into_body();
    // Three times as long as the limit, and never silent for a tenth of it.
    let end = tokio::time::Instant::now() + Duration::from_secs(6);
    while tokio::time::Instant::now() < end {
        answer.send(Bytes::from_static(b"event: ping\ndata: {}\n\n")).await.unwrap();
        let frame = soon("the ping arrives", body.frame()).await.unwrap().unwrap();
        assert!(frame.is_data());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // And now silence, with the connection open.
    let rest = soon("the silent stream ends", body.collect()).await.unwrap().to_bytes();
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(
        rest.starts_with("event: error\ndata: {\"type\":\"error\"") && rest.contains("fell silent"),
        "{rest}"
    );
    soon("the provider's side is dropped", answer.closed()).await;
}

#[tokio::test]
async fn a_provider_that_never_begins_to_answer_is_given_up() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::with(Kind::ApiKey, API_KEY, limits, |_| Script::Silence).await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named_in_a_sentence() {
    let place = Place::new();
    let gone = Upstream::start(ok).await.origin;
    place.put(Kind::ApiKey, &gone, API_KEY);
    let keys = place.start(gone, Limits::default()).await;
    let minted = keys.mint(None).await;
    let answer = call(message(&keys, &minted.pass)).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.text().contains("slot `anthropic` cannot be reached"), "{}", answer.text());
}

#[tokio::test]
async fn connections_to_the_provider_are_used_again() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    for _ in 0..10 {
        assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    }
    assert!(stage.upstream.connections() < 10, "{}", stage.upstream.connections());
}

#[tokio::test]
async fn what_echoes_the_key_comes_back_without_it() {
    let echo = format!("{{\"error\":\"invalid key {API_KEY}, no, really: {API_KEY}\"}}");
    let sent = echo.clone();
    let stage = Stage::set(move |_| {
        let response = Response::builder()
            .status(400)
            .header("x-debug", format!("k={API_KEY}"))
            .header("set-cookie", "a=b");
        Script::Whole(response.header("request-id", "req_1").body(Bytes::from(sent.clone())).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    let answer = stage.ask(&minted.pass).await;
    assert_eq!(answer.status.as_u16(), 400);
    assert_eq!(answer.text(), echo.replace(API_KEY, &"*".repeat(API_KEY.len())));
    assert_eq!(answer.headers["request-id"], "req_1");
    assert!(!answer.headers.contains_key("x-debug") && !answer.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn a_saved_key_that_the_provider_refuses_stops_the_agent_with_a_sentence_and_not_with_401() {
    let stage = Stage::set(|_| {
        let response = Response::builder()
            .status(401)
            .header("www-authenticate", "Bearer")
            .header("request-id", "req_2");
        Script::Whole(response.body(Bytes::from(format!("bad {API_KEY}"))).unwrap())
    })
    .await;
    let minted = stage.keys.mint(None).await;
    let answer = stage.ask(&minted.pass).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["request-id"]), (403, &"req_2".parse().unwrap()));
    assert!(
        answer.text().contains("the provider refused the key saved for slot `anthropic`"),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains("canary"));
}

// Passes

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
        "POST /anthropic/v1/messages HTTP/1.1\r\nhost: keys\r\nx-api-key: {}\r\ncontent-length: 0\r\n\r\n",
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

// The control part

#[tokio::test]
async fn the_control_part_is_closed_without_its_secret_also_to_a_pass() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    let mint = serde_json::to_string(&wanted(None)).unwrap();
    let mut bodies = Vec::new();
    for bearer in
        [None, Some(&minted.pass), Some(&Secret::new("x".into())), Some(&Secret::new(API_KEY.into()))]
    {
        for (method, path) in [
            (Method::GET, "/control/status".to_owned()),
            (Method::POST, "/control/passes".into()),
            (Method::POST, "/control/passes/renew".into()),
            (Method::DELETE, format!("/control/passes/{}", minted.id)),
            (Method::GET, "/control/nothing".into()),
        ] {
            let answer = call(request(method, &stage.keys.url(&path), bearer, &mint)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            bodies.push(answer.text());
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(stage.keys.client.status().await.unwrap().passes, 1);
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    let wrong = KeysClient::new(&stage.keys.url(""), &Secret::new("wrong".into())).unwrap();
    let error = wrong.status().await.unwrap_err();
    assert!(matches!(error, KeysError::Control(_)) && error.exit() == Exit::Refused, "{error}");
}

#[tokio::test]
async fn a_pass_is_refused_with_a_reason_where_it_would_open_nothing() {
    let place = Place::new();
    let limits = Limits { passes: 1, ..Limits::default() };
    let keys = place.start(Origin::anthropic(), limits).await;
    let error = keys.client.mint(&wanted(None)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("no-credential", "no key is saved for slot `anthropic`")
    );
    let mut unknown = wanted(None);
    unknown.slot = SlotName::parse("openai").unwrap();
    let refused = |error: KeysError| match error {
        KeysError::Refused { code, message } => (code, message),
        other => panic!("{other}"),
    };
    let (code, _) = refused(keys.client.mint(&unknown).await.unwrap_err());
    assert_eq!(code, "unknown-slot");
    let (code, message) = refused(keys.client.mint(&wanted(Some("rehearsal/nothing"))).await.unwrap_err());
    assert_eq!(code, "unknown-scenario");
    assert!(message.contains("hello") && message.contains("slow"), "{message}");
    keys.mint(Some("rehearsal")).await;
    let (code, _) = refused(keys.client.mint(&wanted(Some("rehearsal"))).await.unwrap_err());
    assert_eq!(code, "too-many-passes");
}

#[tokio::test]
async fn what_core_says_is_read_strictly() {
    let stage = Stage::set(ok).await;
    let control = Secret::new(CONTROL.into());
    for body in ["", "{", "[]", r#"{"ids":["k1"]}"#, r#"{"ids":[],"more":1}"#, r#"{"ids":["../../x"]}"#] {
        let answer =
            call(request(Method::POST, &stage.keys.url("/control/passes/renew"), Some(&control), body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
    }
    let large = format!("{{\"ids\":[],\"{}\":1}}", "x".repeat(300 * 1024));
    let answer =
        call(request(Method::POST, &stage.keys.url("/control/passes/renew"), Some(&control), &large)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let answer = call(request(
        Method::POST,
        &stage.keys.url("/control/passes/renew"),
        Some(&control),
        r#"{"ids":[]}"#,
    ))
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, r#"{"alive":[],"gone":[]}"#));
}

#[tokio::test]
async fn a_key_saved_or_removed_by_another_process_counts_for_the_running_service() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    stage.place.vault().remove(&SlotName::anthropic()).unwrap();
    let answer = until("the removal counts", || async {
        let answer = stage.ask(&minted.pass).await;
        if answer.status == StatusCode::OK { Err("still used".into()) } else { Ok(answer) }
    })
    .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text().contains("no key is saved for slot `anthropic`"), "{}", answer.text());
    let status = stage.keys.client.status().await.unwrap();
    assert!(!status.slots[0].ready && status.slots[1].ready, "{status:?}");
    stage.place.put(Kind::Subscription, &stage.upstream.origin, TOKEN);
    until("the new key counts", || async {
        let status = stage.keys.client.status().await.unwrap();
        if status.slots[0].kind == Some(Kind::Subscription) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(stage.ask(&minted.pass).await.status, StatusCode::OK);
    assert_eq!(stage.upstream.seen().pop().unwrap().headers["authorization"], format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn a_key_never_goes_to_an_origin_that_it_was_not_saved_for() {
    let place = Place::new();
    place.put(Kind::ApiKey, &Origin::anthropic(), API_KEY);
    let elsewhere = Upstream::start(ok).await;
    let keys = place.start(elsewhere.origin.clone(), Limits::default()).await;
    let error = keys.client.mint(&wanted(None)).await.unwrap_err();
    assert_eq!(error.code(), "no-credential");
    assert!(error.to_string().contains("is for `https://api.anthropic.com`"), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn the_date_of_last_use_is_noted() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    assert_eq!(stage.place.vault().list().unwrap()[0].last_used, None);
    stage.ask(&minted.pass).await;
    until("the date is written", || async {
        stage.place.vault().list().unwrap().remove(0).last_used.ok_or("none".to_owned())
    })
    .await;
}

// The service as a process

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
    support::write_private(&place.control(), "short");
    let error = refused(settings()).await;
    assert_eq!((error.code(), error.exit()), ("control-secret-short", Exit::Refused));
    support::write_private(&place.control(), CONTROL);
    let running = place.start(Origin::anthropic(), Limits::default()).await;
    let mut taken = settings();
    taken.listen = running.address;
    assert_eq!(refused(taken).await.code(), "listen");
    support::write_private(&place.vault_key(), "AAAA");
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
        for secret in [API_KEY, &API_KEY[..30], pass, CONTROL] {
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

// Rehearsal, as a client sees it

fn turns(spoken: usize) -> String {
    let mut messages = vec![serde_json::json!({"role": "user", "content": "go"})];
    for _ in 0..spoken {
        messages.push(serde_json::json!({"role": "assistant", "content": "…"}));
        messages.push(serde_json::json!({"role": "user", "content": "…"}));
    }
    serde_json::json!({"model": "rehearsal", "stream": true, "messages": messages, "tools": [{"name": "Bash"}]}).to_string()
}

#[tokio::test]
async fn the_scripted_model_speaks_turn_by_turn_as_a_stream_and_needs_no_key() {
    let place = Place::new();
    let keys = place.start(Origin::anthropic(), Limits::default()).await;
    let minted = keys.mint(Some("rehearsal")).await;
    let post = |path: &str, body: &str| request(Method::POST, &keys.url(path), Some(&minted.pass), body);
    let first = call(post("/rehearsal/v1/messages?beta=true", &turns(0))).await;
    assert_eq!(first.headers["content-type"], "text/event-stream; charset=utf-8");
    let events: Vec<&str> =
        first.text().leak().lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((events.first(), events.last()), (Some(&"message_start"), Some(&"message_stop")));
    assert!(
        first.text().contains("\"stop_reason\":\"tool_use\"") && first.text().contains("\"name\":\"Bash\"")
    );
    let last = call(post("/rehearsal/v1/messages", &turns(4))).await;
    assert!(last.text().contains("\"stop_reason\":\"end_turn\""), "{}", last.text());
    assert!(call(post("/rehearsal/v1/messages", &turns(40))).await.text().contains("end_turn"));
    let aside = call(post(
        "/rehearsal/v1/messages",
        r#"{"model":"m","messages":[{"role":"user","content":"title?"}]}"#,
    ))
    .await;
    let aside: serde_json::Value = serde_json::from_slice(&aside.body).unwrap();
    assert_eq!(aside["content"][0]["text"], "Rehearsal");
    let count = call(post("/rehearsal/v1/messages/count_tokens", &turns(0))).await;
    assert!(count.text().starts_with("{\"input_tokens\":"), "{}", count.text());
    assert_eq!(call(post("/rehearsal/v1/messages", "nonsense")).await.status, StatusCode::BAD_REQUEST);
    let models = call(request(Method::GET, &keys.url("/rehearsal/v1/models"), Some(&minted.pass), "")).await;
    assert!(models.text().contains("rehearsal/hello"), "{}", models.text());
}
