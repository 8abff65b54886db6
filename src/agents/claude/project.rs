//! What is taken from the project: its instructions (`CLAUDE.md`, else `.claude/CLAUDE.md`), handed over as text, and
//! the deny rules of its settings. Never: an import (`@file`) followed, a file outside the worktree read, more than
//! [`MAX_PROJECT_TEXT`] bytes, anything of its settings that is not a deny rule.

use std::io::Read as _;
use std::path::Path;

use crate::guardrails::{self, ProjectRules};

/// The most that is handed over, in bytes; the rest is cut with a note.
pub const MAX_PROJECT_TEXT: usize = 256 * 1024;

/// The project's settings files, those for everybody first.
pub const PROJECT_SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectText {
    /// `CLAUDE.md` or `.claude/CLAUDE.md`.
    pub file: &'static str,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether it was cut.
    pub cut: bool,
}

impl ProjectText {
    /// Reads it. A link that leaves the worktree, a folder, a pipe or an unreadable file counts as none: the
    /// repository must not choose which file of the machine becomes text for the model.
    pub fn read(worktree: &Path) -> Option<Self> {
        ["CLAUDE.md", ".claude/CLAUDE.md"].into_iter().find_map(|file| Self::read_one(worktree, file))
    }

    fn read_one(worktree: &Path, file: &'static str) -> Option<Self> {
        let (bytes, cut) = read_inside(worktree, file)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.trim().is_empty()).then_some(Self { file, text, cut })
    }

    /// As it is put before the model.
    pub(super) fn prompt(&self) -> String {
        let note = if self.cut { "\n\n(The rest of the file is cut.)" } else { "" };
        format!(
            "The project's own instructions, from its file {}. Files that it imports with `@` are not included; \
             read them when they matter.\n\n{}{note}\n",
            self.file, self.text
        )
    }
}

/// What the repository has in the place of one of [`PROJECT_SETTINGS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFile {
    /// A file of at most [`MAX_PROJECT_TEXT`] bytes.
    Text(Vec<u8>),
    /// A longer one.
    Long,
    /// A link, a folder, a submodule.
    Other,
}

/// The deny rules of the project's own settings, as the commit has them that the run started from: an agent must not
/// be able to take one back. What is there and cannot be understood gives a note, and no rule.
pub fn project_rules(files: &[(&str, ProjectFile)]) -> ProjectRules {
    let mut notes = Vec::new();
    let mut texts = Vec::new();
    for (name, file) in files {
        match file {
            ProjectFile::Text(bytes) => texts.push((*name, String::from_utf8_lossy(bytes).into_owned())),
            ProjectFile::Long => notes.push(format!(
                "`{name}` has more than {MAX_PROJECT_TEXT} bytes, so none of its rules is known"
            )),
            ProjectFile::Other => {
                notes.push(format!("`{name}` is no file of the project, so none of its rules is known"));
            }
        }
    }
    let mut found = guardrails::project_rules(texts.iter().map(|(name, text)| (*name, text.as_str())));
    found.notes.splice(..0, notes);
    found
}

/// At most [`MAX_PROJECT_TEXT`] bytes of a file, and whether that cut it. A link that leaves the worktree, a folder, a
/// pipe or an unreadable file counts as none.
fn read_inside(worktree: &Path, file: &str) -> Option<(Vec<u8>, bool)> {
    let root = worktree.canonicalize().ok()?;
    let path = root.join(file).canonicalize().ok()?;
    if !path.starts_with(&root) || !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path).ok()?.take(MAX_PROJECT_TEXT as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > MAX_PROJECT_TEXT;
    bytes.truncate(MAX_PROJECT_TEXT);
    Some((bytes, cut))
}
