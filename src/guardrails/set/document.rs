//! One set as it is written: the YAML document, read strictly. What is wrong is said with file, line, column and what
//! to write instead. JSON is read the same way, as YAML holds it.

use serde::{Deserialize, Serialize};
use serde_saphyr::{Location, Spanned};

use super::pattern::{self, Wrong};
use super::{Environment, Filesystem, SetName, Tier};
use crate::failure::{Exit, Explain};

/// The largest file, in bytes.
pub const MOST_BYTES: usize = 256 * 1024;
/// The most rules of one kind in one document.
const MOST_RULES: usize = 1000;
/// The longest description, in characters.
const MOST_DESCRIPTION: usize = 1000;

/// One set as it is written, every value checked. What it extends is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Its name.
    pub name: SetName,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The set whose rules and limits it adds to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<SetName>,
    /// Whether the repository's own deny rules are added.
    #[serde(skip_serializing_if = "is_false")]
    pub honor_project_rules: bool,
    /// What is denied.
    #[serde(skip_serializing_if = "is_default")]
    pub deny: Deny,
    /// What of core's environment an agent gets.
    #[serde(skip_serializing_if = "is_default")]
    pub environment: Environment,
    /// What the kernel holds.
    #[serde(skip_serializing_if = "is_default")]
    pub confine: ConfineLimits,
    /// What must be there for a run.
    #[serde(skip_serializing_if = "is_default")]
    pub require: Require,
}

/// What is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Deny {
    /// Whether a line is denied when it cannot be known what it runs.
    #[serde(skip_serializing_if = "is_false")]
    pub undecided: bool,
    /// Commands, by their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Tools, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// What the kernel holds, as far as this document says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConfineLimits {
    /// Files and folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Filesystem>,
    /// TCP ports that may be connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Vec<u16>>,
    /// Signals. It says what holds in every set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<Signals>,
}

/// Which processes can be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signals {
    /// The agent's own.
    Own,
}

/// What must be there for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Require {
    /// A kernel that can hold every rule.
    #[serde(skip_serializing_if = "is_false")]
    pub kernel: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A document is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct DocumentError {
    /// The file and the place in it, as people read it.
    pub place: String,
    /// The line, from 1; 0 where the whole document is meant.
    pub line: u64,
    /// The column, from 1; 0 where the whole document is meant.
    pub column: u64,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub fix: Option<String>,
}

impl Explain for DocumentError {
    fn code(&self) -> &'static str {
        "guardrails-document"
    }
    fn hint(&self) -> Option<String> {
        self.fix.clone()
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl DocumentError {
    /// An error about the whole document.
    pub(super) fn whole(file: &str, what: impl Into<String>, fix: Option<String>) -> Self {
        Self { place: format!("`{file}`"), line: 0, column: 0, what: what.into(), fix }
    }
    fn at(file: &str, location: Location, wrong: Wrong) -> Self {
        let (line, column) = (location.line(), location.column());
        let place =
            if line == 0 { format!("`{file}`") } else { format!("`{file}`, line {line}, column {column}") };
        Self { place, line, column, what: wrong.what, fix: Some(wrong.fix) }
    }
}

// What the file may hold. Every value that is checked knows where it stands.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    description: Option<Spanned<String>>,
    extends: Option<Spanned<String>>,
    #[serde(default)]
    honor_project_rules: bool,
    #[serde(default)]
    deny: RawDeny,
    #[serde(default)]
    environment: RawEnvironment,
    #[serde(default)]
    confine: RawConfine,
    #[serde(default)]
    require: RawRequire,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawDeny {
    undecided: bool,
    commands: Vec<Spanned<String>>,
    tools: Vec<Spanned<String>>,
    paths: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawEnvironment {
    scrub: bool,
    keep: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawConfine {
    filesystem: Option<Spanned<String>>,
    tcp: Option<Vec<Spanned<i64>>>,
    signals: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawRequire {
    kernel: bool,
}

impl Document {
    /// Reads a document. `file` is what errors call it.
    ///
    /// # Errors
    /// When it is no such document, with the place and what to write instead.
    pub fn parse(text: &str, file: &str) -> Result<Self, DocumentError> {
        if text.len() > MOST_BYTES {
            let what = format!("it is larger than {} KiB", MOST_BYTES / 1024);
            return Err(DocumentError::whole(file, what, None));
        }
        // A set needs no aliases, and a small text could swell with them.
        let options = serde_saphyr::options! {
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 0 },
        };
        let raw: Raw = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| unreadable(&error, text, file))?;
        let at = |location: Location, wrong| DocumentError::at(file, location, wrong);
        let name = name_of(&raw.name).map_err(|wrong| at(raw.name.referenced, wrong))?;
        let extends = match &raw.extends {
            None => None,
            Some(base) => Some(name_of(base).map_err(|wrong| at(base.referenced, wrong))?),
        };
        if let Some(base) = raw.extends.filter(|base| base.value == name.as_str()) {
            let what = format!("`{name}` extends itself");
            let fix = "name another set, such as `normal`, or leave `extends` away".into();
            return Err(at(base.referenced, Wrong { what, fix }));
        }
        let description = match raw.description {
            None => None,
            Some(text) => Some(described(text.value).map_err(|wrong| at(text.referenced, wrong))?),
        };
        let list = |key: &str, values: Vec<Spanned<String>>, check: fn(&str) -> Result<(), Wrong>| {
            checked(key, values, check).map_err(|(location, wrong)| at(location, wrong))
        };
        let deny = Deny {
            undecided: raw.deny.undecided,
            commands: list("deny.commands", raw.deny.commands, pattern::command)?,
            tools: list("deny.tools", raw.deny.tools, pattern::tool)?,
            paths: list("deny.paths", raw.deny.paths, pattern::path)?,
        };
        let keep = list("environment.keep", raw.environment.keep, pattern::variable)?;
        let confine = confine_of(raw.confine).map_err(|(location, wrong)| at(location, wrong))?;
        Ok(Self {
            name,
            description,
            extends,
            honor_project_rules: raw.honor_project_rules,
            deny,
            environment: Environment { scrub: raw.environment.scrub, keep },
            confine,
            require: Require { kernel: raw.require.kernel },
        })
    }

    /// The document as YAML, without comments.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_default()
    }
}

fn name_of(name: &Spanned<String>) -> Result<SetName, Wrong> {
    SetName::parse(&name.value).map_err(|error| Wrong {
        what: error.to_string(),
        fix: "write a name such as `payments-strict`".into(),
    })
}

fn described(text: String) -> Result<String, Wrong> {
    let fix = || "write a line or two of plain text".to_owned();
    if text.chars().count() > MOST_DESCRIPTION {
        let what = format!("the description is longer than {MOST_DESCRIPTION} characters");
        return Err(Wrong { what, fix: fix() });
    }
    if text.chars().any(|c| c.is_control() && c != '\n') {
        return Err(Wrong { what: "the description holds a control character".into(), fix: fix() });
    }
    Ok(text)
}

/// Checks each value; one that stands twice is kept once.
fn checked(
    key: &str,
    values: Vec<Spanned<String>>,
    check: fn(&str) -> Result<(), Wrong>,
) -> Result<Vec<String>, (Location, Wrong)> {
    let mut kept: Vec<String> = Vec::with_capacity(values.len());
    for value in values {
        check(&value.value).map_err(|wrong| (value.referenced, wrong))?;
        if kept.len() == MOST_RULES {
            let what = format!("`{key}` has more than {MOST_RULES} entries");
            return Err((value.referenced, Wrong { what, fix: "put several under one pattern".into() }));
        }
        if !kept.contains(&value.value) {
            kept.push(value.value);
        }
    }
    Ok(kept)
}

fn confine_of(raw: RawConfine) -> Result<ConfineLimits, (Location, Wrong)> {
    let filesystem = match raw.filesystem {
        None => None,
        Some(word) => Some(Filesystem::named(&word.value).ok_or_else(|| {
            let what = format!("`confine.filesystem` is `{}`", pattern::shown(&word.value));
            (word.referenced, Wrong { what, fix: "write `open`, `project-write` or `project`".into() })
        })?),
    };
    let signals = match raw.signals {
        None => None,
        Some(word) if word.value == "own" => Some(Signals::Own),
        Some(word) => {
            let what = format!("`confine.signals` is `{}`", pattern::shown(&word.value));
            let fix = "write `own`, or leave it away: an agent signals its own processes alone in every set";
            return Err((word.referenced, Wrong { what, fix: fix.into() }));
        }
    };
    let tcp = match raw.tcp {
        None => None,
        Some(ports) => {
            let mut kept = Vec::with_capacity(ports.len());
            for port in ports {
                let number = u16::try_from(port.value).ok().filter(|port| *port != 0).ok_or_else(|| {
                    let what = format!("`{}` is no TCP port", port.value);
                    (port.referenced, Wrong { what, fix: "write a number from 1 to 65535".into() })
                })?;
                kept.push(number);
            }
            kept.sort_unstable();
            kept.dedup();
            Some(kept)
        }
    };
    Ok(ConfineLimits { filesystem, tcp, signals })
}

/// What the reader of YAML says, in our words where we know better ones.
fn unreadable(error: &serde_saphyr::Error, text: &str, file: &str) -> DocumentError {
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let said = error.without_snippet().to_string();
    // The place stands in front already.
    let said = said.lines().next().unwrap_or_default();
    let said = said.split(" at line ").next().unwrap_or(said).trim_end_matches(':');
    // It can hold what stands in the text, of any length and with any signs.
    let said: String = said.chars().take(300).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let said = said.as_str();
    let line = usize::try_from(location.line()).ok().and_then(|line| text.lines().nth(line.checked_sub(1)?));
    let value = line.map(|line| line.trim_start().trim_start_matches("- ").trim_start()).unwrap_or_default();
    let (what, fix) = if text.trim().is_empty() {
        ("nothing stands in it".into(), "write at least `name:`")
    } else if said.contains("alias") && value.contains('*') {
        let fix = "put a pattern that begins with `*` in quotes: `\"**/.env*\"`";
        ("YAML takes a `*` at the beginning of a value for a sign of its own".into(), fix)
    } else {
        in_our_words(said)
    };
    DocumentError::at(file, location, Wrong { what, fix: fix.into() })
}

/// The messages of `serde-saphyr` and `serde` that a writer of a set meets.
fn in_our_words(said: &str) -> (String, &'static str) {
    let begins = |start: &str| said.starts_with(start);
    let (what, fix) = if begins("unknown field") {
        let what = said
            .replacen("unknown field", "there is no key", 1)
            .replace(", expected one of ", "; there are ");
        return (what.replace(", expected ", "; there is "), "an own note goes behind a `#`");
    } else if begins("missing field") {
        ("it has no `name`", "write `name:` and the file's name without `.yaml`")
    } else if let Some(rest) = said.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(',').next().unwrap_or(rest);
        return (format!("`{key}` stands twice"), "put both together");
    } else if begins("multiple YAML documents") {
        ("a second document begins here", "one file holds one set: take the `---` away, or make two files")
    } else if begins("expected mapping start") {
        ("keys with values are expected here", "write `key: value` lines, such as `commands: [git push]`")
    } else if begins("expected sequence start") {
        ("a list is expected here", "write `[git push, cargo publish]`, or a line with `- ` for each")
    } else if begins("expected string scalar") {
        ("a text is expected here", "write one value, in quotes where it holds signs of YAML")
    } else if begins("invalid boolean") {
        ("`true` or `false` is expected here", "write one of them")
    } else if begins("invalid i64") {
        ("a number is expected here", "write a number from 1 to 65535")
    } else {
        (said, "`worca guardrails show normal` prints a set that is right")
    };
    (what.to_owned(), fix)
}

impl Filesystem {
    /// The one of that word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Open, Self::ProjectWrite, Self::Project].into_iter().find(|one| one.as_str() == word)
    }
    /// Its word in a set's file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::ProjectWrite => "project-write",
            Self::Project => "project",
        }
    }
}

impl Tier {
    /// Its document.
    ///
    /// # Errors
    /// Never in a program that passed its tests: the file is in it.
    pub fn document(self) -> Result<Document, DocumentError> {
        Document::parse(self.text(), &format!("{}.yaml", self.as_str()))
    }
}
