//! From a script to the commands that it would run: all of them, whatever the conditions, each with what it would
//! read from.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::super::{Denial, Verdict};
use super::Scope;
use super::denial::{self, Judged};
use super::expand::{self, Arg, Notes};
use super::limits::{Budget, COMMAND, MAX_COMMANDS, MAX_JUDGED, Trouble};
use super::matching::{self, CommandRule};
use super::parser;
use super::syntax::{Assign, Kind, Node, Op, Part, Redirect, RedirectKind, Script, Value, Word};
use super::values::{NEXT, PROMPTS, RUN_VALUES, UNKNOWN, Values};

/// What a command reads from.
#[derive(Debug, Clone)]
pub(super) enum Stdin {
    /// The agent's own, which is empty, or a file.
    Plain,
    /// Another command's output.
    Fed,
    /// These texts, one of them.
    Text(Vec<(String, Notes)>),
}

/// The state of judging one line.
pub(super) struct Judge<'a> {
    pub(super) context: &'a Scope<'a>,
    pub(super) rules: Vec<CommandRule<'a>>,
    /// The line, and the texts in it that are judged as lines once their quotes are off.
    pub(super) line: Rc<str>,
    pub(super) budget: &'a Budget,
    pub(super) values: Values,
    /// How many commands stand around this one.
    pub(super) depth: u32,
    /// How many lists and groups do.
    nesting: u32,
    /// The texts of the line were judged as lines of their own.
    pub(super) scanned: bool,
    /// Paths that no rule closes, so that each is asked for once.
    pub(super) open_paths: BTreeSet<String>,
    /// The shell's own input was replaced (`exec < …`).
    pub(super) redirected: bool,
    /// The command that is judged, as it stands in the line.
    pub(super) part: String,
}

/// The verdict on a line of bash that stands in `depth` others.
pub(super) fn line(line: &str, context: &Scope<'_>, depth: u32) -> Verdict {
    if let Some(at) = line.chars().position(|character| character == '\0') {
        return Verdict::Deny(*denial::trouble(&Trouble::Unreadable(at), line));
    }
    let mut judge = Judge::new(line, context, depth);
    let verdict = judge.source(line, &Stdin::Plain).and_then(|()| {
        // A loop, a function or a trap may run with values that are assigned after it. They are known now.
        if judge.values.is_empty() { Ok(()) } else { judge.source(line, &Stdin::Plain) }
    });
    match verdict {
        Ok(()) => Verdict::Allow,
        Err(denial) => Verdict::Deny(*denial),
    }
}

impl<'a> Judge<'a> {
    fn new(line: &str, context: &'a Scope<'a>, depth: u32) -> Self {
        Self {
            context,
            rules: matching::rules(context.rules),
            line: line.into(),
            budget: &context.budget,
            values: Values::default(),
            depth,
            nesting: 0,
            open_paths: BTreeSet::new(),
            redirected: false,
            scanned: false,
            part: line.to_owned(),
        }
    }

    /// Judges the text of a script.
    pub(super) fn source(&mut self, source: &str, stdin: &Stdin) -> Judged {
        let script =
            parser::parse(source, self.budget).map_err(|trouble| denial::trouble(&trouble, source))?;
        let outer = Rc::clone(&self.line);
        if !outer.contains(source) {
            self.spend(outer.len() / 16)?;
            self.line = format!("{outer}\n{source}").into();
        }
        let result = self.deeper(|judge| judge.script(&script, stdin));
        self.line = outer;
        result
    }

    /// Judges what is one level further in.
    pub(super) fn deeper(&mut self, judged: impl FnOnce(&mut Self) -> Judged) -> Judged {
        if self.depth >= MAX_COMMANDS {
            return Err(self.trouble(&Trouble::TooDeep));
        }
        self.depth += 1;
        let part = self.part.clone();
        let result = judged(self);
        self.part = part;
        self.depth -= 1;
        result
    }

    pub(super) fn trouble(&self, trouble: &Trouble) -> Box<Denial> {
        denial::trouble(trouble, &self.part)
    }

    pub(super) fn spend(&self, steps: usize) -> Judged {
        self.budget.spend(steps).map_err(|trouble| self.trouble(&trouble))
    }

    pub(super) fn script(&mut self, script: &Script, stdin: &Stdin) -> Judged {
        if self.nesting >= MAX_JUDGED {
            return Err(self.trouble(&Trouble::TooDeep));
        }
        self.nesting += 1;
        let result = script.pipelines.iter().try_for_each(|pipeline| {
            pipeline.commands.iter().enumerate().try_for_each(|(index, node)| {
                let stdin = if index == 0 { stdin } else { &Stdin::Fed };
                self.node(node, stdin)
            })
        });
        self.nesting -= 1;
        result
    }

    fn node(&mut self, node: &Node, stdin: &Stdin) -> Judged {
        self.spend(COMMAND)?;
        if !node.text.is_empty() {
            self.part.clone_from(&node.text);
        }
        let mut read = None;
        for redirect in &node.redirects {
            if let Some(stdin) = self.redirect(redirect, stdin)? {
                read = Some(stdin);
            }
        }
        let stdin = read.as_ref().unwrap_or(stdin);
        match &node.kind {
            Kind::Simple { assigns, words } => self.simple(assigns, words, stdin, node),
            Kind::Group(scripts) => scripts.iter().try_for_each(|script| self.script(script, stdin)),
            Kind::Loop { variable, list, body } => {
                match list {
                    Some(words) => {
                        self.inner(words)?;
                        for way in self.ways(words)? {
                            for arg in way.args {
                                let text = if arg.wild { UNKNOWN.to_string() } else { arg.text };
                                self.values.set(variable, text);
                            }
                        }
                    }
                    None => self.values.poison(variable),
                }
                self.script(body, stdin)
            }
            Kind::Case { subject, arms } => {
                self.inner(std::slice::from_ref(subject))?;
                for (patterns, script) in arms {
                    self.inner(patterns)?;
                    self.script(script, stdin)?;
                }
                Ok(())
            }
            Kind::Arithmetic { parts, body } => {
                self.parts(parts)?;
                for name in names(parts) {
                    self.values.poison(&name);
                }
                self.script(body, stdin)
            }
            Kind::Condition(words) => {
                self.inner(words)?;
                for way in self.ways(words)? {
                    for arg in &way.args {
                        self.subscripts(&arg.text)?;
                        self.looked_at(&arg.text)?;
                    }
                }
                Ok(())
            }
            Kind::Function(body) => {
                let positional = self.values.positional.take();
                // What it reads is said where it is called.
                let result = self.node(body, &Stdin::Fed);
                self.values.positional = positional;
                result
            }
            Kind::Coproc(body) => self.node(body, &Stdin::Fed),
        }
    }

    /// Judges a redirection and gives what is read, if it is about standard input.
    fn redirect(&mut self, redirect: &Redirect, before: &Stdin) -> Judged<Option<Stdin>> {
        let stdin = redirect.is_stdin();
        let found = match &redirect.kind {
            RedirectKind::HereDocument(body) => {
                let parts = body.get().map(Vec::as_slice).unwrap_or_default();
                self.parts(parts)?;
                Stdin::Text(self.texts(parts)?)
            }
            RedirectKind::HereString(word) => {
                self.parts(&word.parts)?;
                Stdin::Text(self.texts(&word.parts)?)
            }
            RedirectKind::CopyIn(word) => {
                self.parts(&word.parts)?;
                if word.plain() == Some("-") { Stdin::Plain } else { Stdin::Fed }
            }
            RedirectKind::CopyOut(word) | RedirectKind::Write(word) | RedirectKind::Read(word) => {
                self.parts(&word.parts)?;
                let copies = matches!(redirect.kind, RedirectKind::CopyOut(_));
                let mut found = Stdin::Plain;
                for (text, _) in self.texts(&word.parts)? {
                    if copies
                        && (text == "-"
                            || text.trim_end_matches('-').chars().all(|digit| digit.is_ascii_digit()))
                    {
                        continue;
                    }
                    self.path(&text)?;
                    if text.starts_with("/dev/fd/") || text.starts_with("/proc/") || text == "/dev/stdin" {
                        let same = matches!(text.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
                        found = if same { before.clone() } else { Stdin::Fed };
                    }
                }
                found
            }
        };
        Ok(stdin.then_some(found))
    }

    fn simple(&mut self, assigns: &[Assign], words: &[Word], stdin: &Stdin, node: &Node) -> Judged {
        for assign in assigns {
            self.parts(&assign.index)?;
            match &assign.value {
                Value::Word(word) => self.parts(&word.parts)?,
                Value::Array(words) => self.inner(words)?,
            }
        }
        self.inner(words)?;
        self.part.clone_from(&node.text);
        for assign in assigns {
            self.assign(assign)?;
        }
        for word in words {
            if let [Part::Text { text, .. }, Part::Array(elements)] = word.parts.as_slice() {
                self.array(text.trim_end_matches(['=', '+']), elements)?;
            }
        }
        if words.is_empty() {
            return Ok(());
        }
        if words.len() == 1 && words.first().and_then(Word::plain) == Some("exec") {
            self.redirected |= node.redirects.iter().any(Redirect::is_stdin);
        }
        for way in self.ways(words)? {
            self.part.clone_from(&node.text);
            self.command(&way.args, way.notes, stdin)?;
            if let Some(args) = emptied(&way.args) {
                self.command(&args, way.notes, stdin)?;
            }
        }
        Ok(())
    }

    fn assign(&mut self, assign: &Assign) -> Judged {
        let name = assign.name.as_str();
        match &assign.value {
            Value::Word(word) => {
                let index = if assign.index.is_empty() { None } else { self.texts(&assign.index)?.pop() };
                for (text, notes) in self.texts(&word.parts)? {
                    self.spend(text.len() / 4)?;
                    if notes.made {
                        self.values.made(name);
                    }
                    match &index {
                        Some((alias, _)) if name == "BASH_ALIASES" => self.alias(alias, &text)?,
                        Some((index, _)) => self.values.set(&format!("{name}[{index}]"), text.clone()),
                        None if assign.append => self.values.append(name, &text),
                        None => self.values.set(name, text.clone()),
                    }
                    if index.is_some() {
                        self.values.poison(name);
                        self.values.poison(&format!("{name}[@]"));
                    }
                    self.set_value(name, &text)?;
                }
            }
            Value::Array(words) => self.array(name, words)?,
        }
        Ok(())
    }

    pub(super) fn array(&mut self, name: &str, words: &[Word]) -> Judged {
        for way in self.ways(words)? {
            let elements: Vec<String> = way.args.into_iter().map(|arg| arg.text).collect();
            for (index, element) in elements.iter().enumerate().take(64) {
                self.values.set(&format!("{name}[{index}]"), element.clone());
                self.subscripts(element)?;
            }
            if let Some(first) = elements.first() {
                self.values.set(name, first.clone());
            }
            let list = elements.join(&NEXT.to_string());
            for all in ["@", "*"] {
                let key = format!("{name}[{all}]");
                let before =
                    self.values.get(&key).map(|variable| variable.values.clone()).unwrap_or_default();
                for old in before {
                    self.values.set(&key, format!("{old}{NEXT}{list}"));
                }
                self.values.set(&key, list.clone());
            }
        }
        Ok(())
    }

    /// What follows from giving a variable this value.
    pub(super) fn set_value(&mut self, name: &str, text: &str) -> Judged {
        self.subscripts(text)?;
        if name.starts_with("BASH_FUNC_") {
            return self.source(&format!("f {text}"), &Stdin::Plain);
        }
        if matches!(name, "BASH_ENV" | "ENV" | "ZDOTDIR") {
            self.path(text)?;
            if text.starts_with("/dev/fd/") || (name == "BASH_ENV" && self.context.deny_undecided) {
                let reason = format!(
                    "`{name}` makes each shell run a file first, so it cannot be known what is run; leave it out"
                );
                return Err(denial::built(denial::UNDECIDED, &self.part, reason));
            }
        }
        if RUN_VALUES.contains(&name) {
            return self.configured(text);
        }
        if PROMPTS.contains(&name) {
            return self.prompt(text);
        }
        self.git_environment(name, text)
    }

    /// A text that some program runs as a command when it needs it.
    pub(super) fn configured(&mut self, text: &str) -> Judged {
        if text.contains(UNKNOWN) && text.trim_matches(UNKNOWN).is_empty() {
            return Ok(());
        }
        self.source(text, &Stdin::Plain)
    }

    /// A text that the shell expands.
    pub(super) fn prompt(&mut self, text: &str) -> Judged {
        let parts = parser::parse_text(text, self.budget).map_err(|trouble| self.trouble(&trouble))?;
        self.deeper(|judge| judge.parts(&parts))
    }

    /// `a[$(…)]` as text runs its substitution where a shell takes it for a name or a number.
    pub(super) fn subscripts(&mut self, text: &str) -> Judged {
        if text.contains('[') && (text.contains("$(") || text.contains('`')) {
            match parser::parse_text(text, self.budget) {
                Ok(parts) => return self.deeper(|judge| judge.parts(&parts)),
                Err(Trouble::Unreadable(_)) => {}
                Err(other) => return Err(self.trouble(&other)),
            }
        }
        Ok(())
    }

    /// Judges what is run to make these words.
    fn inner(&mut self, words: &[Word]) -> Judged {
        words.iter().try_for_each(|word| self.parts(&word.parts))
    }

    pub(super) fn parts(&mut self, parts: &[Part]) -> Judged {
        for part in parts {
            match part {
                Part::Text { .. } => {}
                Part::Param(param) => {
                    self.parts(&param.index)?;
                    match &param.op {
                        Op::Default(sign, words) => {
                            self.parts(words)?;
                            if *sign == '=' {
                                for (text, _) in self.texts(words)? {
                                    self.values.set(&param.name, text);
                                }
                            }
                        }
                        Op::Edit(sign, words) => {
                            self.parts(words)?;
                            if *sign == '@' {
                                self.prompted(&param.name, words)?;
                            }
                        }
                        Op::None | Op::Length | Op::Indirect => {}
                    }
                }
                Part::Sub { script, .. } | Part::Process(script) => {
                    self.deeper(|judge| judge.script(script, &Stdin::Plain))?;
                }
                Part::Arith(inner) => {
                    self.parts(inner)?;
                    for name in names(inner) {
                        self.values.poison(&name);
                    }
                }
                Part::Array(words) => self.inner(words)?,
            }
        }
        Ok(())
    }

    /// `${x@P}` runs the substitutions in the value.
    fn prompted(&mut self, name: &str, words: &[Part]) -> Judged {
        if self.texts(words)?.iter().all(|(text, _)| text != "P") {
            return Ok(());
        }
        let values = self.values.get(name).map(|variable| variable.values.clone()).unwrap_or_default();
        values.iter().try_for_each(|value| self.prompt(value))
    }

    pub(super) fn ways(&self, words: &[Word]) -> Judged<Vec<expand::Expanded>> {
        expand::ways(words, &self.values, self.budget).map_err(|trouble| self.trouble(&trouble))
    }

    pub(super) fn texts(&self, parts: &[Part]) -> Judged<Vec<(String, Notes)>> {
        expand::texts(parts, &self.values, self.budget).map_err(|trouble| self.trouble(&trouble))
    }

    /// Judges a list of words as a command.
    pub(super) fn inner_command(&mut self, args: &[Arg], notes: Notes, stdin: &Stdin) -> Judged {
        self.deeper(|judge| judge.command(args, notes, stdin))
    }
}

/// The same arguments where what is not known is nothing at all (`pu${unset}sh`), if that makes other words.
fn emptied(args: &[Arg]) -> Option<Vec<Arg>> {
    let without = |arg: &Arg| {
        let text = arg.text.replace(UNKNOWN, "");
        let other =
            text.len() < arg.text.len() && !text.is_empty() && !text.starts_with(['/', '-', '.', ':', '=']);
        other.then(|| Arg { text, ..arg.clone() })
    };
    args.iter()
        .any(|arg| without(arg).is_some())
        .then(|| args.iter().map(|arg| without(arg).unwrap_or_else(|| arg.clone())).collect())
}

/// The names that an arithmetic expression assigns: `x=1`, `x++`, `x+=2`.
fn names(parts: &[Part]) -> Vec<String> {
    let mut found = Vec::new();
    for part in parts {
        let Part::Text { text, .. } = part else { continue };
        let mut name = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character.is_ascii_alphanumeric() || character == '_' {
                name.push(character);
                continue;
            }
            let assigns = match character {
                '=' => characters.peek() != Some(&'='),
                '+' | '-' => characters.peek().is_some_and(|next| *next == character || *next == '='),
                '*' | '/' | '%' | '&' | '|' | '^' => characters.peek() == Some(&'='),
                _ => false,
            };
            if assigns && name.starts_with(|first: char| !first.is_ascii_digit()) {
                found.push(std::mem::take(&mut name));
            }
            if !character.is_ascii_whitespace() {
                name.clear();
            }
        }
    }
    found
}
