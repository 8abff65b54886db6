//! The scripted model, as a client sees it.

use crate::support::{Place, call, request};
use hyper::{Method, StatusCode};
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;

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
