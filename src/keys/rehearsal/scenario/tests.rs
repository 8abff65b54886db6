//! The format of scenario files.

use proptest::prelude::*;

use super::*;

fn with(turns: &str) -> Result<Script, ScenarioError> {
    parse(&format!("version: 1\nabout: a test\nturns:\n{turns}"))
}

fn wrong(turns: &str) -> String {
    with(turns).map(|_| turns).expect_err(turns).to_string()
}

#[test]
fn every_built_in_scenario_reads() {
    for (name, text) in EMBEDDED {
        parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(find(name).is_some(), "{name}");
    }
    assert!(find("../hello").is_none());
}

#[test]
fn a_scenario_is_played_turn_by_turn_and_ends() {
    let text =
        "  - text: one\n    tool: {name: Bash, input: {command: 'true'}}\n    repeat: 2\n  - text: end\n";
    let script = with(text).unwrap();
    assert_eq!(script.turn(0), script.turn(1));
    assert_eq!(script.turn(0).unwrap().tools[0].input["command"], "true");
    assert_eq!(script.turn(2).unwrap().text.as_deref(), Some("end"));
    assert_eq!(script.turn(3), None);
}

#[test]
fn every_key_is_read() {
    let text = "  - text: x
    tools: [{name: Read, input: {file_path: a}}, {name: Read, input: {file_path: b, limit: 3}}]
    pause_ms: 60000
    pace_ms: 5000
    usage: {input: 1, output: 2, cache_read: 3, cache_write: 4}
    fail: {status: 529, message: busy, retry_after: 7, calls: 2}
    cut: {after_bytes: 9}
    error_event: {type: overloaded_error, after_events: 3, calls: 1000}
  - text: end
    cut: {after_events: 0}
";
    let script = with(text).unwrap();
    let turn = script.turn(0).unwrap();
    assert_eq!((turn.tools.len(), turn.pause.as_secs(), turn.pace.as_secs()), (2, 60, 5));
    assert_eq!(turn.tools[1].input["limit"], 3);
    let used = Used { input: Some(1), output: Some(2), cache_read: 3, cache_write: 4 };
    assert_eq!(turn.used, used);
    let busy =
        Failure { status: 529, kind: "overloaded_error", message: "busy".into(), retry_after: Some(7) };
    let error = Failure { message: "The scenario says so".into(), retry_after: None, ..busy.clone() };
    let error = Fault::Error(ErrorEvent { after: 3, failure: error });
    assert_eq!(turn.faults, [(Fault::Fail(busy), 2), (Fault::Cut(Place::Bytes(9)), 1), (error, 1000)]);
    assert_eq!(script.turn(1).unwrap().faults, [(Fault::Cut(Place::Events(0)), 1)]);
}

#[test]
fn what_no_scenario_may_say_is_refused_with_its_place() {
    assert_eq!(
        wrong("  - text: end\n    txet: typo\n").split(';').next().unwrap(),
        "line 5, column 5: there is no key `txet`"
    );
    for (turns, expected) in [
        ("  - pause_ms: 1\n", "line 4, column 5: a turn says something"),
        ("  - text: ''\n", "line 4, column 5: a turn says something"),
        ("  - text: end\n    pause_ms: 60001\n", "line 5, column 15: `pause_ms` is a number from 0 to 60000"),
        ("  - text: end\n    pace_ms: 5001\n", "line 5, column 14: `pace_ms` is a number from 0 to 5000"),
        ("  - text: end\n    repeat: 0\n", "line 5, column 13: `repeat` is a number from 1 to 2000"),
        (
            "  - text: a\n    repeat: 1999\n  - text: b\n    repeat: 2\n",
            "line 6, column 5: there are more than 2000",
        ),
        ("  - tool: {name: Bash, input: {}}\n", "line 4, column 5: the last turn uses a tool"),
        ("  - tool: {name: '', input: {}}\n", "line 4, column 18: a tool has a name"),
        ("  - tools: []\n", "line 4, column 12: `tools` is a list of 1 to 16"),
        (
            "  - tool: {name: B, input: {}}\n    tools: [{name: B, input: {}}]\n",
            "line 4, column 5: a turn has `tool` or `tools`",
        ),
        (
            "  - text: a\n    fail: {status: 418}\n",
            "line 5, column 20: `status` is one of 400, 401, 403, 429, 500, 529",
        ),
        (
            "  - text: a\n    fail: {status: 429, calls: 0}\n",
            "line 5, column 32: `calls` is a number from 1 to 1000",
        ),
        (
            "  - text: a\n    fail: {status: 429, retry_after: 3601}\n",
            "line 5, column 38: `retry_after` is a number from 0",
        ),
        ("  - text: a\n    cut: {}\n", "line 5, column 10: `cut` has `after_events` or `after_bytes`"),
        ("  - text: a\n    cut: {after_events: 1, after_bytes: 1}\n", "line 5, column 10: `cut` has"),
        (
            "  - text: a\n    error_event: {type: odd}\n",
            "line 5, column 25: `type` is one of invalid_request_error,",
        ),
        ("  - text: a\n    usage: {input: 100000001}\n", "line 5, column 20: `input` is a number from 0 to"),
        ("  - text: &a x\n  - text: *a\n", "line 4, column 14: no alias of YAML"),
    ] {
        let said = wrong(turns);
        assert!(said.starts_with(expected), "{turns}\n{said}");
    }
    let said = |text: &str| check_scenario(text).expect_err(text);
    assert!(
        said("version: 2\nturns:\n  - text: end\n").contains("it is of version 2, and this program reads")
    );
    assert!(said("version: 1\nturns: []\n").contains("it has no turns"));
    assert!(said("").starts_with("line 1, column 1: "), "{}", said(""));
    assert_eq!(said(&" ".repeat(MOST_BYTES + 1)), "it is larger than 64 KiB");
    let deep =
        format!("  - tool: {{name: B, input: {{a: {}{}}}}}\n  - text: end\n", "[".repeat(60), "]".repeat(60));
    assert!(with(&deep).is_err());
    let many = format!("  - tool: {{name: B, input: {{a: [{}1]}}}}\n  - text: end\n", "1,".repeat(20_000));
    assert!(with(&many).is_err());
}

/// Texts that look much like scenarios, with anything in the places of values and keys.
fn nearly() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("text"),
        Just("tool"),
        Just("tools"),
        Just("pause_ms"),
        Just("pace_ms"),
        Just("repeat"),
        Just("usage"),
        Just("fail"),
        Just("cut"),
        Just("error_event"),
        Just("status"),
        Just("calls"),
        Just("after_bytes"),
        Just("<<"),
        Just("name"),
        Just("input"),
        Just("type"),
        Just("? {a: b}"),
        Just("version"),
    ];
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("-1".to_owned()),
        Just("1e400".to_owned()),
        Just(".nan".to_owned()),
        Just("~".to_owned()),
        Just("99999999999999999999999999".to_owned()),
        Just("!!binary aGk=".to_owned()),
        Just("*a".to_owned()),
        Just("&a x".to_owned()),
        Just("{name: B, input: {}}".to_owned()),
        Just("[{name: B, input: {x: [1, {y: z}]}}]".to_owned()),
        Just("{status: 429}".to_owned()),
        Just("{after_events: 2}".to_owned()),
        Just("{type: api_error}".to_owned()),
        Just("|\n      a\n      b".to_owned()),
        ".{0,20}",
    ];
    let line = (key, value).prop_map(|(key, value)| format!("    {key}: {value}\n"));
    let turn =
        proptest::collection::vec(line, 0..5).prop_map(|lines| format!("  - text: x\n{}", lines.concat()));
    proptest::collection::vec(turn, 0..5)
        .prop_map(|turns| format!("version: 1\nturns:\n{}  - text: end\n", turns.concat()))
}

/// It is a scenario that can be played to its end, or there is a short sentence with a place.
fn judged(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(script) => {
            prop_assert!(script.turn(0).is_some() && script.turn(MOST_TURNS).is_none());
            let last = (0..MOST_TURNS).filter_map(|spoken| script.turn(spoken)).next_back();
            prop_assert!(last.is_some_and(|turn| turn.tools.is_empty()));
            prop_assert!(check_scenario(text).is_ok());
        }
        Err(error) => {
            let said = error.to_string();
            prop_assert!(said.len() < 2000 && !said.chars().any(char::is_control), "{said:?}");
            prop_assert!(said.starts_with("line ") || error == ScenarioError::Large, "{said:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_text_does_harm(text in "(?s).{0,400}") {
        judged(&text)?;
    }

    #[test]
    fn no_text_that_looks_like_a_scenario_does_harm(text in nearly()) {
        judged(&text)?;
    }

    #[test]
    fn no_scenario_with_something_else_in_one_place_does_harm(at in 0usize..1200, other in "(?s).{0,3}") {
        let text: Vec<char> = EMBEDDED[1].1.chars().collect();
        let at = at.min(text.len() - 1);
        let changed: String = text[..at].iter().chain(other.chars().collect::<Vec<_>>().iter()).chain(&text[at + 1..]).collect();
        judged(&changed)?;
    }
}
