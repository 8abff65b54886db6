//! The judge of lines of the command prompt: its operators, brackets, `if`, `for`, `start` and `call`. Programs go on
//! to the judges that know them.

mod blocks;
mod words;

use std::collections::BTreeMap;

use blocks::takes_bracket;
use words::{Bit, Placed, Token};

use super::windows::{self, Arg, Judged, Piece};
use super::{Denial, RuleId, Scope, Shell, Verdict};

/// Brackets and lines in lines that are followed.
const DEEPEST: u32 = 40;
/// Longest value of a variable that is filled in, in bytes.
const LONGEST: usize = 256;

/// The verdict on one line.
pub(super) fn judge(line: &str, context: &Scope<'_>, depth: u32) -> Verdict {
    let chars: Vec<char> = line.chars().collect();
    let tokens = words::tokens(&chars);
    let mut judge = Judge {
        line,
        chars: &chars,
        tokens: &tokens,
        at: 0,
        context,
        depth,
        variables: BTreeMap::new(),
        values: Vec::new(),
        scanned: false,
        commands: 0,
    };
    match judge.all() {
        Ok(()) => Verdict::Allow,
        Err(denial) => Verdict::Deny(denial),
    }
}

/// The words of a command line as a program of Windows splits it.
pub(super) fn arguments(text: &str) -> Vec<Arg> {
    words::split(text).into_iter().map(Arg::known).collect()
}

struct Judge<'a> {
    line: &'a str,
    chars: &'a [char],
    tokens: &'a [Placed],
    at: usize,
    context: &'a Scope<'a>,
    depth: u32,
    /// What the line sets; `None`: more than once, or to what is not known.
    variables: BTreeMap<String, Option<String>>,
    /// Everything that it sets, for what cannot be decided.
    values: Vec<String>,
    scanned: bool,
    commands: u32,
}

/// One word: what it is and how it stands there.
struct Word {
    arg: Arg,
    quoted: bool,
    /// Whether a variable stands in it, outside of quotes at its start.
    filled: bool,
    start: usize,
    end: usize,
}

impl Word {
    fn is(&self, text: &str) -> bool {
        !self.quoted && self.arg.value().is_some_and(|value| value.eq_ignore_ascii_case(text))
    }
}

impl Word {
    /// Its arguments: what a variable holds is split at blanks like what is typed.
    fn split(&self) -> Vec<Arg> {
        match self.arg.value() {
            Some(text) if self.filled && text.contains([' ', '\t']) => arguments(&text),
            _ => vec![self.arg.clone()],
        }
    }
}

/// What a command gives to the next one of a pipe.
enum Fed {
    Nothing,
    Text(String),
    Something,
}

impl Judge<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn part(&self, start: usize, end: usize) -> String {
        self.chars.iter().skip(start).take(end.saturating_sub(start).min(400)).collect()
    }

    fn unreadable<T>(&self, what: &str) -> Result<T, Denial> {
        let at = self.tokens.get(self.at.saturating_sub(1)).map_or(0, |placed| placed.start);
        let reason = format!("could not be parsed: {what} at column {}; write it on one plain line", at + 1);
        Err(windows::denial(windows::UNREADABLE, &self.part(at, at + 40), &reason))
    }

    fn all(&mut self) -> Judged {
        while self.at < self.tokens.len() {
            self.list(false)?;
            // A bracket without its start is text.
            if self.peek() == Some(&Token::Close) {
                self.at += 1;
            }
        }
        Ok(())
    }

    /// Commands up to the end or, inside brackets, to `)`, which is left.
    fn list(&mut self, inside: bool) -> Judged {
        let mut fed = Fed::Nothing;
        loop {
            match self.peek() {
                None | Some(Token::Close) => return Ok(()),
                Some(Token::Next) => {
                    self.at += 1;
                    fed = Fed::Nothing;
                }
                Some(Token::Pipe) => {
                    self.at += 1;
                    if matches!(fed, Fed::Nothing) {
                        fed = Fed::Something;
                    }
                }
                Some(_) => fed = self.command(inside, &fed)?,
            }
        }
    }

    fn command(&mut self, inside: bool, fed: &Fed) -> Result<Fed, Denial> {
        if self.peek() == Some(&Token::Open) {
            self.at += 1;
            self.depth += 1;
            if self.depth > DEEPEST {
                let part = self.part(0, 40);
                let reason = "is nested deeper than can be judged; write it as several lines";
                return Err(windows::denial(windows::DEEP, &part, reason));
            }
            self.list(true)?;
            if self.peek() != Some(&Token::Close) {
                return self.unreadable("a `(` that does not end");
            }
            self.at += 1;
            self.depth -= 1;
            // `) else …`, `) > file`.
            let words = self.words(inside)?;
            if let Some((first, rest)) = words.split_first()
                && first.is("else")
            {
                return self.simple(rest, fed, inside);
            }
            if !words.is_empty() {
                return self.simple(&words, fed, inside);
            }
            return Ok(Fed::Something);
        }
        let words = self.words(inside)?;
        self.simple(&words, fed, inside)
    }

    /// The words of one command; redirections are judged on the way.
    fn words(&mut self, inside: bool) -> Result<Vec<Word>, Denial> {
        let mut words = Vec::new();
        let mut brackets = 0_u32;
        while let Some(placed) = self.tokens.get(self.at) {
            match &placed.token {
                Token::Word(bits) => {
                    words.push(self.word(placed, bits));
                    self.at += 1;
                    // A command or a list in brackets stands behind these.
                    let bracketed = self.peek() == Some(&Token::Open);
                    if bracketed && takes_bracket(&words) {
                        break;
                    }
                }
                Token::Redirect => {
                    self.at += 1;
                    if let Some(target) = self.tokens.get(self.at)
                        && let Token::Word(bits) = &target.token
                    {
                        let target = self.word(target, bits);
                        windows::path(&target.arg, self.context)?;
                        self.at += 1;
                    }
                }
                Token::Open => {
                    brackets += 1;
                    self.at += 1;
                }
                Token::Close if brackets > 0 => {
                    brackets -= 1;
                    self.at += 1;
                }
                Token::Close if !inside => self.at += 1,
                Token::Close | Token::Next | Token::Pipe => break,
            }
        }
        Ok(words)
    }

    fn word(&self, placed: &Placed, bits: &[Bit]) -> Word {
        let mut arg = Arg::default();
        for bit in bits {
            arg.pieces.push(match bit {
                Bit::Text(text) => Piece::Known(text.clone()),
                Bit::Changed => Piece::Unknown,
                Bit::Variable(name) => match name.as_str() {
                    "userprofile" | "home" => Piece::Home,
                    "comspec" => Piece::Known("cmd.exe".into()),
                    name => match self.variables.get(name) {
                        Some(Some(value)) => Piece::Known(value.clone()),
                        _ => Piece::Unknown,
                    },
                },
            });
        }
        let filled = !placed.quoted && bits.iter().any(|bit| matches!(bit, Bit::Variable(_)));
        Word { arg, quoted: placed.quoted, filled, start: placed.start, end: placed.end }
    }

    /// Judges the words of one command; what stands behind `if`, `call` and their like is one level further in.
    fn simple(&mut self, words: &[Word], fed: &Fed, inside: bool) -> Result<Fed, Denial> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let part = self.part(0, 40);
            let reason = "is nested deeper than can be judged; write it as several lines";
            return Err(windows::denial(windows::DEEP, &part, reason));
        }
        let given = self.one(words, fed, inside);
        self.depth -= 1;
        given
    }

    fn one(&mut self, words: &[Word], fed: &Fed, inside: bool) -> Result<Fed, Denial> {
        let Some((first, rest)) = words.split_first() else {
            // `else (`, `do (`.
            return if self.peek() == Some(&Token::Open) {
                self.command(inside, fed)
            } else {
                Ok(Fed::Something)
            };
        };
        let part = self.part(first.start, words.last().map_or(first.end, |last| last.end));
        windows::count(&mut self.commands, &part, self.context)?;
        windows::pay(words.len(), &part, self.context)?;
        let argv: Vec<Arg> = words.iter().flat_map(Word::split).collect();
        let name = argv.first().and_then(name_of);
        match name.as_deref() {
            Some("if") => return self.condition(rest, fed, inside),
            Some("for") => return self.each(words, fed, inside),
            Some("else" | "do") => return self.simple(rest, fed, inside),
            Some("call") => {
                if rest.first().is_some_and(|word| word.arg.value().is_some_and(|name| name.starts_with(':')))
                {
                    return Ok(Fed::Something);
                }
                return self.simple(rest, fed, inside);
            }
            Some("start") => {
                let rest = started(rest);
                return if rest.is_empty() { Ok(Fed::Something) } else { self.simple(rest, fed, inside) };
            }
            Some("set") => {
                self.set(rest);
                return Ok(Fed::Something);
            }
            Some("rem") => {
                self.comment(first.end);
                return Ok(Fed::Nothing);
            }
            Some("echo" | "title" | "prompt" | "echo:" | "echo(") => {
                let text: Vec<String> = rest.iter().map(|word| word.arg.with("%unknown%")).collect();
                let known = rest.iter().all(|word| word.arg.value().is_some());
                return Ok(if known { Fed::Text(text.join(" ")) } else { Fed::Something });
            }
            Some(name) if INTERNAL.contains(&name) => {
                self.rules(name, &argv)?;
                if !matches!(name, "dir" | "cd" | "chdir" | "pushd" | "exit" | "goto" | "setlocal" | "ver") {
                    for word in rest {
                        windows::path(&word.arg, self.context)?;
                    }
                }
                return Ok(Fed::Something);
            }
            Some(_) => {}
            None => {
                self.undecided(&part)?;
                self.like_kill(rest, &part)?;
                // `taskk%nothing%ill`: what a variable without a value leaves.
                let mut left = argv.clone();
                if let Some(first) = left.first_mut() {
                    let text = first.with("");
                    if !text.trim_matches(['\\', '/', '.']).is_empty() {
                        *first = Arg::known(text);
                        windows::program(&left, &part, false, self.context, self.depth)?;
                    }
                }
                windows::program(&argv, &part, false, self.context, self.depth)?;
                return Ok(Fed::Something);
            }
        }
        let typed = argv.clone();
        let mut argv = argv;
        if let (Some(first), Some(name)) = (argv.first_mut(), name) {
            if let Fed::Text(text) = fed
                && let Some(shell) = shell_of(&name)
            {
                windows::nested(shell, text, self.context, self.depth)?;
            }
            *first = Arg::known(name);
        }
        windows::perhaps(&argv, self.line, &part, self.context)?;
        let fed = matches!(fed, Fed::Something);
        windows::program(&argv, &part, fed, self.context, self.depth)?;
        self.glued(&typed, &part)?;
        Ok(Fed::Something)
    }

    /// `taskkill/im`: a switch ends the name of a program.
    fn glued(&self, argv: &[Arg], part: &str) -> Judged {
        let [first, rest @ ..] = argv else { return Ok(()) };
        let first = first.with("");
        let Some((name, switch)) = first.split_once('/') else { return Ok(()) };
        let name = windows::base(name);
        if !matches!(name.as_str(), "taskkill" | "tskill" | "wmic" | "cmd" | "powershell" | "pwsh") {
            return Ok(());
        }
        let mut argv = vec![Arg::known(name), Arg::known(format!("/{switch}"))];
        argv.extend_from_slice(rest);
        windows::program(&argv, part, false, self.context, self.depth)
    }

    /// The set's rules on a command that the prompt has itself.
    fn rules(&self, name: &str, argv: &[Arg]) -> Judged {
        let Some(name) = windows::as_ruled(name, self.context) else { return Ok(()) };
        let mut argv = argv.to_vec();
        if let Some(first) = argv.first_mut() {
            *first = Arg::known(name);
        }
        windows::in_bash(&argv, self.context, self.depth)
    }

    /// A command that is not known, with the arguments of a kill.
    fn like_kill(&self, rest: &[Word], part: &str) -> Judged {
        for word in rest {
            let text = word.arg.with("").to_lowercase();
            if matches!(text.trim_start_matches('/'), "im" | "fi") && text.starts_with('/') {
                return Err(windows::by_name(part));
            }
            if self.context.host.is_some_and(|host| host.to_string() == text) {
                return windows::one_process(&text, part, self.context);
            }
        }
        Ok(())
    }

    fn undecided(&mut self, part: &str) -> Judged {
        windows::undecided(self.context, part)?;
        if std::mem::replace(&mut self.scanned, true) {
            return Ok(());
        }
        let whole = self.values.concat();
        for text in self.values.clone().iter().chain([&whole]) {
            match windows::nested(Shell::Cmd, text, self.context, self.depth + windows::SCAN) {
                Err(denial) if !matches!(&denial.rule, RuleId::Built(name) if name.starts_with("shell.")) => {
                    return Err(denial);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Commands that the prompt has itself and that start no program.
const INTERNAL: [&str; 30] = [
    "type", "copy", "move", "del", "erase", "ren", "rename", "md", "mkdir", "rd", "rmdir", "mklink", "dir",
    "cd", "chdir", "pushd", "popd", "exit", "goto", "setlocal", "endlocal", "ver", "vol", "cls", "date",
    "time", "path", "assoc", "ftype", "verify",
];

/// A command's name, where it is known: what stands behind the last folder.
fn name_of(arg: &Arg) -> Option<String> {
    let text = arg.with("\u{0}");
    let last = text.rsplit(['/', '\\']).next().unwrap_or(&text);
    let switched = text
        .split_once('/')
        .map(|(name, _)| name)
        .filter(|name| !name.contains(['\\', '\u{0}', '.', ':']) && !name.is_empty());
    match switched {
        // `dir/b`, `cmd/c`: no folder of the prompt's ends with `/`.
        Some(name) if INTERNAL.contains(&name.to_lowercase().as_str()) => Some(name.to_lowercase()),
        _ if last.contains('\u{0}') => None,
        _ => Some(windows::base(last)),
    }
}

/// What `start` starts: behind a title in quotes and its switches.
fn started(words: &[Word]) -> &[Word] {
    let mut rest = words;
    if rest.first().is_some_and(|word| word.quoted) {
        rest = rest.get(1..).unwrap_or_default();
    }
    while let Some(word) = rest.first() {
        let text = word.arg.with("x").to_lowercase();
        if !text.starts_with('/') {
            break;
        }
        let valued = matches!(text.as_str(), "/d" | "/node" | "/affinity" | "/machine");
        rest = rest.get(if valued { 2 } else { 1 }..).unwrap_or_default();
    }
    rest
}

fn shell_of(name: &str) -> Option<Shell> {
    match name {
        "cmd" => Some(Shell::Cmd),
        "powershell" | "pwsh" => Some(Shell::PowerShell),
        "bash" | "sh" | "wsl" => Some(Shell::Bash),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
