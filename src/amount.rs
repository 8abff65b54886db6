//! An amount that is spent or capped: dollars or tokens, never both. How people write one and how it is shown.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest amount of either unit: a thousand million dollars, far below what a database's integer holds.
pub const MOST: u64 = 1_000_000_000_000_000;

/// What an amount is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Millionths of a US dollar.
    UsdMicros,
    /// Tokens of every kind, those read from a cache too.
    Tokens,
}

impl Unit {
    /// The word for it in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UsdMicros => "usd_micros",
            Self::Tokens => "tokens",
        }
    }
    /// The unit of that word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::UsdMicros, Self::Tokens].into_iter().find(|unit| unit.as_str() == word)
    }
}

/// An amount that is spent or capped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Millionths of a US dollar.
    UsdMicros(u64),
    /// Tokens of every kind, those read from a cache too.
    Tokens(u64),
}

impl Amount {
    /// So much of that unit.
    pub fn of(unit: Unit, value: u64) -> Self {
        match unit {
            Unit::UsdMicros => Self::UsdMicros(value),
            Unit::Tokens => Self::Tokens(value),
        }
    }
    /// What it is counted in.
    pub fn unit(self) -> Unit {
        match self {
            Self::UsdMicros(_) => Unit::UsdMicros,
            Self::Tokens(_) => Unit::Tokens,
        }
    }
    /// How much of it.
    pub fn value(self) -> u64 {
        match self {
            Self::UsdMicros(value) | Self::Tokens(value) => value,
        }
    }
}

/// As a person reads it: `$5.00`, `200,000 tokens`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsdMicros(micros) => f.write_str(&dollars(*micros)),
            Self::Tokens(1) => f.write_str("1 token"),
            Self::Tokens(tokens) => write!(f, "{} tokens", grouped(*tokens)),
        }
    }
}

/// The text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount: give dollars (`5`, `0.25`) or tokens (`200000tokens`), more than 0")]
pub struct ParseAmountError(String);

/// As a person writes it: dollars with up to six decimals and perhaps a `$` before them, or a whole number of tokens.
impl FromStr for Amount {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused =
            || ParseAmountError(text.chars().take(40).filter(|letter| !letter.is_control()).collect());
        let word = text.trim();
        let tokens = word.strip_suffix("tokens").or_else(|| word.strip_suffix("token"));
        let amount = match tokens {
            Some(number) => whole(number.trim_end()).map(Self::Tokens),
            None => micros(word.strip_prefix('$').unwrap_or(word)).map(Self::UsdMicros),
        };
        amount.filter(|amount| (1..=MOST).contains(&amount.value())).ok_or_else(refused)
    }
}

fn whole(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn micros(text: &str) -> Option<u64> {
    let (dollars, parts) = text.split_once('.').unwrap_or((text, "0"));
    if parts.is_empty() || parts.len() > 6 {
        return None;
    }
    whole(dollars)?.checked_mul(1_000_000)?.checked_add(whole(&format!("{parts:0<6}"))?)
}

/// Money in dollars; small amounts keep their digits.
pub fn dollars(micros: u64) -> String {
    if micros == 0 || micros >= 10_000 {
        let cents = micros.saturating_add(5_000) / 10_000;
        format!("${}.{:02}", cents / 100, cents % 100)
    } else {
        format!("$0.{micros:06}").trim_end_matches('0').to_owned()
    }
}

/// A whole number with a comma before each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_people_write_it_and_shown_as_they_read_it() {
        for (text, amount, shown) in [
            ("5", Amount::UsdMicros(5_000_000), "$5.00"),
            ("$0.25", Amount::UsdMicros(250_000), "$0.25"),
            ("0.000001", Amount::UsdMicros(1), "$0.000001"),
            ("0.5", Amount::UsdMicros(500_000), "$0.50"),
            ("200000tokens", Amount::Tokens(200_000), "200,000 tokens"),
            ("1234567 tokens", Amount::Tokens(1_234_567), "1,234,567 tokens"),
            ("1token", Amount::Tokens(1), "1 token"),
        ] {
            assert_eq!(text.parse(), Ok(amount), "{text}");
            assert_eq!(amount.to_string(), shown);
            assert_eq!(Amount::of(amount.unit(), amount.value()), amount);
        }
        for text in [
            "",
            "0",
            "0tokens",
            "-5",
            "+5",
            "5 dollars",
            "1.0000001",
            ".",
            "5.",
            "$",
            "tokens",
            "1e3",
            "1,000",
            "9999999999999999tokens",
        ] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        assert!(Unit::parse(Unit::Tokens.as_str()) == Some(Unit::Tokens) && Unit::parse("euros").is_none());
    }
}
