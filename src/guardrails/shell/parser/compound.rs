//! Commands that hold commands.

use super::super::syntax::{Kind, Script, Word};
use super::{Parsed, Parser, is_meta};

impl Parser<'_> {
    /// What begins with this word, which stands here.
    pub(super) fn compound(&mut self, word: &'static str) -> Parsed<Kind> {
        self.expect_word(word)?;
        match word {
            "{" => {
                let body = self.list()?;
                self.expect_word("}")?;
                Ok(Kind::Group(vec![body]))
            }
            "if" => self.conditional(),
            "while" | "until" => {
                let condition = self.list()?;
                self.expect_word("do")?;
                let body = self.list()?;
                self.expect_word("done")?;
                Ok(Kind::Group(vec![condition, body]))
            }
            "for" | "select" => self.loop_over(),
            "case" => self.case(),
            "[[" => self.condition(),
            "function" => {
                self.blanks()?;
                self.word(false)?;
                self.blanks()?;
                if self.peek() == Some('(') && self.second() == Some(')') {
                    self.next()?;
                    self.next()?;
                }
                self.function()
            }
            "coproc" => self.coproc(),
            _ => Err(self.unreadable()),
        }
    }

    fn conditional(&mut self) -> Parsed<Kind> {
        let mut lists = vec![self.list()?];
        self.expect_word("then")?;
        lists.push(self.list()?);
        loop {
            match self.reserved(&["elif", "else", "fi"])? {
                Some("elif") => {
                    self.expect_word("elif")?;
                    lists.push(self.list()?);
                    self.expect_word("then")?;
                    lists.push(self.list()?);
                }
                Some("else") => {
                    self.expect_word("else")?;
                    lists.push(self.list()?);
                }
                _ => {
                    self.expect_word("fi")?;
                    return Ok(Kind::Group(lists));
                }
            }
        }
    }

    fn loop_over(&mut self) -> Parsed<Kind> {
        self.blanks()?;
        if self.peek() == Some('(') && self.second() == Some('(') {
            self.next()?;
            self.next()?;
            let parts = self.arithmetic()?.ok_or_else(|| self.unreadable())?;
            self.blanks()?;
            self.take(';')?;
            let body = self.loop_body()?;
            return Ok(Kind::Arithmetic { parts, body });
        }
        let variable = self.word(false)?.plain().unwrap_or_default().to_owned();
        self.blank_lines()?;
        let mut list = None;
        if self.reserved(&["in"])?.is_some() {
            self.expect_word("in")?;
            let mut words = Vec::new();
            loop {
                self.blanks()?;
                match self.peek() {
                    Some('<' | '>') if self.second() == Some('(') => {}
                    None | Some(';' | '\n') => break,
                    Some(character) if is_meta(character) => return Err(self.unreadable()),
                    Some(_) => {}
                }
                words.push(self.word(false)?);
            }
            list = Some(words);
        }
        self.blanks()?;
        self.take(';')?;
        let body = self.loop_body()?;
        Ok(Kind::Loop { variable, list, body })
    }

    /// `do … done`, or the old `{ … }`.
    fn loop_body(&mut self) -> Parsed<Script> {
        self.blank_lines()?;
        let (open, close) = if self.reserved(&["{"])?.is_some() { ("{", "}") } else { ("do", "done") };
        self.expect_word(open)?;
        let body = self.list()?;
        self.expect_word(close)?;
        Ok(body)
    }

    fn case(&mut self) -> Parsed<Kind> {
        self.blanks()?;
        let subject = self.word(false)?;
        self.blank_lines()?;
        self.expect_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.blank_lines()?;
            if self.reserved(&["esac"])?.is_some() {
                self.expect_word("esac")?;
                return Ok(Kind::Case { subject, arms });
            }
            self.take('(')?;
            let mut patterns = Vec::new();
            loop {
                self.blanks()?;
                patterns.push(self.word(false)?);
                self.blanks()?;
                if !self.take('|')? {
                    break;
                }
            }
            self.expect(')')?;
            arms.push((patterns, self.list()?));
            if self.peek() == Some(';') {
                self.next()?;
                while matches!(self.peek(), Some(';' | '&')) {
                    self.next()?;
                }
            } else if self.reserved(&["esac"])?.is_none() {
                return Err(self.unreadable());
            }
        }
    }

    /// `(…)` or `((…))`.
    pub(super) fn parenthesis(&mut self) -> Parsed<Kind> {
        self.expect('(')?;
        if self.peek() == Some('(') {
            let at = self.pos;
            self.next()?;
            if let Some(parts) = self.nested(Self::arithmetic)? {
                return Ok(Kind::Arithmetic { parts, body: Script::default() });
            }
            self.pos = at;
        }
        let body = self.list()?;
        self.expect(')')?;
        Ok(Kind::Group(vec![body]))
    }

    /// `[[ … ]]`: nothing in it is run but its substitutions, so its operators are only stepped over.
    fn condition(&mut self) -> Parsed<Kind> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            while matches!(self.peek(), Some(' ' | '\t' | '\n')) {
                let newline = self.next()? == Some('\n');
                if newline && !self.pending.is_empty() {
                    return Err(self.unreadable());
                }
            }
            match self.peek() {
                None | Some(';') => return Err(self.unreadable()),
                Some(']') if self.closes_condition() => {
                    self.next()?;
                    self.next()?;
                    return Ok(Kind::Condition(words));
                }
                Some('<' | '>') if self.second() == Some('(') => words.push(self.word(false)?),
                Some('(' | ')' | '<' | '>' | '|' | '&') => {
                    self.next()?;
                }
                Some(_) => words.push(self.word(false)?),
            }
        }
    }

    fn closes_condition(&mut self) -> bool {
        let at = self.pos;
        self.pos += 1;
        let second = self.peek() == Some(']');
        self.pos += 1;
        let whole = self.peek().is_none_or(is_meta);
        self.pos = at;
        second && whole
    }

    /// `coproc [NAME] command`: a name stands only before a compound command.
    fn coproc(&mut self) -> Parsed<Kind> {
        self.blanks()?;
        let at = self.pos;
        if self.reserved(&["{", "if", "while", "until", "for", "select", "case", "[["])?.is_none()
            && self.peek() != Some('(')
        {
            let named = self.word(false)?;
            self.blanks()?;
            let compound = self.peek() == Some('(')
                || self.reserved(&["{", "if", "while", "until", "for", "select", "case", "[["])?.is_some();
            if named.plain().is_none() || !compound {
                self.pos = at;
            }
        }
        let body = self.nested(Self::command)?;
        Ok(Kind::Coproc(Box::new(body)))
    }
}
