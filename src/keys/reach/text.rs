//! Keys in the text of a settings file, whatever its format: by the shape of what stands there, and by names that
//! something is assigned to (`NAME=…`, `name: …`, `"name": …`, TOML, INI, shell). Pure. It gives lines, never values.

use std::collections::BTreeSet;

use super::names;
use crate::keys::shapes;

/// The most hits that one file is named with.
const MOST: usize = 8;
/// The longest name that is looked up.
const LONGEST_NAME: usize = 80;

/// A key in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    /// The line, from 1; `None` where the text is one that has none.
    pub(super) line: Option<usize>,
    pub(super) what: String,
}

/// What stands in a text. `words`: names that mean a credential in this file beside those of variables, or a way to
/// fetch one.
pub(super) fn look(text: &[u8], words: &[&str]) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut seen = BTreeSet::new();
    let mut lines = Lines { text, at: 0, line: 1 };
    let mut found: Vec<(usize, String)> = shaped(text);
    found.extend(assigned(text, words));
    found.sort();
    for (at, what) in found {
        let line = lines.of(at);
        // A name and the shape of its value are one key.
        if hits.len() < MOST && seen.insert(line) {
            hits.push(Hit { line: Some(line), what });
        }
    }
    if hits.is_empty() && text.contains(&b'\\') {
        hits.extend(escaped(text, words));
    }
    hits
}

fn shaped(text: &[u8]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(key) = shapes::find(text, from)
        && found.len() < 4 * MOST
    {
        from = key.end;
        found.push((key.at, format!("{}, by its shape", key.what)));
    }
    found
}

/// Names that something is assigned to.
fn assigned(text: &[u8], words: &[&str]) -> Vec<(usize, String)> {
    // In JSON a name stands in quotes; what looks like one inside of a longer string is talk.
    let begin = text.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    let json = begin.trim_ascii_start().starts_with(b"\"");
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() && found.len() < 4 * MOST {
        let rest = text.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_name(**byte)).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let name = rest.get(..length).unwrap_or_default();
        let begin = at;
        at += length;
        if length > LONGEST_NAME {
            continue;
        }
        // A flag (`--openai-api-key=…`) is the name that it sets.
        let Some(name) = std::str::from_utf8(name).ok().map(|name| name.trim_start_matches('-')) else {
            continue;
        };
        let word = words.iter().find(|word| word.eq_ignore_ascii_case(name));
        let what = match (word, names::carried_by(name)) {
            (Some(word), _) => format!("`{word}`, a credential or a way to one"),
            // The name as it is listed in no case but its own: it came from the file.
            (None, Some(what)) => format!("`{name}`, {what}"),
            (None, None) => continue,
        };
        let stands = if json {
            is_quoted(text, begin, at)
        } else {
            !is_reference(text, begin) && !is_comment(text, begin)
        };
        if stands && is_filled(text, begin, at) {
            found.push((begin, what));
        }
    }
    found
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Between quotes that are not part of a string themselves.
fn is_quoted(text: &[u8], begin: usize, end: usize) -> bool {
    let before = text.get(..begin).unwrap_or_default();
    before.ends_with(b"\"") && !before.ends_with(b"\\\"") && text.get(end) == Some(&b'"')
}

/// `$NAME`, `${NAME:-…}`: it is used and not set here.
fn is_reference(text: &[u8], begin: usize) -> bool {
    let before = text.get(..begin).unwrap_or_default();
    before.ends_with(b"$") || before.ends_with(b"${")
}

/// The line begins with what makes it a comment in the formats that are read.
fn is_comment(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.get(start..).unwrap_or_default().trim_ascii_start();
    line.starts_with(b"#") || line.starts_with(b";") || line.starts_with(b"//")
}

/// Whether something that is no reference stands behind a name.
fn is_filled(text: &[u8], begin: usize, end: usize) -> bool {
    let rest = text.get(end..).unwrap_or_default();
    let quoted = rest.first().is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let rest = if quoted { rest.get(1..).unwrap_or_default() } else { rest };
    let rest = skip(rest, b" \t]");
    let rest = match rest {
        [b':' | b'?' | b'+', b'=', rest @ ..] | [b'=' | b':', rest @ ..] => rest,
        // `set -gx NAME value` of fish.
        _ if is_set_of_fish(text, begin) => rest,
        _ => return false,
    };
    // JSON goes on in the next line; everywhere else what is empty ends with its own.
    let rest = skip(rest, if quoted { &b" \t\r\n"[..] } else { &b" \t"[..] });
    is_value(rest)
}

fn is_set_of_fish(text: &[u8], begin: usize) -> bool {
    let before = text.get(..begin).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    before.get(start..).unwrap_or_default().trim_ascii_start().starts_with(b"set ")
}

fn skip<'a>(text: &'a [u8], some: &[u8]) -> &'a [u8] {
    let length = text.iter().take_while(|byte| some.contains(byte)).count();
    text.get(length..).unwrap_or_default()
}

/// The beginning of a value that is not empty and no reference to another place.
fn is_value(text: &[u8]) -> bool {
    match text {
        // A list in YAML begins in the next line.
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => {
            matches!(skip(rest, b" \t"), [b'-', b' ', rest @ ..] if is_value(skip(rest, b" ")))
        }
        [] => false,
        [b'{', b'e', b'n', b'v', b':', ..] => false,
        [b'{' | b'[', rest @ ..] => !matches!(skip(rest, b" \t\r\n"), [b'}' | b']', ..] | []),
        [quote @ (b'"' | b'\''), rest @ ..] => rest.first() != Some(quote) && is_word(rest),
        _ => is_word(text),
    }
}

/// A bare value or the inside of a quoted one.
fn is_word(text: &[u8]) -> bool {
    let stop =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'"' | b'\'' | b'}' | b']' | b';');
    let word = text.split(stop).next().unwrap_or_default();
    let reference = [&b"$"[..], b"{env:", b"env:", b"os.environ", b"process.env", b"<", b"#"];
    let nothing = [&b""[..], b"null", b"~", b"none", b"None", b"undefined", b"false", b"true"];
    !nothing.contains(&word) && !reference.iter().any(|begin| word.starts_with(begin))
}

/// The same in JSON whose names or values are written with escapes: an agent reads it as well.
fn escaped(text: &[u8], words: &[&str]) -> Vec<Hit> {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(text) else { return Vec::new() };
    let plain = value.to_string();
    let mut found = shaped(plain.as_bytes());
    found.extend(assigned(plain.as_bytes(), words));
    found.into_iter().take(1).map(|(_, what)| Hit { line: None, what }).collect()
}

/// Lines by growing places.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn of(&mut self, at: usize) -> usize {
        let between = self.text.get(self.at..at).unwrap_or_default();
        self.line += between.iter().filter(|byte| **byte == b'\n').count();
        self.at = at;
        self.line
    }
}
