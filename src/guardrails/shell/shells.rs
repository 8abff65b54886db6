//! Shells in the line, and the shell's own words that run text: `sh -c`, `eval`, `source`, `trap`, `alias` …

use super::super::Verdict;
use super::command::Call;
use super::denial::{Judged, UNDECIDED, built};
use super::expand::Arg;
use super::judge::{Judge, Stdin};
use super::values::UNKNOWN;
use super::{Shell, judge_at};

/// Options of a shell that take a value of their own.
const SHELL_VALUES: [&str; 6] = ["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

const WRITE_OUT: &str =
    "write the commands themselves into the line, or into a file of the worktree and run that file";

/// A shell of POSIX kind: `-c`, a file, or what it reads.
pub(super) fn shell(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let mut args = call.args;
    let (mut script, mut reads) = (false, false);
    while let Some((arg, rest)) = args.split_first() {
        let text = arg.text.as_str();
        if text == "-" || text == "--" {
            args = rest;
            break;
        }
        if !text.starts_with(['-', '+']) {
            break;
        }
        if matches!(text, "--rcfile" | "--init-file") {
            return Err(built(
                UNDECIDED,
                &judge.part,
                format!("`{text}` makes a shell run a file before its command; leave it out"),
            ));
        }
        if matches!(text, "--version" | "--help") {
            return Ok(());
        }
        let value = SHELL_VALUES.contains(&text)
            || (!text.starts_with("--") && text.len() > 2 && text.ends_with('o'));
        if !text.starts_with("--") || text == "--command" {
            script |= text.starts_with('-')
                && (text.contains('c') || text == "--command")
                && !SHELL_VALUES.contains(&text);
            reads |= text.contains('s');
        }
        if let Some(glued) = text.strip_prefix("--command=") {
            let glued = Arg::new(glued);
            return run_text(judge, &[&glued], rest, call);
        }
        args = rest.get(usize::from(value)..).unwrap_or_default();
    }
    if script {
        let Some((text, rest)) = args.split_first() else { return Ok(()) };
        return run_text(judge, &[text], rest, call);
    }
    match args.first() {
        Some(file) if !reads => {
            let text = file.text.as_str();
            if text.starts_with("/dev/fd/") || text.starts_with("/proc/self/fd") || text == "/dev/stdin" {
                return fed(
                    judge,
                    call,
                    text != "/dev/fd/0" && text != "/dev/stdin" && text != "/proc/self/fd/0",
                );
            }
            judge.path(text)?;
            // A script that hands its arguments on.
            judge.suffixes(args.get(1..).unwrap_or_default(), call.notes, call.stdin)
        }
        _ => fed(judge, call, false),
    }
}

/// A shell that runs what it reads.
fn fed(judge: &mut Judge<'_>, call: &Call<'_>, always: bool) -> Judged {
    match call.stdin {
        Stdin::Plain if !always && !judge.redirected => Ok(()),
        Stdin::Text(texts) if !always => {
            for (text, notes) in texts {
                if notes.made || text.contains(UNKNOWN) && text.trim_matches(UNKNOWN).trim().is_empty() {
                    return Err(opaque(judge, call.name));
                }
                judge.deeper(|judge| judge.source(text, &Stdin::Plain))?;
            }
            Ok(())
        }
        _ => Err(opaque(judge, call.name)),
    }
}

fn opaque(judge: &Judge<'_>, name: &str) -> Box<super::super::Denial> {
    let reason = format!(
        "`{name}` would run text that another command makes or fetches, so it cannot be known what it runs; {WRITE_OUT}"
    );
    built(UNDECIDED, &judge.part, reason)
}

/// Judges a text that a shell runs, with its `$0`, `$1` ….
fn run_text(judge: &mut Judge<'_>, words: &[&Arg], positional: &[Arg], call: &Call<'_>) -> Judged {
    let text = words.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ");
    if text.contains(UNKNOWN) {
        if words.iter().any(|arg| arg.made) {
            return Err(opaque(judge, call.name));
        }
        let args: Vec<Arg> = words.iter().map(|arg| (*arg).clone()).collect();
        let part = judge.part.clone();
        judge.undecided(&args, call.notes, &part, "the text that a shell is to run is made at run time")?;
    }
    let before = judge.values.positional.take();
    if !positional.is_empty() {
        judge.values.positional = Some(positional.iter().map(|arg| arg.text.clone()).collect());
    }
    let result = judge.deeper(|judge| judge.source(&text, call.stdin));
    judge.values.positional = before;
    result
}

/// A shell of Windows: its command line is judged as one of its own.
pub(super) fn windows(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let is_cmd = call.name.eq_ignore_ascii_case("cmd");
    let join = |args: &[Arg]| args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ");
    for (at, arg) in call.args.iter().enumerate() {
        let text = arg.text.to_ascii_lowercase();
        let rest = call.args.get(at + 1..).unwrap_or_default();
        let line = if is_cmd {
            let switch = text.trim_start_matches('/');
            if !text.starts_with('/')
                || !(switch.starts_with('c') || switch.starts_with('k') || switch.starts_with('r'))
            {
                continue;
            }
            let glued = arg.text.trim_start_matches('/').chars().skip(1).collect::<String>();
            format!("{glued} {}", join(rest))
        } else if text == "-" {
            return fed(judge, call, false);
        } else if text.starts_with('-') || text.starts_with('/') {
            let switch = text.trim_start_matches(['-', '/']);
            if switch.starts_with('e') && "encodedcommand".starts_with(switch) || switch == "ec" {
                return Err(opaque(judge, call.name));
            }
            if !(switch.starts_with('c')
                && ("command".starts_with(switch) || "commandwithargs".starts_with(switch)))
            {
                if switch.starts_with('f') && "file".starts_with(switch) {
                    return judge.suffixes(rest, call.notes, call.stdin);
                }
                continue;
            }
            join(rest)
        } else {
            if at > 0
                && call
                    .args
                    .get(at - 1)
                    .is_some_and(|before| before.text.starts_with('-') && valued(&before.text))
            {
                continue;
            }
            join(call.args.get(at..).unwrap_or_default())
        };
        if line.contains(UNKNOWN) {
            let part = judge.part.clone();
            judge.undecided(
                &[Arg::new(line.clone())],
                call.notes,
                &part,
                "the text that a shell is to run is made at run time",
            )?;
        }
        let shell = if is_cmd { Shell::Cmd } else { Shell::PowerShell };
        return match judge_at(shell, line.trim(), judge.context, judge.depth + 1) {
            Verdict::Allow => Ok(()),
            Verdict::Deny(denial) => Err(Box::new(denial)),
        };
    }
    fed(judge, call, false)
}

/// Options of PowerShell with a value.
fn valued(option: &str) -> bool {
    let option = option.trim_start_matches('-').to_ascii_lowercase();
    [
        "executionpolicy",
        "ep",
        "ex",
        "exec",
        "version",
        "windowstyle",
        "w",
        "workingdirectory",
        "wd",
        "outputformat",
        "inputformat",
        "configurationname",
        "psconsolefile",
    ]
    .contains(&option.as_str())
}

impl Judge<'_> {
    /// Judges the shell's own words. `true`: it was one, and nothing is left to judge.
    pub(super) fn shell_word(&mut self, call: &Call<'_>) -> Judged<bool> {
        let args = call.args;
        let first = args.first().map(|arg| arg.text.as_str()).unwrap_or_default();
        match call.name {
            "eval" => {
                let words: Vec<&Arg> = args.iter().skip(usize::from(first == "--")).collect();
                run_text(self, &words, &[], call)?;
            }
            "source" | "." => {
                self.values.any = true;
                let file =
                    args.iter().find(|arg| arg.text != "--").map(|arg| arg.text.clone()).unwrap_or_default();
                if file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd") || file == "/dev/stdin" {
                    let own = matches!(file.as_str(), "/dev/fd/0" | "/dev/stdin" | "/proc/self/fd/0");
                    fed(self, call, !own)?;
                }
                self.path(&file)?;
            }
            "trap" => {
                if let Some(action) = args.iter().find(|arg| !arg.text.starts_with('-'))
                    && args.len() > 1
                {
                    run_text(self, &[action], &[], call)?;
                }
            }
            "alias" => {
                for arg in args {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        self.alias(name, value)?;
                    }
                }
            }
            "hash" => {
                if let Some(at) = args.iter().position(|arg| arg.text == "-p")
                    && let (Some(path), Some(name)) = (args.get(at + 1), args.get(at + 2))
                {
                    self.values.aliases.entry(name.text.clone()).or_default().push(path.text.clone());
                }
            }
            "complete" | "compgen" | "mapfile" | "readarray" => {
                for pair in args.windows(2) {
                    if let [option, value] = pair
                        && matches!(option.text.as_str(), "-C" | "-F")
                    {
                        run_text(self, &[value], &[], call)?;
                    }
                }
                for arg in args.iter().filter(|arg| arg.text.contains(['$', '`'])) {
                    self.prompt(&arg.text)?;
                }
                self.named(args)?;
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "read" | "let"
            | "getopts" => {
                self.named(args)?;
            }
            "printf" if first == "-v" => {
                let name = args.get(1).map(|arg| arg.text.clone()).unwrap_or_default();
                self.subscripts(&name)?;
                self.values.poison(&name);
            }
            "set" => self.values.positional = None,
            "test" | "[" => {
                for arg in args {
                    self.subscripts(&arg.text)?;
                    self.looked_at(&arg.text)?;
                }
            }
            "cd" | "pushd" | "popd" | "true" | "false" | ":" | "wait" | "shift" | "return" | "exit"
            | "break" | "continue" | "shopt" | "umask" | "ulimit" | "jobs" | "bg" | "fg" | "disown"
            | "dirs" | "times" | "type" | "unalias" | "help" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A name that stands for a text of commands.
    pub(super) fn alias(&mut self, name: &str, text: &str) -> Judged {
        let all = self.values.aliases.entry(name.to_owned()).or_default();
        if !all.iter().any(|known| known == text) && all.len() < 8 {
            all.push(text.to_owned());
        }
        match self.source(text, &Stdin::Plain) {
            // Half a command (`alias g='git '`) is judged where it is used.
            Err(denial) if denial.rule == super::super::RuleId::Built(super::denial::UNREADABLE) => Ok(()),
            other => other,
        }
    }

    /// Words that set names: with a value, or to what is read.
    fn named(&mut self, args: &[Arg]) -> Judged {
        for arg in args {
            self.subscripts(&arg.text)?;
            let (name, value) = match arg.text.split_once('=') {
                Some((name, value)) => (name.trim_end_matches('+'), Some(value)),
                None => (arg.text.as_str(), None),
            };
            if name.starts_with('-') {
                // A name that stands for another name.
                self.values.any |= name.contains('n') && !name.starts_with("--");
                continue;
            }
            if name.is_empty()
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
            {
                continue;
            }
            match value {
                Some(value) => {
                    if value.contains("$(") || value.contains('`') {
                        // `declare -a 'a=( $(…) )'` expands its text once more.
                        self.prompt(value)?;
                    }
                    self.values.set(name, value.to_owned());
                    self.set_value(name, value)?;
                }
                None => self.values.poison(name),
            }
        }
        Ok(())
    }
}
