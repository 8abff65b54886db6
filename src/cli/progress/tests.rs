use super::*;
use crate::events::RunStatus;
use crate::ids::{RunId, SpawnId};

fn output(colour: bool) -> Output {
    Output { terminal: colour, colour, width: None }
}

fn all() -> Vec<Event> {
    vec![
        Event::Status { status: RunStatus::Preparing, reason: None },
        Event::Worktree { branch: "worca/r0/<svg>".into(), base: "0123456789abcdef".into() },
        Event::AgentStarted { spawn: SpawnId::random(), program: "claude 2.1.197".into() },
        Event::AgentReady { session: "s".into(), model: "rehearsal".into() },
        Event::AgentText { text: "\u{1b}[31mred\u{1b}[0m\nsecond line\u{1b}]0;title\u{7}\n".into() },
        Event::ToolUse { id: "1".into(), tool: "Bash".into(), summary: "ls\n-la \u{1b}[2J".into() },
        Event::ToolResult { id: "1".into(), is_error: false, text: "a\nb\nc".into() },
        Event::ToolResult { id: "2".into(), is_error: true, text: "denied by rule `x`".into() },
        Event::AgentRetry { text: "overloaded".into() },
        Event::AgentEnded { exit: "exit code 1".into(), stderr: Some("line one\nline two\n".into()) },
        Event::Committed { commit: "fedcba98765432".into(), files: 1, insertions: 3, deletions: 0 },
        Event::Note { text: "a note".into() },
        Event::Status { status: RunStatus::Failed, reason: Some("the agent ended badly".into()) },
    ]
}

fn lines(output: Output) -> String {
    let progress = Progress::new(output);
    let run = RunId::random();
    all()
        .into_iter()
        .zip(1..)
        .map(|(event, seq)| {
            progress.lines(&StoredEvent { seq, run: run.clone(), at: Millis(1_700_000_000_000), event })
        })
        .collect()
}

#[test]
fn each_kind_of_event_is_a_line_without_terminal_sequences() {
    let text = lines(output(false));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn colour_adds_nothing_but_colour() {
    let coloured = lines(output(true));
    assert!(coloured.contains('\u{1b}'));
    assert_eq!(console::strip_ansi_codes(&coloured), lines(output(false)));
}

fn answer() -> RunAnswer {
    serde_json::from_value(serde_json::json!({
        "id": "r0123456789", "status": "failed", "reason": "the agent\nended \u{1b}[31mbadly", "title": "t",
        "checkout": "/p", "branch": "worca/r0123456789/t", "created_at": 1000, "ended_at": 66_000,
        "head_commit": "0123456789abcdef", "files_changed": 2, "insertions": 10, "deletions": 1,
        "cost_micros": 1234, "project": "p0123456789", "prompt": "p", "model": null, "guardrails": "normal",
        "author": {"name": "A", "email": "a@example.invalid"}, "base_commit": "aaaaaaaaaaaaaaaa", "turns": 3,
        "answer": null, "backup": "refs/worca/backup/r0123456789/1", "worktree_present": true,
    }))
    .unwrap()
}

#[test]
fn a_summary_says_what_came_of_the_run() {
    insta::assert_snapshot!(summary(&answer(), output(false)));
}

#[test]
fn a_branch_that_stands_where_the_run_began_is_no_commit_of_it() {
    let mut run = answer();
    run.line.head_commit = Some(run.base_commit.clone());
    let text = summary(&run, output(false));
    assert!(!text.contains("commit "), "{text}");
    assert!(text.contains("git diff aaaaaaaaaa..refs/worca/backup/r0123456789/1\n"), "{text}");
    run.line.head_commit = Some("b".repeat(40));
    assert!(summary(&run, output(false)).contains("commit    bbbbbbbbbb\n"));
}
