//! The verdict on one tool call: which tool, which command line, which paths, which addresses.
//!
//! Never: open a file (links are read, and whether a path is there, no more), or take a field that it does not understand for harmless.

use std::path::Path;

use serde_json::{Map, Value};

use super::places::Places;
use super::policy::Policy;
use super::shell::{LineContext, Shell, judge_line};
use super::{Denial, RuleId, Verdict, fields, tools};

/// Rules that hold in every set.
const ONE_WORKTREE: &str = "worca.one-worktree";
/// What could not be read in a path of a command line.
const UNREADABLE: &str = "shell.unreadable";

/// Tools that make or change a worktree of the user's repository, where no run's branch would hold the work.
const WORKTREES: [&str; 2] = ["EnterWorktree", "ExitWorktree"];
/// Tools that start a sub-agent, under their names of several versions.
const SUB_AGENTS: [&str; 2] = ["Agent", "Task"];
/// Fields that name one path, in whatever tool.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];
/// Tools that must name something in a field that we know, or are not understood.
const NAMING: [(&str, &str); 8] = [
    ("Read", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("Write", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("Bash", "command"),
    ("PowerShell", "command"),
    ("WebFetch", "url"),
];
/// Tools that change a file.
const EDITING: [&str; 4] = ["Edit", "MultiEdit", "Write", "NotebookEdit"];
/// Tools that look at everything below a folder.
const SEARCHING: [&str; 3] = ["Grep", "Glob", "LS"];
/// Most words that `{a,b}` in a search may stand for.
const MOST_ALTERNATIVES: usize = 64;

/// The verdict on one tool call in the form that Claude Code hands to its hooks. `home` is what `~` means in a path
/// that the agent types.
///
/// # Errors
/// A sentence when the call is not understood: it must not run.
pub fn judge(
    policy: &Policy,
    call: &Value,
    directory: &Path,
    home: Option<&Path>,
) -> Result<Verdict, String> {
    let tool = call.get("tool_name").and_then(Value::as_str).ok_or("it names no tool")?;
    let input = call.get("tool_input").and_then(Value::as_object).ok_or("it has no tool input")?;
    if let Some((_, field)) = NAMING.iter().find(|(name, _)| *name == tool)
        && !input.get(*field).is_some_and(Value::is_string)
    {
        return Err(format!("{tool} without `{field}`"));
    }
    let call = Call { policy, tool, input, places: Places::new(policy, directory, home) };
    let steps = [Call::worktree, Call::tool, Call::line, Call::paths, Call::search, Call::other, Call::fetch];
    for step in steps {
        if let Some(denial) = step(&call)? {
            return Ok(Verdict::Deny(denial));
        }
    }
    Ok(Verdict::Allow)
}

struct Call<'a> {
    policy: &'a Policy,
    tool: &'a str,
    input: &'a Map<String, Value>,
    places: Places<'a>,
}

type Step = Result<Option<Denial>, String>;

impl Call<'_> {
    fn worktree(&self) -> Step {
        let isolated = SUB_AGENTS.contains(&self.tool)
            && self.input.get("isolation").is_some_and(|value| !value.is_null());
        if !isolated && !WORKTREES.contains(&self.tool) {
            return Ok(None);
        }
        let instead = if isolated {
            "start the sub-agent without `isolation`"
        } else {
            "work in the folder you are in"
        };
        let reason = format!("a run has one worktree and one branch; {instead}");
        Ok(Some(Denial { rule: RuleId::Built(ONE_WORKTREE), part: None, reason }))
    }

    fn tool(&self) -> Step {
        let rule = self.policy.rules.iter().find(|rule| tools::denies_whole(rule, self.tool));
        Ok(rule.map(|rule| Denial {
            rule: RuleId::Set(rule.clone()),
            part: None,
            reason: format!(
                "the tool `{}` may not be used here; do without it, or say in your answer what a person has to do",
                self.tool
            ),
        }))
    }

    /// A command line, in whatever tool: `Bash` in the background too, `Monitor`, one of an MCP server.
    fn line(&self) -> Step {
        let line = match self.input.get("command") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(line)) => line.clone(),
            // A program and its arguments.
            Some(Value::Array(words)) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                let words =
                    words.ok_or_else(|| format!("{} with a `command` that is not text", self.tool))?;
                words
                    .iter()
                    .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Some(_) => return Err(format!("{} with a `command` that is not text", self.tool)),
        };
        let lower = self.tool.to_ascii_lowercase();
        let powershell = lower.contains("powershell") || lower.contains("pwsh");
        let shell = if powershell { Shell::PowerShell } else { Shell::Bash };
        let path = |word: &str| match self.places.word(word) {
            Ok(denial) => denial,
            Err(why) => {
                Some(Denial { rule: RuleId::Built(UNREADABLE), part: None, reason: format!("it has {why}") })
            }
        };
        let context = LineContext {
            rules: &self.policy.rules,
            deny_undecided: self.policy.deny_undecided,
            host: self.policy.host,
            path: &path,
        };
        Ok(match judge_line(shell, &line, &context) {
            Verdict::Allow => None,
            Verdict::Deny(denial) => Some(denial),
        })
    }

    fn paths(&self) -> Step {
        let searching = SEARCHING.contains(&self.tool);
        for field in PATHS {
            match self.input.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::String(path)) => {
                    if let Some(denial) = self.places.path(path, searching)? {
                        return Ok(Some(denial));
                    }
                    if EDITING.contains(&self.tool)
                        && let Some(denial) = self.places.edit(path)?
                    {
                        return Ok(Some(denial));
                    }
                }
                Some(_) => return Err(format!("{} with a `{field}` that is not text", self.tool)),
            }
        }
        Ok(None)
    }

    /// A search is judged by the folder that it looks in and by the names that it asks for. What lies below a folder
    /// and is denied is left out by the agent program itself, which has the same rules as plain denies.
    fn search(&self) -> Step {
        if !SEARCHING.contains(&self.tool) {
            return Ok(None);
        }
        let base = self.input.get("path").and_then(Value::as_str).unwrap_or(".");
        if let Some(denial) = self.places.path(base, true)? {
            return Ok(Some(denial));
        }
        let field = if self.tool == "Glob" { "pattern" } else { "glob" };
        let Some(pattern) = self.input.get(field).and_then(Value::as_str) else { return Ok(None) };
        // A pattern can lead elsewhere by itself; what stands before its first wildcard is a folder.
        let wild = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
        let (start, rest) = pattern.split_at_checked(wild).unwrap_or((pattern, ""));
        if rest.split(['/', ',', '{', '}']).any(|part| part == "..") {
            return Err("a pattern that goes up after a wildcard".into());
        }
        // Half a name before a wildcard says nothing yet: the folder before it does.
        let start =
            if rest.is_empty() { start } else { start.rsplit_once('/').map_or("", |(folder, _)| folder) };
        let start = if pattern.starts_with('/') && start.is_empty() { "/" } else { start };
        let folder = self.places.typed(base).join(start);
        if let Some(denial) = self.places.path(&folder.to_string_lossy(), !rest.is_empty())? {
            return Ok(Some(denial));
        }
        // Patterns that leave something out say nothing about what is asked for.
        let asked = pattern.split([' ', ',']).filter(|_| self.tool != "Glob");
        let asked: Vec<&str> = std::iter::once(pattern).chain(asked).collect();
        for one in asked.into_iter().filter(|one| !one.starts_with('!')) {
            for one in super::glob::alternatives(one, MOST_ALTERNATIVES) {
                let whole = self.places.typed(base).join(one.trim_start_matches("./"));
                if let Some(denial) = self.places.name(&whole, &one) {
                    return Ok(Some(denial));
                }
            }
        }
        Ok(None)
    }

    /// Tools that we do not know by name (of MCP servers, of later versions): each field that looks like a path is
    /// one.
    fn other(&self) -> Step {
        if tools::is_known(self.tool) {
            return Ok(None);
        }
        for path in fields::paths(self.input) {
            if let Some(denial) = self.places.path(&path, false)? {
                return Ok(Some(denial));
            }
        }
        Ok(None)
    }

    /// The host of an address: of `WebFetch`, and of tools that we do not know.
    fn fetch(&self) -> Step {
        let urls = match self.tool {
            "WebFetch" => {
                self.input.get("url").and_then(Value::as_str).map(str::to_owned).into_iter().collect()
            }
            tool if tools::is_known(tool) => Vec::new(),
            _ => fields::addresses(self.input),
        };
        for url in urls {
            if let Some(denial) = tools::address(&self.policy.rules, &url)? {
                return Ok(Some(denial));
            }
        }
        Ok(None)
    }
}
