//! What `${x…}` makes of a text that is known, and the numbers of `$((…))`.

use super::glob;

/// `${x#word}` and its kin; the sign is not part of `word`. `None`: not worked out.
pub(super) fn edited(value: &str, sign: char, word: &str) -> Option<String> {
    let characters: Vec<char> = value.chars().collect();
    if characters.len() > 400 || word.len() > 200 {
        return None;
    }
    match sign {
        ':' => {
            let (offset, length) =
                word.split_once(':').map_or((word, None), |(offset, length)| (offset, Some(length)));
            let offset: i64 = number(offset)?;
            let size = i64::try_from(characters.len()).ok()?;
            let from = if offset < 0 { size.saturating_add(offset).max(0) } else { offset.min(size) };
            let to = match length.map(number) {
                None => size,
                Some(Some(length)) if length >= 0 => from.saturating_add(length).min(size),
                Some(Some(length)) => size.saturating_add(length).max(from),
                Some(None) => return None,
            };
            let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
            Some(characters.get(range)?.iter().collect())
        }
        '#' => {
            let (longest, pattern) = word.strip_prefix('#').map_or((false, word), |pattern| (true, pattern));
            cut(&characters, pattern, longest, true)
        }
        '%' => {
            let (longest, pattern) = word.strip_prefix('%').map_or((false, word), |pattern| (true, pattern));
            cut(&characters, pattern, longest, false)
        }
        '/' => {
            let (all, word) = word.strip_prefix('/').map_or((false, word), |word| (true, word));
            let (pattern, by) = word.split_once('/').unwrap_or((word, ""));
            if pattern.is_empty()
                || pattern.contains(['*', '?', '[', '\\', '&'])
                || pattern.starts_with(['#', '%'])
            {
                return None;
            }
            Some(if all { value.replace(pattern, by) } else { value.replacen(pattern, by, 1) })
        }
        '^' if word == "^" => Some(value.to_uppercase()),
        ',' if word == "," => Some(value.to_lowercase()),
        '^' if word.is_empty() => Some(first(value, |first| first.to_ascii_uppercase())),
        ',' if word.is_empty() => Some(first(value, |first| first.to_ascii_lowercase())),
        _ => None,
    }
}

fn first(value: &str, change: impl Fn(char) -> char) -> String {
    let mut characters = value.chars();
    characters.next().map(change).into_iter().chain(characters).collect()
}

/// A text without the shortest or longest beginning (or end) that fits.
fn cut(characters: &[char], pattern: &str, longest: bool, at_start: bool) -> Option<String> {
    let size = characters.len();
    let fits = |length: usize| {
        let piece = if at_start { characters.get(..length) } else { characters.get(size - length..) };
        piece.is_some_and(|piece| glob::matches(pattern, &piece.iter().collect::<String>()))
    };
    let found = if longest {
        (0..=size).rev().find(|length| fits(*length))
    } else {
        (0..=size).find(|length| fits(*length))
    };
    let length = found.unwrap_or(0);
    let rest = if at_start { characters.get(length..) } else { characters.get(..size - length) };
    rest.map(|rest| rest.iter().collect())
}

/// The value of a plain number or of a sum or product of two, as bash reads it (`010` is octal, `0x` hexadecimal,
/// `16#ff`).
pub(super) fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    for sign in ['+', '-', '*'] {
        if let Some((left, right)) = text.split_once(sign)
            && !left.trim().is_empty()
        {
            let (left, right) = (single(left)?, single(right)?);
            return match sign {
                '+' => left.checked_add(right),
                '-' => left.checked_sub(right),
                _ => left.checked_mul(right),
            };
        }
    }
    single(text)
}

fn single(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')').trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()?
    } else if let Some((base, digits)) = text.split_once('#') {
        let base: u32 = base.parse().ok().filter(|base| (2..=36).contains(base))?;
        i64::from_str_radix(digits, base).ok()?
    } else if text.len() > 1 && text.starts_with('0') {
        i64::from_str_radix(text, 8).ok()?
    } else {
        text.parse().ok()?
    };
    if negative { value.checked_neg() } else { Some(value) }
}
