//! One turn of the scripted model as the Messages API would give it: as one JSON text or as a stream of events; whole,
//! broken off, or with an error in its middle.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::answer::{self, CutError, Reply};
use super::super::pass;
use super::script::{ErrorEvent, Place, Tool, Turn};

/// Characters per piece of what is streamed.
const PIECE: usize = 24;
/// A rough measure, enough for plausible numbers: bytes per token, and what a use of a tool takes beside its input.
const BYTES_PER_TOKEN: usize = 4;
const TOOL_BYTES: usize = 40;
/// How long what was said gets to leave before the connection is broken.
const LEAVING: Duration = Duration::from_millis(50);

/// How a stream ends.
pub(super) enum End {
    Whole,
    Cut(Place),
    Error(ErrorEvent),
}

/// What is to be said.
pub(super) struct Speech {
    id: String,
    model: String,
    turn: Turn,
    tool_ids: Vec<String>,
    asked: u64,
}

impl Speech {
    /// `asked` is the size of the request in tokens.
    pub(super) fn new(model: &str, turn: Turn, asked: u64) -> Self {
        Self {
            id: format!("msg_rehearsal_{}", pass::random_text(12)),
            model: model.to_owned(),
            tool_ids: turn.tools.iter().map(|_| format!("toolu_{}", pass::random_text(18))).collect(),
            turn,
            asked,
        }
    }

    /// The whole of it at once, or its beginning.
    pub(super) async fn whole(self, cut: Option<Place>) -> Response<Reply> {
        tokio::time::sleep(self.turn.pause).await;
        let text = self.turn.text.iter().map(|text| json!({"type": "text", "text": text}));
        let tools = self
            .tools()
            .map(|(id, tool)| json!({"type": "tool_use", "id": id, "name": tool.name, "input": tool.input}));
        let content: Vec<_> = text.chain(tools).collect();
        let message = self.message(&content, Some(self.stop_reason()), self.said());
        let Some(place) = cut else { return answer::value(StatusCode::OK, &message) };
        let mut text = Bytes::from(message.to_string());
        // One text has no events; it ends in its middle.
        text.truncate(match place {
            Place::Events(_) => text.len() / 2,
            Place::Bytes(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        });
        reply("application/json", vec![(Duration::ZERO, text)], true)
    }

    /// As events, with the turn's pauses.
    pub(super) fn stream(self, end: &End) -> Response<Reply> {
        let mut events = self.events();
        match end {
            End::Whole => {}
            End::Cut(Place::Events(number)) => {
                events.truncate(usize::try_from(*number).unwrap_or(usize::MAX));
            }
            End::Cut(Place::Bytes(bytes)) => cut_bytes(&mut events, *bytes),
            End::Error(error) => {
                events.truncate(usize::try_from(error.after).unwrap_or(usize::MAX));
                let text = answer::error_text(error.failure.kind, &error.failure.message);
                events.push((Duration::ZERO, format!("event: error\ndata: {text}\n\n").into()));
            }
        }
        reply("text/event-stream; charset=utf-8", events, matches!(end, End::Cut(_)))
    }

    /// Each event, and the pause before it.
    fn events(&self) -> Vec<(Duration, Bytes)> {
        let mut events = Vec::new();
        let mut add = |pause: Duration, event: &Value| {
            let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
            events.push((pause, Bytes::from(format!("event: {name}\ndata: {event}\n\n"))));
        };
        let zero = Duration::ZERO;
        add(zero, &json!({"type": "message_start", "message": self.message(&[], None, self.said().min(1))}));
        add(zero, &json!({"type": "ping"}));
        // The message has begun: the pause comes here, as a model's thinking does.
        let mut pause = self.turn.pause;
        let mut index = 0;
        if let Some(text) = &self.turn.text {
            add(pause, &start(index, &json!({"type": "text", "text": ""})));
            for (number, piece) in pieces(text).enumerate() {
                let wait = if number > 0 { self.turn.pace } else { zero };
                add(wait, &delta(index, &json!({"type": "text_delta", "text": piece})));
            }
            add(zero, &json!({"type": "content_block_stop", "index": index}));
            (index, pause) = (1, self.turn.pace);
        }
        for (id, tool) in self.tools() {
            add(pause, &start(index, &json!({"type": "tool_use", "id": id, "name": tool.name, "input": {}})));
            let input = json!(tool.input).to_string();
            for (number, piece) in std::iter::once("".into()).chain(pieces(&input)).enumerate() {
                let wait = if number > 1 { self.turn.pace } else { zero };
                add(wait, &delta(index, &json!({"type": "input_json_delta", "partial_json": piece})));
            }
            add(zero, &json!({"type": "content_block_stop", "index": index}));
            (index, pause) = (index + 1, self.turn.pace);
        }
        let mut usage = self.usage(self.said());
        if let Some(usage) = usage.as_object_mut() {
            usage.retain(|key, _| key.ends_with("_tokens"));
        }
        let end = json!({"stop_reason": self.stop_reason(), "stop_sequence": null});
        add(zero, &json!({"type": "message_delta", "delta": end, "usage": usage}));
        add(zero, &json!({"type": "message_stop"}));
        events
    }

    fn tools(&self) -> impl Iterator<Item = (&String, &Tool)> {
        self.tool_ids.iter().zip(&self.turn.tools)
    }

    fn message(&self, content: &[Value], stop_reason: Option<&str>, said: u64) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": stop_reason, "stop_sequence": null, "usage": self.usage(said),
        })
    }

    fn usage(&self, said: u64) -> Value {
        let used = self.turn.used;
        json!({
            "input_tokens": used.input.unwrap_or(self.asked),
            "cache_creation_input_tokens": used.cache_write,
            "cache_read_input_tokens": used.cache_read,
            "cache_creation": {"ephemeral_5m_input_tokens": used.cache_write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": said,
        })
    }

    fn stop_reason(&self) -> &'static str {
        if self.turn.tools.is_empty() { "end_turn" } else { "tool_use" }
    }

    /// How much was said: what the scenario says, or about as many tokens as a model would count.
    fn said(&self) -> u64 {
        self.turn.used.output.unwrap_or_else(|| {
            let text = self.turn.text.as_ref().map_or(0, String::len);
            let tools = self.turn.tools.iter().map(|tool| json!(tool.input).to_string().len() + TOOL_BYTES);
            tokens(text + tools.sum::<usize>())
        })
    }
}

/// About how many tokens so many bytes are.
pub(super) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_PER_TOKEN + 1).unwrap_or(u64::MAX)
}

fn start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut characters = text.chars().peekable();
    std::iter::from_fn(move || {
        characters.peek()?;
        Some(characters.by_ref().take(PIECE).collect())
    })
}

fn cut_bytes(events: &mut Vec<(Duration, Bytes)>, bytes: u64) {
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    events.retain_mut(|(_, event)| {
        let any = left > 0;
        event.truncate(left);
        left -= event.len();
        any
    });
}

fn reply(kind: &'static str, pieces: Vec<(Duration, Bytes)>, cut: bool) -> Response<Reply> {
    let mut response = Response::new(StreamBody::new(timed(pieces, cut)).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The pieces one after another, and a broken connection at their end.
fn timed(
    pieces: Vec<(Duration, Bytes)>,
    cut: bool,
) -> impl Stream<Item = Result<Frame<Bytes>, CutError>> + Send {
    stream::unfold(Some(pieces.into_iter()), move |pieces| async move {
        let mut pieces = pieces?;
        if let Some((pause, piece)) = pieces.next() {
            if pause > Duration::ZERO {
                tokio::time::sleep(pause).await;
            }
            return Some((Ok(Frame::data(piece)), Some(pieces)));
        }
        if !cut {
            return None;
        }
        tokio::time::sleep(LEAVING).await;
        Some((Err(CutError::Scripted), None))
    })
}

#[cfg(test)]
mod tests;
