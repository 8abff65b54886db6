use proptest::prelude::*;

use super::*;

fn environment() -> Environment {
    [("SET", "set"), ("EMPTY", ""), ("SECRET", "hunter2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
}

fn put(template: &str) -> String {
    text(template, &environment()).unwrap().0
}

#[test]
fn each_form_gives_what_compose_gives() {
    for (template, expected) in [
        ("plain", "plain"),
        ("$SET", "set"),
        ("${SET}x", "setx"),
        ("$$SET", "$SET"),
        ("$$$SET", "$set"),
        ("${NOPE:-d}${NOPE-d}${EMPTY:-d}${EMPTY-d}", "ddd"),
        ("${SET:+d}${NOPE:+d}${EMPTY:+d}${EMPTY+d}", "dd"),
        ("${NOPE:-${EMPTY:-${SET}}}", "set"),
        ("${NOPE:-a{b}c}", "a{b}c"),
        ("$1 $ $- a$", "$1 $ $- a$"),
        ("${SET:?why}${SET?why}${EMPTY?why}", "setset"),
    ] {
        assert_eq!(put(template), expected, "{template}");
    }
}

#[test]
fn an_unset_variable_is_empty_and_named() {
    let (text, unset) = text("<$NOPE${GONE}${SET}${NOPE:-x}>", &environment()).unwrap();
    assert_eq!(text, "<setx>");
    assert_eq!(unset, ["NOPE", "GONE"]);
}

#[test]
fn what_is_no_variable_is_refused() {
    for template in ["${}", "${1}", "${SET", "${SET:x}", "${SET.x}", "${SET=x}", "${ SET}", "${NOPE:-a\nb}"] {
        assert!(matches!(text(template, &environment()), Err(InterpolateError::Invalid(_))), "{template}");
    }
}

#[test]
fn a_required_variable_is_named_with_the_files_own_words() {
    let error = text("${NOPE:?set me to $SET}", &environment()).unwrap_err();
    assert_eq!(error.to_string(), "the variable `NOPE` has to be set: set me to set");
    assert_eq!(
        text("${EMPTY:?}", &environment()).unwrap_err().to_string(),
        "the variable `EMPTY` has to be set"
    );
}

#[test]
fn an_error_names_file_line_and_key_and_no_value() {
    let mut node = super::super::yaml::parse("f.yaml", "a:\n  b: [x, '$SECRET ${NOPE:?}']\n").unwrap();
    let error = tree(&mut node, &environment(), &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "f.yaml:2: in `a.b`: the variable `NOPE` has to be set");
    let mut node = super::super::yaml::parse("f.yaml", "a:\n  b: '$SECRET $NOPE'\n").unwrap();
    let mut warnings = Vec::new();
    tree(&mut node, &environment(), &mut warnings).unwrap();
    assert_eq!(
        warnings[0].to_string(),
        "f.yaml:2: the variable `NOPE` is not set, and `a.b` gets nothing for it"
    );
}

#[test]
fn keys_are_not_interpolated() {
    let mut node = super::super::yaml::parse("f.yaml", "$SET: $SET\n").unwrap();
    tree(&mut node, &environment(), &mut Vec::new()).unwrap();
    assert!(node.get("$SET").is_some());
}

#[test]
fn nesting_and_growth_end() {
    let deep = "${NOPE:-".repeat(100_000);
    assert!(text(&deep, &environment()).is_err());
    let deep = format!("{}x{}", "${NOPE:-".repeat(1000), "}".repeat(1000));
    assert_eq!(text(&deep, &environment()), Err(InterpolateError::TooMuch));
    let mut big = environment();
    big.insert("BIG".into(), "x".repeat(100_000));
    assert_eq!(text(&"$BIG".repeat(1000), &big), Err(InterpolateError::TooMuch));
}

proptest! {
    #[test]
    fn no_template_panics(template in r"[${}:?+A-Zé\n -]{0,60}") {
        let _ = text(&template, &environment());
    }

    #[test]
    fn a_doubled_dollar_is_itself(plain in ".{0,60}") {
        prop_assert_eq!(put(&plain.replace('$', "$$")), plain);
    }
}
