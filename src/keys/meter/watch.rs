//! An answer on its way back: what the provider says of its use, how much can be seen of it until it says so, and
//! whether it went wrong. Each event is read as it goes by; none is kept.

use super::Counted;
use super::scan::{ITEM, Scalar, Scan};
use super::sse::{Events, Piece};
use crate::keys::slot::Api;

/// Bytes of visible text per token, until the provider says how many there are.
const BYTES_PER_TOKEN: u64 = 4;
/// The longest message of a failure that is kept, in characters.
const LONGEST_MESSAGE: usize = 200;
/// The longest name of a model or a kind of failure that is kept, in characters.
const LONGEST_NAME: usize = 128;
/// How a stream of chat completions ends.
const DONE: &[u8] = b"[DONE]";

/// Numbers the words of the answers, from 1, as a path has them.
macro_rules! words {
    ($($name:ident = $word:literal),* $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "they only number the constants")]
        #[repr(u8)]
        enum Numbers { _None, $($name),* }
        $(const $name: u8 = Numbers::$name as u8;)*
        const WORDS: &[&str] = &[$($word),*];
    };
}

words! {
    TYPE = "type", MODEL = "model", USAGE = "usage", MESSAGE = "message", RESPONSE = "response", DELTA = "delta",
    INPUT = "input_tokens", OUTPUT = "output_tokens", CACHE_READ = "cache_read_input_tokens",
    CACHE_WRITE = "cache_creation_input_tokens", CACHE_CREATION = "cache_creation",
    WRITE_5M = "ephemeral_5m_input_tokens", WRITE_1H = "ephemeral_1h_input_tokens", ITERATIONS = "iterations",
    SPEED = "speed", SERVICE_TIER = "service_tier", PROMPT = "prompt_tokens", COMPLETION = "completion_tokens",
    PROMPT_DETAILS = "prompt_tokens_details", INPUT_DETAILS = "input_tokens_details", CACHED = "cached_tokens",
    WRITTEN = "cache_write_tokens", TEXT = "text", THINKING = "thinking", PARTIAL_JSON = "partial_json",
    CHOICES = "choices", CONTENT = "content", REASONING = "reasoning", REASONING_CONTENT = "reasoning_content",
    REFUSAL = "refusal", TOOL_CALLS = "tool_calls", FUNCTION = "function", ARGUMENTS = "arguments",
    FINISH_REASON = "finish_reason", ERROR = "error", CODE = "code",
}

/// What went wrong, in the provider's words, cut to a length. Nothing is taken out of it yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::keys) struct Failure {
    pub(in crate::keys) kind: String,
    pub(in crate::keys) message: String,
}

/// How an answer ended that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::keys) enum End {
    /// It was all there.
    Whole,
    /// The provider said that it failed.
    Failed(Failure),
    /// It ended before it was over.
    Cut,
}

/// The observer of one answer.
#[derive(Debug)]
pub(in crate::keys) struct Watch {
    /// `None` for one JSON text.
    events: Option<Events>,
    scan: Scan,
    reader: Reader,
    /// The first bytes of the event's data.
    start: [u8; DONE.len()],
    started: usize,
    /// The bytes of the one JSON text so far.
    bytes: u64,
}

impl Watch {
    /// `events` says that an event stream comes; `first` is what is reckoned before the provider has said anything.
    pub(in crate::keys) fn new(api: Api, events: bool, first: Counted) -> Self {
        Self {
            events: events.then(Events::new),
            scan: Scan::new(WORDS),
            reader: Reader::new(api, first),
            start: [0; DONE.len()],
            started: 0,
            bytes: 0,
        }
    }

    /// Looks at the next piece, and says whether the count has changed.
    pub(in crate::keys) fn see(&mut self, data: &[u8]) -> bool {
        let Self { events, scan, reader, start, started, bytes } = self;
        let Some(events) = events else {
            *bytes = bytes.saturating_add(data.len() as u64);
            scan.push(data, &mut |path, scalar| reader.note(path, scalar));
            return scan.is_done() && reader.apply();
        };
        let mut changed = false;
        events.push(data, &mut |piece| match piece {
            Piece::Data(data) => {
                if let Some(free) = start.get_mut(*started..) {
                    for (place, byte) in free.iter_mut().zip(data) {
                        *place = *byte;
                        *started += 1;
                    }
                }
                scan.push(data, &mut |path, scalar| reader.note(path, scalar));
            }
            Piece::End => {
                if scan.is_done() {
                    changed |= reader.apply();
                } else {
                    reader.finished |= start.get(..*started) == Some(DONE);
                    reader.event = Event::default();
                }
                scan.restart();
                *started = 0;
            }
        });
        changed
    }

    /// What is counted so far.
    pub(in crate::keys) fn counted(&self) -> &Counted {
        &self.reader.counted
    }

    /// The answer's body has come to its end. What was counted may have changed once more.
    pub(in crate::keys) fn end(&mut self) -> End {
        let done = self.scan.is_done();
        if self.events.is_none() {
            self.reader.finished |= done;
            if !self.reader.said_all() {
                self.reader.event.text = self.bytes;
            }
            self.reader.apply();
        } else if done {
            // An event whose last empty line is missing.
            self.reader.apply();
        }
        match self.reader.failure.take() {
            Some(failure) => End::Failed(failure),
            None if self.reader.finished => End::Whole,
            None => End::Cut,
        }
    }
}

/// What an event says of its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    MessageStart,
    Last,
    Failed,
}

/// One account of use; what it does not say is `None`.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    input: Option<u64>,
    output: Option<u64>,
    write: Option<u64>,
    write_5m: Option<u64>,
    write_1h: Option<u64>,
    read: Option<u64>,
}

impl Usage {
    fn place(&mut self, path: &[u8]) -> Option<&mut Option<u64>> {
        match path {
            [INPUT | PROMPT] => Some(&mut self.input),
            [OUTPUT | COMPLETION] => Some(&mut self.output),
            [CACHE_WRITE] | [PROMPT_DETAILS | INPUT_DETAILS, WRITTEN] => Some(&mut self.write),
            [CACHE_CREATION, WRITE_5M] => Some(&mut self.write_5m),
            [CACHE_CREATION, WRITE_1H] => Some(&mut self.write_1h),
            [CACHE_READ] | [PROMPT_DETAILS | INPUT_DETAILS, CACHED] => Some(&mut self.read),
            _ => None,
        }
    }
    fn each(&mut self, other: &Self, how: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.write, other.write),
            (&mut self.write_5m, other.write_5m),
            (&mut self.write_1h, other.write_1h),
            (&mut self.read, other.read),
        ];
        for (own, other) in pairs {
            *own = match (*own, other) {
                (Some(own), Some(other)) => Some(how(own, other)),
                (own, other) => other.or(own),
            };
        }
    }
}

/// What the event that goes by has said so far.
#[derive(Debug, Default)]
struct Event {
    kind: Kind,
    usage: Usage,
    /// What rounds inside the call used, added up.
    rounds: Usage,
    fast: Option<bool>,
    text: u64,
    failure: Option<Failure>,
    /// A message and a code beside the type, which mean a failure only when the type says so.
    aside: Failure,
}

#[derive(Debug)]
struct Reader {
    api: Api,
    counted: Counted,
    event: Event,
    usage: Usage,
    /// Output tokens of which the provider spoke when it began.
    floor: u64,
    /// Visible text since the provider last said how much there is, in bytes.
    visible: u64,
    finished: bool,
    failure: Option<Failure>,
}

impl Reader {
    fn new(api: Api, first: Counted) -> Self {
        Self {
            api,
            counted: first,
            event: Event::default(),
            usage: Usage::default(),
            floor: 0,
            visible: 0,
            finished: false,
            failure: None,
        }
    }

    /// Whether the provider has said how much input and output there is.
    fn said_all(&self) -> bool {
        let said = |usage: &Usage| usage.input.is_some() && usage.output.is_some();
        said(&self.usage) || said(&self.event.usage)
    }

    fn note(&mut self, path: &[u8], scalar: Scalar<'_>) {
        let event = &mut self.event;
        match (path, scalar) {
            ([USAGE, rest @ ..] | [MESSAGE | RESPONSE, USAGE, rest @ ..], scalar) => {
                event.account(rest, scalar);
            }
            ([TYPE], Scalar::Text { start, .. }) => {
                event.kind = match start {
                    b"message_start" => Kind::MessageStart,
                    b"message_stop" | b"response.completed" | b"response.incomplete" => Kind::Last,
                    b"error" | b"response.failed" => Kind::Failed,
                    _ => Kind::Other,
                };
            }
            (
                [DELTA]
                | [DELTA, TEXT | THINKING | PARTIAL_JSON]
                | [CHOICES, ITEM, DELTA, CONTENT | REASONING | REASONING_CONTENT | REFUSAL]
                | [CHOICES, ITEM, DELTA, TOOL_CALLS, ITEM, FUNCTION, ARGUMENTS],
                Scalar::Text { bytes, .. },
            ) => event.text = event.text.saturating_add(bytes),
            // It stands in each chunk of a chat: a copy is made of another one alone.
            ([MODEL] | [MESSAGE | RESPONSE, MODEL], Scalar::Text { start, .. })
                if self.counted.model.as_deref().map(str::as_bytes) != Some(start) =>
            {
                self.counted.model = Some(words(start, LONGEST_NAME)).filter(|model| !model.is_empty());
            }
            ([CHOICES, ITEM, FINISH_REASON], Scalar::Text { .. }) => self.finished = true,
            ([SERVICE_TIER] | [RESPONSE, SERVICE_TIER], Scalar::Text { start, .. })
                if self.api == Api::Openai =>
            {
                event.fast = Some(matches!(start, b"priority" | b"fast"));
            }
            ([ERROR, TYPE] | [RESPONSE, ERROR, TYPE], scalar) => {
                event.failed(|failure| &mut failure.kind, scalar);
            }
            // The type says it better, where there is one.
            ([ERROR, CODE] | [RESPONSE, ERROR, CODE], scalar)
                if event.failure.as_ref().is_none_or(|failure| failure.kind.is_empty()) =>
            {
                event.failed(|failure| &mut failure.kind, scalar);
            }
            ([ERROR, MESSAGE] | [ERROR] | [RESPONSE, ERROR, MESSAGE], scalar) => {
                event.failed(|failure| &mut failure.message, scalar);
            }
            ([CODE], Scalar::Text { start, .. }) => event.aside.kind = words(start, LONGEST_NAME),
            ([MESSAGE], Scalar::Text { start, .. }) => event.aside.message = words(start, LONGEST_MESSAGE),
            _ => {}
        }
    }

    /// The event is whole: what it said holds. Says whether the count has changed.
    fn apply(&mut self) -> bool {
        let mut event = std::mem::take(&mut self.event);
        if event.kind == Kind::Failed {
            self.failure = Some(event.failure.unwrap_or(event.aside));
        } else if event.failure.is_some() {
            self.failure = event.failure;
        }
        self.finished |= event.kind == Kind::Last;
        self.visible = self.visible.saturating_add(event.text);
        event.usage.each(&event.rounds, u64::max);
        if event.kind == Kind::MessageStart {
            self.floor = event.usage.output.take().unwrap_or(0);
        } else if event.usage.output.is_some() {
            self.visible = 0;
            self.finished |= self.api == Api::Openai;
        }
        self.usage.each(&event.usage, |_, new| new);
        self.counted.fast = event.fast.unwrap_or(self.counted.fast);
        self.count()
    }

    fn count(&mut self) -> bool {
        let usage = &self.usage;
        let mut new = Counted { model: None, ..self.counted };
        if let Some(input) = usage.input {
            new.cache_read = usage.read.unwrap_or(0);
            new.cache_write_1h = usage.write_1h.unwrap_or(0);
            // What is not said to be kept for long is kept for the shorter time.
            let short = usage.write.unwrap_or(0).saturating_sub(new.cache_write_1h);
            new.cache_write_5m = short.max(usage.write_5m.unwrap_or(0));
            new.input = match self.api {
                Api::Anthropic => input,
                Api::Openai => input.saturating_sub(new.cache_read).saturating_sub(new.cache_write_5m),
            };
        }
        let visible = self.visible.div_ceil(BYTES_PER_TOKEN);
        new.output = match usage.output {
            Some(said) => said.saturating_add(visible),
            None => visible.max(self.floor),
        };
        new.estimated = usage.input.is_none() || usage.output.is_none() || visible > 0;
        let model = self.counted.model.take();
        let changed = new != self.counted;
        new.model = model;
        self.counted = new;
        changed
    }
}

impl Event {
    fn account(&mut self, path: &[u8], scalar: Scalar<'_>) {
        match (path, scalar) {
            ([ITERATIONS, ITEM, rest @ ..], Scalar::Number(Some(tokens))) => {
                if let Some(place) = self.rounds.place(rest) {
                    *place = Some(place.unwrap_or(0).saturating_add(tokens));
                }
            }
            ([SPEED], Scalar::Text { start, .. }) => self.fast = Some(start == b"fast"),
            (path, Scalar::Number(Some(tokens))) => {
                if let Some(place) = self.usage.place(path) {
                    *place = Some(tokens);
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, place: impl Fn(&mut Failure) -> &mut String, scalar: Scalar<'_>) {
        let text = match scalar {
            Scalar::Text { start, .. } => words(start, LONGEST_MESSAGE),
            Scalar::Number(Some(number)) => number.to_string(),
            Scalar::Number(None) | Scalar::Bool(_) | Scalar::Null => return,
        };
        *place(self.failure.get_or_insert_default()) = text;
    }
}

/// A text of the provider's, for people: on one line, and not too long.
fn words(bytes: &[u8], most: usize) -> String {
    // What was cut off inside a character is left away.
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches(char::REPLACEMENT_CHARACTER)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most)
        .collect()
}
