//! PowerShell text to its tree, of Windows PowerShell 5 and PowerShell 7 alike. More is read than either takes: what
//! one of them would run is in the tree. Runs once over the text; nesting has a limit.

use super::tree::{Element, Kind, Pipeline, Script, Shape, Stop, Word};

/// Reads one line (of any number of lines).
pub(super) fn parse(chars: &[char], depth: u32, limit: u32) -> Result<Script, Stop> {
    let mut parser = Parser { chars, at: 0, depth, limit };
    let script = parser.script(None)?;
    Ok(script)
}

pub(super) struct Parser<'a> {
    pub(super) chars: &'a [char],
    pub(super) at: usize,
    pub(super) depth: u32,
    pub(super) limit: u32,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    /// Blanks, continued lines and comments; with `lines` also line ends.
    pub(super) fn skip(&mut self, lines: bool) -> Result<(), Stop> {
        while let Some(c) = self.peek() {
            match c {
                '\n' | '\r' if lines => self.at += 1,
                '`' if matches!(self.ahead(1), Some('\n')) => self.at += 2,
                '`' if self.ahead(1) == Some('\r') && self.ahead(2) == Some('\n') => self.at += 3,
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n' && c != '\r') {
                        self.at += 1;
                    }
                }
                '<' if self.ahead(1) == Some('#') => {
                    let start = self.at;
                    self.at += 2;
                    while !(self.peek() == Some('#') && self.ahead(1) == Some('>')) {
                        if self.peek().is_none() {
                            return Err(Stop::Unreadable(start, "a comment `<#` that does not end"));
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ if is_blank(c) => self.at += 1,
                _ => break,
            }
        }
        Ok(())
    }

    /// Statements up to `end`, which is taken, or to the end of the text.
    pub(super) fn script(&mut self, end: Option<char>) -> Result<Script, Stop> {
        self.depth += 1;
        if self.depth > self.limit {
            return Err(Stop::Deep);
        }
        let opened = self.at.saturating_sub(1);
        let mut script = Script::default();
        loop {
            self.skip(true)?;
            match self.peek() {
                None if end.is_none() => break,
                None => return Err(Stop::Unreadable(opened, "an opening bracket without its end")),
                Some(c) if Some(c) == end => {
                    self.at += 1;
                    break;
                }
                // An empty statement; a stray operator is skipped, what stands behind it still counts.
                Some(';' | '|' | ',') => self.at += 1,
                Some(')' | '}') => {
                    return Err(Stop::Unreadable(self.at, "a closing bracket without its start"));
                }
                Some(_) => {
                    let before = self.at;
                    let pipeline = self.pipeline(end)?;
                    script.pipelines.push(pipeline);
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
        self.depth -= 1;
        Ok(script)
    }

    /// One pipeline; what separates it from the next is taken.
    pub(super) fn pipeline(&mut self, end: Option<char>) -> Result<Pipeline, Stop> {
        let mut pipeline = Pipeline::default();
        loop {
            let first = pipeline.elements.is_empty();
            let done = self.element(&mut pipeline, first, end)?;
            if done {
                break;
            }
            self.skip(false)?;
            match (self.peek(), self.ahead(1)) {
                (Some('|'), Some('|')) | (Some('&'), Some('&')) => {
                    self.at += 2;
                    break;
                }
                (Some('|'), _) => {
                    self.at += 1;
                    self.skip(true)?;
                }
                (Some('&' | ';'), _) => {
                    self.at += 1;
                    break;
                }
                (Some('\n' | '\r'), _) => {
                    // PowerShell 7 goes on with a pipeline on the next line when that starts with `|`.
                    self.skip(true)?;
                    if self.peek() == Some('|') && self.ahead(1) != Some('|') {
                        self.at += 1;
                        self.skip(true)?;
                    } else {
                        break;
                    }
                }
                _ => break,
            }
        }
        Ok(pipeline)
    }

    /// One element; true when the statement ended with it (a block needs no separator).
    pub(super) fn element(
        &mut self,
        pipeline: &mut Pipeline,
        first: bool,
        end: Option<char>,
    ) -> Result<bool, Stop> {
        self.skip(false)?;
        let start = self.at;
        let Some(c) = self.peek() else { return Ok(true) };
        if first && (c.is_ascii_alphabetic() || c == ':') {
            if let Some(done) = self.keyword(pipeline, end)? {
                return Ok(done);
            }
            self.at = start;
        }
        let call = match (c, self.ahead(1)) {
            ('&', Some('&')) => false,
            ('&', _) => true,
            ('.', next) => {
                next.is_none_or(|next| is_blank(next) || "'\"$({&\n\r".contains(next) || is_quote(next))
            }
            _ => false,
        };
        if call {
            self.at += 1;
            self.skip(true)?;
            let element = self.command(start)?;
            pipeline.elements.push(element);
            return Ok(false);
        }
        let value = match c {
            '$' | '@' | '(' | '[' | '{' | '+' | '-' | '!' | ',' => true,
            _ if is_quote(c) || is_dash(c) => true,
            // An index is a value, whatever it starts with.
            _ if end == Some(']') => true,
            _ if c.is_ascii_digit() => self.is_number(),
            _ => false,
        };
        let element = if value { self.expression(start, end)? } else { self.command(start)? };
        pipeline.elements.push(element);
        Ok(false)
    }

    /// Whether what stands here is a number and not a name that starts with a digit.
    fn is_number(&self) -> bool {
        let word = self.chars.get(self.at..).unwrap_or_default().iter();
        let word: String =
            word.take(40).take_while(|c| !is_blank(**c) && !";|&(){},\n\r=+*/%".contains(**c)).collect();
        let word = word.to_ascii_lowercase();
        let hex = word.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()));
        let plain = word.trim_end_matches(['k', 'm', 'g', 't', 'p', 'b', 'l', 'd', 'u', 'y', 's', 'n']);
        hex || plain.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | '-' | '[' | ']'))
    }

    /// Letters, digits and `_`.
    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
            self.at += 1;
        }
        name
    }

    /// A value up to the end of the statement or of its element.
    fn expression(&mut self, start: usize, end: Option<char>) -> Result<Element, Stop> {
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        let mut listed = false;
        loop {
            // After an operator a value may stand on the next line.
            let open = words.last().is_none_or(|word| word.shape == Shape::Operator) || listed;
            self.skip(open && !words.is_empty())?;
            let Some(c) = self.peek() else { break };
            if Some(c) == end || ";|&)}\n\r]".contains(c) {
                break;
            }
            if c == '>' {
                redirects.extend(self.redirect()?);
                continue;
            }
            if c == ',' {
                listed = true;
                self.at += 1;
                continue;
            }
            let assigns = match (c, self.ahead(1), self.ahead(2)) {
                ('=', Some('='), _) => 0,
                ('=', ..) => 1,
                ('+' | '-' | '*' | '/' | '%', Some('='), _) => 2,
                ('?', Some('?'), Some('=')) => 3,
                _ => 0,
            };
            if assigns > 0 && !words.is_empty() {
                self.at += assigns;
                self.skip(true)?;
                let mut right = Pipeline::default();
                self.depth += 1;
                if self.depth > self.limit {
                    return Err(Stop::Deep);
                }
                let mut first = true;
                loop {
                    let done = self.element(&mut right, first, end)?;
                    first = false;
                    self.skip(false)?;
                    if done || self.peek() != Some('|') || self.ahead(1) == Some('|') {
                        break;
                    }
                    self.at += 1;
                    self.skip(true)?;
                }
                self.depth -= 1;
                let kind = Kind::Assignment(Box::new(right));
                return Ok(Element { kind, words, redirects, start, end: self.at });
            }
            let mut word = self.operand()?;
            word.listed = std::mem::take(&mut listed);
            words.push(word);
        }
        Ok(Element { kind: Kind::Expression, words, redirects, start, end: self.at })
    }

    /// A command: words up to the end of its element.
    fn command(&mut self, start: usize) -> Result<Element, Stop> {
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        let mut listed = false;
        loop {
            self.skip(listed)?;
            let Some(c) = self.peek() else { break };
            match c {
                ';' | '|' | '&' | ')' | '}' | '\n' | '\r' => break,
                ',' => {
                    listed = true;
                    self.at += 1;
                }
                '>' | '<' => redirects.extend(self.redirect()?),
                _ if self.is_redirect() => redirects.extend(self.redirect()?),
                _ => {
                    let before = self.at;
                    let mut word = self.word()?;
                    if self.at == before {
                        return Err(Stop::Unreadable(self.at, "a character that starts no word"));
                    }
                    word.listed = std::mem::take(&mut listed);
                    let verbatim = !word.quoted && word.plain() == Some("--%");
                    if verbatim {
                        self.verbatim(&mut words);
                    } else {
                        words.push(word);
                    }
                }
            }
        }
        Ok(Element { kind: Kind::Command, words, redirects, start, end: self.at })
    }

    /// `2>`, `*>`: a stream's number before the sign.
    fn is_redirect(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit() || c == '*') && self.ahead(1) == Some('>')
    }

    /// A redirection; its file, when it has one.
    fn redirect(&mut self) -> Result<Option<Word>, Stop> {
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '*') {
            self.at += 1;
        }
        while self.peek().is_some_and(|c| c == '>' || c == '<') {
            self.at += 1;
        }
        if self.peek() == Some('&') && self.ahead(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 2;
            return Ok(None);
        }
        self.skip(false)?;
        let before = self.at;
        let word = self.word()?;
        Ok((self.at > before).then_some(word))
    }

    /// What follows `--%`: words as they stand, to the end of the line or a pipe.
    fn verbatim(&mut self, words: &mut Vec<Word>) {
        let mut word = Word::new(Shape::Text, self.at);
        let mut quoted = false;
        let mut any = false;
        while let Some(c) = self.peek().filter(|c| !"\n\r".contains(*c) && (quoted || *c != '|')) {
            self.at += 1;
            if c == '"' {
                quoted = !quoted;
                any = true;
            } else if is_blank(c) && !quoted {
                word.end = self.at - 1;
                let next = Word::new(Shape::Text, self.at);
                let full = std::mem::replace(&mut word, next);
                if std::mem::take(&mut any) {
                    words.push(full);
                }
            } else {
                any = true;
                word.push(c);
            }
        }
        word.end = self.at;
        if any {
            words.push(word);
        }
    }
}

/// An expression of one word.
pub(super) fn value(word: Word) -> Element {
    Element {
        kind: Kind::Expression,
        start: word.start,
        end: word.end,
        words: vec![word],
        redirects: Vec::new(),
    }
}

/// What PowerShell takes as a blank inside a line.
pub(super) fn is_blank(c: char) -> bool {
    c != '\n' && c != '\r' && (c.is_whitespace() || c == '\u{200b}' || c == '\0')
}

/// Single and double quotes, also the typographic ones, which PowerShell takes as well.
pub(super) fn is_quote(c: char) -> bool {
    is_single(c) || is_double(c)
}

pub(super) fn is_single(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}

pub(super) fn is_double(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}')
}

/// `-` and the dashes that PowerShell takes for it.
pub(super) fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2013}' | '\u{2014}' | '\u{2015}')
}
