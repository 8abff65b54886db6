//! The project's own instructions, read by us and handed over as text: `CLAUDE.md`, else `.claude/CLAUDE.md`.
//! Never: an import (`@file`) followed, a file outside the worktree read, more than [`MAX_PROJECT_TEXT`] bytes.

use std::io::Read as _;
use std::path::Path;

/// The most that is handed over, in bytes; the rest is cut with a note.
pub const MAX_PROJECT_TEXT: usize = 256 * 1024;

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
        let root = worktree.canonicalize().ok()?;
        let path = root.join(file).canonicalize().ok()?;
        if !path.starts_with(&root) || !path.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        std::fs::File::open(&path).ok()?.take(MAX_PROJECT_TEXT as u64 + 1).read_to_end(&mut bytes).ok()?;
        let cut = bytes.len() > MAX_PROJECT_TEXT;
        bytes.truncate(MAX_PROJECT_TEXT);
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
