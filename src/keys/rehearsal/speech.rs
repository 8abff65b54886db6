//! One turn of the scripted model as the Messages API would give it: as one JSON text or as a stream of events.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::answer::{self, CutError, Reply};
use super::super::pass;
use super::scenario::Turn;

/// Characters per piece of streamed text.
const PIECE: usize = 24;

/// What is to be said.
pub(super) struct Speech {
    id: String,
    model: String,
    turn: Turn,
    tool_id: String,
    asked: usize,
}

impl Speech {
    /// `asked` is the size of the request in tokens.
    pub(super) fn new(model: &str, turn: Turn, asked: usize) -> Self {
        Self {
            id: format!("msg_rehearsal_{}", pass::random_text(12)),
            model: model.to_owned(),
            turn,
            tool_id: format!("toolu_{}", pass::random_text(18)),
            asked,
        }
    }

    /// The whole of it at once.
    pub(super) async fn whole(self) -> Response<Reply> {
        tokio::time::sleep(self.turn.pause).await;
        let mut content = Vec::new();
        if let Some(text) = &self.turn.text {
            content.push(json!({"type": "text", "text": text}));
        }
        if let Some(tool) = &self.turn.tool {
            content.push(
                json!({"type": "tool_use", "id": self.tool_id, "name": tool.name, "input": tool.input}),
            );
        }
        let message = self.message(&content, Some(self.stop_reason()), self.said());
        answer::value(StatusCode::OK, &message)
    }

    /// As events, with the turn's pause before the first word.
    pub(super) fn stream(self) -> Response<Reply> {
        let pause = self.turn.pause;
        let events = self.events().into_iter().enumerate();
        // The first event is the message's start: the pause comes after it, as a model's thinking does.
        let timed = stream::unfold(events, move |mut events| async move {
            let (number, event) = events.next()?;
            if number == 1 && pause > Duration::ZERO {
                tokio::time::sleep(pause).await;
            }
            let name = event.get("type").and_then(Value::as_str).unwrap_or("ping");
            let text = Bytes::from(format!("event: {name}\ndata: {event}\n\n"));
            Some((Ok::<_, CutError>(Frame::data(text)), events))
        });
        let mut response = Response::new(StreamBody::new(timed).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    fn events(&self) -> Vec<Value> {
        let mut events = vec![json!({"type": "message_start", "message": self.message(&[], None, 1)})];
        let mut index = 0;
        if let Some(text) = &self.turn.text {
            events.push(json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}));
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(PIECE) {
                let piece: String = piece.iter().collect();
                events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}));
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        }
        if let Some(tool) = &self.turn.tool {
            let input = Value::Object(tool.input.clone()).to_string();
            events.push(json!({"type": "content_block_start", "index": index,
                "content_block": {"type": "tool_use", "id": self.tool_id, "name": tool.name, "input": {}}}));
            events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": input}}));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({"type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null}, "usage": {"output_tokens": self.said()}}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn message(&self, content: &[Value], stop_reason: Option<&str>, said: usize) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {
                "input_tokens": self.asked, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": said,
            },
        })
    }

    fn stop_reason(&self) -> &'static str {
        if self.turn.tool.is_some() { "tool_use" } else { "end_turn" }
    }

    /// How much was said, in about as many tokens as a model would count.
    fn said(&self) -> usize {
        let text = self.turn.text.as_ref().map_or(0, String::len);
        let tool = self
            .turn
            .tool
            .as_ref()
            .map_or(0, |tool| Value::Object(tool.input.clone()).to_string().len() + 40);
        (text + tool) / 4 + 1
    }
}
