//! The scripted model, as a client sees it.

use http_body_util::BodyExt as _;
use hyper::{Method, StatusCode};
use worca::keys::client::{MintRequest, Minted};
use worca::keys::serve::Limits;
use worca::keys::slot::Origin;
use worca::keys::wire::{RefusalKind, Scenario};
use worca::keys::{check_scenario, scenario_names};

use crate::support::{Place, Running, call, client, request, soon, wanted};

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

/// A pass that plays this text.
async fn scripted(keys: &Running, text: &str) -> Minted {
    let scenario = Some(Scenario::Text(text.to_owned()));
    keys.client.mint(&MintRequest { scenario, ..wanted(Some("rehearsal")) }).await.unwrap()
}

const BAD_DAY: &str = "version: 1
turns:
  - text: Both at once.
    tools:
      - {name: Read, input: {file_path: a}}
      - {name: Read, input: {file_path: b}}
    usage: {input: 1000, output: 50, cache_read: 7, cache_write: 8}
    fail: {status: 529, message: Full, retry_after: 3, calls: 2}
    cut: {after_bytes: 100}
    error_event: {type: overloaded_error, message: Full, after_events: 3}
  - text: done
    fail: {status: 401, message: Expired}
";

#[tokio::test]
async fn a_scenario_by_its_text_fails_is_cut_errs_and_then_answers_for_each_pass_anew() {
    let place = Place::new();
    let keys = place.start(Origin::anthropic(), Limits::default()).await;
    for _ in 0..2 {
        let minted = scripted(&keys, BAD_DAY).await;
        let post =
            |body: &str| request(Method::POST, &keys.url("/rehearsal/v1/messages"), Some(&minted.pass), body);
        for _ in 0..2 {
            let failed = call(post(&turns(0))).await;
            assert_eq!(
                (failed.status.as_u16(), &failed.headers["retry-after"]),
                (529, &"3".parse().unwrap())
            );
            assert_eq!(
                failed.text(),
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Full"}}"#
            );
        }
        let cut = soon("an answer begins", client().request(post(&turns(0)))).await.unwrap();
        assert_eq!(cut.status(), StatusCode::OK);
        let mut body = cut.into_body();
        let mut came = 0;
        let broken = loop {
            match soon("the next piece", body.frame()).await {
                Some(Ok(frame)) => came += frame.into_data().unwrap().len(),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        assert_eq!((came, broken), (100, true));
        let erred = call(post(&turns(0))).await;
        assert!(erred.text().ends_with("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Full\"}}\n\n"), "{}", erred.text());
        let whole = call(post(&turns(0))).await.text();
        assert_eq!(whole.matches("\"type\":\"tool_use\"").count(), 2);
        assert!(
            whole.contains("\"cache_read_input_tokens\":7") && whole.contains("\"output_tokens\":50"),
            "{whole}"
        );
        let expired = call(post(&turns(1))).await;
        assert_eq!(expired.status, StatusCode::FORBIDDEN);
        assert!(expired.text().contains("(401): Expired"), "{}", expired.text());
        let refused = keys.client.revoke(&minted.id).await.unwrap().refused.unwrap();
        assert_eq!((refused.kind, refused.message.contains("(401)")), (RefusalKind::Key, true));
    }
}

#[tokio::test]
async fn what_a_scenario_says_that_it_used_stands_in_the_books_and_costs_nothing() {
    let place = Place::new();
    let keys = place.start(Origin::anthropic(), Limits::default()).await;
    let text = "version: 1
turns:
  - text: done
    usage: {input: 1000, output: 50, cache_read: 7, cache_write: 8}
    fail: {status: 529}
    error_event: {type: overloaded_error}
";
    let minted = scripted(&keys, text).await;
    let post =
        |body: &str| request(Method::POST, &keys.url("/rehearsal/v1/messages"), Some(&minted.pass), body);
    // An error, an error event, a stream and one text.
    for body in [turns(0), turns(0), turns(0), turns(0).replace("true", "false")] {
        call(post(&body)).await;
    }
    let used = keys.client.revoke(&minted.id).await.unwrap().used;
    let [row] = used.as_slice() else { panic!("{used:?}") };
    assert_eq!((row.calls, row.failed, row.cost_micros), (4, 2, 0), "{row:?}");
    assert_eq!((row.input, row.cache_read, row.cache_write), (3000, 21, 24), "{row:?}");
    assert_eq!(row.output, 101, "one token of the stream that erred: {row:?}");
}

#[tokio::test]
async fn what_is_no_scenario_gets_no_pass_and_a_sentence_with_the_place() {
    let place = Place::new();
    let keys = place.start(Origin::anthropic(), Limits::default()).await;
    let long = format!("version: 1\nturns:\n  - text: {}\n", "x".repeat(64 * 1024));
    for (text, expected) in [
        ("version: 1\nturns:\n  - text: a\n    txet: b\n", "line 4, column 5: there is no key `txet`"),
        (long.as_str(), "it is larger than 64 KiB"),
    ] {
        assert!(check_scenario(text).unwrap_err().starts_with(expected));
        let scenario = Some(Scenario::Text(text.to_owned()));
        let refused =
            keys.client.mint(&MintRequest { scenario, ..wanted(Some("rehearsal")) }).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    let unknown = keys.client.mint(&wanted(Some("rehearsal/none"))).await.unwrap_err().to_string();
    assert!(unknown.contains("there are attack, hello, review, slow"), "{unknown}");
}

#[test]
fn every_scenario_of_the_documentation_reads() {
    let text = include_str!("../../docs/rehearsal.md");
    let scenarios: Vec<&str> =
        text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(scenarios.len(), 4);
    for scenario in scenarios {
        check_scenario(scenario).unwrap_or_else(|error| panic!("{error}\n{scenario}"));
    }
    for name in scenario_names() {
        assert!(text.contains(&format!("| `{name}` |")), "{name}");
    }
}
