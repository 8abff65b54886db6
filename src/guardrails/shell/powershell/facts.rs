//! What a line says about its own variables and aliases, before it is judged.

use std::collections::BTreeMap;

use super::names::{self, cmdlet};
use super::tree::{Element, Kind, Part, Pipeline, Script, Shape, Word};
use crate::guardrails::shell::windows::base;

/// Most that a variable's known text may come to, in bytes, so that text which doubles itself stays small.
const LONGEST: usize = 512;

/// What is known of a line's names.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Variables that are given one text, once.
    texts: BTreeMap<String, String>,
    /// Variables that hold a process which the line starts itself.
    pub(super) children: BTreeMap<String, bool>,
    /// Variables that hold a block of the line, which is judged where it stands.
    pub(super) blocks: BTreeMap<String, bool>,
    assigned: BTreeMap<String, u32>,
    /// Aliases that the line makes.
    pub(super) aliases: BTreeMap<String, String>,
    /// Whether an alias was made whose name or meaning is not known.
    pub(super) loose: bool,
    /// All quoted texts, for what cannot be decided.
    pub(super) literals: Vec<String>,
}

impl Facts {
    pub(super) fn of(script: &Script) -> Self {
        let mut facts = Self::default();
        facts.script(script);
        facts
    }

    fn script(&mut self, script: &Script) {
        for pipeline in &script.pipelines {
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for element in &pipeline.elements {
            self.element(element);
        }
    }

    fn element(&mut self, element: &Element) {
        for word in element.words.iter().chain(&element.redirects) {
            self.word(word);
        }
        match &element.kind {
            Kind::Assignment(right) => {
                self.pipeline(right);
                self.assignment(element, right);
            }
            Kind::Command => self.command(element),
            Kind::Expression => {}
        }
    }

    fn word(&mut self, word: &Word) {
        if word.quoted {
            let known = self.text(word).or_else(|| word.plain().map(str::to_owned));
            self.literals.extend(known);
        }
        for script in &word.inner {
            self.script(script);
        }
        for call in word.members.iter().filter_map(|member| member.call.as_ref()) {
            self.script(call);
        }
    }

    fn assignment(&mut self, element: &Element, right: &Pipeline) {
        let targets = element.words.iter().filter(|word| word.shape == Shape::Variable);
        for target in targets {
            let [Part::Variable(name)] = target.parts.as_slice() else { continue };
            // A property or an element of it: the variable itself is no longer what it was.
            let whole = target.members.is_empty();
            let name = bare_name(name);
            let count = self.assigned.entry(name.to_owned()).or_default();
            *count += 1;
            let once = *count == 1 && whole;
            let text = self.constant(right).filter(|_| once);
            let child = once && starts_child(right, &self.aliases);
            let block = once && is_block(right);
            match text {
                Some(text) if text.len() <= LONGEST => self.texts.insert(name.to_owned(), text),
                _ => self.texts.remove(name),
            };
            self.children.insert(name.to_owned(), child);
            self.blocks.insert(name.to_owned(), block);
        }
    }

    fn command(&mut self, element: &Element) {
        let Some(name) = element.words.first().and_then(|word| self.text(word)) else { return };
        let name = cmdlet(&base(&name), &self.aliases);
        let mut words = element.words.iter().skip(1);
        let mut plain: Vec<Option<String>> = Vec::new();
        let (mut first, mut second) = (None, None);
        while let Some(word) = words.next() {
            let text = self.text(word);
            let parameter =
                text.as_deref().filter(|text| text.starts_with('-') && !word.quoted).map(str::to_lowercase);
            match parameter {
                Some(p) if names::short_for(&p, "n", "name") => {
                    first = words.next().map(|word| self.text(word));
                }
                Some(p) if names::short_for(&p, "v", "value") => {
                    second = words.next().map(|word| self.text(word));
                }
                Some(p)
                    if names::short_for(&p, "o", "option")
                        || names::short_for(&p, "s", "scope")
                        || names::short_for(&p, "d", "description") =>
                {
                    words.next();
                }
                Some(_) => {}
                None => plain.push(text),
            }
        }
        let mut plain = plain.into_iter();
        let first = first.or_else(|| plain.next()).flatten();
        let second = second.or_else(|| plain.next()).flatten();
        match name.as_str() {
            "set-alias" | "new-alias" => match (first, second) {
                (Some(alias), Some(meant)) => {
                    self.aliases.insert(alias.to_lowercase(), base(&meant));
                }
                _ => self.loose = true,
            },
            "set-variable" | "new-variable" => match first {
                Some(name) => {
                    let name = name.to_lowercase();
                    let count = self.assigned.entry(name.clone()).or_default();
                    *count += 1;
                    match second.filter(|text| *count == 1 && text.len() <= LONGEST) {
                        Some(text) => self.texts.insert(name.clone(), text),
                        None => self.texts.remove(&name),
                    };
                    self.children.insert(name.clone(), false);
                    self.blocks.insert(name, false);
                }
                None => {
                    self.texts.clear();
                    self.children.clear();
                    self.blocks.clear();
                }
            },
            _ => {}
        }
        // `-OutVariable name` and its like fill a variable.
        for pair in element.words.windows(2) {
            let [parameter, value] = pair else { continue };
            let fills = parameter.plain().is_some_and(|text| names::is_common(&text.to_lowercase()));
            if let (true, Some(name)) = (fills, value.plain()) {
                let name = name.trim_start_matches('+').to_lowercase();
                *self.assigned.entry(name.clone()).or_default() += 1;
                self.texts.remove(&name);
                self.children.insert(name.clone(), false);
                self.blocks.insert(name, false);
            }
        }
    }

    /// A word's text, with the variables that are known.
    pub(super) fn text(&self, word: &Word) -> Option<String> {
        if !word.members.is_empty() {
            return None;
        }
        match word.shape {
            Shape::Text | Shape::Variable => {
                let mut text = String::new();
                for part in &word.parts {
                    match part {
                        Part::Text(part) => text.push_str(part),
                        Part::Variable(name) => text.push_str(self.variable(name)?),
                        Part::Result => return None,
                    }
                    if text.len() > LONGEST * 8 {
                        return None;
                    }
                }
                Some(text)
            }
            Shape::Group => {
                let [script] = word.inner.as_slice() else { return None };
                let [pipeline] = script.pipelines.as_slice() else { return None };
                self.constant(pipeline)
            }
            _ => None,
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        match name {
            "env:comspec" => Some("cmd.exe"),
            "null" => Some(""),
            "true" => Some("True"),
            "false" => Some("False"),
            _ => self.texts.get(bare_name(name)).map(String::as_str),
        }
    }

    /// The text of an expression: literals that are joined, filled in or listed.
    pub(super) fn constant(&self, pipeline: &Pipeline) -> Option<String> {
        let [element] = pipeline.elements.as_slice() else { return None };
        self.constant_words(element)
    }

    /// The text of one expression.
    pub(super) fn constant_words(&self, element: &Element) -> Option<String> {
        if !matches!(element.kind, Kind::Expression) || element.words.len() > 256 {
            return None;
        }
        let operator = |word: &Word| (word.shape == Shape::Operator).then(|| raw(word));
        let words = &element.words;
        if let [first, sign, rest @ ..] = words.as_slice() {
            match operator(sign).as_deref() {
                Some("-f") => return fill(&self.text(first)?, &self.all(rest)?),
                Some("-join") => return Some(self.list(first)?.join(&self.all(rest)?.concat())),
                _ => {}
            }
            if operator(first).as_deref() == Some("-join") {
                return Some(self.all(words.get(1..)?)?.concat());
            }
            if let Some(at) = words.iter().position(|word| operator(word).as_deref() == Some("-join")) {
                let parts = self.all(words.get(..at)?)?;
                return Some(parts.join(&self.all(words.get(at + 1..)?)?.concat()));
            }
        }
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            match operator(word) {
                Some(sign) if at % 2 == 1 && sign == "+" => {}
                Some(_) => return None,
                None if at % 2 == 0 && !word.listed => text.push_str(&self.text(word)?),
                None if word.shape == Shape::Text
                    && words.first().is_some_and(|word| word.shape == Shape::Type) =>
                {
                    return None;
                }
                None => return None,
            }
            if text.len() > LONGEST {
                return None;
            }
        }
        (!words.is_empty()).then_some(text)
    }

    /// The texts of operands; a group counts as its elements.
    fn all(&self, words: &[Word]) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        for word in words.iter().filter(|word| word.shape != Shape::Type) {
            texts.append(&mut self.list(word)?);
        }
        Some(texts)
    }

    fn list(&self, word: &Word) -> Option<Vec<String>> {
        if let Some(text) = self.text(word) {
            return Some(vec![text]);
        }
        let [script] = word.inner.as_slice() else { return None };
        let [pipeline] = script.pipelines.as_slice() else { return None };
        let [element] = pipeline.elements.as_slice() else { return None };
        let listed = word.shape == Shape::Group && matches!(element.kind, Kind::Expression);
        if !listed || !word.members.is_empty() || element.words.len() > 256 {
            return None;
        }
        element.words.iter().map(|word| self.text(word)).collect()
    }
}

fn raw(word: &Word) -> String {
    word.parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "" }).collect()
}

/// A variable's name without its scope.
fn bare_name(name: &str) -> &str {
    match name.split_once(':') {
        Some(("global" | "script" | "local" | "private" | "variable" | "using", rest)) => rest,
        _ => name,
    }
}

/// `'{1}{0}' -f 'b', 'a'`.
fn fill(form: &str, values: &[String]) -> Option<String> {
    let mut text = String::new();
    let mut rest = form;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (number, after) = after.split_once('}')?;
        text.push_str(values.get(number.trim().parse::<usize>().ok()?)?);
        if text.len() > LONGEST {
            return None;
        }
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// `Start-Process … -PassThru`: gives the process that the line starts.
fn starts_child(pipeline: &Pipeline, aliases: &BTreeMap<String, String>) -> bool {
    let [element] = pipeline.elements.as_slice() else { return false };
    let Some(name) = element.words.first().and_then(Word::plain) else { return false };
    matches!(element.kind, Kind::Command)
        && cmdlet(&base(name), aliases) == "start-process"
        && element.words.iter().any(|word| {
            word.plain()
                .is_some_and(|text| !word.quoted && names::short_for(&text.to_lowercase(), "p", "passthru"))
        })
}

fn is_block(pipeline: &Pipeline) -> bool {
    let [element] = pipeline.elements.as_slice() else { return false };
    matches!(element.kind, Kind::Expression)
        && matches!(element.words.as_slice(), [word] if word.shape == Shape::Block && word.members.is_empty())
}
