//! `worca guardrails copy`: a set under another name, its comments kept.

use crate::cli::text::print;
use crate::failure::{Exit, Failure};
use crate::guardrails::{Document, Mode, OwnSets, SetName};

/// Copy a guardrail set under another name
///
/// To add to a set rather than to change its rules, extend it: `worca guardrails new`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails copy strict payments")]
pub struct Args {
    /// The set
    #[arg(value_name = "SET")]
    pub set: SetName,
    /// The new name
    #[arg(value_name = "NAME")]
    pub name: SetName,
}

/// Copies.
///
/// # Errors
/// When there is no such set, the name is taken, or the file cannot be written.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let library = sets.library()?;
    let document = library.document(&args.set)?;
    let text = renamed(&library.get(&args.set)?.text, document, &args.name);
    let path = sets.file(&args.name).display().to_string();
    sets.save(&args.name, &text, &path, Mode::New)?;
    print(&format!("{path}\n"))?;
    Ok(Exit::Done)
}

/// The text with another name in it; all else, comments too, stays. A text in another style is written anew.
pub fn renamed(text: &str, document: &Document, name: &SetName) -> String {
    let meant = Document { name: name.clone(), ..document.clone() };
    let mut done = false;
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            if done || !line.starts_with("name:") {
                return line.to_owned();
            }
            done = true;
            format!("name: {name}")
        })
        .collect();
    let text = lines.join("\n");
    match Document::parse(&text, "copy") {
        Ok(copy) if copy == meant => text,
        _ => meant.to_yaml(),
    }
}
