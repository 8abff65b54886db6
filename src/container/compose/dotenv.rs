//! `.env` files by Compose's rules, both ways: what is written here is read back unchanged, by Compose too.
//!
//! `KEY=value`, `KEY: value`, `export KEY=value`, or `KEY` alone (taken from the environment). Variables are put into values
//! without quotes and in double quotes; the environment wins over the file. No value ever stands in a message.

use super::interpolate::{self, Environment};
use super::place::{LoadError, Place};

mod escape;
mod statement;
#[cfg(test)]
mod tests;

pub use escape::quote;
use statement::{Statement, Value};

/// Longest file, in bytes.
pub const MOST_BYTES: usize = 256 * 1024;

/// Reads a file: what it sets, each key's last value. `environment` is what its values may name, and wins over them.
///
/// # Errors
/// When a line is no assignment, a quote never ends, or a variable has to be set and is not.
pub fn parse(file: &str, text: &str, environment: &Environment) -> Result<Environment, LoadError> {
    let mut known = environment.clone();
    let mut set = Environment::new();
    for Statement { key, value, place, .. } in statement::all(file, text)? {
        let value = match (environment.get(key), value) {
            (Some(value), _) => value.clone(),
            (None, Value::FromEnvironment) => continue,
            (None, Value::Literal(text)) => text,
            (None, Value::Template(text)) => expand(&text, &known, key, &place)?,
        };
        known.insert(key.to_owned(), value.clone());
        set.insert(key.to_owned(), value);
    }
    Ok(set)
}

/// The text of a file with one key set to a value: the assignment that counts is replaced, or one is added at the end.
/// Every other line, comments too, stays as the person wrote it.
///
/// # Errors
/// As [`parse`].
pub fn set(text: &str, key: &str, value: &str) -> Result<String, LoadError> {
    let line = format!("{key}={}\n", quote(value));
    let place = statement::all(".env", text)?.into_iter().rfind(|statement| statement.key == key);
    let Some(Statement { start, end, .. }) = place else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{gap}{line}"));
    };
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    Ok(format!("{before}{line}{after}"))
}

fn expand(text: &str, known: &Environment, key: &str, place: &Place) -> Result<String, LoadError> {
    let (value, _) = interpolate::text(text, known)
        .map_err(|error| LoadError::variable(place.clone(), format!("in the value of `{key}`: {error}")))?;
    Ok(value)
}
