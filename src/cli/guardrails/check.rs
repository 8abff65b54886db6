//! `worca guardrails check`: what the hook would say to one call, judged by the hook's own code.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use console::Style;
use serde_json::{Value, json};

use crate::cli::text::{Output, one_line, plain, print, print_json};
use crate::failure::{Exit, Explain, Failure};
use crate::guardrails::shell::{LineContext, Shell, judge_line};
use crate::guardrails::{Denial, OwnSets, Policy, RuleId, SetName, Verdict, judge};
use crate::home::Home;

/// The most of a line on standard input, in bytes: what the hook itself reads of a call.
const MOST: u64 = 32 * 1024 * 1024;

/// Say whether a guardrail set lets a command line or a tool call through
///
/// Nothing is run. The line is judged as an agent's would be, in the folder where this command runs. One word after
/// `--` is a whole line of a shell; several are the words of one command. Exit codes: 0 allowed, 1 denied, 2 wrong
/// usage.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  worca guardrails check --set strict -- 'git fetch && make'\n  worca guardrails check --tool Read --path .env\n  worca guardrails check --shell powershell -- 'gps node | spps'"
)]
pub struct Args {
    /// The set
    #[arg(long, value_name = "SET", default_value = "normal")]
    pub set: SetName,
    /// A tool of the agent program, in place of a command line
    #[arg(long, value_name = "NAME", conflicts_with_all = ["shell", "stdin", "line"])]
    pub tool: Option<String>,
    /// The path that the tool is given
    #[arg(long, value_name = "PATH", requires = "tool")]
    pub path: Option<String>,
    /// The address that the tool is given
    #[arg(long, value_name = "URL", requires = "tool", conflicts_with = "path")]
    pub url: Option<String>,
    /// Whose syntax the line is in
    #[arg(long, value_enum, value_name = "SHELL", default_value = "bash")]
    pub shell: ShellName,
    /// The process id of core, which no line may signal
    #[arg(long, value_name = "PID")]
    pub host_pid: Option<u32>,
    /// Read the line from standard input
    #[arg(long, conflicts_with = "line")]
    pub stdin: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The command line
    #[arg(value_name = "LINE", last = true, required_unless_present_any = ["tool", "stdin"])]
    pub line: Vec<String>,
}

/// A shell by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ShellName {
    /// Bash and POSIX sh.
    Bash,
    /// Windows PowerShell and PowerShell 7.
    Powershell,
    /// The command prompt of Windows.
    Cmd,
}

/// The call cannot be asked about.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The tool needs one.
    #[error("`{0}` names a path, and none was given")]
    NoPath(String),
    /// The tool needs one.
    #[error("`WebFetch` names an address, and none was given")]
    NoUrl,
    /// Words of a command are joined by Bash's rules alone.
    #[error("with `--shell powershell` or `cmd` the line must be one word")]
    Words,
    /// Standard input is not to be had.
    #[error("the line on standard input cannot be read")]
    Input(#[source] std::io::Error),
    /// It has no end.
    #[error("the line on standard input is larger than {} MiB", MOST / (1024 * 1024))]
    Large,
    /// It is no text.
    #[error("the line on standard input is not UTF-8")]
    Utf8,
    /// The folder is gone.
    #[error("the folder where this command runs cannot be named")]
    Folder(#[source] std::io::Error),
}

impl Explain for CheckError {
    fn code(&self) -> &'static str {
        "check"
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoPath(_) => Some("add `--path PATH`".into()),
            Self::NoUrl => Some("add `--url URL`".into()),
            Self::Words => Some("put the line in quotes".into()),
            Self::Large => Some("an agent's call of that size is denied unread".into()),
            Self::Utf8 => Some("an agent's call is always text".into()),
            Self::Input(_) | Self::Folder(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// What came of it.
#[derive(Debug, serde::Serialize)]
pub struct Answer {
    /// `allow` or `deny`.
    pub verdict: &'static str,
    /// The set.
    pub set: SetName,
    /// The rule that denies; `None` for a call that the hook does not understand, which is denied as well.
    pub rule: Option<String>,
    /// The part of the line that was judged.
    pub part: Option<String>,
    /// Why, and what to do instead.
    pub reason: Option<String>,
}

/// Judges.
///
/// # Errors
/// When there is no such set, or the call is not whole.
pub fn run(args: Args, sets: &OwnSets, home: &Home) -> Result<Exit, Failure> {
    let set = sets.library()?.resolve(&args.set)?;
    let user = std::env::home_dir();
    let policy = set.policy_without_run(home.path(), user.clone(), args.host_pid);
    let folder = std::env::current_dir().map_err(CheckError::Folder)?;
    let stage = Stage { policy: &policy, folder: &folder, home: user.as_deref() };
    let verdict = match &args.tool {
        Some(tool) => stage.call(tool, &tool_input(tool, args.path, args.url)?),
        None => stage.line(args.shell, &line(args.stdin, args.shell, &args.line)?),
    };
    let answer = match verdict {
        Ok(Verdict::Allow) => {
            Answer { verdict: "allow", set: args.set, rule: None, part: None, reason: None }
        }
        Ok(Verdict::Deny(denial)) => Answer {
            verdict: "deny",
            set: args.set,
            rule: Some(denial.rule.to_string()),
            part: denial.part,
            reason: Some(denial.reason),
        },
        Err(why) => Answer {
            verdict: "deny",
            set: args.set,
            rule: None,
            part: None,
            reason: Some(format!("this call could not be judged, so it is denied: {why}")),
        },
    };
    if args.json {
        print_json(&answer)?;
    } else {
        print(&text(&answer, Output::standard()))?;
    }
    Ok(if answer.verdict == "allow" { Exit::Done } else { Exit::Failed })
}

/// The answer as lines.
pub fn text(answer: &Answer, output: Output) -> String {
    let style = if answer.verdict == "allow" { Style::new().green() } else { Style::new().red() };
    let mut text = format!("{}\n", output.paint(style, answer.verdict));
    for (word, what) in [("rule", &answer.rule), ("part", &answer.part), ("reason", &answer.reason)] {
        if let Some(what) = what {
            let what = if word == "reason" { plain(what).trim().to_owned() } else { one_line(what) };
            let _ = writeln!(text, "{:<8}{what}", format!("{word}:"));
        }
    }
    text
}

struct Stage<'a> {
    policy: &'a Policy,
    folder: &'a Path,
    home: Option<&'a Path>,
}

impl Stage<'_> {
    fn call(&self, tool: &str, input: &Value) -> Result<Verdict, String> {
        let call = json!({ "tool_name": tool, "tool_input": input, "cwd": self.folder });
        judge(self.policy, &call, self.folder, self.home)
    }

    fn line(&self, shell: ShellName, line: &str) -> Result<Verdict, String> {
        match shell {
            ShellName::Bash => self.call("Bash", &json!({ "command": line })),
            ShellName::Powershell => self.call("PowerShell", &json!({ "command": line })),
            // No tool of the agent program gives a line to it by itself.
            ShellName::Cmd => Ok(judge_line(
                Shell::Cmd,
                line,
                &LineContext {
                    rules: &self.policy.rules,
                    deny_undecided: self.policy.deny_undecided,
                    host: self.policy.host,
                    path: &|path| self.path(path),
                },
            )),
        }
    }

    /// The verdict on a path that a line names, as on one that a file tool names.
    fn path(&self, path: &str) -> Option<Denial> {
        match self.call("Read", &json!({ "file_path": path })) {
            Ok(Verdict::Allow) => None,
            Ok(Verdict::Deny(denial)) => Some(denial),
            Err(reason) => Some(Denial { rule: RuleId::Built("worca.own-state"), part: None, reason }),
        }
    }
}

fn tool_input(tool: &str, path: Option<String>, url: Option<String>) -> Result<Value, CheckError> {
    let field = match tool {
        "NotebookEdit" => "notebook_path",
        "Read" | "Edit" | "MultiEdit" | "Write" => "file_path",
        _ => "path",
    };
    if path.is_none() && field != "path" {
        return Err(CheckError::NoPath(tool.to_owned()));
    }
    if tool == "WebFetch" && url.is_none() {
        return Err(CheckError::NoUrl);
    }
    let mut input = serde_json::Map::new();
    input.extend(path.map(|path| (field.to_owned(), path.into())));
    input.extend(url.map(|url| ("url".to_owned(), url.into())));
    Ok(input.into())
}

fn line(stdin: bool, shell: ShellName, words: &[String]) -> Result<String, CheckError> {
    if stdin {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes).map_err(CheckError::Input)?;
        if bytes.len() as u64 > MOST {
            return Err(CheckError::Large);
        }
        let mut line = String::from_utf8(bytes).map_err(|_| CheckError::Utf8)?;
        // What `echo` and an editor put behind it.
        if line.ends_with('\n') {
            line.pop();
        }
        return Ok(line);
    }
    match words {
        [line] => Ok(line.clone()),
        _ if shell != ShellName::Bash => Err(CheckError::Words),
        words => Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

/// A word for a POSIX shell, whatever stands in it.
fn quoted(word: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(fits) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
