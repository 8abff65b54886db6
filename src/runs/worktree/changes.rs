//! What a run changed: its commits, its files, the text of the difference. Read from objects alone, so it is there
//! after the worktree is gone, and nothing in a tree has a say in it.

use super::{Worktree, WorktreeError};
use crate::git::{Call, CommitId};

/// The most commits that are listed.
const MOST_COMMITS: usize = 1000;
/// The most files that are listed.
const MOST_FILES: usize = 20_000;

/// What lies between the commit that the run started from and the tip of its branch.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Changes {
    /// The tip.
    pub tip: CommitId,
    /// The commits, oldest first; at most 1000.
    pub commits: Vec<CommitLine>,
    /// The files; at most 20000.
    pub files: Vec<ChangedFile>,
    /// Whether there were more commits or files than are listed.
    pub was_cut: bool,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CommitLine {
    /// Its id.
    pub id: CommitId,
    /// Its author's name.
    pub author: String,
    /// Its first line.
    pub subject: String,
}

/// One changed file. Paths that are not UTF-8 are shown with replacement characters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedFile {
    /// Its path from the top.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Where it was before, when it was moved or copied.
    pub before: Option<String>,
    /// Lines added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or mode is another.
    Modified,
    /// It has another path.
    Moved,
    /// It is a copy.
    Copied,
    /// It is of another type (a link, a submodule).
    Retyped,
}

/// The difference as text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DiffText {
    /// A unified diff; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether the end was cut off.
    pub was_cut: bool,
}

impl Worktree {
    /// Where the branch stands; what core saw last when it cannot be read.
    ///
    /// # Errors
    /// When git does not run.
    pub async fn tip(&self) -> Result<CommitId, WorktreeError> {
        if !self.common_dir.join("objects").is_dir() {
            return Err(WorktreeError::RepositoryGone(self.common_dir.clone()));
        }
        Ok(self.branch_tip().await?.unwrap_or_else(|| self.last_tip()))
    }

    /// The commits and files between the start and the tip.
    ///
    /// # Errors
    /// When git does not run or the objects are gone.
    pub async fn changes(&self) -> Result<Changes, WorktreeError> {
        let tip = self.tip().await?;
        let range = format!("{}..{tip}", self.base);
        let most = format!("--max-count={}", MOST_COMMITS + 1);
        let log = self
            .on_objects("log")
            .args([
                "-z",
                "--reverse",
                "--no-color",
                "--no-show-signature",
                "--encoding=UTF-8",
                "--no-notes",
                &most,
            ])
            .args(["--format=%H%x1f%an%x1f%s", "--end-of-options", &range])
            .run()
            .await?
            .stdout;
        let mut commits: Vec<CommitLine> = records(&log).filter_map(|record| commit_line(&record)).collect();
        let kinds = self.between(&tip, "--name-status").run().await?.stdout;
        let counts = self.between(&tip, "--numstat").run().await?.stdout;
        let mut files = files(&kinds, &counts);
        let was_cut = commits.len() > MOST_COMMITS || files.len() > MOST_FILES;
        commits.truncate(MOST_COMMITS);
        files.truncate(MOST_FILES);
        Ok(Changes { tip, commits, files, was_cut })
    }

    /// The difference between the start and the tip, at most `limit` bytes of it.
    ///
    /// # Errors
    /// When git does not run or the objects are gone.
    pub async fn diff(&self, limit: usize) -> Result<DiffText, WorktreeError> {
        let tip = self.tip().await?;
        let output = self.between(&tip, "--patch").cut_at(limit).run().await?;
        let mut bytes = output.stdout;
        if output.was_cut {
            // Not in the middle of a line or of a character.
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            bytes.truncate(end);
        }
        Ok(DiffText { text: String::from_utf8_lossy(&bytes).into_owned(), was_cut: output.was_cut })
    }

    fn between(&self, tip: &CommitId, form: &str) -> Call {
        let call =
            self.on_objects("diff-tree").args(["-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv"]);
        let call = if form == "--patch" { call } else { call.arg("-z") };
        call.args([form, "--submodule=short", "--ignore-submodules=none", self.base.as_str(), tip.as_str()])
    }
}

fn records(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty())
        .map(|part| String::from_utf8_lossy(part).into_owned())
}

fn commit_line(record: &str) -> Option<CommitLine> {
    let mut parts = record.splitn(3, '\u{1f}');
    let id = CommitId::parse(parts.next()?).ok()?;
    Some(CommitLine { id, author: parts.next()?.to_owned(), subject: parts.next()?.to_owned() })
}

/// `--name-status -z` and `--numstat -z` of the same two trees list the same files in the same order.
fn files(kinds: &[u8], counts: &[u8]) -> Vec<ChangedFile> {
    let mut kinds = kinds.split(|byte| *byte == 0);
    let mut counts = counts.split(|byte| *byte == 0);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut files = Vec::new();
    while let Some(letter) = kinds.next().and_then(<[u8]>::first) {
        let kind = match letter {
            b'A' => ChangeKind::Added,
            b'D' => ChangeKind::Deleted,
            b'R' => ChangeKind::Moved,
            b'C' => ChangeKind::Copied,
            b'T' => ChangeKind::Retyped,
            _ => ChangeKind::Modified,
        };
        let two = matches!(kind, ChangeKind::Moved | ChangeKind::Copied);
        let before = if two { kinds.next().map(text) } else { None };
        let Some(path) = kinds.next().map(text) else { break };
        let lines = counts.next().and_then(|record| {
            let record = String::from_utf8_lossy(record);
            let mut parts = record.splitn(3, '\t');
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        });
        if two {
            counts.nth(1);
        }
        files.push(ChangedFile { path, kind, before, lines });
    }
    files
}
