//! Rehearsal: a scripted model that speaks the Messages API, so that a whole run goes with no account, no key
//! and no internet. It keeps nothing: which turn comes next is read from the conversation that is sent.

mod scenario;
mod speech;
mod words;

use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body as _;
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::answer::{self, Reply};
use super::pass::Live;
use super::slot::Ask;
use super::transfer::Upload;
use super::wire::Scenario;
pub use scenario::scenario_names;
use speech::Speech;

/// The largest conversation that is taken, in bytes. A scripted one is far below it.
const LARGEST: usize = 8 * 1024 * 1024;
/// How long one may take to come.
const SLOWEST: Duration = Duration::from_secs(60);
/// A rough measure, enough for plausible numbers: bytes of JSON per token.
const BYTES_PER_TOKEN: usize = 4;

/// What is looked at of a request; the rest is skipped, not kept.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    model: String,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: serde_json::Value,
}

impl Asked {
    /// How many times the model has spoken so far. What stands in several messages in a row was said once.
    fn spoken(&self) -> usize {
        let mut before = "";
        let mut turns = 0;
        for message in &self.messages {
            if message.role == "assistant" && before != "assistant" {
                turns += 1;
            }
            before = &message.role;
        }
        turns
    }
}

fn named(live: &Live) -> Option<&str> {
    match live.bond.scenario.as_ref()? {
        Scenario::Named(name) => Some(name),
        Scenario::Text(_) => None,
    }
}

/// Answers a request to the rehearsal slot with the scenario that the pass is bound to.
pub(super) async fn answer(request: Request<Upload>, live: &Live, ask: Ask) -> Response<Reply> {
    let Some(scenario) = named(live).and_then(scenario::find) else {
        return answer::not_found();
    };
    match ask {
        Ask::Presence => answer::empty(StatusCode::OK),
        // Not a path of this slot, which speaks Anthropic's API.
        Ask::ChatCompletions | Ask::Responses => answer::not_found(),
        Ask::Models => answer::value(StatusCode::OK, &models()),
        Ask::CountTokens | Ask::Messages => {
            let (asked, tokens) = match read(request.into_body()).await {
                Ok(read) => read,
                Err(refused) => return refused,
            };
            if ask == Ask::CountTokens {
                return answer::value(StatusCode::OK, &serde_json::json!({ "input_tokens": tokens }));
            }
            // Titles and summaries are asked for without tools, beside the conversation.
            let mut turn =
                if asked.tools.is_empty() { scenario::aside() } else { scenario.turn(asked.spoken()) };
            if let Some(tool) = &mut turn.tool {
                let contents: Vec<_> = asked.messages.iter().map(|message| &message.content).collect();
                words::fill(&mut tool.input, &contents);
            }
            tracing::info!(pass = %live.id, run = %live.bond.run, turn = asked.spoken(), aside = asked.tools.is_empty(), "the scripted model answers");
            let speech = Speech::new(&asked.model, turn, tokens);
            if asked.stream { speech.stream() } else { speech.whole().await }
        }
    }
}

async fn read(body: Upload) -> Result<(Asked, usize), Response<Reply>> {
    let bad = |message: &str| answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", message);
    if body.size_hint().lower() > LARGEST as u64 {
        return Err(answer::too_large(LARGEST as u64));
    }
    let gathered = match tokio::time::timeout(SLOWEST, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(gathered)) => gathered.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(answer::too_large(LARGEST as u64));
        }
        Ok(Err(_)) => return Err(bad("worca: the request broke off")),
        Err(_) => {
            let message = "worca: the request took too long";
            return Err(answer::error(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message));
        }
    };
    let asked = serde_json::from_slice(&gathered)
        .map_err(|_| bad("worca: the rehearsal could not read this as a request for messages"))?;
    Ok((asked, gathered.len() / BYTES_PER_TOKEN + 1))
}

fn models() -> serde_json::Value {
    let data: Vec<_> = scenario_names()
        .map(|name| {
            serde_json::json!({
                "type": "model", "id": format!("rehearsal/{name}"), "display_name": format!("Rehearsal: {name}"),
                "created_at": "2026-01-01T00:00:00Z",
            })
        })
        .collect();
    serde_json::json!({ "data": data, "has_more": false, "first_id": null, "last_id": null })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_said_in_several_messages_counts_once() {
        let asked: Asked = serde_json::from_value(serde_json::json!({
            "model": "m", "unknown": {"deep": [1]}, "messages": [
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                {"role": "assistant", "content": [{"type": "tool_use"}]}, {"role": "user", "content": []},
                {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}]
        }))
        .unwrap();
        assert_eq!(asked.spoken(), 2);
        assert!(!asked.stream && asked.tools.is_empty());
    }
}
