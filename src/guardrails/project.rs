//! A repository's own deny rules, as rules of the pseudo set `project`. Of its settings files `permissions.deny` is
//! read and nothing else: no hook, no variable, no permission, no switch. So a repository can only tighten.

use serde_json::Value;

use super::{Rule, RuleKind, SetName};

/// Most rules that are taken from one repository.
const MOST: usize = 500;
/// Longest rule, in bytes.
const LONGEST: usize = 256;

/// What a repository denies its agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRules {
    /// Its rules. One that cannot be said as a rule of ours is kept as it stands, of kind `Tools`: the agent program
    /// holds it by itself, and nothing else does.
    pub rules: Vec<Rule>,
    /// What was not taken, or is held by the agent program alone; sentences.
    pub notes: Vec<String>,
}

/// Reads the deny rules out of settings files: `(name, text)`.
pub fn project_rules<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> ProjectRules {
    let mut all = ProjectRules::default();
    for (name, text) in files {
        let Ok(settings) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) else {
            all.notes.push(format!("`{name}` is not JSON, so none of its rules is known"));
            continue;
        };
        let deny = settings.get("permissions").and_then(|permissions| permissions.get("deny"));
        let lines = match deny {
            None | Some(Value::Null) => continue,
            Some(Value::Array(lines)) => lines,
            Some(_) => {
                all.notes.push(format!("`permissions.deny` in `{name}` is not a list"));
                continue;
            }
        };
        for line in lines {
            if all.rules.len() >= MOST {
                all.notes.push(format!("more than {MOST} deny rules: the rest of `{name}` is left out"));
                break;
            }
            match line.as_str().map(str::trim).filter(|line| fits(line)) {
                Some(line) => all.take(name, line),
                None => all.notes.push(format!("a deny rule in `{name}` is empty, too long or not text")),
            }
        }
    }
    all
}

fn fits(line: &str) -> bool {
    !line.is_empty() && line.len() <= LONGEST && !line.contains(char::is_control)
}

impl ProjectRules {
    fn take(&mut self, file: &str, line: &str) {
        let (kind, pattern) = match meant(line) {
            Some(meant) => meant,
            None => {
                self.notes.push(format!("`{line}` in `{file}` is held by the agent program alone"));
                (RuleKind::Tools, line.to_owned())
            }
        };
        let rule = Rule { set: SetName::of_the_project(), kind, pattern };
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }
}

/// What a line of `permissions.deny` means as a rule; `None` when it cannot be said as one.
fn meant(line: &str) -> Option<(RuleKind, String)> {
    let Some((tool, rest)) = line.split_once('(') else {
        return is_tool(line).then(|| (RuleKind::Tools, line.to_owned()));
    };
    let inner = rest.strip_suffix(')')?.trim();
    match tool {
        _ if matches!(inner, "" | "*" | ":*") && is_tool(tool) => Some((RuleKind::Tools, tool.to_owned())),
        "Bash" => Some((RuleKind::Commands, command(inner)?)),
        "Read" => Some((RuleKind::Paths, path(inner)?)),
        // Not to be edited is not the same as not to be read: kept as they stand, and judged so.
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => {
            path(inner).map(|_| (RuleKind::Tools, format!("Edit({inner})")))
        }
        "WebFetch" if inner.starts_with("domain:") => Some((RuleKind::Tools, line.to_owned())),
        _ => None,
    }
}

fn is_tool(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-*".contains(&byte);
    // A bare `*` would deny every tool; the agent program knows no such rule for a repository to mean.
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && name.bytes().all(letter)
}

/// `git push:*`, `git push *` and `git push` as the words that a command rule has. A rule is a prefix, so one that
/// the repository meant for a bare command denies it with arguments too.
fn command(inner: &str) -> Option<String> {
    let inner = inner.strip_suffix(":*").unwrap_or(inner);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.:/@=+,%~*".contains(&byte);
    if inner.contains(":*") || !inner.bytes().all(plain) {
        return None;
    }
    let words: Vec<&str> = inner.split_whitespace().filter(|word| *word != "*").collect();
    let first = words.first()?;
    let named = !first.starts_with('-') && !first.contains(['*', '=', '/', ':', '~']);
    named.then(|| words.join(" "))
}

/// A path of the agent program's form in ours: `//x` is absolute, `~/x` is below a home, all else (`/x` from the
/// repository, `./x`, `x`) fits at any depth, so that it holds in the checkout as well.
pub(super) fn path(inner: &str) -> Option<String> {
    if inner.starts_with('!') {
        return None;
    }
    if let Some(absolute) = inner.strip_prefix("//") {
        return Some(format!("/{}", absolute.trim_start_matches('/')));
    }
    if inner == "~" || inner.starts_with("~/") {
        return Some(inner.to_owned());
    }
    let rest = inner.trim_start_matches("./").trim_start_matches('/');
    let rest = rest.strip_prefix("**/").unwrap_or(rest);
    (!rest.is_empty() && rest != "." && rest != "..").then(|| format!("**/{rest}"))
}
