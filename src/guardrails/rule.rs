//! What is denied, by which rule, and how a denial says so.

use std::fmt;

use super::SetName;

/// What kind of action a rule of a set is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// A command prefix by words (`git push`), judged in every line that an agent gives to a shell.
    Commands,
    /// A tool of the agent program by name (`WebFetch`, `mcp__browser__*`).
    Tools,
    /// A path pattern (`**/.env*`, `~/.aws/**`): neither read nor edited.
    Paths,
}

impl RuleKind {
    /// The word in a set's file and in a rule's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Tools => "tools",
            Self::Paths => "paths",
        }
    }
}

/// One deny rule of a set. Its name is `normal.commands[git push]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The set that brings it: a tier, a set of the user's, or `project` for the repository's own.
    pub set: SetName,
    /// What it is about.
    pub kind: RuleKind,
    /// As it stands in the set.
    pub pattern: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}[{}]", self.set, self.kind.as_str(), self.pattern)
    }
}

/// The rule that a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleId {
    /// A rule of a set.
    Set(Rule),
    /// A rule that holds in every set (`host.kill-by-name`, `worca.own-state`), or one of the judge's own limits
    /// (`shell.unreadable`).
    Built(&'static str),
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(rule) => rule.fmt(f),
            Self::Built(name) => f.write_str(name),
        }
    }
}

/// What is said about a tool call or a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No rule stands against it.
    Allow,
    /// It must not run.
    Deny(Denial),
}

/// Why, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The rule.
    pub rule: RuleId,
    /// The part of a command line that was judged, at most 200 characters; `None` where the whole call was.
    pub part: Option<String>,
    /// For the model: what was matched, and what to do instead.
    pub reason: String,
}
