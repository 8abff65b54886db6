use console::measure_text_width;

use super::copy::renamed;
use super::list::{SetLine, table};
use super::new::starter;
use super::{check, diff, explain};
use crate::cli::text::Output;
use crate::guardrails::{Document, KernelSupport, Library, SetName, Tier};

fn name(text: &str) -> SetName {
    SetName::parse(text).unwrap()
}

fn plain(width: usize) -> Output {
    Output { terminal: true, colour: false, width: Some(width) }
}

const ALL: KernelSupport = KernelSupport { abi: 7, files: true, tcp: true, signals: true };
const NONE: KernelSupport = KernelSupport { abi: 0, files: false, tcp: false, signals: false };

#[test]
fn the_list_fits_a_wide_and_a_narrow_terminal() {
    let line = |name: &str, origin: &str, error: Option<&str>| SetLine {
        name: name.into(),
        origin: origin.into(),
        extends: if error.is_some() { vec![] } else { vec!["normal".into(), "permissive".into()] },
        tier: error.is_none().then_some("normal"),
        rules: error.is_none().then_some(1234),
        error: error.map(str::to_owned),
    };
    let lines = [
        line("strict", "worca", None),
        line(&"long".repeat(10), "/home/somebody/with/a/long/path/.worca/guardrails/long.yaml", None),
        line("漢字 \u{1b}[2J.yaml", "/h/漢字 \u{1b}[2J.yaml", Some("the file's name is no set's name")),
    ];
    for width in [40, 80] {
        let text = table(&lines, plain(width));
        assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
        insta::assert_snapshot!(format!("list_in_{width}_columns"), text);
    }
}

#[test]
fn an_explanation_fits_the_terminal_and_says_what_this_kernel_lacks() {
    let library = Library::embedded();
    for (set, kernel, width) in [("permissive", NONE, 60), ("normal", ALL, 80), ("strict", ALL, 100)] {
        let set = library.resolve(&name(set)).unwrap();
        let text = explain::text(&set, kernel, &crate::guardrails::explain(&set, kernel), plain(width));
        assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
        insta::assert_snapshot!(format!("explain_{}", set.name), text);
    }
}

#[test]
fn a_difference_is_told_line_by_line_and_colour_only_repeats_it() {
    let library = Library::embedded();
    let [normal, permissive] = ["normal", "permissive"].map(|one| library.resolve(&name(one)).unwrap());
    let difference = permissive.difference(&normal);
    let text = diff::text(&difference, plain(80));
    assert!(text.starts_with("- honor_project_rules: no\n+ honor_project_rules: yes\n"), "{text}");
    assert!(text.contains("\n+ deny.commands: git push\n") && text.contains("\n+ deny.paths: **/.env*\n"));
    let coloured = diff::text(&difference, Output { terminal: true, colour: true, width: None });
    assert_eq!(console::strip_ansi_codes(&coloured), text);
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn a_starter_is_a_set_and_each_of_its_comments_would_be_right() {
    let text = starter(&name("payments"), &name("strict"));
    let document = Document::parse(&text, "payments.yaml").unwrap();
    assert_eq!((document.name, document.extends), (name("payments"), Some(name("strict"))));
    // What stands behind a single `#` directly before a key or a list is meant to be taken in.
    let taken_in: String = text
        .lines()
        .map(|line| match line.strip_prefix("  #") {
            Some(rest) if rest.starts_with("  - ") => format!("  {rest}\n"),
            Some(rest) if rest.starts_with("undecided") => format!("  {rest}\n"),
            _ => match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') || rest.starts_with("  ") => format!("{rest}\n"),
                _ => format!("{}\n", line.trim_end_matches(" []")),
            },
        })
        .collect();
    let whole =
        Document::parse(&taken_in, "payments.yaml").unwrap_or_else(|error| panic!("{error}\n{taken_in}"));
    assert!(
        whole.deny.undecided && whole.require.kernel && whole.environment.scrub && whole.honor_project_rules
    );
    assert_eq!(
        (whole.deny.commands.len(), whole.deny.tools.len(), whole.deny.paths.len(), whole.confine.tcp),
        (1, 2, 2, Some(vec![443]))
    );
}

#[test]
fn a_copy_keeps_every_comment_and_a_text_in_another_style_is_written_anew() {
    for tier in Tier::ALL {
        let copy = renamed(tier.text(), &tier.document().unwrap(), &name("mine"));
        let old = format!("\nname: {}\n", tier.as_str());
        assert_eq!(copy, tier.text().replacen(&old, "\nname: mine\n", 1));
    }
    let json = r#"{"name": "a", "deny": {"commands": ["make deploy"]}}"#;
    let copy = renamed(json, &Document::parse(json, "a").unwrap(), &name("mine"));
    assert_eq!(Document::parse(&copy, "mine").unwrap().deny.commands, ["make deploy"]);
    let tricky = "description: |\n  x\nname: a # the name\n";
    let copy = renamed(tricky, &Document::parse(tricky, "a").unwrap(), &name("mine"));
    assert_eq!(copy, "description: |\n  x\nname: mine\n");
}

#[test]
fn an_answer_is_safe_on_a_terminal() {
    let answer = check::Answer {
        verdict: "deny",
        set: name("normal"),
        rule: Some("normal.commands[git push]".into()),
        part: Some("git push \u{1b}]0;x\u{7}\norigin".into()),
        reason: Some("leave it\nto a person\u{1b}[2J".into()),
    };
    insta::assert_snapshot!(check::text(&answer, plain(80)));
}
