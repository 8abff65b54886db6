//! Events as lines for people: a time, a word, a text. Agent text is shown as text, and no more of it than a
//! person reads.

use std::fmt::Write as _;

use console::Style;

use crate::cli::money;
use crate::cli::text::{Output, duration, one_line, plain};
use crate::clock::Millis;
use crate::events::{Event, RunStatus, StoredEvent, cut_to};
use crate::ids::PersonId;
use crate::server::wire::{RunAnswer, backup_diff};

/// How many bytes of a tool's answer are shown.
const TOOL_TEXT: usize = 200;
/// How many bytes of what the agent says are shown at once.
const SPOKEN_TEXT: usize = 4000;
/// Where the text of a line begins.
const INDENT: &str = "                    ";

/// Prints events of one run.
pub struct Progress {
    output: Output,
}

impl Progress {
    /// For this output.
    pub fn new(output: Output) -> Self {
        Self { output }
    }

    /// The first line of a run.
    pub fn head(&self, run: &RunAnswer) -> String {
        let id = self.output.paint(Style::new().bold(), &run.line.id);
        format!("run {id}: {}", one_line(&run.line.title))
    }

    /// The lines of an event, each with its line end; nothing for what a person need not see.
    pub fn lines(&self, stored: &StoredEvent) -> String {
        let (word, text) = match &stored.event {
            Event::Status { status, reason } => {
                let reason =
                    reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
                ("status", format!("{}{reason}", self.output.status(*status)))
            }
            Event::Worktree { branch, base } => {
                ("branch", format!("{} from {}", one_line(branch), short(&one_line(base))))
            }
            Event::AgentStarted { program, .. } => ("agent", one_line(program)),
            Event::AgentReady { model, .. } => ("model", one_line(model)),
            Event::AgentText { text } => ("says", plain(&cut_to(text.trim(), SPOKEN_TEXT))),
            Event::ToolUse { tool, summary, .. } => {
                ("tool", format!("{} {}", one_line(tool), cut_to(&one_line(summary), TOOL_TEXT)))
            }
            Event::ToolResult { is_error: true, text, .. } => ("failed", cut_to(&one_line(text), TOOL_TEXT)),
            Event::ToolResult { text, .. } => ("result", cut_to(&one_line(text), TOOL_TEXT)),
            Event::AgentRetry { text } => ("retry", one_line(text)),
            Event::AgentEnded { exit, stderr } => {
                let stderr =
                    stderr.as_deref().map(|text| format!("\n{}", plain(text.trim()))).unwrap_or_default();
                ("ended", format!("{}{stderr}", one_line(exit)))
            }
            Event::Committed { commit, files, insertions, deletions } => (
                "commit",
                format!("{} {}", short(&one_line(commit)), changes(*files, *insertions, *deletions)),
            ),
            Event::Note { text } => ("note", plain(text)),
            Event::Usage { rows, .. } => {
                ("used", rows.iter().map(money::used).collect::<Vec<_>>().join("\n"))
            }
            Event::BudgetWarning { budget } => ("budget", money::warning(budget)),
        };
        self.line(stored.at, word, &text)
    }

    fn line(&self, at: Millis, word: &str, text: &str) -> String {
        let time = self.output.paint(Style::new().dim(), &clock(at));
        let word = self.output.paint(style(word), &format!("{word:<8}"));
        let mut lines = text.lines();
        let mut all = format!("{time}  {word}  {}\n", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(all, "{INDENT}{line}");
        }
        all
    }
}

fn style(word: &str) -> Style {
    match word {
        "says" => Style::new().bold(),
        "failed" => Style::new().red(),
        "retry" | "note" | "budget" => Style::new().yellow(),
        _ => Style::new().cyan(),
    }
}

/// `12:01:03`, UTC.
fn clock(at: Millis) -> String {
    let text = at.rfc3339();
    text.get(11..19).unwrap_or("--:--:--").to_owned()
}

fn short(commit: &str) -> String {
    commit.chars().take(10).collect()
}

fn changes(files: u64, insertions: u64, deletions: u64) -> String {
    if files == 0 {
        return "nothing was changed".into();
    }
    let word = if files == 1 { "file" } else { "files" };
    format!("{files} {word}, +{insertions} -{deletions}")
}

/// What came of a run: one fact per line.
pub fn summary(run: &RunAnswer, output: Output) -> String {
    let line = &run.line;
    let mut text = String::from("\n");
    let mut fact = |name: &str, value: &str| {
        let name = output.paint(Style::new().dim(), &format!("{name:<9}"));
        let _ = writeln!(text, "{name} {value}");
    };
    let reason = line.reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    fact("run", &line.id);
    fact("status", &format!("{}{reason}", output.status(line.status)));
    fact("branch", &one_line(&line.branch));
    if let Some(commit) = run.work() {
        fact("commit", &short(&one_line(commit)));
    }
    if let (Some(files), Some(insertions), Some(deletions)) =
        (line.files_changed, line.insertions, line.deletions)
    {
        fact("changes", &changes(files, insertions, deletions));
    }
    if let Some(cost) = money::cost(line) {
        fact("cost", &cost);
    }
    for row in &run.usage {
        fact("used", &money::used(row));
    }
    for budget in &run.warnings {
        fact("budget", &money::warning(budget));
    }
    if !run.only_models.is_empty() {
        fact("models", &one_line(&format!("{} alone", run.only_models.join(", "))));
    }
    if !["", PersonId::local().as_str()].contains(&line.payer.as_str()) {
        fact("payer", &one_line(&line.payer));
    }
    if let Some(ended) = line.ended_at {
        fact("duration", &duration(ended - line.created_at));
    }
    fact("guards", &guards(run));
    if let Some(backup) = &run.backup {
        fact("backup", &one_line(backup));
        fact("read it", &one_line(&backup_diff(&run.base_commit, backup)));
    }
    if line.status == RunStatus::Parked {
        fact("go on", &format!("worca resume {}", one_line(&line.id)));
        fact("or end", &format!("worca stop {}", one_line(&line.id)));
    }
    text
}

/// The guardrail set, the policy that it came to, and what came of trying it.
fn guards(run: &RunAnswer) -> String {
    let mut text = one_line(&run.guardrails);
    let Some(policy) = &run.policy else { return text };
    if let Some(digest) = &policy.digest {
        let _ = write!(text, ", policy {}", short(&one_line(digest)));
    }
    if let Some(receipt) = &policy.receipt {
        let count = |outcome| receipt.tried.iter().filter(|tried| tried.outcome == outcome).count();
        let absent = match count("absent") {
            0 => String::new(),
            absent => format!(" ({absent} more not there to be tried)"),
        };
        let hook = if receipt.hook == Some(true) { ", the hook denied its trial" } else { "" };
        let _ = write!(
            text,
            "; tried before its start: {} of {} held{absent}{hook}",
            count("held"),
            receipt.tried.len() - count("absent")
        );
        if !receipt.kernel_lacks.is_empty() {
            let _ = write!(
                text,
                "; this kernel does not hold {}",
                one_line(&receipt.kernel_lacks.join(", nor "))
            );
        }
    }
    text
}

/// What was tried before the agent started, a line each; nothing without a receipt.
pub fn receipt(run: &RunAnswer, output: Output) -> String {
    let Some(receipt) = run.policy.as_ref().and_then(|policy| policy.receipt.as_ref()) else {
        return String::new();
    };
    let mut text = format!("\n{}\n", output.paint(Style::new().bold(), "Tried before the agent's start"));
    let mut row = |outcome: &str, what: &str| {
        let style = if outcome == "open" { Style::new().red() } else { Style::new().dim() };
        let outcome = output.paint(style, &format!("{:<7}", one_line(outcome)));
        let _ = writeln!(text, "{outcome} {what}");
    };
    for tried in &receipt.tried {
        row(&tried.outcome, &format!("{} {}", one_line(&tried.what), one_line(&tried.target)));
    }
    match receipt.hook {
        Some(true) => row("held", "a forbidden tool call, through the hook"),
        Some(false) => row("open", "a forbidden tool call, through the hook"),
        None => {}
    }
    for lacks in &receipt.kernel_lacks {
        row(
            "lacks",
            &format!("the kernel (Landlock ABI {}) does not hold {}", receipt.kernel_abi, one_line(lacks)),
        );
    }
    text
}

#[cfg(test)]
mod tests;
