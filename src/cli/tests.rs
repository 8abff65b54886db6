use clap::ValueEnum as _;

use super::*;

#[test]
fn a_completion_script_offers_every_shown_command_and_no_hidden_one() {
    for shell in clap_complete::Shell::value_variants() {
        let script = String::from_utf8(completions(*shell)).unwrap();
        let words: Vec<&str> = script.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
        for shown in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = shown.get_name();
            assert!(script.contains(name), "{shell} does not offer `{name}`");
        }
        for hidden in ["shim", "hook"] {
            let offered = words.iter().any(|word| word.split("--").any(|part| part == hidden));
            assert!(!offered && !script.contains(&format!("worca__{hidden}")), "{shell} offers `{hidden}`");
        }
    }
}

/// The words of a command line as a shell takes them: up to a redirection, a pipe or a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            '<' | '>' | '|' | '#' if !quoted && word.is_empty() => break,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn examples(command: &clap::Command) -> Vec<String> {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own = own.lines().map(str::trim).filter(|line| line.starts_with("worca ")).map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(examples)).collect()
}

#[test]
fn each_example_of_the_help_is_a_command_line_that_is_taken() {
    let examples = examples(&Cli::command());
    assert!(examples.len() > 20, "{examples:#?}");
    for example in examples {
        let words = words(&example);
        if let Err(error) = Cli::try_parse_from(&words) {
            panic!("`{example}`: {error}");
        }
        // What `container run` hands on is a command line of its own.
        if let Some((_, rest)) = example.split_once("worca container run -- ")
            && let Err(error) = Cli::try_parse_from(self::words(&format!("worca run {rest}")))
        {
            panic!("`{example}`: {error}");
        }
    }
}

#[test]
fn each_shown_command_has_an_example() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.starts_with("Example"), "`{}` has no example", command.get_name());
        command.get_subcommands().filter(|command| !command.is_hide_set()).for_each(check);
    }
    check(&Cli::command());
}
