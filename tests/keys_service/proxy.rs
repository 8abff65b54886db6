//! What goes out to the provider, and what comes back.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use crate::support::{
    API_KEY, DEADLINE, Place, Script, Stage, TOKEN, Upstream, call, client, fed, message, one_stream,
    request, soon,
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Response, StatusCode};
use worca::keys::credential::Kind;
use worca::keys::serve::Limits;

use crate::{ok, raw};

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
    question.send(Bytes::from_static(b"{\"model\":\"m\",\"a\":")).await.unwrap();
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
    assert_eq!(stage.upstream.only().body, "{\"model\":\"m\",\"a\":1}");
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
async fn c060_no_compression_is_asked_for_and_an_error_that_comes_compressed_all_the_same_is_readable() {
    let text =
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature: too warm"}}"#;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    let packed = Bytes::from(packer.finish().unwrap());
    for (status, coding, body, told, wanted) in [
        (400, "gzip", packed.clone(), 400, text),
        (400, "gzip", Bytes::from_static(&[0x1f, 0x8b, 0xff, 0, 0x80]), 400, "cannot be searched for keys"),
        (529, "br", Bytes::from_static(&[1, 2, 3]), 529, "cannot be searched for keys"),
        (200, "gzip", packed.clone(), 502, "in a coding that was not asked for"),
    ] {
        let stage = Stage::set(move |_| {
            let response = Response::builder()
                .status(status)
                .header("content-encoding", coding)
                .header("retry-after", "3");
            Script::Whole(response.body(body.clone()).unwrap())
        })
        .await;
        let minted = stage.keys.mint(None).await;
        let mut request = message(&stage.keys, &minted.pass);
        request.headers_mut().insert("accept-encoding", "gzip, br".parse().unwrap());
        let answer = call(request).await;
        assert_eq!(answer.status.as_u16(), told, "{status} {coding}");
        assert!(answer.text().contains(wanted), "{}", answer.text());
        assert!(!answer.headers.contains_key("content-encoding"));
        assert_eq!(answer.headers.contains_key("retry-after"), status == told);
        assert_eq!(stage.upstream.only().headers["accept-encoding"], "identity");
    }
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

/// A request of exactly this many bytes.
fn long(bytes: usize) -> Vec<u8> {
    let (start, end) = (r#"{"model":"m","messages":[],"x":""#, r#""}"#);
    let filling = vec![b'x'; bytes - start.len() - end.len()];
    [start.as_bytes(), &filling, end.as_bytes()].concat()
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
            *request.body_mut() = Full::new(Bytes::from(long(megabytes * MEGABYTE))).boxed_unsync();
            call(request).await
        } else {
            let (sender, body) = fed();
            *request.body_mut() = body;
            let feed = async {
                for piece in long(megabytes * MEGABYTE).chunks(MEGABYTE) {
                    if sender.send(Bytes::copy_from_slice(piece)).await.is_err() {
                        break;
                    }
                }
                drop(sender);
            };
            let (response, ()) = tokio::join!(soon("an answer comes", client.request(request)), feed);
            let (parts, body) = response.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            crate::support::Answer { status: parts.status, headers: parts.headers, body }
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
    let limits = Limits { idle: Duration::from_secs(2), lease: DEADLINE, ..Limits::default() };
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
