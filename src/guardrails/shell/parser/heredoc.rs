//! Here-documents: where their text is, and whether anything in it is run.

use std::rc::Rc;

use super::super::syntax::{Body, Part, RedirectKind};
use super::{Parsed, Parser, is_meta};

/// A here-document whose text has not been read yet.
pub(super) struct Pending {
    delimiter: String,
    /// A quoted delimiter: the text is text.
    literal: bool,
    /// `<<-`: leading tabs do not count.
    tabs: bool,
    body: Body,
}

impl Parser<'_> {
    /// After `<<`.
    pub(super) fn here_document(&mut self) -> Parsed<RedirectKind> {
        let tabs = self.take('-')?;
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next()?;
        }
        let (delimiter, literal) = self.delimiter()?;
        let body = Body::default();
        self.pending.push(Pending { delimiter, literal, tabs, body: Rc::clone(&body) });
        Ok(RedirectKind::HereDocument(body))
    }

    /// A delimiter is never expanded. One with an expansion in it is not understood.
    fn delimiter(&mut self) -> Parsed<(String, bool)> {
        let (mut text, mut literal, mut empty) = (String::new(), false, true);
        while let Some(character) = self.peek() {
            if is_meta(character) {
                break;
            }
            empty = false;
            self.next()?;
            match character {
                '\'' => {
                    literal = true;
                    text.push_str(&self.single_quoted()?);
                }
                '"' => {
                    literal = true;
                    loop {
                        match self.next()? {
                            None => return Err(self.unreadable()),
                            Some('"') => break,
                            Some('\\' | '$' | '`') => return Err(self.unreadable()),
                            Some(other) => text.push(other),
                        }
                    }
                }
                '\\' => {
                    literal = true;
                    let character = self.raw(self.pos).ok_or_else(|| self.unreadable())?;
                    self.pos += 1;
                    text.push(character);
                }
                '$' | '`' => return Err(self.unreadable()),
                other => text.push(other),
            }
        }
        if empty || text.contains('\n') { Err(self.unreadable()) } else { Ok((text, literal)) }
    }

    /// Reads the texts that begin here, after a newline.
    pub(super) fn bodies(&mut self) -> Parsed<()> {
        if self.waiting && self.pos > 0 && self.raw(self.pos - 1) == Some('\n') {
            // Shells do not agree where the outer text begins then.
            return Err(self.unreadable());
        }
        for pending in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            while self.raw(self.pos).is_some() {
                let line = self.line(pending.literal)?;
                let line = if pending.tabs { line.trim_start_matches('\t') } else { &line };
                if line == pending.delimiter {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            let parts = if pending.literal {
                vec![Part::Text { text, quoted: true }]
            } else {
                let at = self.pos;
                self.nested(|parser| Parser::new(&text, parser.budget, parser.nesting).text_to_end())
                    .map_err(|trouble| trouble.at(at))?
            };
            let _ = pending.body.set(parts);
        }
        Ok(())
    }

    /// One line of a here-document, without its newline; joined with the next where a backslash ends it.
    fn line(&mut self, literal: bool) -> Parsed<String> {
        let mut line = String::new();
        let mut escaped = false;
        while let Some(character) = self.raw(self.pos) {
            self.budget.spend(1)?;
            self.pos += 1;
            if character == '\n' {
                if literal || !escaped {
                    break;
                }
                line.pop();
                escaped = false;
                continue;
            }
            escaped = character == '\\' && !escaped;
            line.push(character);
        }
        Ok(line)
    }
}
