//! A `.env` file cut into its assignments, each with where it stands, so that one can be read or replaced.

use std::sync::Arc;

use super::super::place::{LoadError, Place};
use super::{MOST_BYTES, escape};

/// One assignment.
pub(super) struct Statement<'t> {
    pub(super) key: &'t str,
    pub(super) value: Value,
    pub(super) place: Place,
    /// The first byte of its line.
    pub(super) start: usize,
    /// The byte after its last line.
    pub(super) end: usize,
}

pub(super) enum Value {
    /// Only the key stands there.
    FromEnvironment,
    /// As it is.
    Literal(String),
    /// With variables to be put in.
    Template(String),
}

pub(super) fn all<'t>(file: &str, text: &'t str) -> Result<Vec<Statement<'t>>, LoadError> {
    let file: Arc<str> = file.into();
    let place = |line| Place { file: Arc::clone(&file), line, column: 1 };
    if text.len() > MOST_BYTES {
        return Err(LoadError::syntax(place(1), format!("the file is longer than {MOST_BYTES} bytes")));
    }
    let mut statements = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if first.trim().is_empty() || first.trim_start().starts_with('#') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let (key, value, after, lines) = one(rest, first, after, &place, line)?;
        let end = text.len() - after.len();
        statements.push(Statement { key, value, place: place(line), start, end });
        (rest, line) = (after, line + lines);
    }
    Ok(statements)
}

/// The assignment at the beginning of `rest`, whose first line is `first`: key, value, what follows, how many lines it took.
fn one<'t>(
    rest: &'t str,
    first: &'t str,
    after: &'t str,
    place: &impl Fn(usize) -> Place,
    line: usize,
) -> Result<(&'t str, Value, &'t str, usize), LoadError> {
    let assignment = first.trim_start();
    let assignment = assignment
        .strip_prefix("export")
        .filter(|rest| rest.starts_with([' ', '\t']))
        .map_or(assignment, str::trim_start);
    let Some((key, value)) = assignment.split_once(['=', ':']) else {
        return Ok((checked_key(assignment, &place(line))?, Value::FromEnvironment, after, 1));
    };
    let key = checked_key(key, &place(line))?;
    let value = value.trim_start_matches([' ', '\t']);
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok((key, Value::Template(without_comment(value).to_owned()), after, 1));
    };
    // A quoted value may go on over several lines, so it is cut from the whole rest.
    let offset = first.len() - value.len() + quote.len_utf8();
    let body = rest.get(offset..).unwrap_or_default();
    let Some((text, after, breaks)) = escape::quoted(body, quote) else {
        return Err(LoadError::syntax(place(line), format!("the quote of `{key}` never ends")));
    };
    let (tail, after) = after.split_once('\n').unwrap_or((after, ""));
    if !tail.trim().is_empty() && !tail.trim_start().starts_with('#') {
        let sentence = format!("something follows the quoted value of `{key}`");
        return Err(LoadError::syntax(place(line + breaks), sentence).advise("only a comment may follow it"));
    }
    let value = if quote == '"' { Value::Template(text) } else { Value::Literal(text) };
    Ok((key, value, after, breaks + 1))
}

/// Compose takes letters, digits, `_`, `.`, `-`, `[` and `]`; only ASCII is taken here.
fn checked_key<'k>(key: &'k str, place: &Place) -> Result<&'k str, LoadError> {
    let key = key.trim();
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'[' | b']');
    if !key.is_empty() && key.bytes().all(fits) {
        return Ok(key);
    }
    Err(LoadError::syntax(place.clone(), "this line assigns nothing")
        .advise("write `KEY=value`, the key in letters, digits and `_`"))
}

/// An unquoted value ends at a `#` after a space (a tab is none, to Compose).
fn without_comment(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(value, _)| value).trim_end()
}
