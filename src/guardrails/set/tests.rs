use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::document::MOST_BYTES;
use super::*;
use crate::failure::{Explain as _, Failure};
use crate::guardrails::RuleKind;
use crate::ids::RunId;

fn name(text: &str) -> SetName {
    SetName::parse(text).unwrap()
}

fn library_of(texts: &[(&str, &str)]) -> Library {
    let mut library = Library::embedded();
    for (set, text) in texts {
        library.put(Listed {
            name: (*set).into(),
            origin: Origin::Own(format!("/h/{set}.yaml").into()),
            text: (*text).into(),
            document: Document::parse(text, &format!("{set}.yaml")),
        });
    }
    library
}

#[test]
fn a_name_has_one_form() {
    for good in ["permissive", "a", "payments-strict-2", &"a".repeat(40)] {
        assert_eq!(name(good).as_str(), good);
    }
    for odd in ["", "Permissive", "-a", "1a", "a b", "../x", "perm\u{131}ssive", &"a".repeat(41)] {
        let error = SetName::parse(odd).unwrap_err();
        assert!(error.to_string().contains("1 to 40 of"), "{error}");
    }
    assert_eq!(SetName::default().as_str(), "normal");
}

#[test]
fn each_tier_reads_and_holds_all_of_the_one_before_it() {
    let library = Library::embedded();
    let tiers = Tier::ALL.map(|tier| library.resolve(&name(tier.as_str())).unwrap());
    let [permissive, normal, strict] = &tiers;
    assert!(permissive.rules.is_empty() && permissive.confine.filesystem == Filesystem::Open);
    assert!(normal.contains(permissive) && strict.contains(normal) && strict.contains(permissive));
    assert!(!permissive.contains(normal) && !normal.contains(strict));
    assert!(normal.has(RuleKind::Commands, "git push") && normal.has(RuleKind::Paths, "**/.env*"));
    assert_eq!(normal.confine.filesystem, Filesystem::ProjectWrite);
    assert!(!normal.deny_undecided && !normal.require_kernel && normal.confine.tcp.is_none());
    assert!(strict.deny_undecided && strict.require_kernel && strict.environment.scrub);
    assert_eq!(strict.confine, Confine { filesystem: Filesystem::Project, tcp: Some(vec![]) });
    assert_eq!(strict.extends, [name("normal"), name("permissive")]);
    let first = strict.rules.first().unwrap();
    assert_eq!(first.to_string(), "normal.commands[git push]");
    for (tier, set) in Tier::ALL.into_iter().zip(&tiers) {
        assert_eq!(library.tier_of(set), Some(tier));
    }
}

#[test]
fn each_rule_of_a_tier_says_why() {
    for tier in Tier::ALL {
        let mut reasons = BTreeSet::new();
        for line in tier.text().lines().filter(|line| line.trim_start().starts_with("- ")) {
            let (_, why) =
                line.split_once(" # ").unwrap_or_else(|| panic!("{tier:?}: `{line}` has no reason"));
            assert!(why.len() > 2, "{line}");
            reasons.insert(why);
        }
        let document = tier.document().unwrap();
        let rules = document.deny.commands.len() + document.deny.tools.len() + document.deny.paths.len();
        let lines = tier.text().lines().filter(|line| line.trim_start().starts_with("- ")).count();
        assert_eq!(rules, lines, "{tier:?}: a rule stands twice");
        assert!(rules == 0 || reasons.len() > 5);
    }
}

#[test]
fn a_set_adds_to_what_it_extends_and_takes_nothing_back() {
    let library = library_of(&[(
        "pay",
        "name: pay\nextends: strict\ndeny:\n  commands: [terraform apply, make deploy]\nconfine: {filesystem: open, tcp: [443]}\nenvironment: {scrub: false, keep: [CI]}\nrequire: {kernel: false}\n",
    )]);
    let (pay, strict) = (library.resolve(&name("pay")).unwrap(), library.resolve(&name("strict")).unwrap());
    assert!(pay.contains(&strict));
    assert_eq!(pay.confine, strict.confine);
    assert_eq!(pay.environment, Environment { scrub: true, keep: vec!["CI".into()] });
    let own: Vec<_> = pay.rules.iter().filter(|rule| rule.set == pay.name).map(ToString::to_string).collect();
    assert_eq!(own, ["pay.commands[terraform apply]", "pay.commands[make deploy]"]);
    assert_eq!(library.tier_of(&pay), Some(Tier::Strict));
    let difference = pay.difference(&strict);
    assert_eq!(difference.only_first.len(), 2);
    assert!(difference.only_second.is_empty());
    assert_eq!(
        difference.limits,
        [LimitDifference { limit: "environment.keep", first: "CI".into(), second: "none".into() }]
    );
    assert!(strict.difference(&strict).is_empty());
}

#[test]
fn a_set_that_is_named_after_a_tier_in_words_alone_does_not_satisfy_it() {
    let library = library_of(&[("stricter", "name: stricter\ndeny: {commands: [curl]}\n")]);
    let set = library.resolve(&name("stricter")).unwrap();
    assert_eq!(library.tier_of(&set), Some(Tier::Permissive));
}

#[test]
fn what_no_document_may_say_is_refused_with_place_and_fix() {
    let seen: Vec<String> = [
        "",
        "name: a\ndeny: [x]\n",
        "name: a\ndenny: {}\n",
        "name: a\ndeny:\n  command: [git push]\n",
        "deny: {}\n",
        "name: A\n",
        "name: a\nextends: a\n",
        "name: a\nextends: 'x y'\n",
        "name: a\nname: b\n",
        "name: a\n---\nname: b\n",
        "name: a\ndeny:\n  paths:\n    - *.pem\n",
        "name: a\ndeny:\n  paths:\n    - **/.env\n",
        "name: &n a\ndescription: *n\n",
        "name: a\ndeny:\n  commands: git push\n",
        "name: a\ndeny:\n  commands: ['']\n",
        "name: a\ndeny:\n  commands: ['a | b']\n",
        "name: a\ndeny:\n  commands: ['a && b']\n",
        "name: a\ndeny:\n  commands: [\"a\\nb\"]\n",
        "name: a\ndeny:\n  commands: [\"a\\0b\"]\n",
        "name: a\ndeny:\n  commands: ['Bash(git push:*)']\n",
        "name: a\ndeny:\n  commands: ['git push:*']\n",
        "name: a\ndeny:\n  commands: ['/usr/bin/git push']\n",
        "name: a\ndeny:\n  commands: ['-rf']\n",
        "name: a\ndeny:\n  commands: ['* push']\n",
        "name: a\ndeny:\n  commands: ['git archive --remote=*']\n",
        "name: a\ndeny:\n  commands: ['A=1 git']\n",
        "name: a\ndeny:\n  commands: ['git  push']\n",
        "name: a\ndeny:\n  commands: ['echo \"x\"']\n",
        "name: a\ndeny:\n  tools: ['Web Fetch']\n",
        "name: a\ndeny:\n  tools: ['Bash(ls)']\n",
        "name: a\ndeny:\n  tools: ['Read(./x)']\n",
        "name: a\ndeny:\n  tools: ['WebSearch(x)']\n",
        "name: a\ndeny:\n  tools: ['WebFetch(domain:https://x.example)']\n",
        "name: a\ndeny:\n  paths: ['!x']\n",
        "name: a\ndeny:\n  paths: [\"a\\0\"]\n",
        "name: a\ndeny:\n  paths: ['/']\n",
        "name: a\ndeny:\n  paths: ['~']\n",
        "name: a\ndeny:\n  paths: ['**']\n",
        "name: a\ndeny:\n  paths: ['~root/x']\n",
        "name: a\ndeny:\n  paths: ['$HOME/x']\n",
        "name: a\ndeny:\n  paths: ['a/../b']\n",
        "name: a\ndeny:\n  paths: ['a//b']\n",
        "name: a\ndeny:\n  paths: ['secrets/']\n",
        "name: a\ndeny:\n  paths: ['C:\\x']\n",
        "name: a\ndeny:\n  paths: ['*.{a,b}']\n",
        "name: a\ndeny:\n  paths: ['a**b']\n",
        "name: a\ndeny:\n  paths: ['[a']\n",
        "name: a\ndeny:\n  undecided: maybe\n",
        "name: a\nconfine: {filesystem: closed}\n",
        "name: a\nconfine: {signals: all}\n",
        "name: a\nconfine: {tcp: [0]}\n",
        "name: a\nconfine: {tcp: [70000]}\n",
        "name: a\nconfine: {tcp: [http]}\n",
        "name: a\nenvironment: {keep: ['A=1']}\n",
        "name: a\nenvironment: {keep: [NPM_TOKEN]}\n",
        "name: a\nenvironment: {keep: [LD_PRELOAD]}\n",
        "name: a\nrequire: {kernel: true, hook: true}\n",
        "name: a\ndescription: \"x\\u0007\"\n",
        "name: [a\n",
    ]
    .iter()
    .map(|text| {
        let error = Document::parse(text, "a.yaml").expect_err(text);
        format!("{text:?}\n{}", Failure::from(error).render())
    })
    .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn what_a_chain_can_do_wrong_is_refused_with_a_sentence() {
    let mut texts: Vec<(String, String)> = vec![
        ("a".into(), "name: a\nextends: b\n".into()),
        ("b".into(), "name: b\nextends: c\n".into()),
        ("c".into(), "name: c\nextends: a\n".into()),
        ("orphan".into(), "name: orphan\nextends: strikt\n".into()),
        ("broken".into(), "name: broken\nx: 1\n".into()),
        ("above".into(), "name: above\nextends: broken\n".into()),
    ];
    let deep = |i: usize| {
        format!("name: d{i}\nextends: {}\n", if i == 0 { "strict".into() } else { format!("d{}", i - 1) })
    };
    texts.extend((0..20).map(|i| (format!("d{i}"), deep(i))));
    for part in 0..3 {
        let rules: String = (0..900).map(|i| format!("  - make t{part}x{i}\n")).collect();
        let base = if part == 0 { String::new() } else { format!("extends: m{}\n", part - 1) };
        texts.push((
            format!("m{part}"),
            format!("name: m{part}\n{base}deny:\n  commands:\n{}", rules.replace("  - ", "    - ")),
        ));
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let library = library_of(&texts);
    // Long lists of names are no part of what is looked at.
    let small = library_of(&texts[..6]);
    let mut seen = Vec::new();
    for set in ["a", "orphan", "broken", "above", "stric", "zzz"] {
        seen.push(Failure::from(small.resolve(&name(set)).unwrap_err()).render());
    }
    for set in ["d19", "m2"] {
        seen.push(Failure::from(library.resolve(&name(set)).unwrap_err()).render());
    }
    assert!(library.resolve(&name("d10")).is_ok() && library.resolve(&name("m1")).is_ok());
    insta::assert_snapshot!(seen.join("\n"));
}

fn saved(folder: &Path, set: &str, text: &str, mode: Mode) -> Result<bool, OwnSetsError> {
    OwnSets::at(folder).save(&name(set), text, &format!("{set}.yaml"), mode)
}

#[test]
fn own_sets_are_files_that_are_saved_whole_and_deleted_when_nothing_stands_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("guardrails");
    assert_eq!(Library::read(&sets).unwrap().names(), ["permissive", "normal", "strict"]);
    assert!(saved(&sets, "pay", "name: pay\nextends: strict # mine\n", Mode::New).unwrap());
    assert_eq!(
        std::fs::read_to_string(sets.join("pay.yaml")).unwrap(),
        "name: pay\nextends: strict # mine\n"
    );
    assert!(saved(&sets, "more", "name: more\nextends: pay\n", Mode::Either).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&sets), mode(&sets.join("pay.yaml"))), (0o700, 0o600));
    }
    let refused: Vec<String> = [
        saved(&sets, "pay", "name: pay\n", Mode::New),
        saved(&sets, "gone", "name: gone\n", Mode::Replace),
        saved(&sets, "pay", "name: other\n", Mode::Replace),
        saved(&sets, "pay", "name: pay\nextends: more\n", Mode::Replace),
        saved(&sets, "pay", "name: pay\nextends: nothing\n", Mode::Replace),
        saved(&sets, "strict", "name: strict\n", Mode::Either),
        saved(&sets, "project", "name: project\n", Mode::Either),
        OwnSets::at(&sets).delete(&name("pay"), vec![]).map(|()| false),
        OwnSets::at(&sets)
            .delete(&name("more"), (0..5).map(|_| RunId::parse("r0123456789").unwrap()).collect())
            .map(|()| false),
        OwnSets::at(&sets).delete(&name("normal"), vec![]).map(|()| false),
        OwnSets::at(&sets).delete(&name("gone"), vec![]).map(|()| false),
    ]
    .into_iter()
    .map(|result| Failure::from(result.unwrap_err()).render())
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
    let left: Vec<_> = std::fs::read_dir(&sets).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no draft is left: {left:?}");
    assert!(!saved(&sets, "pay", "name: pay\nextends: normal\n", Mode::Replace).unwrap());
    OwnSets::at(&sets).delete(&name("more"), vec![]).unwrap();
    OwnSets::at(&sets).delete(&name("pay"), vec![]).unwrap();
    assert_eq!(Library::read(&sets).unwrap().names().len(), 3);
}

#[test]
fn a_broken_file_is_an_error_of_that_set_alone_and_no_file_takes_a_tiers_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &[u8]| std::fs::write(folder.path().join(file), text).unwrap();
    write("good.yaml", b"name: good\nextends: strict\n");
    write("bad.yaml", b"name: bad\nwhat: 1\n");
    write("other.yaml", b"name: good\n");
    write("strict.yaml", b"name: strict\n");
    write("project.yaml", b"name: project\n");
    write("Upper.yaml", b"name: upper\n");
    write("short.yml", b"name: short\n");
    write("bytes.yaml", b"name: \xff\n");
    write("large.yaml", &vec![b'#'; MOST_BYTES + 1]);
    write(".x.draft", b"");
    write("notes.txt", b"");
    std::fs::create_dir(folder.path().join("folder.yaml")).unwrap();
    let library = Library::read(folder.path()).unwrap();
    let seen: Vec<String> = library
        .all()
        .map(|listed| match &listed.document {
            Ok(_) => format!("{}: good", listed.name),
            Err(error) => format!("{}: {} ({})", listed.name, error, error.code()),
        })
        .map(|line| line.replace(&folder.path().display().to_string(), "FOLDER"))
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
    assert!(library.resolve(&name("good")).is_ok());
    let strict = library.resolve(&name("strict")).unwrap();
    assert!(strict.require_kernel, "the tier is the program's own");
    assert_eq!(library.resolve(&name("bad")).unwrap_err().code(), "guardrails-document");
}

#[test]
fn a_text_that_swells_or_nests_without_end_is_refused() {
    let long = "x".repeat(100 * 1024);
    let swells = format!("name: a\ndescription: &d {long}\ndeny:\n  commands: [{}]\n", "*d, ".repeat(30_000));
    let nests = |open: &str| format!("name: a\ndeny:\n  commands: {}\n", open.repeat(100_000));
    let other = format!("name: a\n\"\\e[2J{long}\": 1\n");
    let deep_key = format!("? {}", "[".repeat(100_000));
    for text in [swells, nests("["), nests("{a: "), nests("- "), nests("? "), deep_key, other] {
        let error = Document::parse(&text, "a.yaml").unwrap_err();
        assert!(error.to_string().len() < 1500 && !error.what.contains(char::is_control), "{}", error.what);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_in_the_place_of_a_set_is_no_hang() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe.yaml");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let library = Library::read(folder.path()).unwrap();
    assert!(library.resolve(&name("pipe")).is_err());
}

fn commands() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]{1,8}( [a-z:-]{1,8}| \\*?[a-z]{1,5}\\*?){0,3}", 0..5)
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(
        prop_oneof![
            "\\*\\*/[a-z.#:é \\[\\]-]{1,6}[a-z]\\*?",
            "~/\\.[a-z]{1,8}(/\\*\\*)?",
            "/[a-z]{1,8}/\\*\\.[a-z]{1,3}",
            "[a-z0-9.~%@!&'\"|>-]{1,6}[0-9a-z]"
        ],
        0..5,
    )
}

prop_compose! {
    fn documents(own: &'static str, base: Option<&'static str>)(
        description in prop::option::of("[ -~\n]{0,60}"),
        commands in commands(), paths in paths(),
        tools in prop::collection::vec(prop_oneof!["[A-Z][A-Za-z]{1,8}", "mcp__[a-z]{1,6}__\\*", Just("WebFetch(domain:*.example.com)".to_owned())], 0..4),
        undecided in any::<bool>(), honor in any::<bool>(), scrub in any::<bool>(), kernel in any::<bool>(),
        keep in prop::collection::vec(prop_oneof!["CI", "LANG", "TZ", "no", "N1"], 0..3),
        filesystem in prop::option::of(prop_oneof![Just(Filesystem::Open), Just(Filesystem::ProjectWrite), Just(Filesystem::Project)]),
        tcp in prop::option::of(prop::collection::btree_set(1u16.., 0..4)),
        signals in prop::option::of(Just(Signals::Own)),
    ) -> Document {
        let unique = |list: Vec<String>| list.iter().enumerate().filter(|(at, one)| !list[..*at].contains(one)).map(|(_, one)| one.clone()).collect();
        Document {
            name: name(own), description, extends: base.map(name), honor_project_rules: honor,
            deny: Deny { undecided, commands: unique(commands), tools: unique(tools), paths: unique(paths) },
            environment: Environment { scrub, keep: unique(keep) },
            confine: ConfineLimits { filesystem, tcp: tcp.map(|ports| ports.into_iter().collect()), signals },
            require: Require { kernel },
        }
    }
}

fn with(documents: &[&Document]) -> Library {
    // Read once: there are hundreds of cases.
    static TIERS: std::sync::LazyLock<Library> = std::sync::LazyLock::new(Library::embedded);
    let mut library = TIERS.clone();
    for document in documents {
        library.put(Listed {
            name: document.name.as_str().into(),
            origin: Origin::Own("/x".into()),
            text: String::new(),
            document: Ok((*document).clone()),
        });
    }
    library
}

proptest! {
    #[test]
    fn a_document_is_read_as_it_was_written(document in documents("pay", Some("strict"))) {
        let yaml = document.to_yaml();
        let read = Document::parse(&yaml, "pay.yaml");
        // What a rule may be is another test's matter: here what is written must not become something else.
        if let Ok(read) = &read {
            prop_assert_eq!(read, &document, "{}", yaml);
        } else {
            let error = read.unwrap_err();
            prop_assert!(error.line > 0 && error.fix.is_some(), "{}\n{}", error, yaml);
            prop_assert!(!error.what.contains("unknown") && !error.what.contains("expected"), "{}\n{}", error, yaml);
        }
        let json = serde_json::to_string(&document).unwrap();
        prop_assert_eq!(Document::parse(&json, "a").ok(), Document::parse(&yaml, "a").ok());
    }

    #[test]
    fn a_child_contains_every_set_that_it_stands_on(
        base in documents("base", None), middle in documents("middle", Some("base")), top in documents("top", Some("middle")),
    ) {
        let library = with(&[&base, &middle, &top]);
        let sets = ["base", "middle", "top"].map(|one| library.resolve(&name(one)).unwrap());
        prop_assert!(sets[1].contains(&sets[0]) && sets[2].contains(&sets[1]) && sets[2].contains(&sets[0]));
        // And all that it says itself.
        let alone = with(&[&Document { extends: None, ..top.clone() }]).resolve(&name("top")).unwrap();
        prop_assert!(sets[2].contains(&alone));
        // What two sets hold of each other is the same thing.
        prop_assert_eq!(sets[0].contains(&sets[2]) , {
            let mut bare = sets[2].clone();
            bare.environment.keep.clone_from(&sets[0].environment.keep);
            bare.difference(&sets[0]).is_empty() || sets[0].contains(&bare)
        });
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(name: a\n)?[ -~\n\t\u{0}é]{0,200}") {
        let _ = Document::parse(&text, "a.yaml");
    }
}

/// The tables of all rules, as docs/guardrails.md has them: from the tiers' files, each rule with its reason.
fn tables() -> String {
    let mut text = String::new();
    for tier in Tier::ALL {
        let document = tier.document().unwrap();
        let title = ["Permissive", "Normal", "Strict"][tier as usize];
        let kinds = [
            (RuleKind::Commands, &document.deny.commands),
            (RuleKind::Tools, &document.deny.tools),
            (RuleKind::Paths, &document.deny.paths),
        ];
        if kinds.iter().all(|(_, rules)| rules.is_empty()) {
            text.push_str(&format!("\n### {title}\n\nNone.\n"));
        }
        for (kind, rules) in kinds.into_iter().filter(|(_, rules)| !rules.is_empty()) {
            text.push_str(&format!("\n### {title}: {}\n\n| rule | why |\n| --- | --- |\n", kind.as_str()));
            for rule in rules {
                let starts = [format!("    - {rule} # "), format!("    - \"{rule}\" # ")];
                let why = tier
                    .text()
                    .lines()
                    .find_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
                text.push_str(&format!(
                    "| `{rule}` | {} |\n",
                    why.unwrap_or_else(|| panic!("{rule} has no line"))
                ));
            }
        }
    }
    text
}

#[test]
fn the_document_has_every_rule_of_every_tier_and_every_key() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guardrails.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (above, written) = document.split_once("rules of those before it too.\n").unwrap();
    // What differs first, not two long texts.
    let made = tables();
    for (made, written) in made.lines().zip(written.lines()) {
        assert_eq!(written, made, "docs/guardrails.md is not in step with guardrails/*.yaml");
    }
    assert_eq!(written.lines().count(), made.lines().count());
    for key in [
        "name",
        "description",
        "extends",
        "honor_project_rules",
        "deny.commands",
        "deny.tools",
        "deny.paths",
        "deny.undecided",
        "environment.scrub",
        "environment.keep",
        "confine.filesystem",
        "confine.tcp",
        "confine.signals",
        "require.kernel",
    ] {
        assert!(above.contains(&format!("\n| `{key}` | ")), "docs/guardrails.md does not explain `{key}`");
    }
    // The example in it is a set.
    let example: String = above
        .lines()
        .skip_while(|line| *line != "    name: payments-strict")
        .take_while(|line| line.starts_with("    "))
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap()))
        .collect();
    let set = Document::parse(&example, "example").unwrap_or_else(|error| panic!("{error}\n{example}"));
    assert_eq!((set.deny.paths.len(), set.environment.keep.len()), (2, 1));
}
