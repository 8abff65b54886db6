//! One command with its arguments: the rules against it, and the commands that it would run in turn.

use super::super::{Denial, RuleId};
use super::denial::{self, Judged, KILL_BY_NAME, UNDECIDED, built};
use super::expand::{Arg, Notes};
use super::glob;
use super::host::{self, Sure};
use super::judge::{Judge, Stdin};
use super::matching::Match;
use super::texts;
use super::values::UNKNOWN;
use super::{git, interpreters, wrappers};

/// A command whose name is known.
pub(super) struct Call<'c> {
    pub(super) name: &'c str,
    pub(super) args: &'c [Arg],
    pub(super) notes: Notes,
    pub(super) stdin: &'c Stdin,
}

/// What a path to a program calls, as rules call it.
pub(super) fn program(text: &str) -> &str {
    let text = text.strip_prefix('=').unwrap_or(text);
    let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
    name.strip_suffix(".exe").unwrap_or(name)
}

impl Judge<'_> {
    /// Judges an argument list.
    pub(super) fn command(&mut self, args: &[Arg], notes: Notes, stdin: &Stdin) -> Judged {
        self.spend(1 + args.len())?;
        let Some((head, rest)) = args.split_first() else { return Ok(()) };
        let name = program(&head.text);
        if name.contains([UNKNOWN, super::values::JOB]) {
            let part = self.part.clone();
            self.undecided(args, notes, &part, "the name of the program is made at run time")?;
            return self.suffixes(rest, notes, stdin);
        }
        if name.is_empty() {
            return Ok(());
        }
        if head.wild {
            for known in self.known_names() {
                let extended = name.contains('(') && name.contains(known.as_str());
                if extended || glob::matches(name, &known) {
                    self.call(&Call { name: &known, args: rest, notes, stdin }, Sure::Yes)?;
                }
            }
        }
        if let Some(meant) = self.values.aliases.get(name).cloned() {
            for text in meant {
                let mut words: Vec<Arg> = text.split_whitespace().map(Arg::new).collect();
                if words.first().is_some_and(|first| first.text != name) {
                    let mut rest = rest;
                    if text.ends_with([' ', '\t'])
                        && let Some((next, others)) = rest.split_first()
                        && let Some(meant) = self.values.aliases.get(&next.text).and_then(|all| all.last())
                    {
                        // After a blank at its end the next word is looked up too.
                        words.extend(meant.split_whitespace().map(Arg::new));
                        rest = others;
                    }
                    words.extend(rest.iter().cloned());
                    self.inner_command(&words, notes, stdin)?;
                }
            }
        }
        self.call(&Call { name, args: rest, notes, stdin }, Sure::Yes)
    }

    /// All names that mean something to a rule or to this judge.
    fn known_names(&self) -> Vec<String> {
        let own =
            host::BY_NAME.iter().chain(&["kill", "fuser", "git"]).chain(wrappers::SHELLS.iter()).copied();
        own.chain(self.rules.iter().map(|rule| rule.program)).map(str::to_owned).collect()
    }

    /// Whether a word among the arguments of another program is worth being judged as a command.
    fn is_known(&self, name: &str) -> bool {
        host::BY_NAME.contains(&name)
            || matches!(name, "kill" | "fuser" | "git" | "eval" | "find" | "xargs" | "systemctl" | "loginctl")
            || name.starts_with("git-")
            || host::WINDOWS.contains(&name.to_ascii_lowercase().as_str())
            || wrappers::is_wrapper(name)
            || wrappers::SHELLS.contains(&name)
            || wrappers::WINDOWS_SHELLS.contains(&name)
            || interpreters::language(name).is_some()
            || self.rules.iter().any(|rule| rule.is_about(name))
    }

    /// A program that is not known may run any of its arguments as a command.
    pub(super) fn suffixes(&mut self, args: &[Arg], notes: Notes, stdin: &Stdin) -> Judged {
        for (index, arg) in args.iter().enumerate() {
            self.spend(1)?;
            if !arg.is_known() {
                continue;
            }
            let name = program(&arg.text);
            if !name.is_empty() && self.is_known(name) {
                let rest = args.get(index + 1..).unwrap_or_default();
                self.deeper(|judge| judge.call(&Call { name, args: rest, notes, stdin }, Sure::Perhaps))?;
            }
        }
        Ok(())
    }

    /// Judges a program by its name.
    pub(super) fn call(&mut self, call: &Call<'_>, sure: Sure) -> Judged {
        self.spend(1 + call.args.len())?;
        let git_command = call.name.strip_prefix("git-").filter(|sub| !sub.is_empty());
        if call.name == "git" || git_command.is_some() {
            let mut args = call.args.to_vec();
            if let Some(sub) = git_command {
                args.insert(0, Arg::new(sub));
            }
            return git::judge(self, &Call { name: "git", args: &args, ..*call });
        }
        self.against_rules(call.name, call.args, call.notes)?;
        self.host_guard(call.name, call.args, sure)?;
        if self.shell_word(call)? || wrappers::judge(self, call)? || interpreters::judge(self, call)? {
            return Ok(());
        }
        self.paths(call)?;
        match texts::runs(call.name, call.args) {
            texts::Runs::Nothing => self.option_lines(call),
            texts::Runs::After(index) => {
                self.suffixes(call.args.get(index..).unwrap_or_default(), call.notes, call.stdin)
            }
            texts::Runs::Lines => {
                self.suffixes(call.args, call.notes, call.stdin)?;
                self.lines(call.args, true)?;
                self.fed_lines(call)
            }
            texts::Runs::Unknown => {
                self.suffixes(call.args, call.notes, call.stdin)?;
                self.lines(call.args, false)
            }
        }
    }

    /// Arguments that are command lines by themselves: all of them, or those of options that say so.
    fn lines(&mut self, args: &[Arg], all: bool) -> Judged {
        let mut before = "";
        for arg in args {
            let text = arg.text.as_str();
            let (option, value) =
                text.split_once('=').filter(|_| text.starts_with('-')).unwrap_or((before, text));
            // An editor's or debugger's way to say that a command line follows.
            let value = if all { value.trim_start_matches([':', '!', '%', '+', ' ']) } else { value };
            if all
                || matches!(
                    option,
                    "-c" | "-lc"
                        | "-e"
                        | "-x"
                        | "--command"
                        | "--cmd"
                        | "--run"
                        | "--exec"
                        | "--call"
                        | "--eval"
                )
            {
                let first = value.split_whitespace().next().map(program).unwrap_or_default();
                let worth = all || self.is_known(first) || value.contains(['$', '`', ';', '|', '&']);
                if worth && value.contains([' ', '\t', '\n', ';', '$', '`']) {
                    let result = self.source(value, &Stdin::Plain);
                    match result {
                        // It may be text in another language after all.
                        Err(denial) if denial.rule == RuleId::Built(denial::UNREADABLE) => {}
                        other => other?,
                    }
                }
            }
            before = text;
        }
        Ok(())
    }

    /// Options of programs that otherwise run nothing, whose value is a command line.
    fn option_lines(&mut self, call: &Call<'_>) -> Judged {
        let options = texts::running_options(call.name);
        for (at, arg) in call.args.iter().enumerate().filter(|_| !options.is_empty()) {
            let text = arg.text.as_str();
            for option in options {
                let value = if text == *option {
                    call.args.get(at + 1).map(|next| next.text.as_str())
                } else if option.starts_with("--") {
                    text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='))
                } else {
                    text.strip_prefix(option)
                };
                if let Some(value) = value {
                    let value = value
                        .strip_prefix("exec=")
                        .or_else(|| value.strip_prefix("ProxyCommand="))
                        .unwrap_or(value);
                    self.deeper(|judge| judge.source(value, &Stdin::Plain))?;
                }
            }
        }
        if call.name == "make" || call.name == "gmake" {
            return self.fed_code(call);
        }
        Ok(())
    }

    /// An editor or the like that reads its commands.
    fn fed_lines(&mut self, call: &Call<'_>) -> Judged {
        if let Stdin::Text(texts) = call.stdin {
            for (text, _) in texts {
                for line in text.lines() {
                    let line = line.trim_start_matches(|c: char| {
                        c.is_ascii_digit() || matches!(c, ':' | '!' | '%' | ',' | ' ' | '$')
                    });
                    match self.source(line, &Stdin::Plain) {
                        Err(denial) if denial.rule == RuleId::Built(denial::UNREADABLE) => {}
                        other => other?,
                    }
                }
            }
        }
        self.fed_code(call)
    }

    /// A program that runs what it reads: where that is made by another command, a denied word of the line may be it.
    pub(super) fn fed_code(&mut self, call: &Call<'_>) -> Judged {
        let handed = call.args.iter().any(|arg| arg.text.starts_with("/dev/fd/"));
        if handed || matches!(call.stdin, Stdin::Fed) {
            let line = std::rc::Rc::clone(&self.line);
            self.denied_code(&line)?;
        }
        if let Stdin::Text(texts) = call.stdin {
            for (text, _) in texts {
                self.denied_code(text)?;
            }
        }
        Ok(())
    }

    /// The rules of the set against a program and its arguments.
    pub(super) fn against_rules(&mut self, name: &str, args: &[Arg], notes: Notes) -> Judged {
        let mut maybe = false;
        for rule in &self.rules {
            if !rule.is_about(name) {
                continue;
            }
            match rule.against(args, self.budget).map_err(|trouble| self.trouble(&trouble))? {
                Match::Yes => return Err(denial::by_rule(rule.rule, &self.part)),
                Match::Maybe => maybe = true,
                Match::No => {}
            }
        }
        if maybe {
            let mut all = vec![Arg::new(name)];
            all.extend(args.iter().cloned());
            let part = self.part.clone();
            self.undecided(&all, notes, &part, "an argument that decides is made at run time")?;
        }
        Ok(())
    }

    /// What is run cannot be known: denied where the set says so, or where a denied word stands in what it could be.
    pub(super) fn undecided(&mut self, args: &[Arg], notes: Notes, part: &str, why: &str) -> Judged {
        let instead = "write the command out, without variables and substitutions where its words belong";
        if self.context.deny_undecided || args.first().is_some_and(|head| head.made) {
            return Err(built(
                UNDECIDED,
                part,
                format!("it cannot be known what this runs: {why}; {instead}"),
            ));
        }
        if notes.from_line || self.values.any {
            self.literal_lines()?;
        }
        let mut scope: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let values: Vec<&str> = self.values.texts().collect();
        if notes.from_line || self.values.any {
            scope.push(&self.line);
            scope.extend(values);
        }
        self.spend(scope.iter().map(|text| text.len() / 4).sum())?;
        match self.denied_word(&scope) {
            Some((rule, word)) => Err(Box::new(Denial {
                rule,
                part: Some(denial::shown(part)),
                reason: format!(
                    "it cannot be known what this runs ({why}), and `{word}`, which is denied, stands in the line; {instead}"
                ),
            })),
            None => Ok(()),
        }
    }

    /// Texts of the line that a shell may be given by a way that is not followed (`read`, `printf -v`, a function's
    /// argument): what would be denied as a command line is.
    fn literal_lines(&mut self) -> Judged {
        if std::mem::replace(&mut self.scanned, true) {
            return Ok(());
        }
        let line = std::rc::Rc::clone(&self.line);
        for text in interpreters::literals(&line).into_iter().chain(line.lines().skip(1)) {
            if !text.contains(char::is_whitespace) {
                continue;
            }
            match self.source(text, &Stdin::Plain) {
                Err(denial) if matches!(denial.rule, RuleId::Built(rule) if rule.starts_with("shell.")) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// A word of the host guard or all words of a rule, in any of the texts.
    pub(super) fn denied_word(&self, texts: &[&str]) -> Option<(RuleId, String)> {
        let tokens = |text: &str| -> Vec<String> {
            text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let all: Vec<String> = texts.iter().flat_map(|text| tokens(text)).collect();
        let has = |word: &str| all.iter().any(|token| token == word);
        let windows = |word: &str| all.iter().any(|token| token.eq_ignore_ascii_case(word));
        if let Some(word) = host::BY_NAME
            .iter()
            .find(|word| has(word))
            .or_else(|| host::WINDOWS.iter().find(|word| windows(word)))
        {
            return Some((RuleId::Built(KILL_BY_NAME), (*word).to_owned()));
        }
        if has("kill") {
            return Some((RuleId::Built(denial::KILL_TARGET), "kill".into()));
        }
        self.rules
            .iter()
            .find(|rule| {
                has(rule.program)
                    && rule.words().all(|word| texts.iter().any(|text| text.contains(word.trim_matches('*'))))
            })
            .map(|rule| (RuleId::Set(rule.rule.clone()), rule.rule.pattern.clone()))
    }
}
