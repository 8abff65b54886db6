//! `worca guardrails new`: a commented starter.

use crate::cli::text::{note, print};
use crate::failure::{Exit, Failure};
use crate::guardrails::{Mode, OwnSets, SetName};

/// Write a new guardrail set that extends another one
///
/// It prints the path of the file. What it holds at first are comments: it denies what it extends denies.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca guardrails new payments --from strict")]
pub struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: SetName,
    /// The tier or set that it adds to
    #[arg(long, value_name = "SET", default_value = "normal")]
    pub from: SetName,
}

/// Writes.
///
/// # Errors
/// When the name is taken, there is no set to extend, or the file cannot be written.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let text = starter(&args.name, &args.from);
    let path = sets.file(&args.name).display().to_string();
    sets.save(&args.name, &text, &path, Mode::New)?;
    print(&format!("{path}\n"))?;
    note(&format!(
        "`worca guardrails edit {0}` changes it; `worca run --guardrails {0} …` uses it",
        args.name
    ));
    Ok(Exit::Done)
}

/// The starter's text.
pub fn starter(name: &SetName, from: &SetName) -> String {
    format!(
        "\
# What this set is for: say it here.
#
# Rules only add: nothing that `{from}` denies or limits is taken back, whatever stands below.
# `worca guardrails show {from}` shows what it adds to, docs/guardrails.md every key.
name: {name}
extends: {from}

# Adds the deny rules of the repository that an agent works on.
#honor_project_rules: true

deny:
  # A command by its words. An option between them hides nothing, nor does another shell around it.
  commands: []
  #  - terraform apply # changes what others run on

  # Tools of the agent program, `*` for any letters.
  tools: []
  #  - mcp__browser__*
  #  - WebFetch(domain:*.example.com)

  # Paths that are neither read nor edited, as in .gitignore; `~` is the home folder. In quotes where a `*` comes first.
  paths: []
  #  - \"**/customers/*.csv\"
  #  - ~/.config/payments/**

  # A line of which cannot be known what it runs.
  #undecided: true

# Of your variables only those that a program needs to run, and those of `keep`.
#environment:
#  scrub: true
#  keep: [CI]

# What the kernel holds. filesystem: open, project-write or project. tcp: the ports that may be connected to.
#confine:
#  filesystem: project
#  tcp: [443]

# No run where the kernel cannot hold it.
#require:
#  kernel: true
"
    )
}
