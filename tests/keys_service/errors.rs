//! Errors of a provider, of every kind, as a caller gets them.

use bytes::Bytes;
use hyper::Response;

use crate::ok;
use crate::support::{Script, Stage, call, message};

#[tokio::test]
async fn c056_every_error_that_does_not_speak_of_the_key_passes_unchanged_and_is_not_tried_again() {
    for status in [400, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529] {
        let text = format!(
            r#"{{"type":"error","error":{{"type":"some_error","message":"number {status}"}},"request_id":"req_1"}}"#
        );
        let body = Bytes::from(text.clone());
        let stage = Stage::set(move |_| {
            let response = Response::builder()
                .status(status)
                .header("content-type", "application/json")
                .header("retry-after", "11")
                .header("request-id", "req_1")
                .header("x-should-retry", "false")
                .header("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:00Z");
            Script::Whole(response.body(body.clone()).unwrap())
        })
        .await;
        let minted = stage.keys.mint(None).await;
        let answer = stage.ask(&minted.pass).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (status, text));
        for (name, value) in [
            ("retry-after", "11"),
            ("request-id", "req_1"),
            ("x-should-retry", "false"),
            ("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(answer.headers[name], value, "{status}");
        }
        assert_eq!(stage.upstream.seen().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn c059_a_400_about_a_beta_comes_back_unchanged_and_nothing_is_added_to_what_was_asked() {
    let text = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Unexpected value(s) `a-2025-01-01` for the `anthropic-beta` header"}}"#;
    let stage = Stage::set(move |_| Script::json(400, text)).await;
    let minted = stage.keys.mint(None).await;
    let mut request = message(&stage.keys, &minted.pass);
    for value in ["a-2025-01-01", "b-2026-02-02"] {
        request.headers_mut().append("anthropic-beta", value.parse().unwrap());
    }
    let answer = call(request).await;
    assert_eq!((answer.status.as_u16(), answer.text().as_str()), (400, text));
    let seen = stage.upstream.only();
    let betas: Vec<_> = seen.headers.get_all("anthropic-beta").iter().collect();
    assert_eq!(betas, ["a-2025-01-01", "b-2026-02-02"]);
    let mut names: Vec<&str> = seen.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["accept-encoding", "anthropic-beta", "content-length", "content-type", "host", "x-api-key"]
    );
}

#[tokio::test]
async fn c059_without_a_beta_none_is_made_up() {
    let stage = Stage::set(ok).await;
    let minted = stage.keys.mint(None).await;
    stage.ask(&minted.pass).await;
    assert!(!stage.upstream.only().headers.keys().any(|name| name.as_str().starts_with("anthropic-")));
}
