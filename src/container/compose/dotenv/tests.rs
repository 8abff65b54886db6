use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Environment {
    parse(".env", text, &Environment::new()).unwrap()
}

fn refused(text: &str) -> String {
    parse(".env", text, &Environment::new()).unwrap_err().to_string()
}

#[test]
fn each_form_is_read_as_compose_reads_it() {
    for (text, value) in [
        ("A=plain value # comment\n", "plain value"),
        ("A=hash#inside", "hash#inside"),
        ("A=#c", "#c"),
        ("A=x\t#c", "x\t#c"),
        ("A = x ", "x"),
        ("A: x", "x"),
        ("export A=x", "x"),
        ("  # c\n\nA=x\r\n", "x"),
        ("A='$X \\n # none' # c", "$X \\n # none"),
        ("A='it\\'s'", "it's"),
        ("A='\\\\'", "\\\\"),
        ("A=\"a\\\\b \\\" \\n \\t \\$X $$\"", "a\\b \" \n \t $X $"),
        ("A=\"two\nlines\"\nB=x", "two\nlines"),
        ("A=", ""),
        ("A==", "="),
        ("A=1\nA=2", "2"),
        ("B=b\nA=\"<$B ${C:-c}>\"", "<b c>"),
        ("B=b\nA='<$B>'", "<$B>"),
        ("B=b\nA=<$B>", "<b>"),
    ] {
        assert_eq!(read(text)["A"], value, "{text:?}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let environment: Environment = [("A".to_owned(), "outer".to_owned())].into();
    let set = parse(".env", "A=own\nB=$A\n", &environment).unwrap();
    assert_eq!((set["A"].as_str(), set["B"].as_str()), ("outer", "outer"));
    let set = parse(".env", "A\nC\n", &environment).unwrap();
    assert_eq!(set.get("A").map(String::as_str), Some("outer"));
    assert!(!set.contains_key("C"));
}

#[test]
fn what_is_no_assignment_is_refused_with_its_line_and_without_its_value() {
    assert_eq!(refused("A=1\n\nthis is no key=hunter2\n"), ".env:3: this line assigns nothing");
    assert_eq!(refused("A=1\nB='hunter2\nC=3\n"), ".env:2: the quote of `B` never ends");
    assert_eq!(refused("A='two\nlines' hunter2\n"), ".env:2: something follows the quoted value of `A`");
    assert_eq!(refused("A=${B:?}\n"), ".env:1: in the value of `A`: the variable `B` has to be set");
    assert_eq!(refused("=x\n"), ".env:1: this line assigns nothing");
    assert!(refused(&"#".repeat(MOST_BYTES + 1)).contains("longer than"));
}

#[test]
fn a_line_after_a_quoted_value_of_several_lines_keeps_its_number() {
    assert_eq!(refused("A='1\n2\n3'\n-\u{7}=\n"), ".env:4: this line assigns nothing");
}

#[test]
fn a_changed_setting_leaves_every_other_line_alone() {
    let text = "# mine\nA=1\nexport B = 'old' # why\nC=\"two\nlines\"\n";
    assert_eq!(set(text, "B", "new value").unwrap(), "# mine\nA=1\nB='new value'\nC=\"two\nlines\"\n");
    assert_eq!(set(text, "C", "x").unwrap(), "# mine\nA=1\nexport B = 'old' # why\nC=x\n");
    assert_eq!(set(text, "D", "x").unwrap(), format!("{text}D=x\n"));
    assert_eq!(set("A=1", "D", "x").unwrap(), "A=1\nD=x\n");
    assert_eq!(set("A=1\nA=2\n", "A", "x").unwrap(), "A=1\nA=x\n");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in "[^\0]{0,60}") {
        let text = format!("# first\nA={}\nB=after\n", quote(&value));
        let set = read(&text);
        prop_assert_eq!(&set["A"], &value);
        prop_assert_eq!(&set["B"], "after");
    }

    #[test]
    fn awkward_values_are_read_back(value in r#"['"\\$#{} \t\r\n=a:-]{0,30}"#) {
        prop_assert_eq!(&read(&format!("A={}\n", quote(&value)))["A"], &value);
    }

    #[test]
    fn no_file_panics(text in r#"([A-Z'"\\$#{}= \r\n\t]|.){0,80}"#) {
        let _ = parse(".env", &text, &Environment::new());
    }
}
