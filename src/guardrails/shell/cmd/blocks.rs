//! `if`, `for`, `set` and comments of the command prompt.

use super::super::Shell;
use super::super::windows;
use super::words::{Bit, Placed, Token};
use super::{DEEPEST, Fed, Judge, LONGEST, Word, arguments};
use crate::guardrails::Denial;

impl Judge<'_> {
    /// `if [/i] [not] condition command [else command]`.
    pub(super) fn condition(&mut self, words: &[Word], fed: &Fed, inside: bool) -> Result<Fed, Denial> {
        let mut at = 0;
        while words.get(at).is_some_and(|word| word.is("/i") || word.is("not")) {
            at += 1;
        }
        let Some(first) = words.get(at) else { return self.unreadable("an `if` without its condition") };
        if ["exist", "defined", "errorlevel", "cmdextversion"].iter().any(|word| first.is(word)) {
            at += 2;
        } else if first.arg.with("x").contains("==") {
            at += if first.arg.with("x").ends_with("==") { 2 } else { 1 };
        } else if words.get(at + 1).is_some_and(|word| word.arg.with("x").starts_with("==")) {
            at += if words.get(at + 1).is_some_and(|word| word.is("==")) { 3 } else { 2 };
        } else {
            at += 3;
        }
        let rest = words.get(at.min(words.len())..).unwrap_or_default();
        // The other branch stands on the same line when there are no brackets.
        if let Some(other) = rest.iter().position(|word| word.is("else")) {
            self.simple(rest.get(..other).unwrap_or_default(), fed, inside)?;
            return self.simple(rest.get(other + 1..).unwrap_or_default(), fed, inside);
        }
        self.simple(rest, fed, inside)
    }

    /// `for %i in (list) do command`.
    pub(super) fn each(&mut self, words: &[Word], fed: &Fed, inside: bool) -> Result<Fed, Denial> {
        if self.peek() != Some(&Token::Open) || !words.last().is_some_and(|word| word.is("in")) {
            return self.unreadable("a `for` without its list");
        }
        let start = self.tokens.get(self.at).map_or(0, |placed| placed.end);
        let mut depth = 0_u32;
        let mut end = start;
        while let Some(placed) = self.tokens.get(self.at) {
            self.at += 1;
            match placed.token {
                Token::Open => depth += 1,
                Token::Close => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = placed.start;
                        break;
                    }
                }
                _ => {}
            }
        }
        if depth > 0 {
            return self.unreadable("a `for` whose list does not end");
        }
        // What `/f` has in quotes of its own kind is a command.
        let list: String = self.chars.get(start..end).unwrap_or_default().iter().collect();
        let list = list.trim();
        if words.iter().any(|word| word.is("/f")) {
            for quote in ['\'', '`'] {
                if let Some(command) = list.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
                    windows::nested(Shell::Cmd, &without_carets(command), self.context, self.depth)?;
                }
            }
        }
        if words.iter().any(|word| word.is("/f")) && !list.starts_with(['\'', '`', '"']) {
            for file in arguments(list) {
                windows::path(&file, self.context)?;
            }
        }
        self.values.push(list.to_owned());
        self.depth += 1;
        if self.depth > DEEPEST {
            let part = self.part(0, 40);
            return Err(windows::denial(windows::DEEP, &part, "is nested deeper than can be judged"));
        }
        let given = self.command(inside, fed);
        self.depth -= 1;
        given
    }

    pub(super) fn set(&mut self, words: &[Word]) {
        let text: Vec<String> = words.iter().map(|word| word.arg.with("\u{0}")).collect();
        let text = text.join(" ");
        let Some((name, value)) = text.split_once('=') else { return };
        let name = name.trim().to_lowercase();
        let value = value.to_owned();
        if name.starts_with("/a") || name.starts_with("/p") {
            if let Some(name) = name.split_whitespace().nth(1) {
                self.variables.insert(name.to_owned(), None);
            }
            return;
        }
        self.values.push(value.replace('\u{0}', ""));
        let known = !value.contains('\u{0}') && value.len() <= LONGEST && !self.variables.contains_key(&name);
        self.variables.insert(name, known.then(|| value.trim_end().to_owned()));
    }

    /// The rest of a comment's line is no command, unless an operator follows at once.
    pub(super) fn comment(&mut self, _end: usize) {
        while self.peek().is_some_and(|token| !matches!(token, Token::Close)) {
            let line_end = self.tokens.get(self.at).is_some_and(|placed| {
                placed.token == Token::Next && matches!(self.chars.get(placed.start), Some('\n' | '\r'))
            });
            let at_once = self.at > 0
                && matches!(self.tokens.get(self.at - 1), Some(Placed { token: Token::Word(bits), .. }) if matches!(bits.as_slice(), [Bit::Text(text)] if text.eq_ignore_ascii_case("rem")))
                && self.peek() == Some(&Token::Next);
            if line_end || at_once {
                return;
            }
            self.at += 1;
        }
    }
}

pub(super) fn takes_bracket(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return false };
    let named = |word: &Word, name: &str| word.is(name);
    let last_in = words.last().is_some_and(|word| named(word, "in"));
    named(first, "for") && last_in
        || named(first, "if") && words.len() > 1
        || named(first, "else")
        || named(first, "do")
}

fn without_carets(text: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                plain.push(c);
            }
            '^' if !quoted => plain.extend(chars.next()),
            _ => plain.push(c),
        }
    }
    plain
}
