//! What a PowerShell line is once it is read: scripts of pipelines of commands and expressions. Positions are
//! counted in characters.

/// Statements in order.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
}

/// Elements with `|` between them.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    pub(super) elements: Vec<Element>,
}

/// One element of a pipeline.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) kind: Kind,
    pub(super) words: Vec<Word>,
    /// Files that it is redirected to.
    pub(super) redirects: Vec<Word>,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A command with its arguments.
    Command,
    /// A value: words, operators among them.
    Expression,
    /// `left = right`; the words are the left side.
    Assignment(Box<Pipeline>),
}

/// One word of a command, or one operand or operator of an expression.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) shape: Shape,
    /// Its text, as far as it is one.
    pub(super) parts: Vec<Part>,
    /// Scripts in it: substitutions, groups, blocks.
    pub(super) inner: Vec<Script>,
    pub(super) members: Vec<Member>,
    /// Whether any of it stood in quotes.
    pub(super) quoted: bool,
    /// Whether a comma stands before it, so that it goes on with an array.
    pub(super) listed: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Text: bare, quoted, or both.
    Text,
    /// `$name` by itself (one part).
    Variable,
    /// `@name`, a splat.
    Splat,
    /// `( … )`, `$( … )` or `@( … )`.
    Group,
    /// `{ … }`.
    Block,
    /// `@{ … }`.
    Table,
    /// `[type]` (its name is the text).
    Type,
    /// An operator of an expression.
    Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Variable(String),
    /// What a substitution gives.
    Result,
}

/// `.name`, `::name` or `[index]` behind a value.
#[derive(Debug)]
pub(super) struct Member {
    /// Its name, in small letters; `None`: computed.
    pub(super) name: Option<String>,
    /// Its arguments, when it is called.
    pub(super) call: Option<Script>,
    /// `[index]`; it has no name.
    pub(super) index: bool,
}

/// Why a line has no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At this character (from 0), and what is wrong there.
    Unreadable(usize, &'static str),
    /// Nested too deep.
    Deep,
}

impl Word {
    pub(super) fn new(shape: Shape, start: usize) -> Self {
        Self {
            shape,
            parts: Vec::new(),
            inner: Vec::new(),
            members: Vec::new(),
            quoted: false,
            listed: false,
            start,
            end: start,
        }
    }

    /// Adds a character to its text.
    pub(super) fn push(&mut self, character: char) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push(character),
            _ => self.parts.push(Part::Text(character.into())),
        }
    }

    /// The text, where it is plain and all of it is known without variables.
    pub(super) fn plain(&self) -> Option<&str> {
        if self.shape != Shape::Text || !self.members.is_empty() {
            return None;
        }
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}
