//! `worca guardrails explain`: what a set stops by hook, by the agent program, by the kernel here, and what it does not.

use std::fmt::Write as _;

use console::{Style, measure_text_width};

use crate::cli::text::{Output, print, print_json};
use crate::failure::{Exit, Failure};
use crate::guardrails::{Explained, GuardrailSet, KernelSupport, OwnSets, SetName, explain};

/// The width when standard output is no terminal.
const WIDE: usize = 100;
/// The widest that a paragraph gets.
const MOST: usize = 120;

/// Explain what a guardrail set stops here, and what it cannot stop
///
/// By kind of action. The kernel is the one of this machine: inside a box the answer can be another one than outside.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails explain strict")]
pub struct Args {
    /// The set
    #[arg(value_name = "SET")]
    pub set: SetName,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(serde::Serialize)]
struct Answer<'a> {
    set: &'a SetName,
    kernel: KernelSupport,
    actions: Vec<Explained>,
}

/// Explains.
///
/// # Errors
/// When there is no such set, or it is broken.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let set = sets.library()?.resolve(&args.set)?;
    let kernel = crate::spawn::kernel_support();
    let actions = explain(&set, kernel);
    if args.json {
        print_json(&Answer { set: &set.name, kernel, actions })?;
    } else {
        print(&text(&set, kernel, &actions, Output::standard()))?;
    }
    Ok(Exit::Done)
}

/// The explanation as paragraphs.
pub fn text(set: &GuardrailSet, kernel: KernelSupport, actions: &[Explained], output: Output) -> String {
    let width = output.width.unwrap_or(WIDE).min(MOST);
    let mut text = String::new();
    let head = match set.extends.as_slice() {
        [] => format!("{}: {} rules", set.name, set.rules.len()),
        above => {
            let names: Vec<&str> = above.iter().map(SetName::as_str).collect();
            format!("{}: {} rules, with those of {}", set.name, set.rules.len(), names.join(" and "))
        }
    };
    paragraph(&mut text, "", &head, width);
    for (limit, value) in set.limits() {
        paragraph(&mut text, &format!("  {limit}: "), &value, width);
    }
    let offers = if kernel.abi == 0 {
        "this kernel offers no Landlock: it holds none of the limits below".into()
    } else {
        format!("this kernel offers Landlock ABI {}", kernel.abi)
    };
    paragraph(&mut text, "  kernel: ", &offers, width);
    for action in actions {
        let _ = writeln!(text, "\n{}", output.paint(Style::new().bold(), action.action));
        for (word, what) in [
            ("hook", &action.hook),
            ("program", &action.program),
            ("kernel", &action.kernel),
            ("not stopped", &action.open),
        ] {
            paragraph(&mut text, &format!("  {word:<13}"), what, width);
        }
    }
    text
}

/// Words under each other, each line after the first one set in as the first one's label is long.
fn paragraph(text: &mut String, label: &str, words: &str, width: usize) {
    let indent = measure_text_width(label);
    let mut line = label.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && measure_text_width(&line) + 1 + measure_text_width(word) > width {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
