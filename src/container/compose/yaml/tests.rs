use proptest::prelude::*;

use super::*;

fn message(text: &str) -> String {
    parse("f.yaml", text).unwrap_err().to_string()
}

fn scalar(text: &str) -> Kind {
    let Value::Scalar(scalar) =
        parse("f.yaml", &format!("k: {text}")).unwrap().get("k").unwrap().value.clone()
    else {
        panic!("`{text}` is no scalar");
    };
    scalar.kind
}

#[test]
fn a_node_knows_its_line() {
    let root = parse("f.yaml", "a:\n  b: 1\n  c:\n    - x\n").unwrap();
    let c = root.get("a").unwrap().get("c").unwrap();
    assert_eq!((c.place.line, c.place.column), (4, 5));
    assert_eq!(root.entries().unwrap()[0].place.to_string(), "f.yaml:1");
}

#[test]
fn plain_scalars_mean_what_they_mean_to_compose() {
    for text in [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "1.2.3",
        "80:80",
        "12:30:45",
        "0x",
        "0xg",
        "08x",
        "+",
        ".",
        "..",
        "1e",
        "2024-1",
        "192.168.0.1",
    ] {
        assert_eq!(scalar(text), Kind::Text, "{text}");
    }
    for (text, value) in
        [("0", 0), ("-3", -3), ("+3", 3), ("010", 8), ("0o10", 8), ("0x1f", 31), ("0b11", 3), ("1_000", 1000)]
    {
        assert_eq!(scalar(text), Kind::Int(value), "{text}");
    }
    for text in ["1.5", "-1.5", ".5", "1.", "1e3", "1.5E-3", ".inf", "-.Inf", ".nan", "99999999999999999999"]
    {
        assert_eq!(scalar(text), Kind::Float, "{text}");
    }
    for text in ["true", "True", "TRUE"] {
        assert_eq!(scalar(text), Kind::Bool(true), "{text}");
    }
    for text in ["", "~", "null", "Null", "NULL"] {
        assert_eq!(scalar(text), Kind::Null, "{text}");
    }
    assert_eq!(scalar("2024-01-31"), Kind::Date);
    assert_eq!(scalar("2024-1-31 10:00:00"), Kind::Date);
    assert_eq!(scalar("'true'"), Kind::Text);
    assert_eq!(scalar("!!str 12"), Kind::Text);
    assert_eq!(scalar("!!int \"12\""), Kind::Int(12));
}

#[test]
fn a_number_that_compose_would_rewrite_asks_for_quotes() {
    for text in ["1.50", "0x1f", "010", "1_000", "+1", "1e3", "2024-01-31", ".5", "1."] {
        let root = parse("f.yaml", &format!("k: {text}")).unwrap();
        let node = root.get("k").unwrap();
        let Value::Scalar(scalar) = &node.value else { panic!() };
        let error = scalar.as_text(&node.place).unwrap_err().to_string();
        assert!(error.contains("Compose would rewrite it"), "{text}: {error}");
    }
    for text in ["1.5", "0", "-3", "true", "0.25", "text", "'010'"] {
        let root = parse("f.yaml", &format!("k: {text}")).unwrap();
        let node = root.get("k").unwrap();
        let Value::Scalar(scalar) = &node.value else { panic!() };
        assert_eq!(scalar.as_text(&node.place).unwrap(), text.trim_matches('\''));
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_with_both_lines() {
    assert_eq!(message("a: 1\nb: 2\na: 3\n"), "f.yaml:3: the key `a` stands here again, first on line 1");
}

#[test]
fn keys_are_text() {
    for text in ["1: x", "true: x", "~: x", "1.5: x", "[a]: x", "{a: b}: x", "? [a]\n: x"] {
        assert!(message(text).contains("a key must be text"), "{text}: {}", message(text));
    }
    assert!(parse("f", "yes: x\non: y\n'1': z").is_ok());
}

#[test]
fn the_merge_key_gives_way_to_the_mappings_own_keys() {
    let root = parse("f", "b: &b {x: 1, y: 2}\nc: &c {y: 3, z: 4}\nm:\n  x: own\n  <<: [*b, *c]\n").unwrap();
    let m = root.get("m").unwrap();
    let text = |key: &str| match &m.get(key).unwrap().value {
        Value::Scalar(scalar) => scalar.text.clone(),
        _ => panic!(),
    };
    assert_eq!((text("x"), text("y"), text("z")), ("own".into(), "2".into(), "4".into()));
    assert!(message("m:\n  <<: text\n").contains("`<<` takes a mapping"));
}

#[test]
fn compose_s_tags_are_kept_and_others_refused() {
    let root = parse("f", "a: !reset null\nb: !override [x]\nc: ! plain\n").unwrap();
    assert_eq!(root.get("a").unwrap().tag, Some(Tag::Reset));
    assert_eq!(root.get("b").unwrap().tag, Some(Tag::Override));
    assert_eq!(root.get("c").unwrap().tag, None);
    for text in ["a: !include x", "a: !!binary eA==", "a: !<tag:x> y", "a: !!python/object:os.system {}"] {
        assert!(message(text).contains("the tag"), "{text}: {}", message(text));
    }
    assert!(message("!reset a: b").contains("a tag belongs to a value"));
}

#[test]
fn an_empty_file_is_an_empty_mapping_and_a_list_is_none() {
    for text in ["", "\u{feff}", "# only a comment\n", "---\n", "null\n"] {
        assert_eq!(parse("f", text).unwrap().entries().map(<[Entry]>::len), Some(0), "{text:?}");
    }
    assert!(message("- a\n").contains("a Compose file is a mapping, and this is a list"));
    assert!(message("text").contains("this is text"));
}

#[test]
fn a_second_document_is_refused() {
    assert!(message("a: 1\n---\nb: 2\n").contains("f.yaml:2: a second document begins here"));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = level - 1;
        text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 10].join(", ")));
    }
    assert!(message(&text).contains("with its aliases written out"));
    let long = "x".repeat(1000);
    let wide = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 5000].join(", "));
    assert!(message(&wide).contains("with its aliases written out"));
}

#[test]
fn an_alias_of_what_holds_it_is_refused() {
    assert!(message("a: &a [*a]").contains("inside of what it names"));
    assert!(message("a: &a {b: *a}").contains("inside of what it names"));
    assert!(message("a: *nothing").contains("not YAML"));
}

#[test]
fn deep_nesting_is_refused_and_ends_at_once() {
    for text in [
        "[".repeat(200_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(50_000),
        "a: &x ".repeat(50_000),
    ] {
        parse("f.yaml", &text).unwrap_err();
    }
    let deep = |levels: usize| format!("k: {}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(message(&deep(DEEPEST)).contains("nested deeper than"));
    assert!(parse("f", &deep(DEEPEST - 1)).is_ok());
}

#[test]
fn control_characters_are_refused_with_their_place() {
    assert_eq!(message("a: b\nc: d\0e\n"), "f.yaml:2: the character U+0000 may not stand in YAML");
    assert!(message("a: \u{7}").contains("U+0007"));
    assert!(message("a: x\u{feff}y").contains("U+FEFF"));
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    assert!(message(&"#".repeat(MOST_BYTES + 1)).contains("longer than"));
    assert!(message(&"- a\n".repeat(MOST_NODES + 1)).contains("more than"));
}

#[test]
fn windows_line_ends_are_line_ends() {
    let root = parse("f", "a: b\r\nc: |\r\n  x\r\n  y\r\n").unwrap();
    let Value::Scalar(scalar) = &root.get("c").unwrap().value else { panic!() };
    assert_eq!(scalar.text, "x\ny\n");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = parse("f", &text);
    }

    #[test]
    fn no_yaml_like_text_makes_the_reader_panic(parts in prop::collection::vec(
        prop::sample::select(vec![
            "a", ": ", "- ", "\n", "  ", "\n  ", "{", "}", "[", "]", ",", "&a ", "*a", "!reset ", "!!str ", "! ", "!", "|", ">", "|+2",
            "'", "\"", "\\x41", "\\u", "#", " #", "<<: ", "? ", "---", "...", "%TAG ! x\n", "%YAML 1.2\n", "\t", "\r\n", "~", "0x", "é",
        ]), 0..60)) {
        let _ = parse("f", &parts.concat());
    }
}

#[test]
fn as_many_keys_as_a_file_may_have_are_read() {
    let text: String = (0..MOST_NODES / 2 - 10).map(|n| format!("key{n}: x\n")).collect();
    assert!(parse("f", &text).is_ok());
}
