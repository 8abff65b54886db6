//! `.env` files by Compose's rules, both ways: what is written here is read back unchanged, by Compose too.
//!
//! `KEY=value`, `KEY: value`, `export KEY=value`, or `KEY` alone (taken from the environment). Variables are put into values
//! without quotes and in double quotes; the environment wins over the file. No value ever stands in a message.

use std::sync::Arc;

use super::interpolate::{self, Environment};
use super::place::{LoadError, Place};

mod escape;
#[cfg(test)]
mod tests;

pub use escape::quote;

/// Longest file, in bytes.
pub const MOST_BYTES: usize = 256 * 1024;

/// Reads a file: what it sets, each key's last value. `environment` is what its values may name, and wins over them.
///
/// # Errors
/// When a line is no assignment, a quote never ends, or a variable has to be set and is not.
pub fn parse(file: &str, text: &str, environment: &Environment) -> Result<Environment, LoadError> {
    let file: Arc<str> = file.into();
    let place = |line| Place { file: Arc::clone(&file), line, column: 1 };
    if text.len() > MOST_BYTES {
        return Err(LoadError::syntax(place(1), format!("the file is longer than {MOST_BYTES} bytes")));
    }
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    let mut known = environment.clone();
    let mut set = Environment::new();
    while !rest.is_empty() {
        let here = place(line);
        let (statement, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = statement.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let assignment = statement.trim_start();
        let assignment = assignment
            .strip_prefix("export")
            .filter(|rest| rest.starts_with([' ', '\t']))
            .map_or(assignment, str::trim_start);
        let Some((key, value)) = assignment.split_once(['=', ':']) else {
            let key = checked_key(trimmed_key(assignment), &here)?;
            if let Some(value) = environment.get(key) {
                set.insert(key.to_owned(), value.clone());
            }
            (rest, line) = (after, line + 1);
            continue;
        };
        let key = checked_key(trimmed_key(key), &here)?;
        let start = value.trim_start_matches([' ', '\t']);
        let (raw, after, lines) = match start.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                // A quoted value may go on over several lines, so it is cut from the whole rest.
                let offset = offset_in(rest, start).unwrap_or_default() + 1;
                let body = rest.get(offset..).unwrap_or_default();
                let Some((raw, after, lines)) = escape::quoted(body, quote) else {
                    return Err(LoadError::syntax(here, format!("the quote of `{key}` never ends")));
                };
                let after = after_quote(after).ok_or_else(|| {
                    LoadError::syntax(
                        place(line + lines),
                        format!("something follows the quoted value of `{key}`"),
                    )
                    .advise("only a comment may follow it")
                })?;
                (Raw { text: raw, expands: quote == '"' }, after, lines + 1)
            }
            _ => (Raw { text: without_comment(start).to_owned(), expands: true }, after, 1),
        };
        let value = match environment.get(key) {
            Some(value) => value.clone(),
            None if raw.expands => expand(&raw.text, &known, key, &here)?,
            None => raw.text,
        };
        known.insert(key.to_owned(), value.clone());
        set.insert(key.to_owned(), value);
        (rest, line) = (after, line + lines);
    }
    Ok(set)
}

struct Raw {
    text: String,
    expands: bool,
}

fn expand(text: &str, known: &Environment, key: &str, place: &Place) -> Result<String, LoadError> {
    let (value, _) = interpolate::text(text, known)
        .map_err(|error| LoadError::variable(place.clone(), format!("in the value of `{key}`: {error}")))?;
    Ok(value)
}

fn trimmed_key(key: &str) -> &str {
    key.trim_matches(|c: char| c.is_whitespace())
}

/// Compose takes letters, digits, `_`, `.`, `-`, `[` and `]`; only ASCII is taken here.
fn checked_key<'k>(key: &'k str, place: &Place) -> Result<&'k str, LoadError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'[' | b']');
    if !key.is_empty() && key.bytes().all(fits) {
        return Ok(key);
    }
    Err(LoadError::syntax(place.clone(), "this line assigns nothing")
        .advise("write `KEY=value`, the key in letters, digits and `_`"))
}

/// Where `part`, which is a slice of `whole`, begins in it.
fn offset_in(whole: &str, part: &str) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)
}

/// The lines after a quoted value, if nothing but a comment stands behind it.
fn after_quote(rest: &str) -> Option<&str> {
    let (tail, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let tail = tail.trim();
    (tail.is_empty() || tail.starts_with('#')).then_some(after)
}

/// An unquoted value ends at a `#` after a space (a tab is none, to Compose).
fn without_comment(line: &str) -> &str {
    let mut end = line.len();
    let mut before_is_space = false;
    for (index, c) in line.char_indices() {
        if c == '#' && before_is_space {
            end = index;
            break;
        }
        before_is_space = c == ' ';
    }
    line.get(..end).unwrap_or(line).trim_end()
}
