//! The judge of command lines: which commands a shell would run for a line, and which rule stands against one.
//!
//! Never: run anything, read a file, wait. What it cannot read is denied, with the column.

mod brace;
mod cmd;
mod command;
mod denial;
mod edit;
mod expand;
mod git;
mod glob;
mod host;
mod interpreters;
mod judge;
mod limits;
mod matching;
mod parser;
mod paths;
mod powershell;
mod shells;
mod syntax;
#[cfg(test)]
mod tests;
mod texts;
mod values;
mod windows;
mod wrappers;

use super::{Denial, Rule, RuleId, Verdict};
use limits::{Budget, LINE};

/// Longest line that is judged, in bytes.
pub const MAX_LINE: usize = 64 * 1024;
/// Lines within lines (a shell in a shell) that are followed.
const MAX_DEPTH: u32 = 24;

/// Whose syntax a line is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// bash and POSIX sh.
    Bash,
    /// Windows PowerShell and PowerShell 7.
    PowerShell,
    /// The command prompt of Windows.
    Cmd,
}

/// What a line is judged against.
pub struct LineContext<'a> {
    /// The rules of the set; those of kind `Commands` count here.
    pub rules: &'a [Rule],
    /// Whether a line is denied when it cannot be known what it runs (a name built at run time, a script from a
    /// pipe). Otherwise it is denied only when a denied word stands in it.
    pub deny_undecided: bool,
    /// The process id of core, which no line may signal.
    pub host: Option<u32>,
    /// The verdict on a path that a command of the line names (an argument, a redirection), as it is typed.
    pub path: &'a dyn Fn(&str) -> Option<Denial>,
}

/// What a line and all that stands in it are judged against, and the steps that are left for all of it together.
struct Scope<'a> {
    rules: &'a [Rule],
    deny_undecided: bool,
    host: Option<u32>,
    path: &'a dyn Fn(&str) -> Option<Denial>,
    budget: Budget,
}

/// The verdict on one line.
pub fn judge_line(shell: Shell, line: &str, context: &LineContext<'_>) -> Verdict {
    let scope = Scope {
        rules: context.rules,
        deny_undecided: context.deny_undecided,
        host: context.host,
        path: context.path,
        budget: Budget::new(),
    };
    judge_at(shell, line, &scope, 0)
}

/// The verdict on a line that stands in others.
fn judge_at(shell: Shell, line: &str, scope: &Scope<'_>, depth: u32) -> Verdict {
    let limit = |rule, reason: &str| {
        let part: String = line.chars().take(40).collect();
        Verdict::Deny(Denial { rule: RuleId::Built(rule), part: Some(part), reason: reason.into() })
    };
    if line.len() > MAX_LINE {
        return limit(
            "shell.too-long",
            "a line of more than 64 KiB is not judged; put it into a script file",
        );
    }
    if depth > MAX_DEPTH {
        return limit("shell.too-deep", "nested deeper than can be judged; write it as several lines");
    }
    if scope.budget.spend(LINE + line.len() + scope.rules.len()).is_err() {
        return limit("shell.too-long", "more than can be judged in one line; put it into a script file");
    }
    match shell {
        Shell::Bash => judge::line(line, scope, depth),
        Shell::PowerShell => powershell::judge(line, scope, depth),
        Shell::Cmd => cmd::judge(line, scope, depth),
    }
}
