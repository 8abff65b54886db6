//! What of core's environment an agent sees: a keep list, never a deny list. What is given, and what a set keeps
//! beside the list, is checked by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::{SpawnError, SpawnRequest};

/// The variables of core that an agent keeps; `LC_*` beside them.
pub const KEPT: [&str; 3] = ["PATH", "LANG", "TZ"];

/// Names that carry a model credential or move a model's traffic by a way that is not a pass: never given.
const REFUSED: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
];

/// Names that belong to this room.
const OWN: [&str; 3] = ["HOME", "TMPDIR", "TERM"];

/// Where an agent finds the process id of core, which it must leave alone.
pub const HOST_PID: &str = "WORCA_HOST_PID";

/// Of core's own, the model's endpoint and what stands for a credential there: an agent's come with its pass.
const NEVER_KEPT: [&str; 2] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"];

/// Whether a variable of core's goes on to every agent.
pub fn kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| KEPT.contains(&name) || name.starts_with("LC_"))
}

/// The whole environment of one agent.
pub(super) fn build(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    request: &SpawnRequest,
) -> Result<BTreeMap<OsString, OsString>, SpawnError> {
    for name in &request.keep {
        check(name)?;
        if NEVER_KEPT.contains(&name.as_str()) || name.starts_with("WORCA_") {
            return refuse(name, "it belongs to core");
        }
    }
    let stays = |name: &OsStr| kept(name) || request.keep.iter().any(|keep| name == keep.as_str());
    let mut all: BTreeMap<OsString, OsString> = own.into_iter().filter(|(name, _)| stays(name)).collect();
    all.insert("HOME".into(), request.home.clone().into());
    all.insert("TMPDIR".into(), request.temporary.clone().into());
    all.insert("TERM".into(), "dumb".into());
    all.insert(HOST_PID.into(), std::process::id().to_string().into());
    for (name, value) in &request.environment {
        check(name)?;
        all.insert(name.into(), value.clone());
    }
    Ok(all)
}

impl SpawnRequest {
    /// The names of the variables that the agent will have, without a value; empty when the request is refused.
    pub fn environment_names(&self) -> Vec<String> {
        let all = build(std::env::vars_os(), self).unwrap_or_default();
        all.into_keys().map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

fn refuse<T>(name: &str, why: &'static str) -> Result<T, SpawnError> {
    Err(SpawnError::Variable { name: name.chars().take(80).collect(), why })
}

fn check(name: &str) -> Result<(), SpawnError> {
    let refuse = |why| refuse(name, why);
    let word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    if name.is_empty() || name.as_bytes().first().is_some_and(u8::is_ascii_digit) || !name.bytes().all(word) {
        return refuse("a name is made of letters, digits and `_`");
    }
    if REFUSED.contains(&name) {
        return refuse("it carries a model key");
    }
    if OWN.contains(&name) {
        return refuse("each run has its own");
    }
    if name.starts_with("LD_") || name.starts_with("DYLD_") {
        return refuse("it loads code into every program");
    }
    Ok(())
}
