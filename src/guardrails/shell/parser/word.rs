//! Words.

use super::super::syntax::{Part, Word};
use super::{Parsed, Parser, is_meta};

/// Text that grows, and the parts that stand before it.
#[derive(Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
}

impl Parts {
    pub(super) fn text(&mut self, added: &str, added_quoted: bool) {
        if let Some(Part::Text { text, quoted }) = self.parts.last_mut()
            && *quoted == added_quoted
        {
            text.push_str(added);
        } else {
            self.parts.push(Part::Text { text: added.to_owned(), quoted: added_quoted });
        }
    }

    pub(super) fn character(&mut self, added: char, quoted: bool) {
        self.text(added.encode_utf8(&mut [0; 4]), quoted);
    }

    pub(super) fn push(&mut self, part: Part) {
        self.parts.push(part);
    }

    pub(super) fn done(self) -> Vec<Part> {
        self.parts
    }
}

impl Parser<'_> {
    /// A word; it may be empty (`x=`). `declaring`: it may hold `name=(…)`.
    pub(super) fn word(&mut self, declaring: bool) -> Parsed<Word> {
        let mut parts = Parts::default();
        while let Some(character) = self.peek() {
            let second = if matches!(character, '<' | '>' | '?' | '*' | '+' | '@' | '!') {
                self.second()
            } else {
                None
            };
            match character {
                '<' | '>' if second == Some('(') => {
                    self.next()?;
                    self.next()?;
                    parts.push(Part::Process(self.substituted()?));
                }
                '(' if declaring
                    && matches!(parts.parts.last(), Some(Part::Text { text, quoted: false }) if text.ends_with('=')) =>
                {
                    self.next()?;
                    parts.push(Part::Array(self.array()?));
                }
                _ if is_meta(character) => break,
                '?' | '*' | '+' | '@' | '!' if second == Some('(') => {
                    self.next()?;
                    self.next()?;
                    parts.character(character, false);
                    parts.text("(", false);
                    self.nested(|parser| parser.pattern(&mut parts))?;
                }
                _ => self.piece(&mut parts)?,
            }
        }
        if parts.parts.is_empty() && self.peek().is_some_and(|character| character == '(') {
            return Err(self.unreadable());
        }
        Ok(Word { parts: parts.done() })
    }

    /// The rest of `?(…)` after its parenthesis.
    fn pattern(&mut self, parts: &mut Parts) -> Parsed<()> {
        loop {
            match self.peek() {
                None => return Err(self.unreadable()),
                Some(')') => {
                    self.next()?;
                    parts.text(")", false);
                    return Ok(());
                }
                Some('(') => {
                    self.next()?;
                    parts.text("(", false);
                    self.nested(|parser| parser.pattern(parts))?;
                }
                Some(character) if is_meta(character) => {
                    self.next()?;
                    parts.character(character, false);
                }
                Some(_) => self.piece(parts)?,
            }
        }
    }

    /// One character, quote or expansion outside quotes.
    pub(super) fn piece(&mut self, parts: &mut Parts) -> Parsed<()> {
        match self.next()? {
            None => {}
            Some('\\') => match self.raw(self.pos) {
                Some(character) => {
                    self.pos += 1;
                    parts.character(character, true);
                }
                None => parts.text("\\", true),
            },
            Some('\'') => {
                let text = self.single_quoted()?;
                parts.text(&text, true);
            }
            Some('"') => self.double_quoted(parts)?,
            Some('$') => self.dollar(parts, false)?,
            Some('`') => self.backticks(parts, false)?,
            Some(character) => parts.character(character, false),
        }
        Ok(())
    }
}
