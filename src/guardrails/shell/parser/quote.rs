//! Quotes.

use super::word::Parts;
use super::{Parsed, Parser};

impl Parser<'_> {
    /// After `'`: up to the next one, as it stands.
    pub(super) fn single_quoted(&mut self) -> Parsed<String> {
        let start = self.pos;
        loop {
            match self.raw(self.pos) {
                None => {
                    self.pos = start.saturating_sub(1);
                    return Err(self.unreadable());
                }
                Some('\'') => {
                    let text = self.slice(start, self.pos);
                    self.pos += 1;
                    return Ok(text);
                }
                Some(_) => self.pos += 1,
            }
            self.budget.spend(1)?;
        }
    }

    /// After `"`.
    pub(super) fn double_quoted(&mut self, parts: &mut Parts) -> Parsed<()> {
        parts.text("", true);
        let start = self.pos;
        loop {
            match self.next()? {
                None => {
                    self.pos = start.saturating_sub(1);
                    return Err(self.unreadable());
                }
                Some('"') => return Ok(()),
                Some(character) => self.quoted_piece(character, parts, true)?,
            }
        }
    }

    /// One character, taken already, of text between double quotes or in a here-document.
    pub(super) fn quoted_piece(&mut self, taken: char, parts: &mut Parts, escapes_quote: bool) -> Parsed<()> {
        match taken {
            '\\' => match self.raw(self.pos) {
                Some(character @ ('$' | '`' | '\\')) => {
                    self.pos += 1;
                    parts.character(character, true);
                }
                Some('"') if escapes_quote => {
                    self.pos += 1;
                    parts.text("\"", true);
                }
                _ => parts.text("\\", true),
            },
            '$' => self.dollar(parts, true)?,
            '`' => self.backticks(parts, true)?,
            character => parts.character(character, true),
        }
        Ok(())
    }

    /// The whole source as text that is expanded as between double quotes.
    pub(super) fn text_to_end(&mut self) -> Parsed<Vec<super::super::syntax::Part>> {
        let mut parts = Parts::default();
        while let Some(character) = self.next()? {
            self.quoted_piece(character, &mut parts, false)?;
        }
        Ok(parts.done())
    }

    /// After `$'`: what C's escapes stand for.
    pub(super) fn ansi_quoted(&mut self) -> Parsed<String> {
        let start = self.pos;
        let mut bytes: Vec<u8> = Vec::new();
        // A zero byte ends the text, as bash has it.
        let mut ended = false;
        loop {
            self.budget.spend(1)?;
            let Some(character) = self.raw(self.pos) else {
                self.pos = start.saturating_sub(2);
                return Err(self.unreadable());
            };
            self.pos += 1;
            let before = bytes.len();
            match character {
                '\'' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                '\\' => self.escape(&mut bytes),
                other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
            if ended {
                bytes.truncate(before);
            } else if let Some(zero) = bytes.iter().skip(before).position(|byte| *byte == 0) {
                bytes.truncate(before + zero);
                ended = true;
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) {
        let Some(character) = self.raw(self.pos) else {
            bytes.push(b'\\');
            return;
        };
        self.pos += 1;
        let simple = match character {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => character as u8,
            'x' => return self.number(bytes, 16, 2, "\\x"),
            'u' => return self.number(bytes, 16, 4, "\\u"),
            'U' => return self.number(bytes, 16, 8, "\\U"),
            '0'..='7' => {
                self.pos -= 1;
                return self.number(bytes, 8, 3, "\\");
            }
            'c' => {
                let control = self.raw(self.pos).unwrap_or('@');
                self.pos += 1;
                bytes.push((control.to_ascii_uppercase() as u8) & 0x1f);
                return;
            }
            other => {
                bytes.push(b'\\');
                bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                return;
            }
        };
        bytes.push(simple);
    }

    fn number(&mut self, bytes: &mut Vec<u8>, radix: u32, digits: usize, otherwise: &str) {
        let mut value: u32 = 0;
        let mut seen = 0;
        while seen < digits
            && let Some(digit) = self.raw(self.pos).and_then(|character| character.to_digit(radix))
        {
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.pos += 1;
            seen += 1;
        }
        if seen == 0 {
            bytes.extend_from_slice(otherwise.as_bytes());
        } else if otherwise == "\\u" || otherwise == "\\U" {
            let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            bytes.push((value & 0xff) as u8);
        }
    }
}
