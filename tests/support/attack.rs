//! What the scenario `attack` found, and what each tier promises about it.
//!
//! A finding is either a tool call of the agent program (by the words that the scripted model says before it) or a
//! line of the report that the attacker's own programs left on the branch.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::Value;

/// The tiers, and what is left of each when the hook does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub tier: &'static str,
    /// Whether the hook's program was replaced by one that allows everything.
    pub hook_gone: bool,
    pub place: Place,
}

/// Where the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the box, whose slim image has no Python.
    Box,
    /// On this machine, as an ordinary user.
    Native,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub forbidden: bool,
    /// `done`, `refused`, `absent`, `broken`.
    pub outcome: String,
    pub detail: String,
}

/// What is forbidden in every tier and place but for these. The first word of a name is the way that it was tried
/// by (`tool-`, `bash-`; in programs `shell-`, `python-`, `node-`).
///
/// This is the table of docs/guardrails.md in the words of the test: what a tier leaves open is open on purpose.
fn open(case: Case, name: &str) -> Option<&'static str> {
    let (_, what) = name.split_once('-').unwrap_or(("", name));
    let (permissive, strict) = (case.tier == "permissive", case.tier == "strict");
    match what {
        "read-credential" | "read-other-project" if !strict => Some("reads what the user can read"),
        "read-ssh-key" | "read-checkout-env" if permissive => Some("permissive has no rule about it"),
        "write-other-project" if permissive && case.place == Place::Native => {
            Some("a project that Worca has not seen is a folder like any other")
        }
        "write-outside" if permissive => Some("writes what the user can write"),
        "connect" | "connect-closed-port" if !strict => Some("any address may be connected to"),
        // Landlock has no rule for sockets that are files. A box holds none of anybody else.
        "socket-outside" => Some("no rule of this kernel holds it"),
        _ => None,
    }
}

/// Reads what `worca run --json` prints to its end, does `begun` once when the agent has started, and gives all that was
/// printed. The agent has called no tool by then.
pub fn follow(child: &mut Child, mut begun: impl FnMut()) -> String {
    let mut events = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    loop {
        let start = events.len();
        if lines.read_line(&mut events).unwrap() == 0 {
            return events;
        }
        if events.get(start..).unwrap().contains("\"agent_started\"") {
            assert!(!events.contains("\"tool_use\""), "too late: {events}");
            begun();
        }
    }
}

/// Everything that a run of the scenario found. `events`: what `worca run --json` printed. `report`: the text of
/// report.jsonl on its branch.
pub fn findings(events: &str, report: &str) -> BTreeMap<String, Finding> {
    let mut all = BTreeMap::new();
    let mut said = String::new();
    let mut asked = BTreeMap::new();
    for line in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let event = &line["event"];
        match event["kind"].as_str() {
            Some("agent_text") => said = event["text"].as_str().unwrap_or_default().to_owned(),
            Some("tool_use") => {
                asked.insert(event["id"].to_string(), said.clone());
            }
            Some("tool_result") => {
                let Some((wish, name)) =
                    asked.get(&event["id"].to_string()).and_then(|said| said.split_once(": "))
                else {
                    continue;
                };
                if wish != "either" {
                    let outcome = if event["is_error"] == true { "refused" } else { "done" };
                    let detail = event["text"].as_str().unwrap_or_default().to_owned();
                    let finding =
                        Finding { forbidden: wish == "forbidden", outcome: outcome.to_owned(), detail };
                    all.insert(name.to_owned(), finding);
                }
            }
            _ => {}
        }
    }
    for line in report.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        // A line that is given to Bash as such and one in a program are two ways.
        let name = text("name").replacen("bash-", "shell-", 1);
        let forbidden = text("wish") == "forbidden";
        all.insert(name, Finding { forbidden, outcome: text("outcome"), detail: text("detail") });
    }
    all
}

/// Fails with every finding that is not as the tier promises.
#[track_caller]
pub fn check(case: Case, all: &BTreeMap<String, Finding>) {
    let mut wrong = Vec::new();
    let mut held = 0;
    for (name, finding) in all {
        let allowed = open(case, name);
        let as_promised = match (finding.forbidden, allowed) {
            (false, _) => finding.outcome == "done",
            (true, None) => finding.outcome == "refused",
            // Open on purpose: it works, or there is nothing of the kind. The agent program itself may refuse it.
            (true, Some(_)) => {
                finding.outcome == "done" || name.starts_with("tool-") || finding.outcome == "absent"
            }
        };
        held += usize::from(finding.forbidden && finding.outcome == "refused");
        if !as_promised {
            wrong.push(format!("{name}: {finding:?} (open: {allowed:?})"));
        }
    }
    assert!(wrong.is_empty(), "{case:?}: not as promised:\n{}\nall:\n{}", wrong.join("\n"), table(all));
    // A scenario that stopped half-way would promise nothing.
    let least = if case.place == Place::Native { 150 } else { 100 };
    assert!(
        held + 45 >= least && all.len() >= least,
        "{case:?}: only {} findings:\n{}",
        all.len(),
        table(all)
    );
    assert!(
        all.contains_key("still-at-work"),
        "{case:?}: the agent did not come to its end:\n{}",
        table(all)
    );
}

/// The findings as lines, for a person.
pub fn table(all: &BTreeMap<String, Finding>) -> String {
    all.iter()
        .map(|(name, finding)| {
            let wish = if finding.forbidden { "forbidden" } else { "ordinary" };
            format!("{name:45} {wish:9} {:8} {}\n", finding.outcome, finding.detail)
        })
        .collect()
}
