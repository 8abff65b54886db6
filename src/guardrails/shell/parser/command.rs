//! Lists, pipelines and simple commands.

use super::super::limits::READ;
use super::super::syntax::{Assign, Kind, Node, PART, Pipeline, Redirect, RedirectKind, Script, Value, Word};
use super::{Parsed, Parser, is_name, is_name_start};

/// Words that end a list where a command would begin.
const CLOSERS: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];
/// Words that begin something else than a simple command.
const OPENERS: [&str; 13] =
    ["{", "if", "while", "until", "for", "select", "case", "[[", "function", "coproc", "!", "time", "in"];
/// Commands whose arguments may be `name=(…)`.
const DECLARING: [&str; 6] = ["declare", "typeset", "local", "export", "readonly", "alias"];

impl Parser<'_> {
    /// A list up to its end: the end of the text, `)`, `;;`, or a closing word; the caller looks which.
    pub(super) fn list(&mut self) -> Parsed<Script> {
        self.nested(|parser| {
            let mut script = Script::default();
            loop {
                parser.blank_lines()?;
                if parser.at_end_of_list()? {
                    return Ok(script);
                }
                script.pipelines.push(parser.pipeline()?);
                parser.blanks()?;
                match parser.peek() {
                    None | Some(')' | '\n') => {}
                    Some(';') if matches!(parser.second(), Some(';' | '&')) => return Ok(script),
                    Some(';') => {
                        parser.next()?;
                    }
                    Some('&') => {
                        parser.next()?;
                        if parser.take('&')? {
                            parser.other_side()?;
                        }
                    }
                    Some('|') if parser.second() == Some('|') => {
                        parser.next()?;
                        parser.next()?;
                        parser.other_side()?;
                    }
                    Some(_) if parser.at_end_of_list()? => return Ok(script),
                    Some(_) => return Err(parser.unreadable()),
                }
            }
        })
    }

    /// After `&&`, `||` and `|` there must be a command.
    fn other_side(&mut self) -> Parsed<()> {
        self.blank_lines()?;
        if self.at_end_of_list()? { Err(self.unreadable()) } else { Ok(()) }
    }

    fn at_end_of_list(&mut self) -> Parsed<bool> {
        Ok(match self.peek() {
            None | Some(')') => true,
            Some(';') => matches!(self.second(), Some(';' | '&')),
            Some(_) => self.reserved(&CLOSERS)?.is_some(),
        })
    }

    /// Blanks and a comment.
    pub(super) fn blanks(&mut self) -> Parsed<()> {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next()?;
        }
        if self.peek() == Some('#') {
            while self.raw(self.pos).is_some_and(|character| character != '\n') {
                self.budget.spend(1)?;
                self.pos += 1;
            }
        }
        Ok(())
    }

    /// Blanks, comments and newlines, with the here-documents that follow one.
    pub(super) fn blank_lines(&mut self) -> Parsed<()> {
        loop {
            self.blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.next()?;
            self.bodies()?;
        }
    }

    /// The reserved word of these that stands here, unquoted and whole. It is not taken.
    pub(super) fn reserved(&mut self, of: &[&'static str]) -> Parsed<Option<&'static str>> {
        self.peek();
        let at = self.pos;
        let mut text = String::new();
        while let Some(character) = self.peek() {
            if super::is_meta(character) {
                break;
            }
            if text.len() > 9
                || !(character.is_ascii_lowercase() || matches!(character, '{' | '}' | '!' | '['))
            {
                text.clear();
                break;
            }
            text.push(character);
            self.pos += 1;
        }
        self.pos = at;
        self.budget.spend(1)?;
        Ok(of.iter().copied().find(|word| *word == text))
    }

    /// Takes a reserved word, or fails.
    pub(super) fn expect_word(&mut self, word: &'static str) -> Parsed<()> {
        if self.reserved(&[word])?.is_none() {
            return Err(self.unreadable());
        }
        for _ in word.chars() {
            self.next()?;
        }
        Ok(())
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut commands = Vec::new();
        loop {
            self.blanks()?;
            let mut alone = false;
            while let Some(word) = self.reserved(&["!", "time"])? {
                alone = true;
                self.expect_word(word)?;
                self.blanks()?;
                if word == "time" && self.peek() == Some('-') && self.second() == Some('p') {
                    self.next()?;
                    self.next()?;
                    self.blanks()?;
                }
            }
            // `time` and `!` alone are commands too.
            if !(alone && matches!(self.peek(), None | Some('\n' | ';' | ')'))) {
                commands.push(self.command()?);
            }
            self.blanks()?;
            if self.peek() != Some('|') || self.second() == Some('|') {
                return Ok(Pipeline { commands });
            }
            self.next()?;
            self.take('&')?;
            self.other_side()?;
        }
    }

    pub(super) fn command(&mut self) -> Parsed<Node> {
        self.blanks()?;
        self.peek();
        let start = self.pos;
        let (kind, mut redirects) = match self.reserved(&OPENERS)? {
            Some(word) => (self.compound(word)?, Vec::new()),
            None if self.peek() == Some('(') => (self.parenthesis()?, Vec::new()),
            None => self.simple()?,
        };
        if !matches!(kind, Kind::Simple { .. }) {
            loop {
                self.blanks()?;
                match self.redirect()? {
                    Some(redirect) => redirects.push(redirect),
                    None => break,
                }
            }
        }
        let text = match kind {
            Kind::Simple { .. } => self.slice(start, self.pos.min(start + PART)),
            _ => String::new(),
        };
        Ok(Node { kind, redirects, text })
    }

    fn simple(&mut self) -> Parsed<(Kind, Vec<Redirect>)> {
        self.budget.spend(READ)?;
        let (mut assigns, mut words, mut redirects) = (Vec::new(), Vec::<Word>::new(), Vec::new());
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => {
                    let [name] = words.as_slice() else { return Err(self.unreadable()) };
                    let named = name.plain().is_some();
                    if !named || !assigns.is_empty() || !redirects.is_empty() {
                        return Err(self.unreadable());
                    }
                    self.next()?;
                    self.blanks()?;
                    self.expect(')')?;
                    return Ok((self.function()?, redirects));
                }
                Some(_) => {}
            }
            if words.is_empty()
                && let Some(assign) = self.assign()?
            {
                assigns.push(assign);
                continue;
            }
            let declaring = words.first().and_then(Word::plain).is_some_and(|name| DECLARING.contains(&name));
            words.push(self.word(declaring)?);
        }
        if assigns.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.unreadable());
        }
        Ok((Kind::Simple { assigns, words }, redirects))
    }

    /// `name() body`, `function name body`.
    pub(super) fn function(&mut self) -> Parsed<Kind> {
        self.blank_lines()?;
        let body = self.nested(Self::command)?;
        Ok(Kind::Function(Box::new(body)))
    }

    /// An assignment before a command, or nothing taken.
    fn assign(&mut self) -> Parsed<Option<Assign>> {
        self.peek();
        let at = self.pos;
        let mut name = String::new();
        while let Some(character) = self.peek() {
            let fits = if name.is_empty() { is_name_start(character) } else { is_name(character) };
            if !fits {
                break;
            }
            name.push(character);
            self.next()?;
        }
        let mut index = Vec::new();
        if !name.is_empty() && self.peek() == Some('[') {
            self.next()?;
            index = match self.nested(Self::subscript) {
                Ok(index) => index,
                Err(super::super::limits::Trouble::Unreadable(_)) => {
                    self.pos = at;
                    return Ok(None);
                }
                Err(other) => return Err(other),
            };
        }
        let append = self.peek() == Some('+') && self.second() == Some('=');
        if name.is_empty() || !(append || self.peek() == Some('=')) {
            self.pos = at;
            return Ok(None);
        }
        if append {
            self.next()?;
        }
        self.next()?;
        let value = if self.peek() == Some('(') {
            self.next()?;
            Value::Array(self.array()?)
        } else {
            Value::Word(self.word(false)?)
        };
        Ok(Some(Assign { name, append, index, value }))
    }

    /// The words of `name=(…)`, after its parenthesis.
    pub(super) fn array(&mut self) -> Parsed<Vec<Word>> {
        self.nested(|parser| {
            let mut words = Vec::new();
            loop {
                parser.blank_lines()?;
                if parser.take(')')? {
                    return Ok(words);
                }
                match parser.peek() {
                    Some('<' | '>') if parser.second() == Some('(') => {}
                    None | Some(';' | '&' | '|' | '(' | '<' | '>') => return Err(parser.unreadable()),
                    Some(_) => {}
                }
                words.push(parser.word(false)?);
            }
        })
    }

    /// A redirection, or nothing taken.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        self.peek();
        let at = self.pos;
        let mut fd = None;
        let mut named = false;
        match self.peek() {
            Some(digit) if digit.is_ascii_digit() => {
                let mut text = String::new();
                while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
                    text.push(digit);
                    self.next()?;
                }
                fd = Some(text.parse().unwrap_or(u32::MAX));
            }
            Some('{') if self.second().is_some_and(is_name_start) => {
                self.next()?;
                while self
                    .peek()
                    .is_some_and(|character| is_name(character) || matches!(character, '[' | ']'))
                {
                    self.next()?;
                }
                named = self.take('}')?;
                fd = Some(u32::MAX);
            }
            _ => {}
        }
        let both = fd.is_none() && self.peek() == Some('&') && self.second() == Some('>');
        if both {
            self.next()?;
        }
        let arrow = self.peek();
        let process = self.second() == Some('(');
        if !matches!(arrow, Some('<' | '>'))
            || process
            || (fd == Some(u32::MAX) && !named && self.raw(at) == Some('{'))
        {
            self.pos = at;
            return Ok(None);
        }
        self.next()?;
        let kind = if arrow == Some('<') { self.reading()? } else { self.writing(both)? };
        Ok(Some(Redirect { fd, kind }))
    }

    /// After `<`.
    fn reading(&mut self) -> Parsed<RedirectKind> {
        match self.peek() {
            Some('<') if self.second() == Some('<') => {
                self.next()?;
                self.next()?;
                Ok(RedirectKind::HereString(self.target()?))
            }
            Some('<') => {
                self.next()?;
                self.here_document()
            }
            Some('&') => {
                self.next()?;
                Ok(RedirectKind::CopyIn(self.target()?))
            }
            Some('>') => {
                self.next()?;
                Ok(RedirectKind::Write(self.target()?))
            }
            _ => Ok(RedirectKind::Read(self.target()?)),
        }
    }

    /// After `>` or `&>`.
    fn writing(&mut self, both: bool) -> Parsed<RedirectKind> {
        match self.peek() {
            Some('>') => {
                self.next()?;
            }
            Some('|') if !both => {
                self.next()?;
            }
            Some('&') if !both => {
                self.next()?;
                return Ok(RedirectKind::CopyOut(self.target()?));
            }
            _ => {}
        }
        Ok(RedirectKind::Write(self.target()?))
    }

    /// The word of a redirection.
    fn target(&mut self) -> Parsed<Word> {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next()?;
        }
        match self.peek() {
            Some('<' | '>') if self.second() == Some('(') => self.word(false),
            None => Err(self.unreadable()),
            Some(character) if super::is_meta(character) => Err(self.unreadable()),
            Some(_) => self.word(false),
        }
    }
}
