//! Hundreds of lines under each tier: what coding agents run is allowed, and what a set is there to stop is denied, by
//! the rule that says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/lines.rs"]
mod lines;

use lines::{TIERS, harmless, hostile, tier, verdict};
use worca::guardrails::shell::Shell;

#[test]
fn the_lists_are_as_long_as_they_are_said_to_be() {
    assert!(harmless().len() >= 450, "{}", harmless().len());
    assert!(hostile().len() >= 150, "{}", hostile().len());
}

#[test]
fn no_harmless_line_is_denied_but_those_that_strict_names() {
    let mut wrong = Vec::new();
    for name in TIERS {
        let set = tier(name);
        for line in harmless() {
            let expected = line.rule.clone().filter(|_| name == "strict");
            let found = verdict(&set, &line);
            if found.as_ref().map(|denial| denial.rule.to_string()) != expected {
                let said =
                    found.map_or("allowed".into(), |denial| format!("{}: {}", denial.rule, denial.reason));
                let text: String = line.text.chars().take(200).collect();
                wrong.push(format!("{name}, line {}: {text}\n    {said}", line.at));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_hostile_line_is_denied_by_its_rule_and_the_reason_says_something() {
    let mut wrong = Vec::new();
    for (place, name) in TIERS.into_iter().enumerate() {
        let set = tier(name);
        for line in hostile().iter().filter(|line| line.from <= place) {
            match verdict(&set, line) {
                // In Strict another rule may stand against the same line as well.
                Some(denial) if Some(denial.rule.to_string()) == line.rule || place > line.from => {
                    assert!(
                        denial.reason.len() > 20 || denial.reason == "closed",
                        "{}: {denial:?}",
                        line.text
                    );
                }
                Some(denial) => wrong.push(format!(
                    "{name}, line {}: {}\n    by {} and not by {}: {}",
                    line.at,
                    line.text,
                    denial.rule,
                    line.rule.as_deref().unwrap_or_default(),
                    denial.reason
                )),
                None => wrong.push(format!("{name}, line {}: {}\n    allowed", line.at, line.text)),
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_tier_allows_what_only_a_stricter_one_denies() {
    for (place, name) in TIERS.into_iter().enumerate() {
        let set = tier(name);
        for line in hostile().iter().filter(|line| line.from > place) {
            assert_eq!(verdict(&set, line), None, "{name}, line {}: {}", line.at, line.text);
        }
    }
}

/// `scripts/hostile` runs the others; that these are lines of bash at all is seen here.
#[cfg(unix)]
#[test]
fn each_harmless_line_is_one_that_bash_can_read() {
    use std::io::Write as _;
    use std::process::Stdio;
    for line in harmless().iter().filter(|line| line.shell == Shell::Bash) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the shell that is the measure of the judge, not an agent"
        )]
        let mut bash = std::process::Command::new("bash")
            .arg("-n")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        bash.stdin.take().unwrap().write_all(line.text.as_bytes()).unwrap();
        let output = bash.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "line {}: {}\n{said}", line.at, line.text);
    }
}
