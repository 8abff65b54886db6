//! What the variables of a line can hold, as far as the line says so.
//!
//! Nothing is ever forgotten: a second assignment adds a value, since loops and functions run text more than once.

use std::collections::BTreeMap;

/// Stands in a text for what is known only at run time.
pub(super) const UNKNOWN: char = '\u{F0000}';
/// Stands for `$!`, a job of this shell.
pub(super) const JOB: char = '\u{F0001}';
/// Stands between the elements of a list (`"$@"`), which are split also between quotes.
pub(super) const NEXT: char = '\u{F0002}';
/// Variables whose value some program runs as a command.
pub(super) const RUN_VALUES: [&str; 17] = [
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PAGER",
    "PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "EDITOR",
    "VISUAL",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_PROXY_COMMAND",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "PROMPT_COMMAND",
];
/// Variables whose value the shell expands as a prompt.
pub(super) const PROMPTS: [&str; 5] = ["PS0", "PS1", "PS2", "PS3", "PS4"];
/// More values than this are not told apart.
const MAX_VALUES: usize = 12;
/// Longest value that is kept, in bytes.
const MAX_VALUE: usize = 64 * 1024;

/// What a name can stand for.
#[derive(Debug, Clone, Default)]
pub(super) struct Variable {
    pub(super) values: Vec<String>,
    /// Also something that is not known.
    pub(super) unknown: bool,
    /// A value was fetched, decoded or assembled by a substitution.
    pub(super) made: bool,
}

/// Names and their values.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    names: BTreeMap<String, Variable>,
    /// `$0`, `$1` … of a `sh -c`; `None`: not known.
    pub(super) positional: Option<Vec<String>>,
    /// Names set by what is not seen (`source`, a reference to another name).
    pub(super) any: bool,
    pub(super) aliases: BTreeMap<String, Vec<String>>,
}

impl Values {
    pub(super) fn get(&self, name: &str) -> Option<&Variable> {
        self.names.get(name)
    }

    /// `name` may hold this text from now on.
    pub(super) fn set(&mut self, name: &str, value: String) {
        let variable = self.names.entry(name.to_owned()).or_default();
        if value.contains(UNKNOWN) || value.len() > MAX_VALUE || variable.values.len() >= MAX_VALUES {
            variable.unknown = true;
        }
        if variable.values.len() < MAX_VALUES && value.len() <= MAX_VALUE && !variable.values.contains(&value)
        {
            variable.values.push(value);
        }
    }

    /// `name` may hold this added to what it holds.
    pub(super) fn append(&mut self, name: &str, value: &str) {
        if self.names.get(name).is_some_and(|old| old.unknown && old.values.len() >= MAX_VALUES) {
            return;
        }
        let before = self.names.get(name).cloned().unwrap_or_default();
        if before.values.is_empty() {
            self.poison(name);
        }
        for old in &before.values {
            self.set(name, format!("{old}{value}"));
        }
        self.set(name, value.to_owned());
    }

    /// `name` may hold anything that the line's data say.
    pub(super) fn poison(&mut self, name: &str) {
        self.names.entry(name.to_owned()).or_default().unknown = true;
    }

    /// Whether the line sets nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.aliases.is_empty()
    }

    /// A value of `name` was fetched or made up.
    pub(super) fn made(&mut self, name: &str) {
        self.names.entry(name.to_owned()).or_default().made = true;
    }

    /// All texts that were assigned, for a look at the words in them.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.names.values().flat_map(|variable| variable.values.iter().map(String::as_str))
    }
}
