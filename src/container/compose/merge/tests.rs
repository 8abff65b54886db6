use proptest::prelude::*;

use super::super::yaml::parse;
use super::*;

/// A tree as JSON, keys in order.
fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Scalar(scalar) if node.is_null() => {
            let _ = scalar;
            serde_json::Value::Null
        }
        Value::Scalar(scalar) => scalar.text.clone().into(),
        Value::Sequence(items) => items.iter().map(json).collect(),
        Value::Mapping(entries) => serde_json::Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect(),
        ),
    }
}

fn merged(base: &str, over: &str) -> String {
    let wrap = |text: &str| parse("f", &format!("services:\n  a: {{{text}}}\n")).unwrap();
    let tree = merge(alone(wrap(base)).unwrap(), wrap(over)).unwrap();
    json(tree.get("services").unwrap().get("a").unwrap()).to_string()
}

#[test]
fn each_key_merges_by_its_own_rule() {
    for (base, over, expected) in [
        ("image: a", "image: b", r#"{"image":"b"}"#),
        ("image: a", "image: ", r#"{"image":"a"}"#),
        ("ports: [a]", "ports: [b]", r#"{"ports":["a","b"]}"#),
        ("command: [a, b]", "command: [c]", r#"{"command":["c"]}"#),
        ("command: [a, b]", "command: c", r#"{"command":"c"}"#),
        ("entrypoint: a", "entrypoint: [c]", r#"{"entrypoint":["c"]}"#),
        ("command: [a]", "command: ", r#"{"command":null}"#),
        (
            "environment: {A: 1, B: 2}",
            "environment: [B=3, C]",
            r#"{"environment":{"A":"1","B":"3","C":null}}"#,
        ),
        ("environment: [A=1]", "environment: {A: x=y}", r#"{"environment":{"A":"x=y"}}"#),
        ("labels: [a=1, b]", "labels: {b: 2}", r#"{"labels":{"a":"1","b":"2"}}"#),
        (
            "networks: [a]",
            "networks: {b: {aliases: [x]}}",
            r#"{"networks":{"a":null,"b":{"aliases":["x"]}}}"#,
        ),
        (
            "depends_on: {k: {condition: service_healthy}}",
            "depends_on: [k]",
            r#"{"depends_on":{"k":{"condition":"service_started"}}}"#,
        ),
        ("dns: a", "dns: [b]", r#"{"dns":["a","b"]}"#),
        ("tmpfs: [a]", "tmpfs: b", r#"{"tmpfs":["a","b"]}"#),
        ("extra_hosts: ['a:1']", "extra_hosts: {b: 2}", r#"{"extra_hosts":["a:1","b=2"]}"#),
        (
            "ulimits: {n: 1}",
            "ulimits: {n: {soft: 1, hard: 2}}",
            r#"{"ulimits":{"n":{"soft":"1","hard":"2"}}}"#,
        ),
        (
            "logging: {driver: a, options: {x: 1}}",
            "logging: {driver: b, options: {y: 2}}",
            r#"{"logging":{"driver":"b","options":{"y":"2"}}}"#,
        ),
        (
            "logging: {driver: a, options: {x: 1}}",
            "logging: {options: {y: 2}}",
            r#"{"logging":{"driver":"a","options":{"x":"1","y":"2"}}}"#,
        ),
        (
            "healthcheck: {test: [a], retries: 1}",
            "healthcheck: {test: b}",
            r#"{"healthcheck":{"test":"b","retries":"1"}}"#,
        ),
    ] {
        assert_eq!(merged(base, over), expected, "{over} over {base}");
    }
}

#[test]
fn reset_takes_away_and_override_replaces() {
    for (base, over, expected) in [
        ("ports: [a], image: x", "ports: !reset []", r#"{"image":"x"}"#),
        ("environment: {A: 1, B: 2}", "environment: {A: !reset null}", r#"{"environment":{"B":"2"}}"#),
        ("ports: [a]", "ports: !override [b]", r#"{"ports":["b"]}"#),
        ("environment: {A: 1}", "environment: !override {B: 2}", r#"{"environment":{"B":"2"}}"#),
        ("image: x", "labels: {a: !reset null, b: 1}", r#"{"image":"x","labels":{"b":"1"}}"#),
        ("image: x, ports: !reset [a]", "", r#"{"image":"x"}"#),
    ] {
        assert_eq!(merged(base, over), expected, "{over} over {base}");
    }
}

#[test]
fn forms_that_do_not_fit_are_refused_with_the_place() {
    let wrap = |text: &str| parse("over.yaml", &format!("services:\n  a:\n    {text}\n")).unwrap();
    for (base, over) in [
        ("ports: [a]", "ports: {b: c}"),
        ("healthcheck: {retries: 1}", "healthcheck: [a]"),
        ("ports: [a]", "ports: b"),
    ] {
        let error = merge(alone(wrap(base)).unwrap(), wrap(over)).unwrap_err().to_string();
        assert!(error.starts_with("over.yaml:3: `services.a."), "{error}");
    }
    let error = alone(wrap("ports: [!reset a]")).unwrap_err().to_string();
    assert!(error.contains("not in a list"), "{error}");
    assert!(alone(wrap("environment: [[a]]")).is_ok(), "a first file is looked at by the parser");
    assert!(merge(alone(wrap("environment: [[a]]")).unwrap(), wrap("environment: [b]")).is_err());
}

#[test]
fn a_place_after_a_merge_is_where_the_value_stands() {
    let base = parse("base.yaml", "services:\n  a:\n    image: x\n").unwrap();
    let over = parse("over.yaml", "services:\n  a:\n\n    image: y\n").unwrap();
    let tree = merge(alone(base).unwrap(), over).unwrap();
    let image = tree.get("services").unwrap().get("a").unwrap().get("image").unwrap();
    assert_eq!(image.place.to_string(), "over.yaml:4");
}

/// Small services of keys of every rule, without tags.
fn service() -> impl Strategy<Value = String> {
    let word = || prop::sample::select(vec!["x", "y", "z"]);
    let list = || prop::collection::vec(word(), 0..3).prop_map(|words| format!("[{}]", words.join(", ")));
    let map = move || {
        prop::collection::btree_map(word(), word(), 0..3).prop_map(|map| {
            let pairs: Vec<String> = map.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{{}}}", pairs.join(", "))
        })
    };
    let keys = (
        prop::option::of(word().prop_map(|w| format!("image: {w}"))),
        prop::option::of(list().prop_map(|l| format!("ports: {l}"))),
        prop::option::of(list().prop_map(|l| format!("command: {l}"))),
        prop::option::of(map().prop_map(|m| format!("environment: {m}"))),
        prop::option::of(list().prop_map(|l| format!("dns: {l}"))),
        prop::option::of(list().prop_map(|l| format!("networks: {l}"))),
    );
    keys.prop_map(|(a, b, c, d, e, f)| {
        [a, b, c, d, e, f].into_iter().flatten().collect::<Vec<_>>().join(", ")
    })
}

fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => {
            let sorted_map: std::collections::BTreeMap<_, _> =
                map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
            serde_json::to_value(sorted_map).unwrap()
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn it_does_not_matter_which_two_of_three_files_are_merged_first(a in service(), b in service(), c in service()) {
        let wrap = |text: &str| alone(parse("f", &format!("services:\n  a: {{{text}}}\n")).unwrap()).unwrap();
        let left = merge(merge(wrap(&a), wrap(&b)).unwrap(), wrap(&c)).unwrap();
        let right = merge(wrap(&a), merge(wrap(&b), wrap(&c)).unwrap()).unwrap();
        prop_assert_eq!(sorted(&json(&left)), sorted(&json(&right)));
    }

    #[test]
    fn a_file_over_nothing_is_itself(a in service()) {
        let once = alone(parse("f", &format!("services:\n  a: {{{a}}}\n")).unwrap()).unwrap();
        prop_assert_eq!(json(&alone(once.clone()).unwrap()), json(&once));
    }
}
