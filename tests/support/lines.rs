//! The lines of `tests/data`: harmless ones, with the rule by which Strict denies them all the same, and hostile ones,
//! with the rule that must be named.

use std::path::{Path, PathBuf};

use worca::guardrails::shell::{LineContext, Shell, judge_line};
use worca::guardrails::{Denial, GuardrailSet, Library, PathRules, Policy, RuleId, SetName, Verdict, judge};

/// The process id of core in these lines.
pub const HOST: u32 = 3_999_999;
/// The tiers, the weakest first.
pub const TIERS: [&str; 3] = ["permissive", "normal", "strict"];

/// A line and what is said about it.
#[derive(Debug, Clone)]
pub struct Line {
    pub text: String,
    pub shell: Shell,
    /// For a hostile line: the rule. For a harmless one: by which Strict denies it.
    pub rule: Option<String>,
    /// The place of the first tier in [`TIERS`] that denies it.
    pub from: usize,
    /// Where it stands in its file.
    pub at: usize,
}

/// The lines of a file.
pub fn read(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut shell = Shell::Bash;
    // What a directive says holds for the next line, or for all that follow.
    let mut next: Option<String> = None;
    let mut all: Option<(String, usize)> = None;
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (at, line) in text.lines().enumerate() {
        let at = at + 1;
        let whole = match (&mut block, line) {
            (Some(_), "%%") => block.take().map(|(at, lines)| (at, lines.join("\n"))),
            (Some((_, lines)), line) if line.starts_with("#! strict ") && lines.is_empty() => {
                next = line.strip_prefix("#! strict ").map(str::to_owned);
                None
            }
            (Some((_, lines)), line) => {
                lines.push(line);
                None
            }
            (None, "%%") => {
                block = Some((at, Vec::new()));
                None
            }
            (None, "" | "#! cannot try") => None,
            (None, line) => match line.strip_prefix("#! ").and_then(|rest| rest.split_once(' ')) {
                Some(("strict", rule)) => {
                    next = Some(rule.to_owned());
                    None
                }
                Some(("deny", rule)) => {
                    let (rule, tier) = rule.split_once(" from ").unwrap_or((rule, ""));
                    let tier = if tier.is_empty() { rule.split('.').next().unwrap() } else { tier };
                    all = Some((rule.to_owned(), TIERS.iter().position(|name| *name == tier).unwrap_or(0)));
                    None
                }
                Some(("shell", name)) => {
                    shell = match name {
                        "bash" => Shell::Bash,
                        "powershell" => Shell::PowerShell,
                        "cmd" => Shell::Cmd,
                        other => panic!("line {at}: no shell `{other}`"),
                    };
                    None
                }
                _ if line.starts_with('#') => None,
                _ => Some((at, line.to_owned())),
            },
        };
        if let Some((at, text)) = whole {
            let (rule, from) = match (next.take(), &all) {
                (Some(rule), _) => (Some(rule), 2),
                (None, Some((rule, from))) => (Some(rule.clone()), *from),
                (None, None) => (None, 0),
            };
            lines.push(Line { text: text.replace("HOSTPID", &HOST.to_string()), shell, rule, from, at });
        }
    }
    assert!(block.is_none(), "a block does not end");
    lines
}

pub fn harmless() -> Vec<Line> {
    read(include_str!("../data/harmless.txt"))
}

pub fn hostile() -> Vec<Line> {
    read(include_str!("../data/hostile.txt"))
}

/// A tier's set.
pub fn tier(name: &str) -> GuardrailSet {
    Library::embedded().resolve(&SetName::parse(name).unwrap()).unwrap()
}

/// The verdict on a line under a set, as the hook comes to it in `/project`.
pub fn verdict(set: &GuardrailSet, line: &Line) -> Option<Denial> {
    let home = Path::new("/home/someone");
    let policy = Policy {
        set: set.name.clone(),
        rules: set.rules.clone(),
        deny_undecided: set.deny_undecided,
        host: Some(HOST),
        homes: vec![home.into()],
        ..Policy::bare()
    };
    let verdict = match line.shell {
        Shell::Bash | Shell::PowerShell => {
            let tool = if line.shell == Shell::Bash { "Bash" } else { "PowerShell" };
            let call = serde_json::json!({ "tool_name": tool, "tool_input": { "command": line.text } });
            judge(&policy, &call, Path::new("/project"), Some(home)).unwrap()
        }
        // No tool of the agent program's has this shell: lines of it stand in lines of the others.
        Shell::Cmd => {
            let rules = PathRules::new(&set.rules, &policy.homes);
            let path = |word: &str| {
                let place = plain(&Path::new("/project").join(word.replacen('~', "/home/someone", 1)));
                let rule = rules.denies(&place)?;
                Some(Denial { rule: RuleId::Set(rule.clone()), part: None, reason: "closed".into() })
            };
            let context = LineContext {
                rules: &set.rules,
                deny_undecided: set.deny_undecided,
                host: Some(HOST),
                path: &path,
            };
            judge_line(Shell::Cmd, &line.text, &context)
        }
    };
    match verdict {
        Verdict::Allow => None,
        Verdict::Deny(denial) => Some(denial),
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
