//! Compose's variables: `$NAME`, `${NAME}`, `${NAME:-default}` and its kin, `$$`. Never a value in a message.
//!
//! As Compose 2.26 does it: a default is worked out even when it is not needed, a `$` before anything else is itself, and
//! an unset variable is empty and warned about. Where Compose guesses (braces that do not pair), this refuses.

use std::collections::BTreeMap;

use super::place::{LoadError, Place, Warning, shown};
use super::yaml::{Node, Scalar, Value};

#[cfg(test)]
mod tests;

/// The variables that a file may name.
pub type Environment = BTreeMap<String, String>;

/// Deepest nesting of one variable in another's default.
const DEEPEST: usize = 16;
/// Longest text that one value may grow to, in bytes.
const LONGEST: usize = 1024 * 1024;

/// Why a text cannot be interpolated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpolateError {
    /// `${…` that Compose does not know.
    #[error("`{0}` is no variable that Compose knows")]
    Invalid(String),
    /// `${NAME:?why}` of a variable that is not set.
    #[error("the variable `{name}` has to be set{why}")]
    Required {
        /// The variable.
        name: String,
        /// The file's own words, after a colon.
        why: String,
    },
    /// Too deep, or too long.
    #[error("a value with variables may nest {DEEPEST} deep and grow to {LONGEST} bytes")]
    TooMuch,
}

/// The text with its variables put in, and the names that were not set.
///
/// # Errors
/// See [`InterpolateError`].
pub fn text(template: &str, environment: &Environment) -> Result<(String, Vec<String>), InterpolateError> {
    let mut unset = Vec::new();
    let text = expand(template, environment, &mut unset, 0)?;
    Ok((text, unset))
}

/// Puts the variables into every text of a tree. Keys stay as they are, as in Compose.
///
/// # Errors
/// At the first value that cannot be interpolated.
pub fn tree(
    node: &mut Node,
    environment: &Environment,
    warnings: &mut Vec<Warning>,
) -> Result<(), LoadError> {
    walk(node, environment, warnings, &mut String::new())
}

fn walk(
    node: &mut Node,
    environment: &Environment,
    warnings: &mut Vec<Warning>,
    path: &mut String,
) -> Result<(), LoadError> {
    let place = node.place.clone();
    match &mut node.value {
        Value::Scalar(scalar) => {
            if scalar.kind == super::yaml::Kind::Text && scalar.text.contains('$') {
                let (text, unset) =
                    text(&scalar.text, environment).map_err(|error| at(&place, path, &error))?;
                warnings.extend(unset.into_iter().map(|name| Warning {
                    place: place.clone(),
                    sentence: format!(
                        "the variable `{name}` is not set, and `{}` gets nothing for it",
                        shown(path)
                    ),
                }));
                *scalar = Scalar::text(text);
            }
        }
        Value::Sequence(items) => {
            for item in items {
                walk(item, environment, warnings, path)?;
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                let length = path.len();
                if length > 0 {
                    path.push('.');
                }
                path.push_str(&entry.key);
                walk(&mut entry.node, environment, warnings, path)?;
                path.truncate(length);
            }
        }
    }
    Ok(())
}

fn at(place: &Place, path: &str, error: &InterpolateError) -> LoadError {
    let hint = match error {
        InterpolateError::Required { name, .. } => {
            format!("set `{name}` in the `.env` file beside the Compose files")
        }
        InterpolateError::Invalid(_) => "write `$$` for a dollar sign that is meant as itself".to_owned(),
        InterpolateError::TooMuch => "write the value out".to_owned(),
    };
    LoadError::variable(place.clone(), format!("in `{}`: {error}", shown(path))).advise(hint)
}

fn expand(
    template: &str,
    environment: &Environment,
    unset: &mut Vec<String>,
    depth: usize,
) -> Result<String, InterpolateError> {
    if depth > DEEPEST {
        return Err(InterpolateError::TooMuch);
    }
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inner) = after.strip_prefix('{') {
            let Some((braced, after)) = split_at_closing_brace(inner) else {
                return Err(InterpolateError::Invalid(shown(&format!("${after}"))));
            };
            out.push_str(&braced_value(braced, environment, unset, depth)?);
            rest = after;
        } else {
            let (name, after) = split_name(after);
            if name.is_empty() {
                out.push('$');
            } else if let Some(value) = environment.get(name) {
                out.push_str(value);
            } else {
                unset.push(name.to_owned());
            }
            rest = after;
        }
        if out.len() > LONGEST {
            return Err(InterpolateError::TooMuch);
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// What stands between `${` and `}`.
fn braced_value(
    braced: &str,
    environment: &Environment,
    unset: &mut Vec<String>,
    depth: usize,
) -> Result<String, InterpolateError> {
    let invalid = || InterpolateError::Invalid(shown(&format!("${{{braced}}}")));
    let (name, operation) = split_name(braced);
    if name.is_empty() {
        return Err(invalid());
    }
    let value = environment.get(name);
    if operation.is_empty() {
        if value.is_none() {
            unset.push(name.to_owned());
        }
        return Ok(value.cloned().unwrap_or_default());
    }
    // With a colon, empty counts as unset.
    let (value, operation) = match operation.strip_prefix(':') {
        Some(operation) => (value.filter(|value| !value.is_empty()), operation),
        None => (value, operation),
    };
    let mut characters = operation.chars();
    let operator = characters.next();
    let argument = characters.as_str();
    if argument.contains('\n') || !matches!(operator, Some('-' | '+' | '?')) {
        return Err(invalid());
    }
    let argument = expand(argument, environment, unset, depth + 1)?;
    match (operator, value) {
        (Some('-'), value) => Ok(value.cloned().unwrap_or(argument)),
        (Some('+'), Some(_)) => Ok(argument),
        (Some('+'), None) => Ok(String::new()),
        (_, Some(value)) => Ok(value.clone()),
        (_, None) => {
            let why = if argument.is_empty() { String::new() } else { format!(": {}", shown(&argument)) };
            Err(InterpolateError::Required { name: name.to_owned(), why })
        }
    }
}

/// A name of `A-Z`, `a-z`, `0-9` and `_`, the first no digit, and what follows.
fn split_name(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).unwrap_or(("", text));
    if name.starts_with(|c: char| c.is_ascii_digit()) { ("", text) } else { (name, rest) }
}

/// What stands before the brace that closes this one, and after it; braces pair.
fn split_at_closing_brace(text: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            let (before, after) = text.split_at_checked(index)?;
            return Some((before, after.strip_prefix('}')?));
        }
    }
    None
}
