//! A scripted model: speaks as much of the Messages API as the real agent program needs, keeps every request, and
//! answers each conversation with the next step of the script that fits its first words.

#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

/// One turn of the model.
#[derive(Clone)]
pub enum Step {
    Tool(&'static str, Value),
    Say(String),
}

/// What came in.
#[derive(Clone)]
pub struct Request {
    pub headers: HeaderMap,
    pub body: Value,
}

struct Inner {
    scripts: Vec<(&'static str, Vec<Step>)>,
    requests: Mutex<Vec<Request>>,
    refuse: Option<u16>,
}

/// The running server; it ends with this value.
pub struct Model {
    pub url: String,
    inner: Arc<Inner>,
    _serving: tokio::task::JoinSet<()>,
}

impl Model {
    /// `scripts`: words of the first user message, and the steps of that conversation. A conversation with no
    /// script, or after its last step, is told `done`.
    pub async fn start(scripts: Vec<(&'static str, Vec<Step>)>) -> Self {
        Self::with(scripts, None).await
    }

    /// Answers every request with this status.
    pub async fn refusing(status: u16) -> Self {
        Self::with(Vec::new(), Some(status)).await
    }

    async fn with(scripts: Vec<(&'static str, Vec<Step>)>, refuse: Option<u16>) -> Self {
        let inner = Arc::new(Inner { scripts, requests: Mutex::default(), refuse });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new()
            .fallback(axum::routing::any(answer))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(Arc::clone(&inner));
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, inner, _serving: serving }
    }

    /// All requests for messages until now.
    pub fn requests(&self) -> Vec<Request> {
        self.inner.requests.lock().unwrap().clone()
    }

    /// Everything that was sent, as one text.
    pub fn heard(&self) -> String {
        self.requests().iter().map(|request| request.body.to_string()).collect()
    }
}

async fn answer(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
    body: Bytes,
) -> axum::response::Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else { return StatusCode::OK.into_response() };
    inner.requests.lock().unwrap().push(Request { headers, body: body.clone() });
    if let Some(status) = inner.refuse {
        let text = json!({ "type": "error", "error": { "type": "permission_error", "message": "this pass is not valid here" }});
        let status = StatusCode::from_u16(status).unwrap();
        return (status, [(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response();
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let first = messages.first().map(|message| message["content"].to_string()).unwrap_or_default();
    let results = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .count();
    let script =
        inner.scripts.iter().find(|(words, _)| first.contains(words)).map(|(_, steps)| steps.as_slice());
    let step = script.unwrap_or_default().get(results).cloned().unwrap_or(Step::Say("done".into()));
    let unique = worca::ids::SpawnId::random();
    let (block, delta, stop) = match step {
        Step::Tool(name, input) => (
            json!({ "type": "tool_use", "id": format!("toolu_{unique}"), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        Step::Say(text) => {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }), "end_turn")
        }
    };
    let events = [
        json!({ "type": "message_start", "message": {
            "id": format!("msg_{unique}"), "type": "message", "role": "assistant", "model": body["model"], "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ];
    let text: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
}
