//! `worca guardrails show`: a set as it is written, or what it comes to.

use crate::cli::text::{Output, plain, print, print_json};
use crate::failure::{Exit, Failure};
use crate::guardrails::{OwnSets, SetName};

/// Show a guardrail set
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  worca guardrails show normal\n  worca guardrails show strict --resolved --json"
)]
pub struct Args {
    /// The set
    #[arg(value_name = "SET")]
    pub set: SetName,
    /// With everything that it extends
    #[arg(long)]
    pub resolved: bool,
    /// Print JSON; with --resolved each rule says which set brings it
    #[arg(long)]
    pub json: bool,
}

/// Shows.
///
/// # Errors
/// When there is no such set, or it or one that it extends is broken.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let library = sets.library()?;
    match (args.resolved, args.json) {
        (true, true) => print_json(&library.resolve(&args.set)?)?,
        (true, false) => {
            let set = library.resolve(&args.set)?;
            let names: Vec<String> = set.extends.iter().map(|name| format!("`{name}`")).collect();
            let head = if names.is_empty() {
                format!("# `{}` extends nothing.\n", set.name)
            } else {
                format!("# `{}` with all that it extends: {}.\n", set.name, names.join(", "))
            };
            print(&format!("{head}{}", set.to_document().to_yaml()))?;
        }
        (false, true) => print_json(library.document(&args.set)?)?,
        (false, false) => {
            // A broken one is shown as well where it is text: somebody must be able to see what is wrong.
            let listed = library.get(&args.set)?;
            if listed.text.is_empty() {
                library.document(&args.set)?;
            }
            let text = &listed.text;
            print(&if Output::standard().terminal { plain(text) } else { text.clone() })?;
        }
    }
    Ok(Exit::Done)
}
