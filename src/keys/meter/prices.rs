//! The price table: what a model's tokens cost, from `prices.yaml` at the top of the repository and a file of the
//! person's own before it. A model that stands in neither has no price, and none is guessed.

use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Asked, Counted};
use crate::failure::{Exit, Explain};
use crate::keys::own_file::{self, Wrong};
use crate::keys::pattern;

/// The table that comes with the program.
const BUILT_IN: &str = include_str!("../../../prices.yaml");
/// What errors call it.
const BUILT_IN_NAME: &str = "the built-in price table";
/// The version of the file format.
const VERSION: u32 = 1;
/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;
/// The dearest price that is taken, in dollars per million tokens: above it stands a slip of the pen.
const DEAREST: f64 = 100_000.0;
/// Parts of a dollar that prices are kept in: one dollar per million tokens is this many per token.
const PARTS: u64 = 1_000_000;
/// Bytes of a request per token of input, for the prediction: fewer than any text of some length has.
const BYTES_PER_TOKEN: u64 = 3;
/// The largest answer, in tokens, where neither the request nor the table says one.
const LARGEST_ANSWER: u64 = 128_000;

/// A price table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadPricesError {
    /// The file cannot be read.
    #[error("the price table at `{file}` cannot be read")]
    Read {
        /// Which.
        file: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// It is larger than any price table.
    #[error("the price table at `{0}` is larger than {MOST_BYTES} bytes")]
    Large(String),
    /// It says what no price table says.
    #[error("{file}:{line}:{column}: {what}")]
    Wrong {
        /// Which file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong there.
        what: String,
    },
}

impl Explain for ReadPricesError {
    fn code(&self) -> &'static str {
        "prices-wrong"
    }
    fn hint(&self) -> Option<String> {
        Some("docs/keys.md shows the form of a price table; without the file the built-in prices hold".into())
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// What tokens cost, in millionths of a millionth of a dollar each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rates {
    input: u64,
    output: u64,
    cache_write_5m: u64,
    cache_write_1h: u64,
    cache_read: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    models: Vec<String>,
    rates: Rates,
    /// Above this many tokens of input, the whole call costs this.
    long: Option<(u64, Rates)>,
    /// What the fast mode multiplies by, in thousandths.
    fast: Option<u64>,
    context: Option<u64>,
    max_output: Option<u64>,
}

impl Row {
    fn rates(&self, whole_input: u64) -> &Rates {
        match &self.long {
            Some((above, rates)) if whole_input > *above => rates,
            Some(_) | None => &self.rates,
        }
    }
    /// The sum in whole millionths of a dollar, rounded up; `None` for a mode whose price is not known.
    fn sum(&self, parts: u128, fast: bool) -> Option<u64> {
        let thousandths = if fast { self.fast? } else { 1000 };
        let micros =
            parts.saturating_mul(thousandths.into()).div_ceil(u128::from(PARTS).saturating_mul(1000));
        Some(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// What models cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    rows: Vec<Row>,
    date: String,
}

impl Prices {
    /// The built-in prices, with the rows of an own file before them.
    ///
    /// # Errors
    /// When the file cannot be read or is no price table.
    pub fn read(own: Option<&Path>) -> Result<Self, ReadPricesError> {
        let mut prices = Self::parse(BUILT_IN, BUILT_IN_NAME)?;
        if let Some(path) = own {
            let file = path.display().to_string();
            let failed = |cause| ReadPricesError::Read { file: file.clone(), cause };
            let text = own_file::read(path, MOST_BYTES).map_err(failed)?;
            let text = text.ok_or_else(|| ReadPricesError::Large(file.clone()))?;
            let own = Self::parse(&text, &file)?;
            prices.rows.splice(0..0, own.rows);
            prices.date = format!("{}, with own prices of {}", prices.date, own.date);
        }
        Ok(prices)
    }

    /// Reads a table. `file` is what errors call it.
    ///
    /// # Errors
    /// When it is none, with the place.
    pub fn parse(text: &str, file: &str) -> Result<Self, ReadPricesError> {
        let wrong = |(location, what): Wrong| ReadPricesError::Wrong {
            file: file.to_owned(),
            line: location.line(),
            column: location.column(),
            what,
        };
        let raw: File = own_file::parse(text).map_err(wrong)?;
        own_file::check_version(&raw.version, VERSION).map_err(wrong)?;
        if !is_date(&raw.date.value) {
            return Err(wrong((raw.date.referenced, "`date` is no day such as `2026-01-31`".into())));
        }
        let rows = raw.models.into_iter().map(|row| row.check().map_err(wrong)).collect::<Result<_, _>>()?;
        Ok(Self { rows, date: raw.date.value })
    }

    /// The day as of which the prices are right, as far as it is known.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Whether there is a price for a model in a slot.
    pub fn knows(&self, slot: &str, model: &str) -> bool {
        self.find(slot, model).is_some()
    }

    /// What a call cost, in millionths of a dollar, rounded up. The model that answered decides; where its name is not
    /// known here, the one that was asked for. `None` when neither has a price.
    pub fn cost(&self, slot: &str, asked: Option<&str>, counted: &Counted) -> Option<u64> {
        let answered = counted.model.as_deref().and_then(|model| self.find(slot, model));
        let row = answered.or_else(|| self.find(slot, asked?))?;
        let rates = row.rates(counted.whole_input());
        let parts = [
            (counted.input, rates.input),
            (counted.output, rates.output),
            (counted.cache_write_5m, rates.cache_write_5m),
            (counted.cache_write_1h, rates.cache_write_1h),
            (counted.cache_read, rates.cache_read),
        ]
        .into_iter()
        .map(|(tokens, rate)| u128::from(tokens).saturating_mul(rate.into()))
        .fold(0, u128::saturating_add);
        row.sum(parts, counted.fast)
    }

    /// What a call is reckoned to cost at most, in millionths of a dollar, before it is made: its whole body as input
    /// at the dearest price of input, and the largest answer that it allows. `None` when the model has no price.
    pub fn most(&self, slot: &str, asked: &Asked) -> Option<u64> {
        let row = self.find(slot, asked.model.as_deref()?)?;
        let (input, output) = row.most_tokens(asked);
        // A call that could be long is reckoned as one.
        let rates = row.rates(input);
        let dearest = rates.input.max(rates.cache_write_5m).max(rates.cache_write_1h).max(rates.cache_read);
        let parts = u128::from(input)
            .saturating_mul(dearest.into())
            .saturating_add(u128::from(output).saturating_mul(rates.output.into()));
        row.sum(parts, asked.fast)
    }

    /// How many tokens a call is reckoned to use at most. It needs no price.
    pub fn most_tokens(&self, slot: &str, asked: &Asked) -> u64 {
        let row = asked.model.as_deref().and_then(|model| self.find(slot, model));
        let (input, output) = row.map_or_else(
            || {
                let output = asked.most_output.unwrap_or(LARGEST_ANSWER).saturating_mul(asked.answers.max(1));
                (asked.body_bytes.div_ceil(BYTES_PER_TOKEN), output)
            },
            |row| row.most_tokens(asked),
        );
        input.saturating_add(output)
    }

    fn find(&self, slot: &str, model: &str) -> Option<&Row> {
        let fits = |pattern: &String| fits(pattern, slot, model);
        self.rows.iter().find(|row| row.models.iter().any(fits))
    }
}

impl Row {
    /// The most tokens of input and of output.
    fn most_tokens(&self, asked: &Asked) -> (u64, u64) {
        let context = self.context.unwrap_or(u64::MAX);
        let input = asked.body_bytes.div_ceil(BYTES_PER_TOKEN).min(context);
        let largest = self.max_output.unwrap_or(LARGEST_ANSWER);
        // What is asked for beyond the model's own limit is refused or cut by the provider.
        let output = asked.most_output.unwrap_or(largest).min(self.max_output.unwrap_or(u64::MAX));
        (input, output.saturating_mul(asked.answers.max(1)))
    }
}

/// Whether a pattern, in which `*` stands for any characters, fits `slot/model`. It is asked of every row for every call.
fn fits(pattern: &str, slot: &str, model: &str) -> bool {
    match pattern.strip_prefix(slot).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => pattern::fits(rest, model),
        // Most patterns are another slot's; only a star could still make one fit.
        None if pattern.split('/').next().is_some_and(|first| !first.contains('*')) => false,
        None => pattern::fits(pattern, &format!("{slot}/{model}")),
    }
}

fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len()
        && time::Date::parse(text, &time::format_description::well_known::Iso8601::DATE).is_ok()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u32>,
    date: Spanned<String>,
    /// For people.
    #[serde(default, rename = "sources")]
    _sources: Vec<String>,
    models: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    models: Vec<Spanned<String>>,
    input: Spanned<f64>,
    output: Spanned<f64>,
    cache_write_5m: Option<Spanned<f64>>,
    cache_write_1h: Option<Spanned<f64>>,
    cache_read: Option<Spanned<f64>>,
    long: Option<RawLong>,
    fast: Option<Spanned<f64>>,
    context: Option<u64>,
    max_output: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLong {
    above: u64,
    input: Spanned<f64>,
    output: Spanned<f64>,
    cache_write_5m: Option<Spanned<f64>>,
    cache_write_1h: Option<Spanned<f64>>,
    cache_read: Option<Spanned<f64>>,
}

impl RawRow {
    fn check(self) -> Result<Row, Wrong> {
        let mut models = Vec::with_capacity(self.models.len());
        for name in self.models {
            if !name.value.contains('/') || name.value.len() > 256 {
                let what = "a model is written as `SLOT/MODEL`, such as `anthropic/claude-opus-5`";
                return Err((name.referenced, what.into()));
            }
            models.push(name.value);
        }
        if models.is_empty() {
            return Err((self.input.referenced, "this row names no model".into()));
        }
        let caches = [self.cache_write_5m, self.cache_write_1h, self.cache_read];
        let rates = rates(&self.input, &self.output, caches)?;
        let long = match self.long {
            None => None,
            Some(long) => {
                let caches = [long.cache_write_5m, long.cache_write_1h, long.cache_read];
                Some((long.above, self::rates(&long.input, &long.output, caches)?))
            }
        };
        // A thousand times the price of a price is the same slip of the pen.
        let fast = self.fast.map(|factor| parts(&factor).map(|parts| parts / 1000)).transpose()?;
        Ok(Row { models, rates, long, fast, context: self.context, max_output: self.max_output })
    }
}

fn rates(
    input: &Spanned<f64>,
    output: &Spanned<f64>,
    [write_5m, write_1h, read]: [Option<Spanned<f64>>; 3],
) -> Result<Rates, Wrong> {
    let or_input = |price: Option<Spanned<f64>>| price.as_ref().map_or_else(|| parts(input), parts);
    Ok(Rates {
        input: parts(input)?,
        output: parts(output)?,
        cache_write_5m: or_input(write_5m)?,
        cache_write_1h: or_input(write_1h)?,
        cache_read: or_input(read)?,
    })
}

/// A price in the parts that it is kept in.
fn parts(price: &Spanned<f64>) -> Result<u64, Wrong> {
    if !(0.0..=DEAREST).contains(&price.value) {
        let what = format!("a price is a number of dollars from 0 to {DEAREST}, per million tokens");
        return Err((price.referenced, what));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the range was looked at above, and the parts are whole numbers below 2^53"
    )]
    Ok((price.value * PARTS as f64).round() as u64)
}

#[cfg(test)]
mod tests;
