//! What a plain scalar means: as the YAML library of Compose (Go's yaml.v3) resolves it when no type is asked for.
//!
//! So `true` and `False` are booleans while `yes`, `on` and `y` are text, `0x1f`, `0o17`, `017` and `1_000` are whole
//! numbers, and `2024-01-31` is a date. A quoted scalar is always text.

use super::super::place::{LoadError, Place};

/// A scalar with what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// The text as it stands in the file, quotes and escapes resolved.
    pub text: String,
    /// What it means.
    pub kind: Kind,
}

/// What a scalar means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float,
    /// A date, which Compose rewrites into another text.
    Date,
    /// Text.
    Text,
}

impl Kind {
    /// What it is, in a message.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float => "a number",
            Self::Date => "a date",
            Self::Text => "text",
        }
    }
}

impl Scalar {
    /// A scalar that was quoted, or came from elsewhere.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Text }
    }
    /// A scalar without quotes.
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), kind: resolve(text) }
    }
    /// The text of a value that is text in the end (an environment variable, a label).
    ///
    /// Compose turns a number into its shortest form and a date into a time stamp. Where that would change what the
    /// person wrote (`1.50`, `0x1f`, `017`, a date), this is an error that asks for quotes.
    ///
    /// # Errors
    /// As said.
    pub fn as_text(&self, place: &Place) -> Result<String, LoadError> {
        match self.kind {
            Kind::Null => Ok(String::new()),
            Kind::Bool(value) => Ok(value.to_string()),
            Kind::Text => Ok(self.text.clone()),
            Kind::Int(value) if value.to_string() == self.text => Ok(self.text.clone()),
            Kind::Float if is_shortest(&self.text) => Ok(self.text.clone()),
            Kind::Int(_) | Kind::Float | Kind::Date => {
                let sentence = format!(
                    "`{}` without quotes is {}, and Compose would rewrite it",
                    self.text,
                    self.kind.noun()
                );
                Err(LoadError::value(place.clone(), sentence)
                    .advise(format!("write \"{}\" with the quotes", self.text)))
            }
        }
    }
}

fn is_shortest(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|value| {
        value.is_finite()
            && (value == 0.0 || (1e-4..1e20).contains(&value.abs()))
            && value.to_string() == text
    })
}

fn resolve(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Kind::Float,
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Kind::Float;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Kind::Text;
    }
    if is_date(text) {
        return Kind::Date;
    }
    let digits = unsigned.replace('_', "");
    match whole(&digits) {
        Some(value) if text.starts_with('-') => value.checked_neg().map_or(Kind::Float, Kind::Int),
        Some(value) => Kind::Int(value),
        None if is_number(&digits) => Kind::Float,
        None => Kind::Text,
    }
}

/// A whole number in any base that Go's `ParseInt` with base 0 knows.
fn whole(digits: &str) -> Option<i64> {
    let lower = digits.to_ascii_lowercase();
    let (rest, base) = if let Some(rest) = lower.strip_prefix("0x") {
        (rest, 16)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (rest, 8)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (rest, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (lower.get(1..)?, 8)
    } else {
        (lower.as_str(), 10)
    };
    let fits = rest.chars().all(|c| c.is_digit(base)) && !rest.is_empty();
    fits.then(|| i64::from_str_radix(rest, base).ok()).flatten()
}

/// `digits`, with a fraction and an exponent if wanted.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && all_digits(e)
    });
    !(whole.is_empty() && fraction.is_empty()) && all_digits(whole) && all_digits(fraction) && exponent_fits
}

/// `2024-1-31`, alone or followed by a time: four digits and a hyphen, as Go's YAML library looks for.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', 't', ' ']).next().unwrap_or(text);
    let mut parts = day.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let number = |part: &str, longest: usize| {
        !part.is_empty() && part.len() <= longest && part.bytes().all(|b| b.is_ascii_digit())
    };
    year.len() == 4 && number(year, 4) && number(month, 2) && number(day, 2)
}
