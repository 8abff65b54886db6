//! The parser of bash and POSIX sh: strict, recursive, linear but where a limit ends it. What it does not understand
//! is an error with the place, never a guess.

mod command;
mod compound;
mod dollar;
mod heredoc;
mod quote;
mod word;

use super::limits::{Budget, MAX_NESTING, Trouble};
use super::syntax::Script;
use heredoc::Pending;

type Parsed<T> = Result<T, Trouble>;

/// Reads a whole script.
pub(super) fn parse(source: &str, budget: &Budget) -> Parsed<Script> {
    let mut parser = Parser::new(source, budget, 0);
    let script = parser.list()?;
    match parser.peek() {
        None => {}
        Some(_) => return Err(parser.unreadable()),
    }
    parser.bodies()?;
    Ok(script)
}

/// Reads text that is expanded as between double quotes: the body of a here-document, a prompt.
pub(super) fn parse_text(source: &str, budget: &Budget) -> Parsed<Vec<super::syntax::Part>> {
    Parser::new(source, budget, 1).text_to_end()
}

struct Parser<'b> {
    chars: Vec<char>,
    pos: usize,
    nesting: u32,
    budget: &'b Budget,
    /// Here-documents whose text begins after the next newline.
    pending: Vec<Pending>,
    /// Whether an outer command waits for its here-document while a substitution is read.
    waiting: bool,
}

impl<'b> Parser<'b> {
    fn new(source: &str, budget: &'b Budget, nesting: u32) -> Self {
        Self { chars: source.chars().collect(), pos: 0, nesting, budget, pending: Vec::new(), waiting: false }
    }

    fn raw(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    /// The next character; a backslash before a newline is no character at all.
    fn peek(&mut self) -> Option<char> {
        while self.raw(self.pos) == Some('\\') && self.raw(self.pos + 1) == Some('\n') {
            self.pos += 2;
        }
        self.raw(self.pos)
    }

    /// The one after the next.
    fn second(&mut self) -> Option<char> {
        self.peek()?;
        let at = self.pos;
        self.pos += 1;
        let found = self.peek();
        self.pos = at;
        found
    }

    fn next(&mut self) -> Parsed<Option<char>> {
        self.budget.spend(1)?;
        let found = self.peek();
        if found.is_some() {
            self.pos += 1;
        }
        Ok(found)
    }

    /// Takes this character, if it is the next.
    fn take(&mut self, wanted: char) -> Parsed<bool> {
        if self.peek() == Some(wanted) {
            self.next()?;
            return Ok(true);
        }
        Ok(false)
    }

    fn expect(&mut self, wanted: char) -> Parsed<()> {
        if self.take(wanted)? { Ok(()) } else { Err(self.unreadable()) }
    }

    fn unreadable(&self) -> Trouble {
        Trouble::Unreadable(self.pos)
    }

    /// Runs `inside` one level deeper.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return Err(Trouble::TooDeep);
        }
        self.nesting += 1;
        let result = inside(self);
        self.nesting -= 1;
        result
    }

    fn slice(&self, from: usize, to: usize) -> String {
        self.chars.get(from..to).unwrap_or_default().iter().collect()
    }
}

/// Ends a word where it is not quoted.
fn is_meta(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
