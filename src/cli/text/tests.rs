use super::*;

#[test]
fn c110_terminal_sequences_do_not_reach_the_terminal() {
    for (hostile, shown) in [
        ("\u{1b}[31m<img src=x onerror=alert(1)>\u{1b}[0m", "<img src=x onerror=alert(1)>"),
        ("a\u{1b}]0;title\u{7}b", "ab"),
        ("a\u{1b}]52;c;ZXZpbA==\u{1b}\\b", "ab"),
        ("a\u{1b}]8;;javascript:alert(1)\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
        ("a\u{1b}P1;2|payload\u{1b}\\b", "ab"),
        ("a\u{9b}2Jb\u{9d}0;t\u{9c}c", "abc"),
        ("a\u{1b}cb\u{1b}(Bc\u{1b}", "abc"),
        ("one\rtwo\u{8}\u{7f}\u{0}", "onetwo"),
        ("safe\u{202e}gnp.exe\u{2066}", "safegnp.exe"),
        ("a\u{1b}]0;never ended\nnext line", "a\nnext line"),
        ("kept:\ttab, é, →, 漢字, 👩‍💻\n", "kept:\ttab, é, →, 漢字, 👩‍💻\n"),
    ] {
        assert_eq!(plain(hostile), shown, "{hostile:?}");
    }
}

proptest::proptest! {
    #[test]
    fn nothing_that_a_terminal_acts_on_is_left(text in "(?s)[\u{1b}\u{9b}\u{9d}\\[\\]0-9;a-z\u{7}\\\\\n\u{0}-\u{1f}\u{80}-\u{9f}]{0,60}") {
        let clean = plain(&text);
        proptest::prop_assert!(clean.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{clean:?}");
    }

    #[test]
    fn json_for_a_terminal_is_still_the_same_json(text in "(?s).{0,60}") {
        let printed = json(&text).unwrap();
        proptest::prop_assert!(!printed.chars().any(is_unsafe), "{printed:?}");
        proptest::prop_assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), text);
    }
}

#[test]
fn numbers_are_written_for_people() {
    let dollar: Vec<_> = [0, 412, 9_999, 10_000, 1_235_567].into_iter().map(dollars).collect();
    assert_eq!(dollar, ["$0.00", "$0.000412", "$0.009999", "$0.01", "$1.24"]);
    let times: Vec<_> = [-5, 4_230, 185_000, 7_440_000].into_iter().map(duration).collect();
    assert_eq!(times, ["0.0 s", "4.2 s", "3 min 5 s", "2 h 4 min"]);
    let ages: Vec<_> =
        [0, 300, 7_200, 864_000].into_iter().map(|seconds| age(Millis(0), Millis(seconds * 1000))).collect();
    assert_eq!(ages, ["now", "5 min", "2 h", "10 d"]);
}
