//! Rules on commands: whether one stands against a program and its arguments.

use super::super::{Rule, RuleKind};
use super::expand::Arg;
use super::glob;
use super::limits::{Budget, Trouble};
use super::values::UNKNOWN;

/// A rule's words.
pub(super) struct CommandRule<'a> {
    pub(super) rule: &'a Rule,
    pub(super) program: &'a str,
    /// Subcommands: leading words, in order.
    leading: Vec<&'a str>,
    /// Options, anywhere.
    options: Vec<&'a str>,
    /// Patterns and paths, any argument.
    anywhere: Vec<&'a str>,
}

/// How a rule stands to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It depends on what is known only at run time.
    Maybe,
    Yes,
}

/// The rules that are about commands.
pub(super) fn rules(rules: &[Rule]) -> Vec<CommandRule<'_>> {
    rules.iter().filter(|rule| rule.kind == RuleKind::Commands).filter_map(CommandRule::new).collect()
}

impl<'a> CommandRule<'a> {
    fn new(rule: &'a Rule) -> Option<Self> {
        let mut words = rule.pattern.split_whitespace();
        let program = words.next()?;
        let (mut leading, mut options, mut anywhere) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            if word.starts_with('-') && word.len() > 1 {
                options.push(word);
            } else if word.contains('*') || word.starts_with(['/', '~', '.', '+']) {
                anywhere.push(word);
            } else {
                leading.push(word);
            }
        }
        Some(Self { rule, program, leading, options, anywhere })
    }

    /// All words but the program, without signs: what is looked for where a line cannot be decided.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.leading.iter().chain(&self.options).chain(&self.anywhere).copied()
    }

    /// Whether the program has this name.
    pub(super) fn is_about(&self, program: &str) -> bool {
        self.program == program || (self.program.contains('*') && glob::matches(self.program, program))
    }

    /// Judges the arguments of the rule's program.
    pub(super) fn against(&self, args: &[Arg], budget: &Budget) -> Result<Match, Trouble> {
        budget.spend(1 + args.len())?;
        let mut found = follows(args, &self.leading, budget)?;
        let end = args.iter().position(|arg| arg.text == "--").unwrap_or(args.len());
        let options = args.get(..end).unwrap_or_default();
        for option in &self.options {
            found = found.min(has_option(options, option));
        }
        for pattern in &self.anywhere {
            found = found.min(has_argument(args, pattern));
        }
        Ok(found)
    }
}

/// Whether the words come first among the arguments, with options (and perhaps their values) before and between.
fn follows(args: &[Arg], words: &[&str], budget: &Budget) -> Result<Match, Trouble> {
    budget.spend(1)?;
    let Some((word, later)) = words.split_first() else { return Ok(Match::Yes) };
    let Some((arg, rest)) = args.split_first() else { return Ok(Match::No) };
    let text = arg.text.as_str();
    // `cargo +nightly …` names a toolchain.
    if text == "--" || text.is_empty() || text.starts_with('+') {
        return follows(rest, words, budget);
    }
    if text.starts_with('-') {
        let alone = follows(rest, words, budget)?;
        let takes_value = !text.contains('=') && rest.first().is_some_and(|next| !next.text.starts_with('-'));
        if alone == Match::Yes || !takes_value {
            return Ok(alone);
        }
        return Ok(alone.max(follows(rest.get(1..).unwrap_or_default(), words, budget)?));
    }
    if text == *word {
        return follows(rest, later, budget);
    }
    let spelled = text.chars().any(char::is_alphanumeric);
    if arg.wild && spelled && (glob::matches(text, word) || (text.contains('(') && text.contains(word))) {
        // `git pus?` where a file is called so.
        return follows(rest, later, budget);
    }
    let open = (!arg.is_known() && glob::matches(&text.replace(UNKNOWN, "*"), word))
        || (arg.wild && glob::matches(text, word));
    Ok(if open { Match::Maybe } else { Match::No })
}

fn has_option(args: &[Arg], option: &str) -> Match {
    let mut best = Match::No;
    let letters: String = option.trim_start_matches('-').to_owned();
    let bundled = !option.starts_with("--") && letters.chars().count() <= 3;
    let mut missing: Vec<char> = letters.chars().collect();
    for arg in args {
        let text = arg.text.as_str();
        if text.starts_with(UNKNOWN) {
            best = Match::Maybe;
        }
        if text == option || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')) {
            return Match::Yes;
        }
        if let Some(long) = text.strip_prefix("--") {
            // The start of a long option stands for it.
            if option.starts_with("--") && long.len() >= 3 && option.starts_with(text) {
                return Match::Yes;
            }
            missing.retain(|letter| !spelled(*letter, long));
        } else if let Some(short) = text.strip_prefix('-') {
            missing.retain(|letter| !(short.contains(*letter) || (*letter == 'r' && short.contains('R'))));
        }
    }
    if bundled && missing.is_empty() { Match::Yes } else { best }
}

/// The long form of the letters that matter in rules.
fn spelled(letter: char, long: &str) -> bool {
    match letter {
        'f' => long == "force",
        'r' | 'R' => long == "recursive",
        'd' => long == "delete",
        _ => false,
    }
}

fn has_argument(args: &[Arg], pattern: &str) -> Match {
    let mut best = Match::No;
    for arg in args {
        let text = arg.text.as_str();
        let hit = if pattern.starts_with(['/', '~', '.']) {
            let wanted = place(pattern);
            place(text) == wanted || glob::matches(&wanted, &place(text))
        } else {
            glob::matches(pattern, text)
        };
        if hit {
            return Match::Yes;
        }
        if !arg.is_known()
            && (text.starts_with(UNKNOWN) || glob::matches(&text.replace(UNKNOWN, "*"), pattern))
        {
            best = Match::Maybe;
        }
    }
    best
}

/// A path in one spelling: no doubled slashes, no `.`, no `..` that can be resolved, all of a folder as the folder.
fn place(path: &str) -> String {
    let path = path.strip_suffix("/*").map_or(path, |folder| if folder.is_empty() { "/" } else { folder });
    let mut kept: Vec<&str> = Vec::new();
    for piece in path.split('/') {
        match piece {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != ".." && *last != "~") => {
                kept.pop();
            }
            ".." if path.starts_with('/') => {}
            piece => kept.push(piece),
        }
    }
    let joined = kept.join("/");
    match (path.starts_with('/'), joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
