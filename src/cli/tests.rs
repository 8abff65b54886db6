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
