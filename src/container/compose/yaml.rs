//! Compose files as a tree in which every node knows its line. Text in, tree out; it never guesses.
//!
//! Refused where Compose would guess or could be made to hang: duplicate keys, keys that are no text, a second document,
//! tags other than `!reset`, `!override` and YAML's own, more than [`MOST_BYTES`] of text, [`MOST_NODES`] nodes
//! (aliases counted as often as they are used) or [`DEEPEST`] levels.

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag as RawTag};

use super::place::{LoadError, Place, shown};

mod build;
mod scalar;
#[cfg(test)]
mod tests;

pub use scalar::{Kind, Scalar};

/// Longest text of one file, in bytes. Also the most text that aliases may multiply it to.
pub const MOST_BYTES: usize = 1024 * 1024;
/// Most nodes of one file once its aliases are written out.
pub const MOST_NODES: usize = 10_000;
/// Deepest nesting. The Compose format itself needs 8.
pub const DEEPEST: usize = 48;

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it asks of the merge.
    pub tag: Option<Tag>,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, number, boolean or nothing.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in the file's order, no key twice.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

/// Compose's own tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// `!reset`: the value of earlier files is dropped, this one too.
    Reset,
    /// `!override`: the value of earlier files is replaced, not merged.
    Override,
}

impl Node {
    /// The entries of a mapping, or nothing.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Mapping(entries) => Some(entries),
            Value::Scalar(_) | Value::Sequence(_) => None,
        }
    }
    /// The value at a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
    /// Nothing stands here (`key:`, `null`, `~`).
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind == Kind::Null)
    }
    /// What it is, in a message.
    pub fn noun(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => scalar.kind.noun(),
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

/// Reads one file. An empty one is an empty mapping.
///
/// # Errors
/// When it is not one mapping of YAML within the limits above.
pub fn parse(file: &str, text: &str) -> Result<Node, LoadError> {
    let file: Arc<str> = file.into();
    let start = Place { file: Arc::clone(&file), line: 1, column: 1 };
    if text.len() > MOST_BYTES {
        return Err(LoadError::syntax(start, format!("the file is longer than {MOST_BYTES} bytes")));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse_control_characters(&file, text)?;
    let mut builder = build::Builder::new(Arc::clone(&file));
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let place = Place {
                file: Arc::clone(&file),
                line: error.marker().line(),
                column: error.marker().col() + 1,
            };
            LoadError::syntax(place, format!("this is not YAML: {}", shown(error.info())))
        })?;
        builder.take(event, span)?;
    }
    let root = builder.finish()?;
    match root {
        None => Ok(Node { place: start, tag: None, value: Value::Mapping(Vec::new()) }),
        Some(node) if node.is_null() => Ok(Node { value: Value::Mapping(Vec::new()), ..node }),
        Some(node) if node.entries().is_some() => Ok(node),
        Some(node) => {
            let sentence = format!("a Compose file is a mapping, and this is {}", node.noun());
            Err(LoadError::syntax(node.place, sentence))
        }
    }
}

/// YAML allows tab, line feed and carriage return of the control characters, and a reader may take NUL for the end.
fn refuse_control_characters(file: &Arc<str>, text: &str) -> Result<(), LoadError> {
    let (mut line, mut column) = (1, 1);
    for c in text.chars() {
        if (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'))
            || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
        {
            let place = Place { file: Arc::clone(file), line, column };
            let sentence = format!("the character U+{:04X} may not stand in YAML", u32::from(c));
            return Err(LoadError::syntax(place, sentence)
                .advise("write it as an escape in double quotes, or remove it"));
        }
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    Ok(())
}
