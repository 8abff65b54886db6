//! The statements of PowerShell that a keyword starts.

use super::parse::{Parser, is_blank, is_dash, value};
use super::tree::{Element, Kind, Part, Pipeline, Script, Shape, Stop, Word};

/// Keywords that a condition and then a block, or a block alone, follow.
const STATEMENTS: [&str; 20] = [
    "if",
    "elseif",
    "while",
    "until",
    "switch",
    "for",
    "else",
    "try",
    "finally",
    "do",
    "begin",
    "process",
    "end",
    "dynamicparam",
    "clean",
    "trap",
    "catch",
    "data",
    "parallel",
    "sequence",
];

/// Keywords that a name and then a block follow.
const DEFINITIONS: [&str; 5] = ["function", "filter", "workflow", "class", "configuration"];

/// Keywords with a value behind them.
const LEAVING: [&str; 5] = ["return", "throw", "exit", "break", "continue"];

impl Parser<'_> {
    /// A statement that a keyword starts. `None`: there is no keyword here.
    pub(super) fn keyword(
        &mut self,
        pipeline: &mut Pipeline,
        end: Option<char>,
    ) -> Result<Option<bool>, Stop> {
        let start = self.at;
        // A label of a loop.
        if self.peek() == Some(':') {
            self.at += 1;
            self.name();
            self.skip(true)?;
        }
        let word = self.name().to_ascii_lowercase();
        let word = word.as_str();
        if word == "foreach" {
            self.skip(false)?;
            while is_dash_at(self.peek()) {
                self.word()?;
                self.skip(false)?;
            }
            if self.peek() != Some('(') {
                return Ok(None);
            }
            return self.each(pipeline, start).map(|()| Some(true));
        }
        if LEAVING.contains(&word) {
            if self.peek().is_some_and(|c| !is_blank(c) && !";}\n\r|&)".contains(c)) {
                return Ok(None);
            }
            self.skip(false)?;
            if self.peek().is_none_or(|c| ";}\n\r|&)".contains(c)) {
                return Ok(Some(false));
            }
            self.depth += 1;
            if self.depth > self.limit {
                return Err(Stop::Deep);
            }
            let done = self.element(pipeline, false, end)?;
            self.depth -= 1;
            return Ok(Some(done));
        }
        let defines = DEFINITIONS.contains(&word);
        if word == "param" || STATEMENTS.contains(&word) || defines {
            let mut holder = Word::new(Shape::Block, start);
            if defines {
                self.skip(false)?;
                if !self.peek().is_some_and(is_blank_or_name) {
                    return Ok(None);
                }
                while self.peek().is_some_and(|c| !is_blank(c) && !"(){}\n\r;".contains(c)) {
                    self.at += 1;
                }
            }
            let mut groups = 0;
            loop {
                self.skip(true)?;
                match self.peek() {
                    Some('(') if groups == 0 => {
                        groups += 1;
                        self.at += 1;
                        holder.inner.push(self.script(Some(')'))?);
                        if word == "param" || word == "until" || word == "while" && self.peek_block()? {
                            break;
                        }
                    }
                    Some('{') => {
                        self.at += 1;
                        holder.inner.push(self.script(Some('}'))?);
                        break;
                    }
                    // Switches, types, names: `switch -regex`, `catch [x]`, `class A : B`.
                    Some(c)
                        if groups == 0
                            && (is_dash(c) || c == '[' || c == ':' || c.is_alphanumeric())
                            && word != "param" =>
                    {
                        self.label()?;
                    }
                    Some('$' | '"' | '\'') if matches!(word, "switch" | "data") => {
                        holder.inner.push(one(self.word()?));
                    }
                    // No statement after all: a command that is named like one.
                    _ if holder.inner.is_empty() => return Ok(None),
                    _ => break,
                }
            }
            holder.end = self.at;
            pipeline.elements.push(value(holder));
            return Ok(Some(true));
        }
        Ok(None)
    }

    /// Whether no block follows: `do { } while ( )` ends with its condition.
    fn peek_block(&mut self) -> Result<bool, Stop> {
        let before = self.at;
        self.skip(true)?;
        let none = self.peek() != Some('{');
        if none {
            self.at = before;
        }
        Ok(none)
    }

    /// `foreach ($name in pipeline) { }`; the keyword is taken.
    fn each(&mut self, pipeline: &mut Pipeline, start: usize) -> Result<(), Stop> {
        self.at += 1;
        self.skip(true)?;
        let variable = self.word()?;
        self.skip(true)?;
        self.name();
        let source = self.script(Some(')'))?;
        let mut holder = Word::new(Shape::Block, start);
        self.skip(true)?;
        if self.peek() == Some('{') {
            self.at += 1;
            holder.inner.push(self.script(Some('}'))?);
        }
        holder.end = self.at;
        // The variable takes whatever the source gives: an assignment that is not constant.
        let mut given = Word::new(Shape::Group, start);
        given.inner.push(source);
        given.parts.push(Part::Result);
        given.end = self.at;
        let right = Pipeline { elements: vec![value(given)] };
        pipeline.elements.push(Element {
            kind: Kind::Assignment(Box::new(right)),
            start: variable.start,
            end: self.at,
            words: vec![variable],
            redirects: Vec::new(),
        });
        pipeline.elements.push(value(holder));
        Ok(())
    }

    /// Skips a switch, a type or a name between a keyword and its block.
    fn label(&mut self) -> Result<(), Stop> {
        let before = self.at;
        if self.peek() == Some('[') {
            self.type_name()?;
        }
        while self.peek().is_some_and(|c| !is_blank(c) && !"(){}\n\r;|&".contains(c)) {
            self.at += 1;
        }
        if self.at == before {
            self.at += 1;
        }
        Ok(())
    }
}

/// A script of one word.
fn one(word: Word) -> Script {
    Script { pipelines: vec![Pipeline { elements: vec![value(word)] }] }
}

fn is_blank_or_name(c: char) -> bool {
    is_blank(c) || c.is_alphanumeric() || c == '_'
}

fn is_dash_at(c: Option<char>) -> bool {
    c.is_some_and(is_dash)
}
