//! What holds of the judge of command lines whatever the line: it never panics, it ends, and no dressing makes a denied
//! line an allowed one or the other way round.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/lines.rs"]
#[allow(dead_code, reason = "the lists are read by the other test binary as well")]
mod lines;

use std::sync::LazyLock;

use lines::{HOST, Line, harmless, hostile, tier, verdict};
use proptest::prelude::*;
use worca::guardrails::GuardrailSet;
use worca::guardrails::Verdict;
use worca::guardrails::shell::{LineContext, Shell, judge_line};

static STRICT: LazyLock<GuardrailSet> = LazyLock::new(|| tier("strict"));
static NORMAL: LazyLock<GuardrailSet> = LazyLock::new(|| tier("normal"));
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::PowerShell, Shell::Cmd];

fn judged(shell: Shell, line: &str) -> Verdict {
    let mut verdicts = [&*STRICT, &*NORMAL].map(|set| {
        let context = LineContext {
            rules: &set.rules,
            deny_undecided: set.deny_undecided,
            host: Some(HOST),
            path: &|_| None,
        };
        judge_line(shell, line, &context)
    });
    std::mem::replace(&mut verdicts[1], Verdict::Allow)
}

/// Pieces that mean something to one of the shells.
const PIECES: [&str; 122] = [
    " ",
    " ",
    " ",
    "\n",
    "\t",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    " }",
    "[",
    "]",
    "[[",
    "]]",
    "((",
    "))",
    "$(",
    "${",
    "$((",
    "`",
    "'",
    "\"",
    "$'",
    "\\",
    "\\\n",
    "^",
    "^\n",
    "%",
    "%x%",
    "!",
    "!x!",
    "#",
    " #",
    "<",
    ">",
    "<<",
    "<<-",
    "<<E\n",
    "<<'E'\n",
    "\nE\n",
    "<<<",
    "<(",
    ">(",
    ">&",
    "2>&1",
    "*",
    "?",
    "~",
    "=",
    "x=",
    "x+=",
    "$x",
    "$1",
    "$@",
    "$!",
    "$?",
    "${x:-",
    "${x//",
    "${!x}",
    "@(",
    "@{",
    "@'\n",
    "\n'@",
    "@\"\n",
    "\n\"@",
    "[scriptblock]::Create(",
    ".Kill(",
    ".Invoke(",
    "::",
    ".",
    ",",
    "-c",
    "-e",
    "-enc",
    "/c",
    "/im",
    "-Name",
    "-Id",
    "--",
    "--%",
    "-f",
    "-join",
    "if ",
    "then ",
    "fi ",
    "for ",
    "in ",
    "do ",
    "done ",
    "while ",
    "case ",
    "esac",
    ";;",
    "function ",
    "f() ",
    "else ",
    "git",
    "push",
    "kill",
    "pkill",
    "sh",
    "bash",
    "eval",
    "cmd",
    "powershell",
    "iex",
    "env",
    "xargs",
    "find . -exec",
    "echo",
    "cat",
    "node",
    "taskkill",
    "Stop-Process",
    "é",
    "\u{F0000}",
];

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60).prop_map(|pieces| pieces.concat())
}

/// A line of bash in single quotes.
fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

/// A line of bash in double quotes, with nothing of it expanded.
fn double(line: &str) -> String {
    let mut text = String::from("\"");
    for c in line.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

/// A line of bash as `$'…'`.
fn ansi(line: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("$'");
    for byte in line.bytes() {
        let _ = write!(text, "\\x{byte:02x}");
    }
    text.push('\'');
    text
}

/// Ways to run a line of bash in another.
const WRAPPINGS: usize = 34;

fn wrapped(line: &str, way: usize) -> String {
    match way {
        0 => format!("({line}\n)"),
        1 => format!("{{ {line}\n}}"),
        2 => format!("true; {line}"),
        3 => format!("true && {{ {line}\n}}"),
        4 => format!("if true; then {line}\nfi"),
        5 => format!("while true; do {line}\nbreak; done"),
        6 => format!("for i in 1 2; do {line}\ndone"),
        7 => format!("case x in x) {line}\n;; esac"),
        8 => format!("f() {{ {line}\n}}; f"),
        9 => format!("echo \"$({line}\n)\""),
        10 => format!("echo $({line}\n)"),
        11 => format!("x=$({line}\n)"),
        12 => format!("cat <({line}\n)"),
        13 => format!("echo ${{x:-$({line}\n)}}"),
        14 => format!("eval {}", quoted(line)),
        15 => format!("sh -c {}", quoted(line)),
        16 => format!("bash -lc {}", double(line)),
        17 => format!("bash -c {}", ansi(line)),
        18 => format!("env A=1 bash -c {}", quoted(line)),
        19 => format!("timeout 5 nice -n 3 sh -c {}", quoted(line)),
        20 => format!("nohup setsid bash -c {} &", quoted(line)),
        21 => format!("find . -exec sh -c {} ';'", quoted(line)),
        22 => format!("xargs sh -c {}", quoted(line)),
        23 => format!("x={}; eval \"$x\"", quoted(line)),
        24 => format!("bash <<< {}", quoted(line)),
        25 => format!("bash <<'WRAPPED'\n{line}\nWRAPPED"),
        26 => format!("trap {} EXIT", quoted(line)),
        27 => format!("cat <<WRAPPED\n$({line}\n)\nWRAPPED"),
        28 => format!("! {{ {line}\n}}"),
        29 => format!("time {{ {line}\n}}"),
        30 => format!("coproc {{ {line}\n}}"),
        31 => format!("git -c alias.z={} z", quoted(&format!("!{line}"))),
        32 => format!("env -S {}", quoted(&format!("bash -c {}", double(line)))),
        _ => format!("a=({}); eval \"${{a[0]}}\"", quoted(line)),
    }
}

/// Ways to write a line of bash as text.
fn as_text(line: &str, way: usize) -> String {
    match way {
        0 => format!("echo {}", quoted(line)),
        1 => format!("git commit -m {}", double(line)),
        2 => format!("printf '%s\\n' {}", quoted(line)),
        3 => format!("cat > notes.md <<'WRAPPED'\n{line}\nWRAPPED"),
        4 => format!("git log --grep={}", quoted(line)),
        5 => format!("x={}", quoted(line)),
        _ => format!("grep -rn -- {} docs", quoted(line)),
    }
}

/// Hostile lines that end by themselves, so that other text can stand behind them.
fn ending() -> Vec<Line> {
    let unfit = |line: &Line| {
        line.shell != Shell::Bash
            || line.from > 1
            || line.text.contains("<<")
            || line.rule.as_deref() == Some("shell.unreadable")
            || line.text.ends_with('\\')
    };
    hostile().into_iter().filter(|line| !unfit(line)).collect()
}

static ENDING: LazyLock<Vec<Line>> = LazyLock::new(ending);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn no_text_makes_the_judge_panic(text in any::<String>()) {
        for shell in SHELLS {
            let _ = judged(shell, &text);
        }
    }

    #[test]
    fn no_soup_of_its_own_words_makes_the_judge_panic(text in soup()) {
        for shell in SHELLS {
            let _ = judged(shell, &text);
        }
    }

    #[test]
    fn no_bytes_make_the_judge_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let text = String::from_utf8_lossy(&bytes);
        for shell in SHELLS {
            let _ = judged(shell, &text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn a_denied_line_stays_denied_however_it_is_wrapped(
        line in (0..ENDING.len()).prop_map(|at| ENDING[at].clone()),
        ways in proptest::collection::vec(0..WRAPPINGS, 1..=3),
    ) {
        let mut text = line.text.clone();
        for way in &ways {
            text = wrapped(&text, *way);
        }
        let found = verdict(&NORMAL, &Line { text: text.clone(), ..line });
        prop_assert!(found.is_some(), "allowed by {ways:?}: {text}");
    }

    #[test]
    fn a_denied_line_stays_denied_among_harmless_ones(
        line in (0..ENDING.len()).prop_map(|at| ENDING[at].clone()),
        before in 0..5_usize,
    ) {
        let others = ["ls -la", "cargo test 2>&1 | tail -5", "x=$(date)", "cat <<'E'\nit's\nE", "# it's a note"];
        let text = format!("{}\n{}\necho done", others[before], line.text);
        let found = verdict(&NORMAL, &Line { text: text.clone(), ..line });
        prop_assert!(found.is_some(), "allowed: {text}");
    }
}

#[test]
fn each_line_that_is_only_text_is_allowed() {
    let mut wrong = Vec::new();
    for line in ENDING.iter().chain(&harmless()) {
        for way in 0..7 {
            // A shell runs what stands in such brackets where it takes a text for a number: it may be used as one.
            if way == 5 && line.text.contains('[') && line.text.contains(['$', '`']) {
                continue;
            }
            let text = as_text(&line.text, way);
            if let Some(denial) = verdict(&NORMAL, &Line { text: text.clone(), ..line.clone() }) {
                wrong.push(format!("{text}\n    {}: {}", denial.rule, denial.reason));
            }
        }
    }
    assert!(wrong.is_empty(), "{} denied:\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines of 64 KiB that are the worst that we know. That each is judged in time and memory is measured, not asserted
/// here (`scripts/bench guard`); that they come to an end without a stack that overflows is.
fn come_to_an_end(shell: Shell) {
    for (name, text) in worst() {
        assert!(text.len() <= 64 * 1024, "{name}");
        let _ = judged(shell, &text);
    }
}

#[test]
fn the_worst_lines_of_full_length_come_to_an_end_in_bash() {
    come_to_an_end(Shell::Bash);
}

#[test]
fn the_worst_lines_of_full_length_come_to_an_end_in_powershell() {
    come_to_an_end(Shell::PowerShell);
}

#[test]
fn the_worst_lines_of_full_length_come_to_an_end_in_cmd() {
    come_to_an_end(Shell::Cmd);
}

fn worst() -> Vec<(String, String)> {
    const FULL: usize = 64 * 1024;
    let mut all = Vec::new();
    for piece in PIECES {
        all.push((format!("only {piece:?}"), piece.repeat(FULL / piece.len())));
    }
    let longer = [
        "$(echo ",
        "\"$(",
        "${x:-",
        "`echo \\`",
        "$((1+",
        "a[$(",
        "{a,",
        "{1..9}",
        "{a,b}{c,d}",
        "x=$x$x;",
        "x+=$x;",
        "eval ",
        "sh -c ",
        "env ",
        "f() { ",
        "if a; then ",
        "case a in a) ",
        "while a; do ",
        "( ",
        "cat <<E\n",
        "<<X$[",
        "git -c a=b ",
        "a|",
        "a && ",
        "alias a=b;",
        "for i in a b; do ",
        "$x ",
        "\"$x\" ",
        "& $x y;",
        "iex $x;",
        "iex 'a';",
        "@(",
        "@{a=",
        "$(",
        "foreach ($x in $y) {",
        "a.b.c.Kill().",
        "[a]::b(",
        "'{0}' -f 'a';",
        "a,b,",
        "-join ",
        "%x%",
        "if a==b ",
        "return ",
        "call call ",
        "schtasks cmd ",
        "foo taskkill ",
        "for %i in (a) do ",
        "start ",
        "call ",
        "cmd /c ",
        "set x=%x%%x%&",
        "powershell -c ",
        "git push --x ",
        "-a ",
        "--a=b ",
        "xargs -n1 ",
        "find . -exec ",
        "timeout 5 ",
        "awk '{system(",
        "python3 -c '",
        "sed 's/a/b/e' ",
        "git p* ",
        "??? ",
        "*/",
        "$x$y$z ",
        "${a[@]} ",
        "g\\\n",
        "'a''b'",
        "\"a\"\"b\"",
        "$'\\x41'",
        "a\\ b",
        "!(a|",
        "\u{F0000}",
        "\u{F0002}",
        "é",
    ];
    for piece in longer {
        let times = FULL / piece.len();
        all.push((format!("many {piece:?}"), piece.repeat(times)));
        // Some of it, and then a command.
        let some = piece.repeat(times.min(300));
        all.push((format!("300 {piece:?}"), format!("{some}git status")));
    }
    all
}
