//! Putting everything in the tree on the run's branch, whatever state the agent left its git in. The agent's index,
//! hooks, settings and HEAD take no part in it: core compares the tree with the branch's last commit itself.

use super::files::make_accessible;
use super::{TREE_LIMIT, Worktree, WorktreeError, WorktreeNote, patiently};
use crate::git::{Call, CommitId, GitError, Person, PrivateDir};

/// How git says that it may not read something.
const DENIED: &str = "Permission denied";

/// What `commit_all` found and did.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Where the branch stands now.
    pub tip: CommitId,
    /// The commit that was made; none when there was nothing to commit.
    pub made: Option<CommitId>,
    /// What a person should know.
    pub notes: Vec<WorktreeNote>,
}

/// What was met while the index was made to hold what is in the tree.
pub(super) struct Staged {
    /// Repositories inside the tree, which are left out.
    pub(super) nested: Vec<String>,
    pub(super) notes: Vec<WorktreeNote>,
}

/// Where the branch is taken to stand, and what the tree is a change of.
pub(super) struct Footing {
    pub(super) seen: Option<CommitId>,
    pub(super) tip: CommitId,
    pub(super) from: CommitId,
    pub(super) notes: Vec<WorktreeNote>,
}

impl Worktree {
    /// Makes one commit of everything in the tree that is not ignored, on top of the run's branch, and puts the
    /// worktree's own files right. Commits that the agent made stay as they are below it.
    ///
    /// When the agent moved to another commit or branch, what it changed there is brought over; where that does not
    /// merge, the tree as it is becomes the commit. What no branch holds afterwards is under `refs/worca/backup/`.
    /// Dropping the future half-way loses nothing; call it again.
    ///
    /// # Errors
    /// When the tree or the repository is gone or cannot be read. The tree is as it was then.
    pub async fn commit_all(&self, message: &str, person: &Person) -> Result<Saved, WorktreeError> {
        let _lock = self.lock().await?;
        self.check_places()?;
        let Footing { seen, tip, from, mut notes } = self.footing().await?;
        let staged = self.stage(&from, false).await?;
        notes.extend(staged.notes);
        for path in staged.nested {
            notes.push(WorktreeNote::NestedRepository { path });
        }
        let tree = self.write_tree().await?;
        let mut made = None;
        if tree != self.tree_of(&from).await? {
            let tree = if from == tip { tree } else { self.brought_over(&tree, &from, &tip, person).await? };
            if tree != self.tree_of(&tip).await? {
                made = Some(self.commit_tree(&tree, &[&tip], message, person).await?);
            }
        }
        let new = made.clone().unwrap_or_else(|| tip.clone());
        self.move_branch(seen.as_ref(), &new, "worca: run's work").await?;
        let mut settle = self.on_tree("read-tree").arg("--reset");
        if from != tip {
            // The tree shows another commit. All of it is kept by now, so it can be brought to the branch.
            settle = settle.arg("-u");
        }
        patiently(settle.arg(new.as_str())).await?;
        match self.blocking(Self::put_right).await {
            Ok(repaired) => notes.extend(repaired),
            // The work is on the branch by now; only the agent's own git may stand on what it broke.
            Err(error) => notes.push(WorktreeNote::NotRepaired { why: error.to_string() }),
        }
        Ok(Saved { tip: new, made, notes })
    }

    pub(super) fn check_places(&self) -> Result<(), WorktreeError> {
        if !self.common_dir.join("objects").is_dir() {
            return Err(WorktreeError::RepositoryGone(self.common_dir.clone()));
        }
        if !super::files::is_real_folder(&self.tree()) {
            return Err(WorktreeError::TreeGone(self.tree()));
        }
        Ok(())
    }

    /// Finds out where branch and tree stand, and keeps what would be lost.
    pub(super) async fn footing(&self) -> Result<Footing, WorktreeError> {
        let mut notes = Vec::new();
        let seen = self.branch_tip().await?;
        let last = self.last_tip();
        let mut tip = match &seen {
            Some(seen) => {
                if !self.contains(seen, &last).await? {
                    let kept = self.keep(&last, "worca: the branch was rewritten").await?;
                    notes.push(WorktreeNote::BranchRewritten { kept });
                }
                seen.clone()
            }
            None => {
                notes.push(WorktreeNote::BranchRestored);
                last
            }
        };
        let mut from = tip.clone();
        if let Some(head) = self.head_elsewhere().await?
            && head != tip
        {
            if self.contains(&head, &tip).await? {
                // The agent went on without the branch: the branch follows.
                tip = head.clone();
            } else {
                let kept = if self.contains(&tip, &head).await? {
                    None
                } else {
                    Some(self.keep(&head, "worca: the worktree stood elsewhere").await?)
                };
                notes.push(WorktreeNote::HeadElsewhere { kept });
            }
            from = head;
        }
        Ok(Footing { seen, tip, from, notes })
    }

    /// Makes core's index hold what is in the tree.
    /// Files and folders that their owner may not read are made readable: else they would be missing without a word.
    pub(super) async fn stage(&self, from: &CommitId, for_backup: bool) -> Result<Staged, WorktreeError> {
        match self.try_stage(from, for_backup).await {
            Err(WorktreeError::Git(GitError::Failed { stderr, .. })) if stderr.contains(DENIED) => {
                self.blocking(|worktree| {
                    make_accessible(&worktree.tree());
                    Ok(())
                })
                .await?;
                self.try_stage(from, for_backup).await
            }
            other => other,
        }
    }

    async fn try_stage(&self, from: &CommitId, for_backup: bool) -> Result<Staged, WorktreeError> {
        // A tracked file keeps its place in the index, so that only what changed is read again.
        let read = self.indexed("read-tree", for_backup).args(["--reset", from.as_str()]);
        if patiently(read.clone()).await.is_err() {
            let _ = std::fs::remove_file(self.private_path().join(index_name(for_backup)));
            patiently(read).await?;
        }
        let changed = self
            .indexed("diff-files", for_backup)
            .args(["-z", "--name-status", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"])
            .run()
            .await?;
        let new =
            self.indexed("ls-files", for_backup).args(["-z", "--others", "--exclude-standard"]).run().await?;
        for (command, output) in [("diff-files", &changed), ("ls-files", &new)] {
            // Git goes on past what it may not read, with a warning.
            if output.said.contains(DENIED) {
                return Err(GitError::Failed {
                    command: command.into(),
                    stderr: output.said.clone(),
                    exit: Some(0),
                }
                .into());
            }
        }
        // What is gone leaves the index first: a folder or a link may stand where it was.
        let (mut gone, mut paths, mut nested) = (Vec::new(), Vec::new(), Vec::new());
        let mut records = changed.stdout.split(|byte| *byte == 0);
        while let (Some(letter), Some(path)) = (records.next(), records.next()) {
            push_path(if letter == b"D" { &mut gone } else { &mut paths }, path);
        }
        for path in new.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            match path.strip_suffix(b"/") {
                Some(folder) => nested.push(String::from_utf8_lossy(folder).into_owned()),
                None => push_path(&mut paths, path),
            }
        }
        let mut staged = Staged { nested, notes: Vec::new() };
        for (list, how) in [(gone, "--force-remove"), (paths, "--replace")] {
            if list.is_empty() {
                continue;
            }
            let how = ["-z", "--add", "--remove", how, "--stdin"];
            let update = self.indexed("update-index", for_backup).args(how).input(list.clone());
            let output = match patiently(update).await {
                Err(GitError::Failed { stderr, .. })
                    if !stderr.contains(DENIED) && !stderr.contains(".lock") =>
                {
                    let call = self.as_it_is().await?.call(&self.git, "update-index").time_limit(TREE_LIMIT);
                    let index = self.private_path().join(index_name(for_backup));
                    staged.notes.push(WorktreeNote::TakenAsItIs { why: stderr });
                    patiently(call.env("GIT_INDEX_FILE", index).args(how).input(list)).await?
                }
                other => other?,
            };
            if output.said.contains("Ignoring path") {
                staged.notes.push(WorktreeNote::LeftOut { what: output.said });
            }
        }
        Ok(staged)
    }

    /// A git folder like ours in which no attribute of the tree counts.
    async fn as_it_is(&self) -> Result<PrivateDir, WorktreeError> {
        let (path, head) = (self.folder.join("git-as-it-is"), format!("ref: {}", self.branch.full()));
        let private = PrivateDir::make(&self.git, &self.common_dir, &path, &self.tree(), &head).await?;
        private.take_bytes_as_they_are()?;
        Ok(private)
    }

    /// A git on the tree, with core's index or with the one for backups.
    pub(super) fn indexed(&self, subcommand: &str, for_backup: bool) -> Call {
        self.on_tree(subcommand).env("GIT_INDEX_FILE", self.private_path().join(index_name(for_backup)))
    }

    async fn write_tree(&self) -> Result<CommitId, WorktreeError> {
        self.write_tree_of(false).await
    }

    pub(super) async fn write_tree_of(&self, for_backup: bool) -> Result<CommitId, WorktreeError> {
        let mut call = self.indexed("write-tree", for_backup);
        if self.private().is_partial() {
            call = call.arg("--missing-ok");
        }
        self.object(call).await
    }

    pub(super) async fn commit_tree(
        &self,
        tree: &CommitId,
        parents: &[&CommitId],
        message: &str,
        person: &Person,
    ) -> Result<CommitId, WorktreeError> {
        let mut message: String = message.chars().filter(|character| *character != '\0').collect();
        if !message.ends_with('\n') {
            message.push('\n');
        }
        let mut call = self.on_objects("commit-tree").envs(person.environment()).input(message);
        for parent in parents {
            call = call.args(["-p", parent.as_str()]);
        }
        self.object(call.arg(tree.as_str())).await
    }

    /// What the tree changed since `from`, as a tree on top of `tip`; the tree itself where that does not merge.
    async fn brought_over(
        &self,
        tree: &CommitId,
        from: &CommitId,
        tip: &CommitId,
        person: &Person,
    ) -> Result<CommitId, WorktreeError> {
        let there = self.commit_tree(tree, &[from], "worca: the tree as it was found", person).await?;
        self.keep(&there, "worca: the tree as it was found").await?;
        let merge = self.on_objects("merge-tree").args([
            "--write-tree",
            "--no-messages",
            tip.as_str(),
            there.as_str(),
        ]);
        match merge.text().await {
            Ok(text) => Ok(text
                .lines()
                .next()
                .and_then(|line| CommitId::parse(line).ok())
                .unwrap_or_else(|| tree.clone())),
            Err(GitError::Failed { .. }) => Ok(tree.clone()),
            Err(error) => Err(error.into()),
        }
    }
}

fn index_name(for_backup: bool) -> &'static str {
    if for_backup { "backup-index" } else { "index" }
}

fn push_path(list: &mut Vec<u8>, path: &[u8]) {
    list.extend_from_slice(path);
    list.push(0);
}
