//! A file as the commit has it that a run started from. No agent can change that one: it is read from the objects by
//! its name, never from the tree.

use super::{Worktree, WorktreeError};

/// What the first commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstFile {
    /// Nothing.
    Absent,
    /// A file.
    Text(Vec<u8>),
    /// A file that is longer than was asked for.
    Long,
    /// A link, a folder or a submodule.
    Other,
}

impl Worktree {
    /// The file at a path below the root of the repository, at most `most` bytes of it.
    ///
    /// # Errors
    /// When git cannot read the commit.
    pub async fn first_file(&self, path: &str, most: usize) -> Result<FirstFile, WorktreeError> {
        let listed =
            self.on_objects("ls-tree").args(["-z", "-l", "--full-tree", self.base.as_str(), "--", path]);
        let listed = listed.run().await?.stdout;
        // `<mode> <type> <object> <size>\t<path>\0`
        let listed = String::from_utf8_lossy(&listed);
        let Some((facts, _)) =
            listed.split('\0').filter_map(|entry| entry.split_once('\t')).find(|one| one.1 == path)
        else {
            return Ok(FirstFile::Absent);
        };
        let facts: Vec<&str> = facts.split_whitespace().collect();
        let &[mode, "blob", object, size] = facts.as_slice() else { return Ok(FirstFile::Other) };
        if !matches!(mode, "100644" | "100755" | "100664") {
            return Ok(FirstFile::Other);
        }
        if size.parse::<usize>().map_or(true, |size| size > most) {
            return Ok(FirstFile::Long);
        }
        let blob = self.on_objects("cat-file").args(["blob", object]).output_limit(most.saturating_add(1));
        Ok(FirstFile::Text(blob.run().await?.stdout))
    }
}
