//! A request's body on its way out: which model it asks for and how much that may answer, from a scan that keeps
//! nothing else of up to 32 MB.

use super::Asked;
use super::scan::{ITEM, Scalar, Scan};

const MODEL: u8 = 1;
const MAX_TOKENS: u8 = 2;
const MAX_COMPLETION_TOKENS: u8 = 3;
const MAX_OUTPUT_TOKENS: u8 = 4;
const STREAM: u8 = 5;
const SPEED: u8 = 6;
const SERVICE_TIER: u8 = 7;
const N: u8 = 8;
const TOOLS: u8 = 9;
const MODELS: u8 = 10;
const WORDS: &[&str] = &[
    "model",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "stream",
    "speed",
    "service_tier",
    "n",
    "tools",
    "models",
];
/// The most answers that OpenAI's API gives to one request.
const MOST_ANSWERS: u64 = 128;
/// The longest name of a model, in bytes.
const LONGEST_MODEL: u64 = 200;

/// A request that this service does not send on, because it cannot tell what it would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::keys) enum UnclearError {
    #[error("the request is not JSON")]
    NoJson,
    #[error("the request names two models")]
    TwoModels,
    #[error("the request's `model` is no name of a model")]
    NoName,
}

/// The scan of one body.
#[derive(Debug)]
pub(in crate::keys) struct RequestScan {
    scan: Scan,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    model: Option<String>,
    others: Vec<String>,
    most_output: Option<u64>,
    /// A limit stands there that is no number which this scan can read.
    unlimited: bool,
    answers: u64,
    stream: bool,
    fast: bool,
    unclear: Option<UnclearError>,
}

impl RequestScan {
    pub(in crate::keys) fn new() -> Self {
        Self { scan: Scan::new(WORDS), found: Found::default() }
    }
    /// Looks at the next piece.
    pub(in crate::keys) fn push(&mut self, data: &[u8]) {
        let found = &mut self.found;
        self.scan.push(data, &mut |path, scalar| found.note(path, scalar));
    }
    /// What is asked for, once the whole request has come. `bytes` is its length.
    pub(in crate::keys) fn asked(&mut self, bytes: u64) -> Result<Asked, UnclearError> {
        if let Some(unclear) = self.found.unclear {
            return Err(unclear);
        }
        if !self.scan.is_done() {
            return Err(UnclearError::NoJson);
        }
        let found = std::mem::take(&mut self.found);
        Ok(Asked {
            model: found.model,
            others: found.others,
            most_output: found.most_output.filter(|_| !found.unlimited),
            answers: found.answers.max(1),
            body_bytes: bytes,
            fast: found.fast,
            stream: found.stream,
        })
    }
}

impl Found {
    fn note(&mut self, path: &[u8], scalar: Scalar<'_>) {
        match (path, scalar) {
            ([MODEL], Scalar::Null) => {}
            ([MODEL], scalar) => match name(scalar) {
                None => self.unclear = Some(UnclearError::NoName),
                Some(name) if self.model.as_ref().is_some_and(|model| *model != name) => {
                    self.unclear = Some(UnclearError::TwoModels);
                }
                Some(name) => self.model = Some(name),
            },
            // A model that stands in when the first one is busy, or that a tool of the provider's asks.
            ([MODELS, ITEM] | [TOOLS, ITEM, MODEL], scalar) => match name(scalar) {
                Some(name) if !self.others.contains(&name) => {
                    if self.others.len() < 16 {
                        self.others.push(name);
                    } else {
                        self.unclear = Some(UnclearError::TwoModels);
                    }
                }
                Some(_) => {}
                None => self.unclear = Some(UnclearError::NoName),
            },
            ([MAX_TOKENS | MAX_COMPLETION_TOKENS | MAX_OUTPUT_TOKENS], Scalar::Number(Some(most))) => {
                self.most_output = Some(self.most_output.unwrap_or(0).max(most));
            }
            ([MAX_TOKENS | MAX_COMPLETION_TOKENS | MAX_OUTPUT_TOKENS], Scalar::Null) => {}
            ([MAX_TOKENS | MAX_COMPLETION_TOKENS | MAX_OUTPUT_TOKENS], _) => self.unlimited = true,
            ([N], Scalar::Null) => {}
            ([N], Scalar::Number(Some(answers))) => self.answers = self.answers.max(answers),
            ([N], _) => self.answers = self.answers.max(MOST_ANSWERS),
            ([STREAM], Scalar::Bool(stream)) => self.stream = stream,
            ([SPEED | SERVICE_TIER], Scalar::Text { start, .. }) => {
                self.fast |= matches!(start, b"fast" | b"priority");
            }
            _ => {}
        }
    }
}

fn name(scalar: Scalar<'_>) -> Option<String> {
    match scalar {
        Scalar::Text { start, bytes } if (1..=LONGEST_MODEL).contains(&bytes) => {
            String::from_utf8(start.to_vec()).ok().filter(|name| !name.chars().any(char::is_control))
        }
        Scalar::Text { .. } | Scalar::Number(_) | Scalar::Bool(_) | Scalar::Null => None,
    }
}
