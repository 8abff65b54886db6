//! Claude Code's `stream-json` output as typed events. What stands there was written by a model, by tools and by
//! whatever they read: no line may panic, block or grow past its limits, and no secret leaves in an event.

use serde_json::Value;

use crate::secret::Secret;
use crate::spawn::Line;

/// Longest text of one event, in characters; the rest is cut with `…`.
const MAX_TEXT: usize = 200_000;
/// Longest one-line summary, in characters.
const MAX_SUMMARY: usize = 240;
/// Most events of one line.
const MAX_BLOCKS: usize = 1_000;
/// What stands in a secret's place.
const SCRUBBED: &str = "[pass]";

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session began (or went on after a task in the background).
    Started {
        /// For `--resume`.
        session: String,
        /// The model that the program chose.
        model: String,
        /// The version that the program states.
        version: String,
    },
    /// The model said something.
    Text {
        /// Untrusted text.
        text: String,
        /// Said by a sub-agent.
        sub_agent: bool,
    },
    /// The model asks for a tool.
    ToolUse {
        /// Of this call.
        id: String,
        /// Of the tool.
        name: String,
        /// One line: the command, the path.
        summary: String,
        /// Asked for by a sub-agent.
        sub_agent: bool,
    },
    /// What a tool answered.
    ToolResult {
        /// Of the call.
        id: String,
        /// It failed or was denied.
        is_error: bool,
        /// Its first line.
        summary: String,
    },
    /// A tool call was refused.
    Denied {
        /// The tool.
        tool: String,
        /// The reason that the model saw.
        reason: String,
    },
    /// The endpoint did not answer well and is asked again.
    Retry {
        /// From 1.
        attempt: u64,
        /// The last one.
        of: u64,
        /// HTTP status, when there was one.
        status: Option<u64>,
    },
    /// The program is done. There can be more than one; the last counts.
    Finished(Box<Finish>),
    /// A line of another kind.
    Other {
        /// Its `type`, and `subtype` after a slash.
        kind: String,
    },
    /// A line that is not an event: not JSON, or cut because it was too long.
    Unreadable {
        /// In words, with the beginning of the line.
        note: String,
    },
}

/// The last line of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finish {
    /// For `--resume`.
    pub session: String,
    /// It failed. `subtype` alone says `success` also then.
    pub is_error: bool,
    /// `success`, `error_max_turns`, …
    pub subtype: String,
    /// The last text, or the error's.
    pub text: String,
    /// Model turns.
    pub turns: u64,
    /// In milliseconds.
    pub duration_ms: u64,
    /// In US dollars, by the program's own price list; an estimate.
    pub cost_usd: Option<f64>,
    /// Tokens of the whole session.
    pub usage: Usage,
    /// Tools whose calls were denied, one entry per call.
    pub denied: Vec<String>,
}

impl Finish {
    /// Whether the agent says that it is done and well.
    pub fn succeeded(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read afresh.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Put into the cache.
    pub cache_write: u64,
}

/// Reads lines; knows what must not pass.
pub struct Parser {
    secrets: Vec<Secret>,
}

impl Parser {
    /// `secrets` (the pass) are replaced wherever they stand, also where JSON escapes hid them. An encoding of one
    /// (base 64, reversed) is not recognised: the pass dies with the agent.
    pub fn new(secrets: Vec<Secret>) -> Self {
        Self { secrets: secrets.into_iter().filter(|secret| secret.expose().len() >= 8).collect() }
    }

    /// Replaces the secrets in any other text of the agent (its standard error).
    pub fn scrub(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.expose()) { text.replace(secret.expose(), SCRUBBED) } else { text }
        })
    }

    /// The events of one line; none for an empty one.
    pub fn parse(&self, line: &Line) -> Vec<Event> {
        let text = line.text();
        let text = text.trim();
        if text.is_empty() && line.dropped == 0 {
            return Vec::new();
        }
        let unreadable = |why: &str| {
            let start = summary(&self.scrub(&text.chars().take(2_000).collect::<String>()));
            vec![Event::Unreadable { note: format!("{why}: {start}") }]
        };
        if line.dropped > 0 {
            return unreadable(&format!("a line that is {} bytes too long", line.dropped));
        }
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return unreadable("a line that is not JSON");
        };
        if !value.is_object() {
            return unreadable("a line that is not an event");
        }
        self.scrub_value(&mut value);
        read(&value)
    }

    /// Depth is bounded by the JSON reader (128).
    fn scrub_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if self.secrets.iter().any(|secret| text.contains(secret.expose())) {
                    *text = self.scrub(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.scrub_value(item)),
            Value::Object(fields) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                for name in names {
                    let clean = self.scrub(&name);
                    if clean != name
                        && let Some(inner) = fields.remove(&name)
                    {
                        fields.insert(clean.clone(), inner);
                    }
                    if let Some(inner) = fields.get_mut(&clean) {
                        self.scrub_value(inner);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn read(value: &Value) -> Vec<Event> {
    let (kind, subtype) = (word(value, "type"), word(value, "subtype"));
    match (kind.as_str(), subtype.as_str()) {
        ("system", "init") => vec![Event::Started {
            session: word(value, "session_id"),
            model: word(value, "model"),
            version: word(value, "claude_code_version"),
        }],
        ("system", "permission_denied") => {
            vec![Event::Denied {
                tool: word(value, "tool_name"),
                reason: cut(text_of(value.get("message")), MAX_SUMMARY * 4),
            }]
        }
        ("system", "api_retry") => vec![Event::Retry {
            attempt: number(value, "attempt"),
            of: number(value, "max_retries"),
            status: value.get("error_status").and_then(Value::as_u64),
        }],
        ("assistant" | "user", _) => message(value, kind == "assistant"),
        ("result", _) => vec![Event::Finished(Box::new(finish(value)))],
        _ => vec![Event::Other { kind: if subtype.is_empty() { kind } else { format!("{kind}/{subtype}") } }],
    }
}

fn message(value: &Value, assistant: bool) -> Vec<Event> {
    let sub_agent = value.get("parent_tool_use_id").is_some_and(Value::is_string);
    let content = value.pointer("/message/content");
    let blocks = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut events: Vec<Event> = blocks
        .iter()
        .take(MAX_BLOCKS)
        .filter_map(|block| match word(block, "type").as_str() {
            "text" if assistant => {
                Some(Event::Text { text: cut(text_of(block.get("text")), MAX_TEXT), sub_agent })
            }
            "tool_use" if assistant => Some(Event::ToolUse {
                id: word(block, "id"),
                name: word(block, "name"),
                summary: tool_summary(block.get("input").unwrap_or(&Value::Null)),
                sub_agent,
            }),
            "tool_result" if !assistant => Some(Event::ToolResult {
                id: word(block, "tool_use_id"),
                is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
                summary: summary(text_of(block.get("content"))),
            }),
            _ => None,
        })
        .collect();
    if events.is_empty() {
        events.push(Event::Other { kind: word(value, "type") });
    }
    events
}

fn finish(value: &Value) -> Finish {
    let usage = value.get("usage").unwrap_or(&Value::Null);
    let denials =
        value.get("permission_denials").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Finish {
        session: word(value, "session_id"),
        // A result that does not say is not a success.
        is_error: value.get("is_error").and_then(Value::as_bool).unwrap_or(true),
        subtype: word(value, "subtype"),
        text: cut(text_of(value.get("result")), MAX_TEXT),
        turns: number(value, "num_turns"),
        duration_ms: number(value, "duration_ms"),
        cost_usd: value
            .get("total_cost_usd")
            .and_then(Value::as_f64)
            .filter(|cost| cost.is_finite() && *cost >= 0.0),
        usage: Usage {
            input: number(usage, "input_tokens"),
            output: number(usage, "output_tokens"),
            cache_read: number(usage, "cache_read_input_tokens"),
            cache_write: number(usage, "cache_creation_input_tokens"),
        },
        denied: denials.iter().take(MAX_BLOCKS).map(|denial| word(denial, "tool_name")).collect(),
    }
}

fn tool_summary(input: &Value) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "notebook_path", "description", "url", "query", "pattern", "path", "skill"];
    TELLING.iter().find_map(|name| input.get(name).and_then(Value::as_str)).map(summary).unwrap_or_default()
}

/// The text of a string or of the text blocks of a list.
fn text_of(value: Option<&Value>) -> &str {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Array(blocks)) => {
            blocks.iter().find_map(|block| block.get("text")?.as_str()).unwrap_or("")
        }
        _ => "",
    }
}

fn word(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).map(summary).unwrap_or_default()
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// The first line that says something, without control characters.
fn summary(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let clean: String = line.chars().take(MAX_SUMMARY + 1).filter(|letter| !letter.is_control()).collect();
    cut(&clean, MAX_SUMMARY)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
