//! Sizes, durations and shares as Compose writes them. `None`: no such thing.

/// Bytes: a number, perhaps with a fraction, and one of `b k m g t p` with or without `b` or `ib` behind it, by 1024.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let power = match unit {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 1,
        "m" | "mb" | "mi" | "mib" => 2,
        "g" | "gb" | "gi" | "gib" => 3,
        "t" | "tb" | "ti" | "tib" => 4,
        "p" | "pb" | "pi" | "pib" => 5,
        _ => return None,
    };
    let factor = 1024_u64.checked_pow(power)?;
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => whole_part(decimal(number)? * factor as f64),
    }
}

/// Nanoseconds: one or more of a number and a unit (`1h30m`, `1.5s`, `200ms`, `1d`, `2w`), or `0`.
pub(super) fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at_checked(digits)?;
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let nanoseconds = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 24.0 * 3600e9,
            "w" => 7.0 * 24.0 * 3600e9,
            _ => return None,
        };
        total += decimal(number)? * nanoseconds;
        rest = after;
    }
    whole_part(total)
}

/// Billionths of a CPU.
pub(super) fn cpus(text: &str) -> Option<u64> {
    whole_part((decimal(text.trim())? * 1e9).round())
}

/// Digits with at most one point and at least one digit; no sign, no exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// What an engine's signed 64 bits can hold.
fn whole_part(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..9.2e18).contains(&value)).then_some(value as u64)
}
