//! What begins with `$` or a backtick.

use super::super::syntax::{Op, Param, Part, Script};
use super::word::Parts;
use super::{Parsed, Parser, is_name, is_name_start};

impl Parser<'_> {
    /// After `$`.
    pub(super) fn dollar(&mut self, parts: &mut Parts, quoted: bool) -> Parsed<()> {
        match self.peek() {
            Some('(') => {
                self.next()?;
                if self.peek() == Some('(') {
                    let at = self.pos;
                    self.next()?;
                    if let Some(inner) = self.nested(Self::arithmetic)? {
                        parts.push(Part::Arith(inner));
                        return Ok(());
                    }
                    self.pos = at;
                }
                parts.push(Part::Sub { script: self.substituted()?, quoted });
            }
            Some('{') => {
                self.next()?;
                let param = self.nested(|parser| parser.braced(quoted))?;
                parts.push(Part::Param(Box::new(param)));
            }
            Some('[') => {
                self.next()?;
                parts.push(Part::Arith(self.nested(Self::subscript)?));
            }
            Some('\'') if !quoted => {
                self.next()?;
                let text = self.ansi_quoted()?;
                parts.text(&text, true);
            }
            Some('"') if !quoted => {
                self.next()?;
                self.double_quoted(parts)?;
            }
            Some(character) if is_name_start(character) => {
                let name = self.name()?;
                parts.push(simple(name, quoted));
            }
            Some(character @ ('@' | '*' | '#' | '?' | '$' | '!' | '-' | '0'..='9')) => {
                self.next()?;
                parts.push(simple(character.to_string(), quoted));
            }
            _ => parts.text("$", quoted),
        }
        Ok(())
    }

    fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        while let Some(character) = self.peek().filter(|character| is_name(*character)) {
            name.push(character);
            self.next()?;
        }
        Ok(name)
    }

    /// The commands of `$(`, `<(` or `>(`, and the parenthesis that ends them.
    pub(super) fn substituted(&mut self) -> Parsed<Script> {
        let outer = std::mem::take(&mut self.pending);
        let waited = self.waiting;
        self.waiting |= !outer.is_empty();
        let script = self.list()?;
        self.expect(')')?;
        if !self.pending.is_empty() {
            return Err(self.unreadable());
        }
        self.pending = outer;
        self.waiting = waited;
        Ok(script)
    }

    /// After a backtick: up to the next one that is not escaped; a script of its own.
    pub(super) fn backticks(&mut self, parts: &mut Parts, quoted: bool) -> Parsed<()> {
        let start = self.pos;
        let mut text = String::new();
        loop {
            match self.next()? {
                None => {
                    self.pos = start.saturating_sub(1);
                    return Err(self.unreadable());
                }
                Some('`') => break,
                Some('\\') => match self.raw(self.pos) {
                    Some(character @ ('`' | '$' | '\\')) => {
                        self.pos += 1;
                        text.push(character);
                    }
                    Some('"') if quoted => {
                        self.pos += 1;
                        text.push('"');
                    }
                    _ => text.push('\\'),
                },
                Some(character) => text.push(character),
            }
        }
        let script = self.nested(|parser| {
            let mut inner = Parser::new(&text, parser.budget, parser.nesting);
            let script = inner.list()?;
            if inner.peek().is_some() { Err(inner.unreadable()) } else { inner.bodies().map(|()| script) }
        });
        parts.push(Part::Sub { script: script.map_err(|trouble| trouble.at(start))?, quoted });
        Ok(())
    }

    /// After `((`: the expression and `))`. `None`: these are parentheses of commands.
    pub(super) fn arithmetic(&mut self) -> Parsed<Option<Vec<Part>>> {
        let mut parts = Parts::default();
        let mut open = 0_u32;
        loop {
            match self.next()? {
                None => return Err(self.unreadable()),
                Some('(') => {
                    open += 1;
                    parts.text("(", true);
                }
                Some(')') if open > 0 => {
                    open -= 1;
                    parts.text(")", true);
                }
                Some(')') => return Ok(self.take(')')?.then(|| parts.done())),
                Some('"') => self.double_quoted(&mut parts)?,
                Some('\'') => {
                    let text = self.single_quoted()?;
                    parts.text(&text, true);
                }
                Some(character) => self.quoted_piece(character, &mut parts, true)?,
            }
        }
    }

    /// After `[`: up to its `]`.
    pub(super) fn subscript(&mut self) -> Parsed<Vec<Part>> {
        let mut parts = Parts::default();
        let mut open = 0_u32;
        loop {
            match self.peek() {
                None | Some('\n') => return Err(self.unreadable()),
                Some('[') => {
                    self.next()?;
                    open += 1;
                    parts.text("[", false);
                }
                Some(']') => {
                    self.next()?;
                    if open == 0 {
                        return Ok(parts.done());
                    }
                    open -= 1;
                    parts.text("]", false);
                }
                Some(_) => self.piece(&mut parts)?,
            }
        }
    }

    /// After `${`.
    fn braced(&mut self, quoted: bool) -> Parsed<Param> {
        let mut op = Op::None;
        let plain_second = self.second().is_some_and(|second| is_name(second) || matches!(second, '@' | '*'));
        match self.peek() {
            Some('#') if plain_second || matches!(self.second(), Some('#' | '?' | '$' | '!' | '-')) => {
                // `${#-word}` and its kin are so rare that they may be taken for a length: it must end then.
                self.next()?;
                op = Op::Length;
            }
            Some('!') if plain_second => {
                self.next()?;
                op = Op::Indirect;
            }
            _ => {}
        }
        let name = match self.peek() {
            Some(character) if is_name_start(character) => self.name()?,
            Some(character) if character.is_ascii_digit() => self.name()?,
            Some(character @ ('@' | '*' | '#' | '?' | '$' | '!' | '-')) => {
                self.next()?;
                character.to_string()
            }
            _ => return Err(self.unreadable()),
        };
        let mut index = Vec::new();
        if self.peek() == Some('[') {
            self.next()?;
            index = self.nested(Self::subscript)?;
        }
        let sign = match self.next()? {
            Some('}') => return Ok(Param { name, quoted, index, op }),
            Some(sign) => sign,
            None => return Err(self.unreadable()),
        };
        let (sign, default) = match (sign, self.peek()) {
            (':', Some(next @ ('-' | '+' | '=' | '?'))) => {
                self.next()?;
                (next, true)
            }
            ('-' | '+' | '=' | '?', _) => (sign, true),
            (':' | '#' | '%' | '/' | '^' | ',' | '@' | '~' | '*', _) => (sign, false),
            _ => {
                self.pos = self.pos.saturating_sub(1);
                return Err(self.unreadable());
            }
        };
        let literal_single = quoted && (default || matches!(sign, ':' | '@'));
        let words = self.brace_words(quoted, literal_single)?;
        if matches!(op, Op::None) {
            op = if default { Op::Default(sign, words) } else { Op::Edit(sign, words) };
        } else {
            // `${!x:-word}`: what is in it is judged, its value is not known.
            index.extend(words);
        }
        Ok(Param { name, quoted, index, op })
    }

    /// The rest of `${…}` with its brace.
    fn brace_words(&mut self, quoted: bool, literal_single: bool) -> Parsed<Vec<Part>> {
        let mut parts = Parts::default();
        loop {
            let Some(character) = self.peek() else { return Err(self.unreadable()) };
            match character {
                '}' => {
                    self.next()?;
                    return Ok(parts.done());
                }
                '\'' if quoted && literal_single => {
                    // bash takes this for a quote, a POSIX shell for a character: only what is the same in both
                    // ways is understood.
                    let at = self.pos;
                    self.next()?;
                    let text = self.single_quoted()?;
                    if text.contains(['}', '"', '$', '`', '\\']) {
                        self.pos = at;
                        return Err(self.unreadable());
                    }
                    parts.text(&text, true);
                }
                '\'' => {
                    self.next()?;
                    let text = self.single_quoted()?;
                    parts.text(&text, true);
                }
                '"' => {
                    self.next()?;
                    self.double_quoted(&mut parts)?;
                }
                '<' | '>' if !quoted && self.second() == Some('(') => {
                    self.next()?;
                    self.next()?;
                    parts.push(Part::Process(self.substituted()?));
                }
                '\\' if quoted => {
                    self.next()?;
                    match self.raw(self.pos) {
                        Some(escaped @ ('$' | '`' | '\\' | '"' | '}')) => {
                            self.pos += 1;
                            parts.character(escaped, true);
                        }
                        _ => parts.text("\\", true),
                    }
                }
                '$' if quoted => {
                    self.next()?;
                    self.dollar(&mut parts, true)?;
                }
                '`' if quoted => {
                    self.next()?;
                    self.backticks(&mut parts, true)?;
                }
                _ if quoted => {
                    self.next()?;
                    parts.character(character, true);
                }
                _ => self.piece(&mut parts)?,
            }
        }
    }
}

fn simple(name: String, quoted: bool) -> Part {
    Part::Param(Box::new(Param { name, quoted, index: Vec::new(), op: Op::None }))
}
