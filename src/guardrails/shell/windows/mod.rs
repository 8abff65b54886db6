//! What PowerShell and the command prompt share: the programs of Windows that end processes or start others, and the
//! way of any other program into the judge of bash, which knows programs by their arguments.

mod ending;
#[cfg(test)]
pub(super) mod lines;
mod shells;

use super::limits::{LINE, WORD};
use super::{Scope, Shell, Verdict, judge_at};
use crate::guardrails::{Denial, RuleId};
use ending::{named_or_id, taskkill, wmic};
use shells::{command_prompt, powershell, wsl};

pub(super) const BY_NAME: &str = "host.kill-by-name";
pub(super) const TARGET: &str = "host.kill-target";
pub(super) const GROUP: &str = "host.kill-group";
pub(super) const HOST: &str = "host.host-id";
pub(super) const UNREADABLE: &str = "shell.unreadable";
pub(super) const DEEP: &str = "shell.too-deep";
pub(super) const LONG: &str = "shell.too-long";
pub(super) const UNDECIDED: &str = "shell.undecided";

/// By how much a text that only may be run counts as nested deeper.
pub(super) const SCAN: u32 = 10;

/// Commands of one line that are judged. Each is a judgement of its own; more of them are denied.
const MOST_COMMANDS: u32 = 1000;

/// Programs among the arguments of another that are tried as what it starts; the first has the others behind it.
const MOST_STARTS: usize = 8;

/// Longest part of a line that a denial shows, in characters.
const SHOWN: usize = 200;

/// What a judgement inside one line comes to.
pub(super) type Judged = Result<(), Denial>;

/// A piece of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Known(String),
    /// The user's home folder.
    Home,
    Unknown,
}

/// One argument of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Arg {
    pub(super) pieces: Vec<Piece>,
}

impl Arg {
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { pieces: vec![Piece::Known(text.into())] }
    }

    pub(super) fn unknown() -> Self {
        Self { pieces: vec![Piece::Unknown] }
    }

    /// Its text, where all of it is known.
    pub(super) fn value(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Known(part) => text.push_str(part),
                Piece::Home | Piece::Unknown => return None,
            }
        }
        Some(text)
    }

    /// Its text with `~` for the home folder and `unknown` for what is not known.
    pub(super) fn with(&self, unknown: &str) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Known(part) => text.push_str(part),
                Piece::Home => text.push('~'),
                Piece::Unknown => text.push_str(unknown),
            }
        }
        text
    }

    fn for_bash(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Known(part) if !part.is_empty() && part.chars().all(is_plain) => text.push_str(part),
                Piece::Known(part) => {
                    text.push('\'');
                    text.push_str(&part.replace('\'', r"'\''"));
                    text.push('\'');
                }
                Piece::Home => text.push_str("\"$HOME\""),
                Piece::Unknown => text.push_str("\"$unknown\""),
            }
        }
        if text.is_empty() { "''".into() } else { text }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@%+:,./-".contains(c)
}

/// A denial with the part that it is about.
pub(super) fn denial(rule: &'static str, part: &str, reason: &str) -> Denial {
    let part: String = part.trim().chars().take(SHOWN).collect();
    Denial { rule: RuleId::Built(rule), reason: format!("`{part}` {reason}"), part: Some(part) }
}

/// Counts one more command of a line.
pub(super) fn count(commands: &mut u32, part: &str, scope: &Scope<'_>) -> Judged {
    *commands += 1;
    if *commands <= MOST_COMMANDS && scope.budget.spend(LINE + part.len()).is_ok() {
        return Ok(());
    }
    let reason = "is beyond the 1000 commands of a line that are judged; put them into a script file";
    Err(denial(LONG, part, reason))
}

/// Pays for looking at words, each of which is copied and spelled anew some times.
pub(super) fn pay(words: usize, part: &str, scope: &Scope<'_>) -> Judged {
    if scope.budget.spend(words * WORD).is_ok() {
        return Ok(());
    }
    Err(denial(LONG, part, "is more than can be judged in one line; put it into a script file"))
}

/// The reason of a denial of a kill by name.
pub(super) fn by_name(part: &str) -> Denial {
    let reason = "ends processes by what they are called, and the host that runs you can be one of them; end one \
                  process by its literal id: `taskkill /PID 4242` or `Stop-Process -Id 4242`";
    denial(BY_NAME, part, reason)
}

/// The reason of a denial of a kill whose target is not a literal id.
pub(super) fn by_target(part: &str) -> Denial {
    let reason = "ends whatever its input names, and the host that runs you can be among it; list first, then end one \
                  process by its literal id: `taskkill /PID 4242` or `Stop-Process -Id 4242`";
    denial(TARGET, part, reason)
}

/// What a line comes to whose text is not known.
pub(super) fn undecided(context: &Scope<'_>, part: &str) -> Judged {
    if !context.deny_undecided {
        return Ok(());
    }
    let reason = "runs what is not known before it runs, and this set denies that; write the command out";
    Err(denial(UNDECIDED, part, reason))
}

pub(super) fn judged(verdict: Verdict) -> Judged {
    match verdict {
        Verdict::Allow => Ok(()),
        Verdict::Deny(denial) => Err(denial),
    }
}

pub(super) fn nested(shell: Shell, line: &str, context: &Scope<'_>, depth: u32) -> Judged {
    judged(judge_at(shell, line, context, depth + 1))
}

/// The name of a program or cmdlet: without folder, module and extension, in small letters.
pub(super) fn base(name: &str) -> String {
    let name = name.trim().trim_matches('"');
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
    // Windows drops dots and blanks at a name's end.
    let last = last.trim_end_matches(['.', ' ']);
    for extension in [".exe", ".com", ".cmd", ".bat", ".ps1"] {
        if let Some(stem) = last.strip_suffix(extension) {
            return stem.to_owned();
        }
    }
    last.to_owned()
}

/// Whether a text names one process: an id that is neither the host's nor a group.
pub(super) fn one_process(text: &str, part: &str, context: &Scope<'_>) -> Judged {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let id = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        None => None,
    };
    match id {
        Some(id) if context.host.is_some_and(|host| u64::from(host) == id) => Err(denial(
            HOST,
            part,
            "ends the host that runs you; end only processes that you started, by their literal id",
        )),
        Some(0) => Err(denial(GROUP, part, "names no single process; end one by its literal id")),
        Some(_) => Ok(()),
        None if text.starts_with('-') && text.len() > 1 => {
            Err(denial(GROUP, part, "names a group of processes; end one by its literal id"))
        }
        None => Err(by_target(part)),
    }
}

/// Judges a path that a command names, as typed and with `/` for `\`.
pub(super) fn path(arg: &Arg, context: &Scope<'_>) -> Judged {
    let mut typed = arg.with("\u{0}");
    // `$PWD\.env`: what stands behind a folder that is not known.
    if let Some((_, rest)) = typed.rsplit_once('\u{0}') {
        let Some(rest) = rest.strip_prefix(['/', '\\']) else { return Ok(()) };
        typed = rest.to_owned();
    }
    if typed.is_empty() {
        return Ok(());
    }
    let mut forms = vec![typed.clone()];
    if typed.contains('\\') {
        forms.push(typed.replace('\\', "/"));
    }
    match forms.iter().find_map(|form| (context.path)(form)) {
        Some(denial) => Err(denial),
        None => Ok(()),
    }
}

/// Judges one program with its arguments, as PowerShell or the command prompt starts it. `part`: as it stands in the
/// line. `fed`: whether something is piped into it.
pub(super) fn program(argv: &[Arg], part: &str, fed: bool, context: &Scope<'_>, depth: u32) -> Judged {
    pay(argv.len(), part, context)?;
    let Some((first, rest)) = argv.split_first() else { return Ok(()) };
    let Some(name) = first.value().map(|name| base(&name)) else {
        undecided(context, part)?;
        unnamed(rest, context, depth)?;
        return in_bash(argv, context, depth);
    };
    let name = if name == "py" { "python".to_owned() } else { name };
    match name.as_str() {
        "taskkill" => return taskkill(rest, part, context),
        "tskill" | "pskill" | "pskill64" => return named_or_id(rest, part, context),
        "wmic" => return wmic(rest, part, context, depth),
        "cmd" => return command_prompt(rest, part, fed, context, depth),
        "powershell" | "pwsh" | "powershell_ise" | "pwsh-preview" => {
            return powershell(&name, rest, part, fed, context, depth);
        }
        "wsl" | "wslhost" => return wsl(rest, part, fed, context, depth),
        // Each takes a line for the command prompt in one argument.
        "schtasks" | "forfiles" | "runas" | "psexec" | "psexec64" | "at" | "wt" | "conhost" | "start" => {
            for arg in rest {
                if let Some(line) = arg.value().filter(|line| line.contains([' ', '\t'])) {
                    nested(Shell::Cmd, &line, context, depth)?;
                }
            }
            let starts = |arg: &Arg| arg.value().is_some_and(|word| runs_others(&base(&word)));
            let starting = rest.iter().enumerate().filter(|(_, arg)| starts(arg)).take(MOST_STARTS);
            for (at, _) in starting {
                let behind = rest.get(at..).unwrap_or_default();
                program(behind, part, false, context, depth + 1)?;
            }
        }
        _ => {}
    }
    for arg in rest.iter().filter(|arg| {
        arg.pieces
            .iter()
            .any(|piece| *piece == Piece::Home || matches!(piece, Piece::Known(text) if text.contains('\\')))
    }) {
        path(arg, context)?;
    }
    let mut plain = argv.to_vec();
    if let Some(first) = plain.first_mut() {
        *first = Arg::known(as_ruled(&name, context).unwrap_or(&name));
    }
    if fed && !speaks(&argv_name(argv)) {
        // What reads a script or targets from a pipe is known there as well.
        nested(Shell::Bash, &format!("cat | {}", bash_line(&plain)), context, depth)?;
    } else {
        in_bash(&plain, context, depth)?;
    }
    // A variable without a value leaves nothing.
    if rest.iter().any(|arg| arg.pieces.contains(&Piece::Unknown)) {
        in_bash(&emptied(&plain), context, depth)?;
    }
    // A program that is not known may start the one that its arguments name.
    if speaks(&argv_name(argv)) {
        return Ok(());
    }
    let ends = |arg: &Arg| {
        arg.value().is_some_and(|word| matches!(base(&word).as_str(), "taskkill" | "tskill" | "wmic"))
    };
    for (at, _) in rest.iter().enumerate().filter(|(_, arg)| ends(arg)).take(MOST_STARTS) {
        program(rest.get(at..).unwrap_or_default(), part, false, context, depth + 1)?;
    }
    Ok(())
}

/// A program whose name is not known, with arguments that all words of a rule are among: it may be the rule's.
fn unnamed(rest: &[Arg], context: &Scope<'_>, depth: u32) -> Judged {
    pay(rest.len() * context.rules.len() / 64, "", context)?;
    let mut tried: Vec<&str> = Vec::new();
    let texts: Vec<String> = rest.iter().filter_map(Arg::value).collect();
    for rule in context.rules.iter().filter(|rule| rule.kind == crate::guardrails::RuleKind::Commands) {
        let mut words = rule.pattern.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        let stands = texts.iter().any(|text| text.eq_ignore_ascii_case(second));
        if stands && !tried.contains(&first) {
            tried.push(first);
            let mut argv = vec![Arg::known(first)];
            argv.extend_from_slice(rest);
            in_bash(&argv, context, depth)?;
        }
    }
    Ok(())
}

/// Arguments as they are when what is not known is empty.
fn emptied(argv: &[Arg]) -> Vec<Arg> {
    let left = argv.iter().map(|arg| Arg {
        pieces: arg.pieces.iter().filter(|piece| **piece != Piece::Unknown).cloned().collect(),
    });
    left.filter(|arg| !arg.pieces.is_empty()).collect()
}

/// A program with arguments that are not known, in a line that has all words of a rule on it: they may be those.
pub(super) fn perhaps(argv: &[Arg], line: &str, part: &str, context: &Scope<'_>) -> Judged {
    let Some(name) = argv.first().and_then(Arg::value).map(|name| base(&name)) else { return Ok(()) };
    if as_ruled(&name, context).is_none() || argv.iter().all(|arg| arg.value().is_some()) {
        return Ok(());
    }
    for rule in context.rules.iter().filter(|rule| rule.kind == crate::guardrails::RuleKind::Commands) {
        let mut wanted = rule.pattern.split_whitespace();
        if !wanted.next().is_some_and(|first| first.eq_ignore_ascii_case(&name)) {
            continue;
        }
        let wanted: Vec<&str> = wanted.collect();
        if !wanted.is_empty() && wanted.iter().all(|word| stands_in(word, line)) {
            let part: String = part.trim().chars().take(SHOWN).collect();
            let reason = format!(
                "it cannot be known what `{part}` is given, and the words of `{}`, which is denied, stand in the line; \
                 write the command out",
                rule.pattern
            );
            return Err(Denial { rule: RuleId::Set(rule.clone()), part: Some(part), reason });
        }
    }
    Ok(())
}

/// Whether a word stands in a line, with no letter beside it.
fn stands_in(word: &str, line: &str) -> bool {
    let beside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let behind = line.get(at + word.len()..).and_then(|behind| behind.chars().next());
        !beside(before) && !beside(behind)
    })
}

/// The name of a program as a rule on commands spells it, where one is about it. Windows tells no case apart.
pub(super) fn as_ruled<'a>(name: &str, context: &Scope<'a>) -> Option<&'a str> {
    let rules = context.rules.iter().filter(|rule| rule.kind == crate::guardrails::RuleKind::Commands);
    let mut firsts = rules.filter_map(|rule| rule.pattern.split_whitespace().next());
    firsts.find(|first| first.eq_ignore_ascii_case(name))
}

fn argv_name(argv: &[Arg]) -> String {
    argv.first().and_then(Arg::value).map(|name| base(&name)).unwrap_or_default()
}

/// Programs that start others, so that their names count wherever they stand behind a starter.
fn runs_others(name: &str) -> bool {
    matches!(name, "taskkill" | "tskill" | "wmic" | "cmd" | "powershell" | "pwsh" | "wsl" | "bash" | "sh")
}

/// Programs for which other words are text.
fn speaks(name: &str) -> bool {
    matches!(
        name,
        "echo"
            | "git"
            | "gh"
            | "rg"
            | "grep"
            | "findstr"
            | "find"
            | "where"
            | "which"
            | "npm"
            | "cargo"
            | "code"
            | "man"
            | "sort"
            | "more"
            | "clip"
    )
}

/// Judges the arguments as a line of bash, whose judge knows programs.
pub(super) fn in_bash(argv: &[Arg], context: &Scope<'_>, depth: u32) -> Judged {
    nested(Shell::Bash, &bash_line(argv), context, depth)
}

/// The arguments as a line of bash.
fn bash_line(argv: &[Arg]) -> String {
    let mut line = String::new();
    for (at, arg) in argv.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        let word = arg.for_bash();
        // A reserved word in quotes is a program's name.
        let reserved =
            at == 0 && !word.contains(['.', '/', '-', '\'', '"']) && word.len() < 9 && is_reserved(&word);
        if reserved {
            line.push('\\');
        }
        line.push_str(&word);
    }
    line
}

fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "if" | "then"
            | "else"
            | "elif"
            | "fi"
            | "do"
            | "done"
            | "case"
            | "esac"
            | "while"
            | "until"
            | "for"
            | "select"
            | "in"
            | "function"
            | "time"
            | "coproc"
    )
}

/// A shell that takes its script from a pipe or from what another command makes: denied in every set.
pub(super) fn opaque(part: &str) -> Judged {
    let reason = "would run text that another command makes or fetches, so it cannot be known what it runs; write the \
                  commands themselves, or put them into a file of the worktree and run that file";
    Err(denial(UNDECIDED, part, reason))
}
