//! The boot check of core: no model key may be where an agent could reach it. It names every place at once and
//! never a value.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Explain};

/// Variables that hold a model key by their name, of the agent programs and model vendors that people use.
const NAMES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "CLAUDE_API_KEY",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "REPLICATE_API_TOKEN",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// How keys begin, and how many characters of a key follow at least.
const SHAPES: &[(&str, usize)] = &[
    ("sk-ant-", 16),
    ("sk-proj-", 16),
    ("sk-svcacct-", 16),
    ("sk-or-", 16),
    ("sk-", 32),
    ("AIza", 35),
    ("xai-", 32),
    ("gsk_", 32),
    ("hf_", 30),
];

/// Files below a home folder that hold a sign-in whenever they are there and not empty.
const FILES: &[&str] = &[
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
];

/// Words of Claude Code's own file that are there when somebody is signed in.
const CLAUDE_WORDS: &[&str] = &["oauthAccount", "primaryApiKey"];

/// The most bytes that are read of that file: it carries a history too.
const CLAUDE_BYTES: u64 = 64 * 1024 * 1024;

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A variable whose name says so.
    Variable(String),
    /// A variable whose value looks like one.
    ValueOf(String),
    /// A sign-in of an agent program.
    File(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the environment variable `{name}`"),
            Self::ValueOf(name) => {
                write!(f, "the environment variable `{name}` (its value looks like a model key)")
            }
            Self::File(path) => write!(f, "the sign-in in `{}`", path.display()),
        }
    }
}

/// A key is where an agent could reach it.
#[derive(Debug, thiserror::Error)]
#[error("a model key is in reach of agents:{}", places.iter().map(|place| format!("\n  - {place}")).collect::<String>())]
pub struct KeyInReach {
    /// Every place.
    pub places: Vec<Place>,
}

impl Explain for KeyInReach {
    fn code(&self) -> &'static str {
        "key-in-reach"
    }
    fn hint(&self) -> Option<String> {
        Some(
            "give keys to the key service (`worca container login`, or `worca keys put`), then unset the variables \
             and start core with a `HOME` that holds no sign-in"
                .into(),
        )
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Looks through an environment and a home folder.
///
/// # Errors
/// When a key is there: with every place.
pub fn check(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    home: Option<&Path>,
) -> Result<(), KeyInReach> {
    let mut places = Vec::new();
    let mut claude_folder = None;
    for (name, value) in environment {
        if value.is_empty() {
            continue;
        }
        let name = name.to_string_lossy().into_owned();
        if NAMES.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            places.push(Place::Variable(name));
        } else if holds_key(&value.to_string_lossy()) {
            places.push(Place::ValueOf(name));
        } else if name == "CLAUDE_CONFIG_DIR" {
            claude_folder = Some(PathBuf::from(value));
        }
    }
    places.sort_by_key(ToString::to_string);
    if let Some(home) = home {
        let files = FILES.iter().map(|file| home.join(file)).filter(|path| has_bytes(path));
        places.extend(files.map(Place::File));
        let file = home.join(".claude.json");
        if is_signed_in(&file) {
            places.push(Place::File(file));
        }
    }
    if let Some(folder) = claude_folder {
        let credentials = folder.join(".credentials.json");
        if has_bytes(&credentials) {
            places.push(Place::File(credentials));
        }
        let file = folder.join(".claude.json");
        if is_signed_in(&file) {
            places.push(Place::File(file));
        }
    }
    if places.is_empty() { Ok(()) } else { Err(KeyInReach { places }) }
}

/// Whether a key stands in a text, at its beginning or after something that is no part of a word.
fn holds_key(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.split(|c: char| !is_part(c)).any(|word| {
        SHAPES.iter().any(|(begin, more)| word.strip_prefix(begin).is_some_and(|rest| rest.len() >= *more))
    })
}

fn has_bytes(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0)
}

/// A file that cannot be read is out of reach of agents too: they run as the same user.
fn is_signed_in(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut bytes = Vec::new();
    if file.take(CLAUDE_BYTES).read_to_end(&mut bytes).is_err() {
        return false;
    }
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(value) => CLAUDE_WORDS.iter().any(|word| value.get(word).is_some_and(|found| !found.is_null())),
        // Not JSON, or cut: then the words alone count.
        Err(_) => {
            let text = String::from_utf8_lossy(&bytes);
            CLAUDE_WORDS.iter().any(|word| text.contains(word))
        }
    }
}

#[cfg(test)]
mod tests;
