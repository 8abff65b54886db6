//! What is said, as it goes over the wire.

use serde_json::Map;

use super::super::script::{Failure, Used};
use super::*;

fn turn() -> Turn {
    let input: Map<String, Value> =
        serde_json::from_value(json!({"file_path": "ä".repeat(30), "limit": 3})).unwrap();
    let tool = |name: &str| Tool { name: name.into(), input: input.clone() };
    let used = Used { input: Some(1000), output: Some(50), cache_read: 7, cache_write: 8 };
    let text = "Two files, read at once: ä, ö and ü.";
    Turn { tools: vec![tool("Read"), tool("Grep")], used, ..Turn::says(text) }
}

fn speech(turn: Turn) -> Speech {
    Speech::new("m", turn, 99)
}

/// What comes over the wire, and whether it is whole.
async fn sent(response: Response<Reply>) -> (Vec<u8>, bool) {
    let mut body = response.into_body();
    let mut sent = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => sent.extend_from_slice(&frame.into_data().unwrap()),
            Err(CutError::Scripted) => return (sent, false),
            Err(error) => panic!("{error}"),
        }
    }
    (sent, true)
}

fn events(sent: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(sent).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_puts_together_says_what_one_answer_says() {
    let (streamed, whole) = sent(speech(turn()).stream(&End::Whole)).await;
    assert!(whole);
    let (said, _) = sent(speech(turn()).whole(None).await).await;
    let said: Value = serde_json::from_slice(&said).unwrap();
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for event in events(&streamed) {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks.len());
                blocks.push((event["content_block"].clone(), String::new()));
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let piece = delta.get("text").or(delta.get("partial_json")).unwrap();
                blocks.last_mut().unwrap().1 += piece.as_str().unwrap();
            }
            _ => {}
        }
    }
    let content = said["content"].as_array().unwrap();
    assert_eq!((blocks.len(), content.len()), (3, 3));
    assert_eq!(blocks[0].1, content[0]["text"].as_str().unwrap());
    for ((block, input), said) in blocks.iter().zip(content).skip(1) {
        assert_eq!((&block["type"], &block["name"]), (&said["type"], &said["name"]));
        assert_eq!(serde_json::from_str::<Value>(input).unwrap(), said["input"]);
    }
    assert_ne!(blocks[1].0["id"], blocks[2].0["id"]);
}

#[tokio::test]
async fn a_stream_and_one_answer_say_what_the_turn_says_it_used() {
    let (streamed, _) = sent(speech(turn()).stream(&End::Whole)).await;
    let events = events(&streamed);
    let first = &events[0]["message"]["usage"];
    assert_eq!(
        *first,
        json!({"input_tokens": 1000, "cache_creation_input_tokens": 8, "cache_read_input_tokens": 7,
            "cache_creation": {"ephemeral_5m_input_tokens": 8, "ephemeral_1h_input_tokens": 0}, "output_tokens": 1})
    );
    let end = &events[events.len() - 2];
    assert_eq!(
        (&end["delta"]["stop_reason"], &end["usage"]),
        (
            &json!("tool_use"),
            &json!({"input_tokens": 1000, "cache_creation_input_tokens": 8, "cache_read_input_tokens": 7,
                "output_tokens": 50})
        )
    );
    let (said, _) = sent(speech(turn()).whole(None).await).await;
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["usage"]["output_tokens"], 50);
    let (reckoned, _) = sent(speech(Turn::says("four four")).whole(None).await).await;
    let reckoned: Value = serde_json::from_slice(&reckoned).unwrap();
    assert_eq!(
        (&reckoned["usage"]["input_tokens"], &reckoned["usage"]["output_tokens"]),
        (&json!(99), &json!(3))
    );
}

#[tokio::test]
async fn a_cut_stream_breaks_where_the_scenario_says() {
    let cut = |place| async move { sent(speech(turn()).stream(&End::Cut(place))).await };
    for number in [0, 1, 4] {
        let (text, whole) = cut(Place::Events(number)).await;
        assert_eq!((events(&text).len(), whole), (usize::try_from(number).unwrap(), false));
    }
    for bytes in [0, 1, 20, 777] {
        let (text, whole) = cut(Place::Bytes(bytes)).await;
        assert_eq!((text.len(), whole), (usize::try_from(bytes).unwrap(), false));
    }
    let (text, whole) = cut(Place::Events(1_000_000)).await;
    assert_eq!((events(&text).last().unwrap()["type"].as_str(), whole), (Some("message_stop"), false));
    let (text, whole) = sent(speech(turn()).whole(Some(Place::Bytes(30))).await).await;
    assert_eq!((text.len(), whole), (30, false));
    let (text, whole) = sent(speech(turn()).whole(Some(Place::Events(2))).await).await;
    assert!(!whole && text.len() > 100 && serde_json::from_slice::<Value>(&text).is_err());
}

#[tokio::test]
async fn an_error_event_ends_a_stream_that_is_otherwise_whole() {
    let failure =
        Failure { status: 529, kind: "overloaded_error", message: "busy".into(), retry_after: None };
    let (text, whole) = sent(speech(turn()).stream(&End::Error(ErrorEvent { after: 4, failure }))).await;
    let events = events(&text);
    assert_eq!((events.len(), whole), (5, true));
    assert_eq!(events[4], json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}));
    assert!(
        text.ends_with(b"\n\n") && std::str::from_utf8(&text).unwrap().contains("\n\nevent: error\ndata: ")
    );
}

#[test]
fn a_turn_takes_its_pauses() {
    let (pause, pace) = (Duration::from_secs(60), Duration::from_secs(1));
    let turn = Turn { pause, pace, ..Turn::says(&"x".repeat(PIECE * 3)) };
    let pauses: Vec<_> = speech(turn).events().into_iter().map(|(pause, _)| pause.as_secs()).collect();
    assert_eq!(pauses, [0, 0, 60, 0, 1, 1, 0, 0, 0]);
}
