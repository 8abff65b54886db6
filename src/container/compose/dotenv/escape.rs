//! Quoted values of `.env` files: taking the quotes and escapes off, and putting them on.

/// The value after an opening quote, what follows the closing one, and how many line breaks it holds.
///
/// In single quotes only `\'` is an escape. In double quotes the result still holds variables, and `\$` has become `$$`.
pub(super) fn quoted(body: &str, quote: char) -> Option<(String, &str, usize)> {
    let mut value = String::new();
    let mut escaped = false;
    for (index, c) in body.char_indices() {
        match (c, escaped) {
            (c, true) if c == quote => {
                value.push(c);
                escaped = false;
            }
            (c, true) => {
                value.push('\\');
                value.push(c);
                escaped = false;
            }
            ('\\', false) => escaped = true,
            (c, false) if c == quote => {
                let after = body.get(index + c.len_utf8()..)?;
                let lines = body.get(..index)?.matches('\n').count();
                let value = if quote == '"' { unescape(&value) } else { value };
                return Some((value, after, lines));
            }
            (c, false) => value.push(c),
        }
    }
    None
}

/// The escapes of double quotes: `\a \b \f \n \r \t \v \\ \" \$` and `\0` with three octal digits.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut characters = after.chars();
        let known = match characters.next() {
            Some('a') => Some('\u{7}'),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('v') => Some('\u{b}'),
            Some('\\') => Some('\\'),
            Some('"') => Some('"'),
            Some('$') => {
                out.push_str("$$");
                rest = characters.as_str();
                continue;
            }
            Some('0') => {
                // Compose takes the 0 away and reads three octal digits; with any other number it leaves the rest.
                let digits = characters.as_str().bytes().take(3).take_while(u8::is_ascii_digit).count();
                let (digits, after) = characters.as_str().split_at_checked(digits).unwrap_or_default();
                match u8::from_str_radix(digits, 8) {
                    Ok(code) if digits.len() == 3 => out.push(char::from(code)),
                    _ => {
                        out.push('\\');
                        out.push_str(digits);
                    }
                }
                rest = after;
                continue;
            }
            _ => None,
        };
        match known {
            Some(c) => {
                out.push(c);
                rest = characters.as_str();
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A value as a `.env` file holds it, so that reading gives exactly the value: bare when it is plain, in single quotes when
/// that is enough, else in double quotes with escapes.
pub fn quote(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:@,+=%-".contains(&b);
    if value.bytes().all(plain) {
        return value.to_owned();
    }
    if !value.chars().any(|c| c.is_control() || matches!(c, '\'' | '\\')) {
        return format!("'{value}'");
    }
    let mut out = String::from('"');
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '"' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
