//! C033 and C034: nothing hangs, nothing runs out of memory or of stack, nothing that is not understood is let through.

use std::time::{Duration, Instant};

use super::*;

const SIZE: usize = 64 * 1024;

fn quickly(line: &str) -> Verdict {
    let start = Instant::now();
    let verdict = judged(&NORMAL, false, line);
    let limit = if cfg!(debug_assertions) { 10_000 } else { 1000 };
    let took = start.elapsed();
    assert!(
        took < Duration::from_millis(limit),
        "{took:?} for {:?}…",
        line.chars().take(30).collect::<String>()
    );
    verdict
}

#[test]
fn c033_nested_substitutions_that_never_close() {
    assert_ne!(quickly(&("pkill -x demo-svc; ".to_owned() + &"$(".repeat(40))), Verdict::Allow);
    for open in [
        "$(",
        "`",
        "(",
        "{ ",
        "${a:-",
        "$((",
        "<(",
        "\"$(",
        "[[ ( ",
        "if ",
        "case a in a) ",
        "f(){ ",
        "$[",
        "a[$(",
        "a=(",
        "+(",
        "while ",
        "\"${a:-",
        "$(( $(",
    ] {
        for count in [1, 40, 200, SIZE / open.len()] {
            // An even number of backticks is closed.
            assert_ne!(quickly(&open.repeat(count | 1)), Verdict::Allow, "{open} {count}");
        }
    }
}

#[test]
fn c034_few_bytes_that_hang_a_tokenizer() {
    for line in [
        "<<X$[\t\t",
        "'",
        "${",
        "\"",
        "`",
        "$(",
        "$'",
        "<<",
        "<<<",
        "((",
        "[[",
        "a=(",
        ">",
        "a |",
        "a &&",
        "${x",
        "$((1",
        "<<'",
        "f(",
        "case",
        "case x in",
        "for",
        "if",
        "do",
        ";;",
        ")",
        "}",
        "a;;b",
        "&",
        ";",
        "|",
        "{ a",
        "x() ",
        "<&",
        "${x!}",
        "${}",
        "$[",
        "{fd}>",
        "`a",
        // One shell sees a quote here, another a character.
        "echo \"${x:-it's}\" $(git push) \"${y:-it's}\"",
    ] {
        match quickly(line) {
            Verdict::Deny(denial) => {
                assert_eq!(denial.rule.to_string(), "shell.unreadable", "{line}: {denial:?}")
            }
            Verdict::Allow => panic!("allowed: {line}"),
        }
    }
}

#[test]
fn sixty_four_kib_of_anything() {
    for piece in [
        "\\",
        "a&",
        "true;",
        "a|",
        "{a,b}",
        "{a,",
        "<<X\n",
        "cat <<E\n",
        "\"",
        "''",
        "<",
        "\n",
        "#",
        "$x",
        "$",
        "x=1 ",
        "a b ",
        "git ",
        "env ",
        "git push ",
        "kill 1 ",
        "\\\n",
        "$((1)) ",
        "`a` ",
        "$(a) ",
        "a[1]=2 ",
        "{1..9}",
        "*",
        "?",
        "[a-z]*",
        "~",
        "é",
        "😀",
        "x=$x$x;",
        "x+=a;",
        "eval ",
        "sh -c ",
        "${x:-a}",
        "${x/a/b}",
        "alias a=b;",
        "foo env ",
        "xargs ",
        "find -exec ",
        "parallel ::: ",
        "python -c x;",
        "-a git ",
        "echo {a,b} ",
        "x=a;x=b;$x;",
        "bash -c a;",
        "cat <<'E'\nx\nE\n",
        "\t",
        "\r",
        "!",
        "!a ",
        "time ",
        "[[ a ]];",
        "((a));",
        "case a in a) b;; esac;",
        "a() { b; };",
        "for i in a b; do c; done;",
    ] {
        quickly(&piece.repeat(SIZE / piece.len()));
        quickly(&("pkill x; ".to_owned() + &piece.repeat(SIZE / piece.len())));
    }
    // A generator of its own, so that each run tries the same.
    let alphabet: Vec<char> = "$(){}[]<>|&;'\"`\\ \n\tabc#!*?=~%-+09.,/:@^".chars().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for size in [10, 100, 1000, SIZE] {
        for _ in 0..(if size == SIZE { 4 } else { 300 }) {
            let mut line = String::new();
            while line.len() < size {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                line.push(alphabet[(state % alphabet.len() as u64) as usize]);
            }
            quickly(&line);
        }
    }
    quickly(&"x".repeat(1024 * 1024));
}

#[test]
fn a_zero_byte_is_unreadable() {
    assert_ne!(quickly("echo a\0b"), Verdict::Allow);
}
