//! Scenario files: what the scripted model says and does, turn by turn. docs/rehearsal.md describes the format;
//! unknown keys are errors, and every error says where it stands.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};

use super::script::{ErrorEvent, Failure, Fault, Place, Script, Tool, Turn, Used};

/// The version of the format that this program reads.
const VERSION: u32 = 1;
/// The largest text, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// The most answers, each repetition counted.
const MOST_TURNS: usize = 2000;
/// The most values and keys in all, so that a small text does not swell in memory.
const MOST_NODES: usize = 16_384;
/// The deepest nesting.
const DEEPEST: usize = 32;
/// The most tools in one answer.
const MOST_TOOLS: usize = 16;
/// The longest tool name, message and `about`, in bytes.
const LONGEST_NAME: usize = 128;
const LONGEST_MESSAGE: usize = 1000;
const LONGEST_PAUSE_MS: u64 = 60_000;
const LONGEST_PACE_MS: u64 = 5_000;
const LONGEST_RETRY: u64 = 3600;
const MOST_CALLS: u64 = 1000;
const MOST_TOKENS: u64 = 100_000_000;
const MOST_EVENTS: u64 = 1_000_000;

const EMBEDDED: [(&str, &str); 4] = [
    ("attack", include_str!("../../../scenarios/attack.yaml")),
    ("hello", include_str!("../../../scenarios/hello.yaml")),
    ("review", include_str!("../../../scenarios/review.yaml")),
    ("slow", include_str!("../../../scenarios/slow.yaml")),
];

static PARSED: LazyLock<BTreeMap<&'static str, Arc<Script>>> = LazyLock::new(|| {
    let parse = |(name, text): (&'static str, &str)| match parse(text) {
        Ok(script) => Some((name, Arc::new(script))),
        Err(error) => {
            tracing::error!(name, %error, "a built-in scenario cannot be read");
            None
        }
    };
    EMBEDDED.into_iter().filter_map(parse).collect()
});

/// The statuses that a scenario may answer with, and the type of error that the Messages API gives with each.
const STATUSES: [(u16, &str); 6] = [
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (403, "permission_error"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (529, "overloaded_error"),
];

/// The names of the scenarios that can be asked for.
pub fn scenario_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.into_iter().map(|(name, _)| name)
}

/// Whether a text is a scenario that the rehearsal slot plays.
///
/// # Errors
/// When it is none: a sentence that begins with the place.
pub fn check_scenario(text: &str) -> Result<(), String> {
    parse(text).map(drop).map_err(|error| error.to_string())
}

/// The built-in scenario of this name.
pub(super) fn find(name: &str) -> Option<Arc<Script>> {
    PARSED.get(name).cloned()
}

/// A text is no scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScenarioError {
    #[error("it is larger than {} KiB", MOST_BYTES / 1024)]
    Large,
    #[error("line {line}, column {column}: {what}")]
    Wrong { line: u64, column: u64, what: String },
}

/// What is wrong, and where.
type Wrong = (Location, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    about: Option<Spanned<String>>,
    turns: Spanned<Vec<Spanned<FileTurn>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTurn {
    text: Option<String>,
    tool: Option<FileTool>,
    tools: Option<Spanned<Vec<FileTool>>>,
    pause_ms: Option<Spanned<u64>>,
    pace_ms: Option<Spanned<u64>>,
    repeat: Option<Spanned<u64>>,
    usage: Option<FileUsed>,
    fail: Option<FileFail>,
    cut: Option<Spanned<FileCut>>,
    error_event: Option<FileError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTool {
    name: Spanned<String>,
    input: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUsed {
    input: Option<Spanned<u64>>,
    output: Option<Spanned<u64>>,
    cache_read: Option<Spanned<u64>>,
    cache_write: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFail {
    status: Spanned<u16>,
    message: Option<Spanned<String>>,
    retry_after: Option<Spanned<u64>>,
    calls: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCut {
    after_events: Option<Spanned<u64>>,
    after_bytes: Option<Spanned<u64>>,
    calls: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileError {
    r#type: Spanned<String>,
    message: Option<Spanned<String>>,
    after_events: Option<Spanned<u64>>,
    calls: Option<Spanned<u64>>,
}

/// Reads a scenario.
pub(crate) fn parse(text: &str) -> Result<Script, ScenarioError> {
    if text.len() > MOST_BYTES {
        return Err(ScenarioError::Large);
    }
    // A scenario needs no aliases, and a small text could swell with them.
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 0 },
        budget: serde_saphyr::budget! { max_depth: DEEPEST, max_nodes: MOST_NODES },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| (error.location().unwrap_or(Location::UNKNOWN), in_our_words(&error)))
        .and_then(script)
        .map_err(|(location, what)| ScenarioError::Wrong {
            line: location.line().max(1),
            column: location.column().max(1),
            what,
        })
}

/// What the reader of YAML says, without what it quotes of the text over several lines.
fn in_our_words(error: &serde_saphyr::Error) -> String {
    let said = error.without_snippet().to_string();
    let said = said.lines().next().unwrap_or_default();
    // The place stands in front already.
    let said = said.split(" at line ").next().unwrap_or(said).trim_end_matches(':');
    if said.starts_with("alias") {
        return "no alias of YAML is taken: write the value out where it is meant".to_owned();
    }
    let said = said.replacen("unknown field", "there is no key", 1).replacen(", expected", "; expected", 1);
    said.chars().take(300).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn script(file: File) -> Result<Script, Wrong> {
    if file.version.value != VERSION {
        let what =
            format!("it is of version {}, and this program reads version {VERSION}", file.version.value);
        return Err((file.version.referenced, what));
    }
    if let Some(about) = file.about {
        short(about, "about", LONGEST_MESSAGE)?;
    }
    let all = file.turns.referenced;
    let mut turns = Vec::new();
    let mut answers = 0usize;
    let mut ends = Err((all, "it has no turns".to_owned()));
    for spanned in file.turns.value {
        let at = spanned.referenced;
        let repeat = within(spanned.value.repeat.as_ref(), "repeat", 1, MOST_TURNS as u64)?.unwrap_or(1);
        let repeat = usize::try_from(repeat).unwrap_or(MOST_TURNS);
        answers += repeat;
        if answers > MOST_TURNS {
            return Err((at, format!("there are more than {MOST_TURNS} turns, with their repetitions")));
        }
        let turn = turn(spanned.value, at)?;
        ends = if turn.tools.is_empty() {
            Ok(())
        } else {
            Err((at, "the last turn uses a tool, so that the conversation never ends".to_owned()))
        };
        turns.push((turn, repeat));
    }
    ends?;
    Ok(Script::new(turns))
}

fn turn(turn: FileTurn, at: Location) -> Result<Turn, Wrong> {
    if turn.tool.is_some() && turn.tools.is_some() {
        return Err((at, "a turn has `tool` or `tools`, not both".into()));
    }
    let several = match turn.tools {
        Some(several) if several.value.is_empty() || several.value.len() > MOST_TOOLS => {
            return Err((several.referenced, format!("`tools` is a list of 1 to {MOST_TOOLS}")));
        }
        several => several.map(|several| several.value).unwrap_or_default(),
    };
    let tools = turn.tool.into_iter().chain(several).map(tool).collect::<Result<Vec<_>, _>>()?;
    if turn.text.as_ref().is_none_or(String::is_empty) && tools.is_empty() {
        return Err((at, "a turn says something (`text`) or uses a tool (`tool`, `tools`)".into()));
    }
    let pause = within(turn.pause_ms.as_ref(), "pause_ms", 0, LONGEST_PAUSE_MS)?.unwrap_or(0);
    let pace = within(turn.pace_ms.as_ref(), "pace_ms", 0, LONGEST_PACE_MS)?.unwrap_or(0);
    let used = turn.usage.map(used).transpose()?.unwrap_or_default();
    let faults = [
        turn.fail.map(failure).transpose()?,
        turn.cut.map(cut).transpose()?,
        turn.error_event.map(error_event).transpose()?,
    ];
    Ok(Turn {
        text: turn.text.filter(|text| !text.is_empty()),
        tools,
        pause: Duration::from_millis(pause),
        pace: Duration::from_millis(pace),
        used,
        faults: faults.into_iter().flatten().collect(),
    })
}

fn tool(tool: FileTool) -> Result<Tool, Wrong> {
    let at = tool.name.referenced;
    let name = short(tool.name, "name", LONGEST_NAME)?;
    if name.is_empty() {
        return Err((at, "a tool has a name".into()));
    }
    Ok(Tool { name, input: tool.input })
}

fn used(used: FileUsed) -> Result<Used, Wrong> {
    let tokens = |value: Option<Spanned<u64>>, key: &'static str| within(value.as_ref(), key, 0, MOST_TOKENS);
    Ok(Used {
        input: tokens(used.input, "input")?,
        output: tokens(used.output, "output")?,
        cache_read: tokens(used.cache_read, "cache_read")?.unwrap_or(0),
        cache_write: tokens(used.cache_write, "cache_write")?.unwrap_or(0),
    })
}

fn failure(fail: FileFail) -> Result<(Fault, u32), Wrong> {
    let Some((status, kind)) = STATUSES.into_iter().find(|(status, _)| *status == fail.status.value) else {
        let known: Vec<String> = STATUSES.iter().map(|(status, _)| status.to_string()).collect();
        return Err((fail.status.referenced, format!("`status` is one of {}", known.join(", "))));
    };
    let message = said(fail.message)?;
    let retry_after = within(fail.retry_after.as_ref(), "retry_after", 0, LONGEST_RETRY)?;
    Ok((Fault::Fail(Failure { status, kind, message, retry_after }), calls(fail.calls.as_ref())?))
}

fn cut(cut: Spanned<FileCut>) -> Result<(Fault, u32), Wrong> {
    let Spanned { value: cut, referenced: at, .. } = cut;
    let events = within(cut.after_events.as_ref(), "after_events", 0, MOST_EVENTS)?;
    let bytes = within(cut.after_bytes.as_ref(), "after_bytes", 0, MOST_EVENTS)?;
    let place = match (events, bytes) {
        (Some(events), None) => Place::Events(events),
        (None, Some(bytes)) => Place::Bytes(bytes),
        (Some(_), Some(_)) | (None, None) => {
            return Err((at, "`cut` has `after_events` or `after_bytes`, one of them".into()));
        }
    };
    Ok((Fault::Cut(place), calls(cut.calls.as_ref())?))
}

fn error_event(error: FileError) -> Result<(Fault, u32), Wrong> {
    let Some((status, kind)) = STATUSES.into_iter().find(|(_, kind)| *kind == error.r#type.value) else {
        let known: Vec<&str> = STATUSES.iter().map(|(_, kind)| *kind).collect();
        return Err((error.r#type.referenced, format!("`type` is one of {}", known.join(", "))));
    };
    let after = within(error.after_events.as_ref(), "after_events", 1, MOST_EVENTS)?.unwrap_or(1);
    let failure = Failure { status, kind, message: said(error.message)?, retry_after: None };
    Ok((Fault::Error(ErrorEvent { after, failure }), calls(error.calls.as_ref())?))
}

/// How many calls something goes wrong with.
fn calls(calls: Option<&Spanned<u64>>) -> Result<u32, Wrong> {
    let calls = within(calls, "calls", 1, MOST_CALLS)?.unwrap_or(1);
    Ok(u32::try_from(calls).unwrap_or(u32::MAX))
}

fn said(message: Option<Spanned<String>>) -> Result<String, Wrong> {
    let message = message.map(|message| short(message, "message", LONGEST_MESSAGE)).transpose()?;
    Ok(message.unwrap_or_else(|| "The scenario says so".to_owned()))
}

fn short(text: Spanned<String>, key: &str, most: usize) -> Result<String, Wrong> {
    if text.value.len() > most {
        return Err((text.referenced, format!("`{key}` is longer than {most} bytes")));
    }
    Ok(text.value)
}

fn within(value: Option<&Spanned<u64>>, key: &str, least: u64, most: u64) -> Result<Option<u64>, Wrong> {
    match value {
        Some(value) if !(least..=most).contains(&value.value) => {
            Err((value.referenced, format!("`{key}` is a number from {least} to {most}")))
        }
        value => Ok(value.map(|value| value.value)),
    }
}

#[cfg(test)]
mod tests;
