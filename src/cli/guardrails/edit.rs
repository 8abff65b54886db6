//! `worca guardrails edit`: opens a copy in the user's editor and puts it in place once it is right.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::text::note;
use crate::failure::{Exit, Explain, Failure};
use crate::guardrails::{Mode, OwnSets, OwnSetsError, SetName, Tier};

/// Edit a guardrail set of your own
///
/// The editor is that of VISUAL or EDITOR, as with git. What you save counts once it is right; what is not is kept
/// beside the set.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  EDITOR=nano worca guardrails edit payments")]
pub struct Args {
    /// The set
    #[arg(value_name = "NAME")]
    pub name: SetName,
}

/// The set was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// None is set, and none can be guessed.
    #[error("no editor is known: the terminal is a dumb one, and neither `VISUAL` nor `EDITOR` is set")]
    NoEditor,
    /// It did not start.
    #[error("the editor `{editor}` cannot be started")]
    Start {
        /// Its command.
        editor: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It ended with a failure.
    #[error("the editor `{editor}` ended with a failure, and nothing was changed")]
    Failed {
        /// Its command.
        editor: String,
    },
    /// A file.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What was saved is wrong.
    #[error("the set was not changed; your text is in `{}`", kept.display())]
    Refused {
        /// Where the text is.
        kept: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<OwnSetsError>,
    },
    /// Somebody else changed it.
    #[error("the set was changed by somebody else meanwhile; your text is in `{}`", kept.display())]
    Changed {
        /// Where the text is.
        kept: PathBuf,
    },
}

impl Explain for EditError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoEditor | Self::Start { .. } | Self::Failed { .. } => "editor",
            Self::File { .. } => "guardrails-file",
            Self::Refused { source, .. } => source.code(),
            Self::Changed { .. } => "guardrails-changed",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoEditor | Self::Start { .. } => Some("set `EDITOR` to an editor's command".into()),
            Self::Refused { source, .. } => source.hint(),
            Self::Changed { .. } => Some("look at both, and edit again".into()),
            Self::Failed { .. } | Self::File { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Refused { source, .. } => source.exit(),
            Self::NoEditor => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

/// Edits.
///
/// # Errors
/// When there is no such set, it is a tier, no editor runs, or what was saved is wrong.
pub fn run(args: &Args, sets: &OwnSets) -> Result<Exit, Failure> {
    let name = &args.name;
    if Tier::named(name).is_some() {
        return Err(OwnSetsError::Tier(name.clone()).into());
    }
    let library = sets.library()?;
    let listed = library.get(name)?;
    if listed.text.is_empty() {
        // What cannot be read as text can only be looked at by hand.
        library.document(name)?;
    }
    let editor = editor()?;
    let path = sets.file(name);
    let draft = path.with_file_name(format!(".{name}.{}.edit.yaml", crate::ids::SpawnId::random()));
    let text = edited(&editor, &draft, &listed.text);
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            let _ = std::fs::remove_file(&draft);
            return Err(error.into());
        }
    };
    if text == listed.text {
        let _ = std::fs::remove_file(&draft);
        note(&format!("nothing was changed in `{name}`"));
        return Ok(Exit::Done);
    }
    // From here on the draft is the user's work: it goes when it is in place, else it stays under a name of its own.
    let kept = path.with_file_name(format!("{name}.yaml.rejected"));
    let keep = || -> Result<PathBuf, EditError> {
        std::fs::rename(&draft, &kept).map_err(|source| EditError::File {
            what: "write",
            path: kept.clone(),
            source,
        })?;
        Ok(kept.clone())
    };
    if std::fs::read_to_string(&path).ok().as_deref() != Some(listed.text.as_str()) {
        return Err(EditError::Changed { kept: keep()? }.into());
    }
    if let Err(source) = sets.save(name, &text, &format!("{name}.yaml"), Mode::Replace) {
        return Err(EditError::Refused { kept: keep()?, source: Box::new(source) }.into());
    }
    let _ = std::fs::remove_file(&draft);
    note(&format!("`{name}` is changed; it holds from the next start of an agent on"));
    Ok(Exit::Done)
}

/// The editor's command, in git's order.
fn editor() -> Result<String, EditError> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let dumb = std::env::var("TERM").map_or(cfg!(unix), |term| term == "dumb");
    let visual = if dumb { None } else { set("VISUAL") };
    match visual.or_else(|| set("EDITOR")) {
        Some(editor) => Ok(editor),
        None if cfg!(windows) => Ok("notepad".into()),
        None if dumb => Err(EditError::NoEditor),
        None => Ok("vi".into()),
    }
}

/// What the user made of the text.
fn edited(editor: &str, draft: &Path, text: &str) -> Result<String, EditError> {
    let failed = |what: &'static str| {
        move |source: std::io::Error| EditError::File { what, path: draft.to_owned(), source }
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(draft).map_err(failed("write"))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed("write"))?;
    drop(file);
    // Through a shell, as git does it: `EDITOR` may hold arguments.
    #[expect(clippy::disallowed_methods, reason = "the user's editor, in the user's terminal")]
    let mut command = if cfg!(windows) { Command::new(editor) } else { Command::new("sh") };
    if !cfg!(windows) {
        command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor);
    }
    let status = command
        .arg(draft)
        .status()
        .map_err(|source| EditError::Start { editor: editor.to_owned(), source })?;
    if !status.success() {
        return Err(EditError::Failed { editor: editor.to_owned() });
    }
    std::fs::read_to_string(draft).map_err(failed("read"))
}
