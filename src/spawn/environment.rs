//! What of core's environment an agent sees: a keep list, never a deny list. What is given is checked by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::SpawnError;

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

/// Whether a variable of core's goes on to the agent.
pub fn kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| KEPT.contains(&name) || name.starts_with("LC_"))
}

/// The whole environment of one agent.
pub(super) fn build(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    home: &Path,
    temporary: &Path,
    given: &[(String, OsString)],
) -> Result<BTreeMap<OsString, OsString>, SpawnError> {
    let mut all: BTreeMap<OsString, OsString> = own.into_iter().filter(|(name, _)| kept(name)).collect();
    all.insert("HOME".into(), home.into());
    all.insert("TMPDIR".into(), temporary.into());
    all.insert("TERM".into(), "dumb".into());
    for (name, value) in given {
        check(name)?;
        all.insert(name.into(), value.clone());
    }
    Ok(all)
}

fn check(name: &str) -> Result<(), SpawnError> {
    let refuse = |why| Err(SpawnError::Variable { name: name.chars().take(80).collect(), why });
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
