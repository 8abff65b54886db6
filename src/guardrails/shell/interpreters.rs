//! Programs that are given code in the line (`python -c`, `awk`, `sed`). The code is not parsed: it is looked
//! through for ways to start or end a process, and then for what a rule denies.

use super::super::RuleId;
use super::command::{Call, program};
use super::denial::{self, HOST_ID, Judged, KILL_BY_NAME, KILL_TARGET, built};
use super::edit;
use super::host;
use super::judge::{Judge, Stdin};

/// What kind of code a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// With these options code follows; without one it is read from a file or standard input.
    Options(&'static [&'static str]),
    Awk,
    Sed,
}

/// The language of an interpreter.
pub(super) fn language(name: &str) -> Option<Language> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match bare {
        "python" | "pypy" | "ipython" | "python-config" => Language::Options(&["-c"]),
        "perl" => Language::Options(&[
            "-e", "-E", "-ne", "-pe", "-le", "-lne", "-lpe", "-pie", "-nle", "-ple", "-we",
        ]),
        "ruby" | "irb" => Language::Options(&["-e", "-ne", "-pe"]),
        "node" | "nodejs" | "iojs" => Language::Options(&["-e", "--eval", "-p", "--print", "-pe"]),
        "deno" => Language::Options(&["eval", "-p"]),
        "bun" | "tsx" | "ts-node" => Language::Options(&["-e", "--eval", "-p", "--print"]),
        "php" => Language::Options(&["-r", "-B", "-R", "-E"]),
        "lua" | "luajit" | "julia" | "Rscript" | "groovy" | "osascript" | "elixir" | "guile" | "racket"
        | "ghc" | "scala" => Language::Options(&["-e", "-E"]),
        "tclsh" | "wish" => Language::Options(&["-c"]),
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        "sed" | "gsed" => Language::Sed,
        _ => return None,
    })
}

/// Judges an interpreter. `true`: it was one, and its arguments are dealt with.
pub(super) fn judge(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged<bool> {
    let Some(language) = language(call.name) else { return Ok(false) };
    match language {
        Language::Awk => {
            let mut program = true;
            let mut args = call.args.iter();
            while let Some(arg) = args.next() {
                let text = arg.text.as_str();
                match text {
                    "-f" | "--file" => {
                        program = false;
                        if args.next().is_some_and(|file| file.text.starts_with("/dev/fd/")) {
                            reads_code(judge)?;
                        }
                    }
                    "-F" | "-v" | "--field-separator" | "--assign" => {
                        args.next();
                    }
                    "-e" | "--source" => {}
                    _ if text.starts_with('-') && text.len() > 1 => {}
                    _ if program => {
                        program = false;
                        judge.code(text)?;
                        if ["system", "| \"", "|\"", "|&", "getline"].iter().any(|word| text.contains(word)) {
                            // It may run its data.
                            let line = std::rc::Rc::clone(&judge.line);
                            judge.denied_code(&line)?;
                        }
                    }
                    _ => judge.path(text)?,
                }
            }
            Ok(true)
        }
        Language::Sed => sed(judge, call).map(|()| true),
        Language::Options(options) => {
            let mut args = call.args.iter().enumerate();
            let mut given = false;
            while let Some((at, arg)) = args.next() {
                let text = arg.text.as_str();
                let option = options
                    .iter()
                    .find(|option| text == **option || (bundles(text, option) && call.name != "deno"));
                let glued =
                    text.split_once('=').filter(|(option, _)| options.contains(option)).map(|(_, code)| code);
                if let Some(code) = glued {
                    given = true;
                    judge.code(code)?;
                } else if option.is_some() {
                    given = true;
                    if let Some(code) = call.args.get(at + 1) {
                        if !code.is_known() {
                            judge.code(&code.text)?;
                        }
                        judge.code(&code.text)?;
                        args.next();
                    }
                } else if let Some(code) = options
                    .iter()
                    .filter(|option| option.len() == 2)
                    .find_map(|option| text.strip_prefix(option))
                {
                    given = true;
                    judge.code(code)?;
                } else if text == "-m" && call.name.starts_with("py") {
                    // A module, and perhaps code for it (`timeit`).
                    for code in call.args.get(at + 1..).unwrap_or_default() {
                        judge.code(&code.text)?;
                    }
                    judge.suffixes(call.args.get(at + 2..).unwrap_or_default(), call.notes, call.stdin)?;
                    return Ok(true);
                } else if !text.starts_with('-') && !given {
                    if text.starts_with("/dev/fd/") || text == "/dev/stdin" {
                        reads_code(judge)?;
                    }
                    // A file of code with its arguments, or a subcommand.
                    judge.all_paths(call.args.get(at..).unwrap_or_default())?;
                    judge.suffixes(call.args.get(at + 1..).unwrap_or_default(), call.notes, call.stdin)?;
                    return Ok(true);
                }
            }
            if let (false, Stdin::Text(texts)) = (given, call.stdin) {
                for (text, _) in texts {
                    judge.code(text)?;
                }
            }
            if !given && matches!(call.stdin, Stdin::Fed) {
                reads_code(judge)?;
            }
            Ok(true)
        }
    }
}

/// Code that is not in the line as such: what the line says may be in it.
fn reads_code(judge: &mut Judge<'_>) -> Judged {
    if judge.context.deny_undecided {
        let reason = "this runs code that another command makes; write it into a file of the worktree and run that file";
        return Err(built(denial::UNDECIDED, &judge.part, reason));
    }
    let line = std::rc::Rc::clone(&judge.line);
    judge.kills(&line)?;
    judge.denied_code(&line)
}

/// `-lne` ends with the letter of `-e`.
fn bundles(text: &str, option: &str) -> bool {
    text.starts_with('-')
        && !text.starts_with("--")
        && (2..=6).contains(&text.len())
        && option.len() == 2
        && option.chars().last().is_some_and(|letter| text.ends_with(letter))
        && text.chars().skip(1).all(|letter| letter.is_ascii_alphabetic())
}

/// `sed`: the `e` flag and the `e` command run what they make.
fn sed(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let mut script = true;
    let mut args = call.args.iter();
    let mut texts = Vec::new();
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        match text {
            "-e" | "--expression" => {
                script = false;
                texts.extend(args.next().map(|next| next.text.as_str()));
            }
            "-f" | "--file" => {
                script = false;
                args.next();
            }
            _ if text.starts_with("--expression=") => {
                script = false;
                texts.extend(text.strip_prefix("--expression="));
            }
            _ if text.starts_with('-') && text.len() > 1 => {
                if text.ends_with('e') && !text.starts_with("--") {
                    script = false;
                    texts.extend(args.next().map(|next| next.text.as_str()));
                }
            }
            _ if script => {
                script = false;
                texts.push(text);
            }
            _ => judge.path(text)?,
        }
    }
    if executes(&texts.join("\n")) {
        let line = std::rc::Rc::clone(&judge.line);
        judge.denied_code(&line)?;
        if judge.context.deny_undecided {
            let reason = "`sed` with its `e` runs what it makes; run the commands themselves";
            return Err(built(denial::UNDECIDED, &judge.part, reason));
        }
    }
    Ok(())
}

/// Whether a sed script has an `e`: after a substitution, or as a command.
fn executes(script: &str) -> bool {
    script.split(['\n', ';', '}']).any(|piece| {
        let piece = piece.trim_end();
        let flags: String = piece
            .chars()
            .rev()
            .take_while(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | 'e' | '0'..='9'))
            .collect();
        let before = piece.chars().rev().nth(flags.chars().count());
        let substitution =
            flags.contains('e') && before.is_some_and(|c| !c.is_alphanumeric() && !c.is_whitespace());
        let command = piece
            .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | ',' | ' ' | '{' | '!'));
        substitution || command == "e" || command.starts_with("e ") || piece.contains("/e ")
    })
}

/// What starts another process from code.
const STARTS: [&str; 24] = [
    "system",
    "popen",
    "exec",
    "spawn",
    "subprocess",
    "check_output",
    "check_call",
    "qx",
    "`",
    "shell",
    "getline",
    "Popen",
    "fork",
    "backtick",
    "passthru",
    "IO.popen",
    "Open3",
    "run(",
    "call(",
    "os.kill",
    "sh(",
    "Command",
    "| \"",
    "|\"",
];

impl Judge<'_> {
    /// Judges code by what it could start or end.
    pub(super) fn code(&mut self, code: &str) -> Judged {
        self.spend(code.len())?;
        self.kills(code)?;
        for literal in literals(code) {
            if literal.contains(['/', '.', '_']) && !literal.contains(char::is_whitespace) {
                self.path(literal)?;
            }
        }
        if !STARTS.iter().any(|word| code.contains(word)) {
            return Ok(());
        }
        self.denied_code(code)?;
        for literal in literals(code) {
            let first = literal.split_whitespace().next().map(program).unwrap_or_default();
            if first == "kill"
                || first == "git"
                || super::wrappers::is_wrapper(first)
                || super::wrappers::SHELLS.contains(&first)
            {
                match self.source(literal, &Stdin::Plain) {
                    Err(denial) if denial.rule == RuleId::Built(denial::UNREADABLE) => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }

    /// Words that a rule denies, in code that can start a process.
    pub(super) fn denied_code(&mut self, code: &str) -> Judged {
        let tokens: Vec<&str> = code
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '*')))
            .filter(|word| !word.is_empty())
            .collect();
        self.spend(tokens.len())?;
        if let Some(word) = tokens.iter().find(|token| {
            host::BY_NAME.contains(token) || host::WINDOWS.contains(&token.to_ascii_lowercase().as_str())
        }) {
            let reason = format!(
                "this code can start `{word}`, which ends processes by their name, the host's too; {}",
                denial::BY_ID
            );
            return Err(built(KILL_BY_NAME, &self.part, reason));
        }
        for rule in &self.rules {
            let near = tokens.iter().enumerate().filter(|(_, token)| rule.is_about(token)).any(|(at, _)| {
                let window = tokens.get(at + 1..).unwrap_or_default();
                let window = window.get(..window.len().min(12)).unwrap_or_default();
                let fits = |word: &str, token: &str| match word.contains('*') {
                    true => super::glob::matches(word, token),
                    false => word == token,
                };
                self.budget.spend(window.len() * 4).is_err()
                    || rule.words().all(|word| window.iter().any(|token| fits(word, token)))
            });
            if near {
                return Err(denial::by_rule(rule.rule, &self.part));
            }
        }
        Ok(())
    }

    /// Calls that signal a process: the target must be a number in the code, or a child that the code started.
    fn kills(&mut self, code: &str) -> Judged {
        let found = [
            "os.kill",
            "process.kill",
            "Deno.kill",
            "Process.kill",
            "posix_kill",
            "killpg",
            "kill(",
            "kill ",
        ];
        for word in found {
            for (at, _) in code.match_indices(word) {
                let before = code.get(..at).and_then(|before| before.chars().last());
                if word.starts_with("kill")
                    && before
                        .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '"' | '\''))
                {
                    continue;
                }
                let rest = code.get(at + word.len()..).unwrap_or_default();
                let wide = rest.starts_with("pg") || word == "killpg";
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start();
                if word == "kill "
                    && !code.contains("perl")
                    && !rest.starts_with(|c: char| {
                        c.is_ascii_digit() || matches!(c, '-' | '$' | '\'' | '"' | '@')
                    })
                {
                    continue;
                }
                if word != "kill " && !rest.starts_with('(') && word != "kill(" && !rest.starts_with('.') {
                    continue;
                }
                let list = rest.trim_start_matches('(');
                let end = closing(list);
                // Where the signal comes first the targets follow it.
                let after = usize::from(matches!(word, "Process.kill" | "kill(" | "kill "));
                self.kill_call(list.get(..end).unwrap_or(list), after, wide, code)?;
            }
        }
        Ok(())
    }

    fn kill_call(&mut self, list: &str, after: usize, wide: bool, code: &str) -> Judged {
        let mut own = true;
        for (at, piece) in list.split(',').enumerate() {
            let piece = piece.trim().trim_matches(['"', '\'', '(', ')']);
            let number = edit::number(&piece.replace('_', ""));
            if let Some(number) = number
                && self.context.host.is_some_and(|host| u64::from(host) == number.unsigned_abs())
            {
                let reason = format!("{number} is Worca itself, which runs you; {}", denial::BY_ID);
                return Err(built(HOST_ID, &self.part, reason));
            }
            let target = if after == 0 { at == 0 } else { at >= after };
            let child = piece.ends_with(".pid")
                || piece.ends_with("getpid(")
                || matches!(piece, "$$" | "Process.pid");
            own &= !target || child || number.is_some_and(|number| number > 0);
        }
        let searches = ["process_iter", "psutil", "pgrep", "/proc", "pidof", "ps aux", "ps -"]
            .iter()
            .any(|word| code.contains(word));
        if own && !wide && !searches {
            return Ok(());
        }
        let reason = format!("this code signals a process whose id does not stand in it; {}", denial::BY_ID);
        Err(built(KILL_TARGET, &self.part, reason))
    }
}

/// Where the parenthesis that is open at the start closes.
fn closing(text: &str) -> usize {
    let mut open = 0_i32;
    for (at, character) in text.char_indices() {
        match character {
            '(' => open += 1,
            ')' if open == 0 => return at,
            ')' => open -= 1,
            ';' | '\n' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The texts between quotes in a piece of code.
pub(super) fn literals(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open: Option<(char, usize)> = None;
    let mut escaped = false;
    for (at, character) in code.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (character, open) {
            ('\\', _) => escaped = true,
            ('"' | '\'' | '`', None) => open = Some((character, at + 1)),
            (close, Some((quote, from))) if close == quote => {
                found.extend(code.get(from..at));
                open = None;
            }
            ('\n', Some((quote, _))) if quote != '`' => open = None,
            _ => {}
        }
    }
    found
}
