//! From words to arguments: braces, variables whose value stands in the line, splitting. What only the run time
//! knows stays in the text as [`UNKNOWN`].

use super::brace;
use super::edit;
use super::limits::{Budget, MAX_WAYS, Trouble};
use super::syntax::{Kind, Op, Param, Part, Script, Word};
use super::values::{JOB, NEXT, UNKNOWN, Values, Variable};

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Arg {
    pub(super) text: String,
    /// It has wildcards that the shell would fill in.
    pub(super) wild: bool,
    /// Something in it is fetched, decoded or assembled by a substitution.
    pub(super) made: bool,
}

impl Arg {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), wild: false, made: false }
    }

    /// An argument that another command's output fills in.
    pub(super) fn handed() -> Self {
        Self { text: UNKNOWN.to_string(), wild: false, made: true }
    }

    /// Whether all of it is known.
    pub(super) fn is_known(&self) -> bool {
        !self.text.contains([UNKNOWN, JOB])
    }
}

/// The arguments of a command, in one way that they can turn out.
#[derive(Debug, Clone, Default)]
pub(super) struct Expanded {
    pub(super) args: Vec<Arg>,
    pub(super) notes: Notes,
}

/// Where that which is unknown comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Notes {
    /// From data of the line: any word of the line may stand in it.
    pub(super) from_line: bool,
    /// From a substitution that fetches, decodes or assembles text.
    pub(super) made: bool,
}

/// Which of several values is tried, for each place that has several.
#[derive(Default)]
struct Choices {
    path: Vec<(usize, usize)>,
    at: usize,
    /// Too many ways: several values are as good as none.
    given_up: bool,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, of));
        }
        let chosen = self.path.get(self.at).map_or(0, |(chosen, _)| *chosen);
        self.at += 1;
        chosen
    }

    /// The next way; whether there is one.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, of)) = self.path.pop() {
            if chosen + 1 < of {
                self.path.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// All ways in which these words can turn out.
pub(super) fn ways(words: &[Word], values: &Values, budget: &Budget) -> Result<Vec<Expanded>, Trouble> {
    let mut choices = Choices::default();
    let mut all = Vec::new();
    loop {
        let mut expander = Expander { values, budget, choices: &mut choices, notes: Notes::default() };
        let mut args = Vec::new();
        for word in words {
            expander.fields(word, &mut args)?;
        }
        let notes = expander.notes;
        all.push(Expanded { args, notes });
        if !choices.advance() {
            return Ok(all);
        }
        if all.len() >= MAX_WAYS {
            choices = Choices { given_up: true, ..Choices::default() };
        }
        if all.len() > MAX_WAYS {
            return Ok(all);
        }
    }
}

/// All texts that these parts can become where nothing is split (a value, a here-document).
pub(super) fn texts(
    parts: &[Part],
    values: &Values,
    budget: &Budget,
) -> Result<Vec<(String, Notes)>, Trouble> {
    let mut choices = Choices::default();
    let mut all = Vec::new();
    loop {
        let mut expander = Expander { values, budget, choices: &mut choices, notes: Notes::default() };
        let text = expander.text(parts)?;
        let notes = expander.notes;
        all.push((text, notes));
        if !choices.advance() || all.len() > MAX_WAYS {
            return Ok(all);
        }
        if all.len() == MAX_WAYS {
            choices = Choices { given_up: true, ..Choices::default() };
        }
    }
}

struct Expander<'e> {
    values: &'e Values,
    budget: &'e Budget,
    choices: &'e mut Choices,
    notes: Notes,
}

/// A field that grows.
#[derive(Default)]
struct Field {
    text: String,
    started: bool,
    wild: bool,
    made: bool,
}

impl Field {
    fn end(&mut self, into: &mut Vec<Arg>) {
        let field = std::mem::take(self);
        if field.started {
            into.push(Arg { text: field.text, wild: field.wild, made: field.made });
        }
    }
}

impl Expander<'_> {
    fn fields(&mut self, word: &Word, into: &mut Vec<Arg>) -> Result<(), Trouble> {
        for parts in brace::expand(&word.parts)? {
            let mut field = Field::default();
            for part in &parts {
                self.part(part, &mut field, into)?;
            }
            field.end(into);
            self.budget.spend(1)?;
        }
        Ok(())
    }

    fn part(&mut self, part: &Part, field: &mut Field, into: &mut Vec<Arg>) -> Result<(), Trouble> {
        match part {
            Part::Text { text, quoted } => {
                self.budget.spend(text.len() / 8)?;
                field.text.push_str(text);
                field.started = true;
                field.wild |= !quoted && text.contains(['*', '?', '[', '(']);
            }
            Part::Param(param) => {
                let before = std::mem::take(&mut self.notes.made);
                let text = self.param(param)?;
                field.made |= self.notes.made;
                self.notes.made |= before;
                self.value(&text, param.quoted, field, into);
            }
            Part::Sub { script, quoted } => {
                let before = std::mem::take(&mut self.notes.made);
                let text = self.output(script)?;
                field.made |= self.notes.made;
                self.notes.made |= before;
                self.value(&text, *quoted, field, into);
            }
            Part::Arith(parts) => {
                let text = self.text(parts)?;
                field
                    .text
                    .push_str(&edit::number(&text).map_or_else(|| UNKNOWN.to_string(), |n| n.to_string()));
                field.started = true;
            }
            Part::Process(_) => {
                field.text.push_str("/dev/fd/");
                field.text.push(UNKNOWN);
                field.started = true;
            }
            Part::Array(_) => field.started = true,
        }
        Ok(())
    }

    /// Puts a value into the field; unquoted it is split.
    fn value(&mut self, text: &str, quoted: bool, field: &mut Field, into: &mut Vec<Arg>) {
        if quoted {
            for (index, piece) in text.split(NEXT).enumerate() {
                if index > 0 {
                    field.end(into);
                }
                field.text.push_str(piece);
                // An empty list is no field at all, an empty text is one.
                field.started = true;
            }
            return;
        }
        let separators: Vec<char> = self
            .values
            .get("IFS")
            .into_iter()
            .flat_map(|ifs| ifs.values.iter().flat_map(|v| v.chars()))
            .collect();
        for character in text.chars() {
            if character.is_ascii_whitespace() || character == NEXT || separators.contains(&character) {
                field.end(into);
            } else {
                field.text.push(character);
                field.started = true;
                field.wild |= matches!(character, '*' | '?' | '[');
            }
        }
    }

    fn text(&mut self, parts: &[Part]) -> Result<String, Trouble> {
        let mut field = Field::default();
        let mut fields = Vec::new();
        for part in parts {
            match part {
                Part::Param(param) => field.text.push_str(&self.param(param)?.replace(NEXT, " ")),
                Part::Sub { script, .. } => field.text.push_str(&self.output(script)?),
                other => self.part(other, &mut field, &mut fields)?,
            }
        }
        self.budget.spend(1 + field.text.len() / 8)?;
        Ok(field.text)
    }

    fn unknown(&mut self, from_line: bool) -> String {
        self.notes.from_line |= from_line;
        UNKNOWN.to_string()
    }

    /// One of a name's values.
    fn variable(&mut self, variable: &Variable) -> String {
        let count = variable.values.len() + usize::from(variable.unknown || self.values.any);
        if count == 0 || (count > 1 && self.choices.given_up) {
            return self.unknown(true);
        }
        let chosen = if count == 1 { 0 } else { self.choices.choose(count) };
        match variable.values.get(chosen) {
            Some(value) => {
                let unknown = value.contains(UNKNOWN);
                self.notes.from_line |= unknown;
                self.notes.made |= unknown && variable.made;
                value.clone()
            }
            None => self.unknown(true),
        }
    }

    fn lookup(&mut self, name: &str) -> String {
        if let Some(variable) = self.values.get(name) {
            return self.variable(variable);
        }
        let positional = self.values.positional.as_ref();
        match name {
            "!" => JOB.to_string(),
            "IFS" => " ".to_owned(),
            "HOME" => "~".to_owned(),
            "PWD" => ".".to_owned(),
            "SHELL" | "BASH" => "bash".to_owned(),
            "0" => match positional.and_then(|all| all.first()).cloned() {
                Some(text) if text.contains(UNKNOWN) => self.unknown(true),
                Some(text) => text,
                None => "bash".to_owned(),
            },
            "*" if self.values.get("IFS").is_some() => self.unknown(true),
            "@" | "*" => match positional {
                Some(all) if all.iter().any(|text| text.contains(UNKNOWN)) => self.unknown(true),
                Some(all) => all.get(1..).unwrap_or_default().join(&NEXT.to_string()),
                None => self.unknown(true),
            },
            "#" | "?" | "-" | "$" | "PPID" | "RANDOM" | "SECONDS" | "UID" | "EUID" | "LINENO" => {
                self.unknown(false)
            }
            "_" | "REPLY" => self.unknown(true),
            _ => match (name.parse::<usize>(), positional) {
                // More may be handed over than stands in the line (`xargs sh -c …`).
                (Ok(_), Some(all)) if all.iter().any(|text| text.contains(UNKNOWN)) => self.unknown(true),
                (Ok(index), Some(all)) => all.get(index).cloned().unwrap_or_default(),
                (Ok(_), None) => self.unknown(true),
                // A variable of the environment: not of this line, unless something unseen sets names.
                (Err(_), _) => self.unknown(self.values.any),
            },
        }
    }

    fn param(&mut self, param: &Param) -> Result<String, Trouble> {
        self.budget.spend(1)?;
        if !param.index.is_empty() && !matches!(param.op, Op::Length) {
            let whole = self.text(&param.index)?;
            let key = format!("{}[{whole}]", param.name);
            if whole == "*" && self.values.get("IFS").is_some() {
                let value = self.unknown(true);
                return self.operated(param, value);
            }
            let value = match self.values.get(&key) {
                Some(variable) => {
                    let variable = variable.clone();
                    self.variable(&variable)
                }
                None => self.unknown(self.values.get(&param.name).is_some() || self.values.any),
            };
            return self.operated(param, value);
        }
        let value = match param.op {
            Op::Length => return Ok(self.unknown(false)),
            Op::Indirect => return Ok(self.unknown(true)),
            _ => self.lookup(&param.name),
        };
        self.operated(param, value)
    }

    fn operated(&mut self, param: &Param, value: String) -> Result<String, Trouble> {
        match &param.op {
            Op::Default(sign, word) => {
                // Set or not, empty or not: both ways are tried.
                let known = self.values.get(&param.name).is_some_and(|variable| !variable.unknown);
                let other = match sign {
                    '?' => return Ok(value),
                    _ => self.text(word)?,
                };
                if known && *sign != '+' && !value.is_empty() && !value.contains(UNKNOWN) {
                    return Ok(value);
                }
                if self.choices.given_up {
                    return Ok(self.unknown(true));
                }
                Ok(match (self.choices.choose(2), sign) {
                    (0, _) => other,
                    (_, '+') => String::new(),
                    (_, _) => value,
                })
            }
            Op::Edit(sign, word) => {
                if param.name == "IFS" {
                    return Ok(" ".to_owned());
                }
                let word = self.text(word)?;
                self.budget.spend(value.len() / 4 + word.len())?;
                if value.contains([UNKNOWN, JOB]) || word.contains(UNKNOWN) {
                    // `$HOME`-like prefixes are cut off more often than not: what stays is not known.
                    let from_line = self.values.get(&param.name).is_some() || self.values.any;
                    return Ok(self.unknown(from_line));
                }
                Ok(edit::edited(&value, *sign, &word).unwrap_or_else(|| self.unknown(true)))
            }
            Op::None | Op::Length | Op::Indirect => Ok(value),
        }
    }

    /// What a substitution prints, where that is plain.
    fn output(&mut self, script: &Script) -> Result<String, Trouble> {
        if let [pipeline] = script.pipelines.as_slice()
            && let [node] = pipeline.commands.as_slice()
            && node.redirects.is_empty()
            && let Kind::Simple { assigns, words } = &node.kind
            && assigns.is_empty()
        {
            let mut args = Vec::new();
            for word in words {
                self.fields(word, &mut args)?;
            }
            let args: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
            if let Some(text) = printed(&args) {
                return Ok(text);
            }
        }
        if script.pipelines.is_empty() {
            return Ok(String::new());
        }
        let made = makes(script);
        self.notes.made |= made;
        Ok(self.unknown(true))
    }
}

/// Whether a command of these fetches or makes up text.
fn makes(script: &Script) -> bool {
    script.pipelines.iter().flat_map(|pipeline| &pipeline.commands).any(|node| match &node.kind {
        Kind::Simple { words, .. } => {
            let name = words.first().and_then(Word::plain).map(last).unwrap_or_default();
            let escapes = |word: &Word| {
                word.parts.iter().any(|part| matches!(part, Part::Text { text, .. } if text.contains('\\')))
            };
            MAKERS.contains(&name) || (matches!(name, "printf" | "echo") && words.iter().any(escapes))
        }
        Kind::Group(scripts) => scripts.iter().any(makes),
        _ => false,
    })
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Programs whose output is text that came from elsewhere or was made up.
const MAKERS: [&str; 22] = [
    "curl", "wget", "base64", "base32", "basenc", "xxd", "od", "rev", "tr", "tac", "openssl", "gzip",
    "gunzip", "zcat", "bzcat", "xzcat", "nc", "ncat", "fetch", "aria2c", "uudecode", "gpg",
];

/// The output of commands that print their arguments.
fn printed(args: &[&str]) -> Option<String> {
    let (name, rest) = args.split_first()?;
    match (last(name), rest) {
        ("echo", ["-n", rest @ ..]) | ("echo", rest) => {
            (!rest.iter().any(|arg| arg.contains('\\') || matches!(*arg, "-e" | "-ne" | "-en")))
                .then(|| rest.join(" "))
        }
        ("printf", [format]) | ("printf", ["--", format]) => {
            (!format.contains(['%', '\\'])).then(|| (*format).to_owned())
        }
        ("printf", ["%s" | "%s\\n" | "%b", rest @ ..]) => {
            (!rest.iter().any(|arg| arg.contains('\\'))).then(|| rest.concat())
        }
        ("which" | "type", ["-a" | "-p" | "-P", name] | [name]) => Some((*name).to_owned()),
        ("command", ["-v", name]) => Some((*name).to_owned()),
        ("basename", [name]) => Some(last(name).to_owned()),
        // The ids of this shell's own jobs.
        ("jobs", ["-p" | "-rp" | "-pr" | "-sp"]) => Some(JOB.to_string()),
        ("pwd", []) => Some(".".to_owned()),
        _ => None,
    }
}
