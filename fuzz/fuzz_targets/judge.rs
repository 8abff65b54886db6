//! The judge of command lines on anything: it never panics, and what it lets through does not begin to run what it
//! denies when a plain command is put in front. `scripts/fuzz` runs it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use worca::guardrails::shell::{LineContext, Shell, judge_line};
use worca::guardrails::{GuardrailSet, Library, SetName, Verdict};

fn tier(name: &str) -> GuardrailSet {
    let name = SetName::parse(name).expect("a tier's name is one");
    Library::embedded().resolve(&name).expect("a tier is in the library")
}

static TIERS: LazyLock<[GuardrailSet; 2]> = LazyLock::new(|| [tier("normal"), tier("strict")]);

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for set in TIERS.iter() {
        let context = LineContext {
            rules: &set.rules,
            deny_undecided: set.deny_undecided,
            host: Some(4_194_000),
            path: &|_| None,
        };
        for shell in [Shell::Bash, Shell::PowerShell, Shell::Cmd] {
            let _ = judge_line(shell, &text, &context);
        }
        // A command in front takes nothing away.
        let denied = matches!(judge_line(Shell::Bash, &text, &context), Verdict::Deny(_));
        let after = judge_line(Shell::Bash, &format!("true\n{text}"), &context);
        assert!(!denied || matches!(after, Verdict::Deny(_)), "denied alone and allowed after `true`: {text:?}");
    }
});
