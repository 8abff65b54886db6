//! Making a worktree: everything that can be refused is looked at before anything is made, and a failure half-way
//! takes back exactly what it made.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Worktree, WorktreeError, WorktreeNote, patiently};
use crate::failure::{Exit, Explain};
use crate::git::{BranchName, Git, GitError, PrivateDir, Repository};
use crate::ids::RunId;

/// How long the checkout of a large repository may take.
const CHECKOUT_LIMIT: Duration = Duration::from_secs(1800);

/// What a new worktree is to be called.
#[derive(Debug, Clone)]
pub struct Names {
    /// The run.
    pub run: RunId,
    /// The run's own folder (`Home::run`); the tree comes to be in it.
    pub folder: PathBuf,
    /// The branch.
    pub branch: BranchName,
}

/// A worktree that was just made.
#[derive(Debug)]
pub struct Created {
    /// The worktree.
    pub worktree: Worktree,
    /// What a person should know.
    pub notes: Vec<WorktreeNote>,
}

/// No worktree was made, and nothing was left behind.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The branch is there.
    #[error("the branch `{branch}` exists already")]
    BranchExists {
        /// The branch.
        branch: BranchName,
        /// One that is free.
        free: BranchName,
    },
    /// A branch stands where a folder of branches is needed, or the other way round.
    #[error("the branch `{branch}` cannot be made beside the branch `{other}`")]
    BranchInTheWay {
        /// The branch.
        branch: BranchName,
        /// What is in its way.
        other: String,
        /// One that is free.
        free: BranchName,
    },
    /// The folder of the tree is there.
    #[error("`{}` is there already", .0.display())]
    FolderExists(PathBuf),
    /// A path that git's own files cannot hold.
    #[error("`{}` holds a line break or is not valid text, which git cannot store as the place of a worktree", .0.display())]
    BadPath(PathBuf),
    /// Another git holds a lock.
    #[error("another git holds `{}`, which is {age_seconds} s old", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Its age.
        age_seconds: u64,
    },
    /// Git could not look at the branches.
    #[error("the branches of the repository could not be read")]
    Branches(#[source] GitError),
    /// The files could not be written.
    #[error("the worktree could not be made")]
    Make(#[source] WorktreeError),
}

impl Explain for CreateError {
    fn code(&self) -> &'static str {
        match self {
            Self::BranchExists { .. } => "branch-exists",
            Self::BranchInTheWay { .. } => "branch-in-the-way",
            Self::FolderExists(_) => "worktree-folder-exists",
            Self::BadPath(_) => "worktree-path",
            Self::Locked { .. } => "git-locked",
            Self::Branches(error) => error.code(),
            Self::Make(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::BranchExists { free, .. } => Some(format!("`{free}` is free")),
            Self::BranchInTheWay { free, other, .. } => {
                Some(format!("`{free}` is free; or rename the other: `git branch -m {other} {other}-old`"))
            }
            Self::FolderExists(_) => Some("move it away; it is not deleted for you".into()),
            Self::BadPath(_) => {
                Some("set `WORCA_HOME` to another folder, or rename the repository's folder".into())
            }
            Self::Locked { .. } => {
                Some("wait for that git; when none is running, remove the file yourself".into())
            }
            Self::Branches(error) => error.hint(),
            Self::Make(error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::BadPath(_) => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

/// Looks whether a branch can be made: no branch of its name, none above it, none below it.
///
/// # Errors
/// When one is in its way; the error names a free one.
pub async fn check_branch_is_free(
    git: &Git,
    repository: &Repository,
    branch: &BranchName,
) -> Result<(), CreateError> {
    let Some(other) = in_the_way(git, repository, branch).await? else { return Ok(()) };
    let free = another_name(git, repository, branch, &other).await?;
    Err(if other == branch.as_str() {
        CreateError::BranchExists { branch: branch.clone(), free }
    } else {
        CreateError::BranchInTheWay { branch: branch.clone(), other, free }
    })
}

async fn in_the_way(
    git: &Git,
    repository: &Repository,
    branch: &BranchName,
) -> Result<Option<String>, CreateError> {
    let call = |subcommand: &str| {
        git.call(subcommand).env("GIT_DIR", repository.common_dir()).folder(repository.common_dir())
    };
    let mut ends: Vec<usize> = branch.as_str().match_indices('/').map(|(at, _)| at).collect();
    ends.push(branch.as_str().len());
    for end in ends {
        let name = branch.as_str().get(..end).unwrap_or_default();
        let full = format!("refs/heads/{name}");
        let is_there = call("show-ref").args(["--verify", "--quiet", &full]).yes_or_no().await;
        if is_there.map_err(CreateError::Branches)? {
            return Ok(Some(name.to_owned()));
        }
    }
    let below =
        call("for-each-ref").args(["--count=1", "--format=%(refname)", &format!("{}/", branch.full())]);
    let below = below.text().await.map_err(CreateError::Branches)?;
    Ok(below.lines().next().and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned))
}

async fn another_name(
    git: &Git,
    repository: &Repository,
    branch: &BranchName,
    other: &str,
) -> Result<BranchName, CreateError> {
    // A branch above: another first part. The same one, or one below: another last part.
    let (stem, rest) = match branch.as_str().strip_prefix(other) {
        Some(rest) if !rest.is_empty() => (other, rest),
        _ => (branch.as_str(), ""),
    };
    for number in 2..100 {
        if let Ok(name) = BranchName::parse(&format!("{stem}-{number}{rest}"))
            && in_the_way(git, repository, &name).await?.is_none()
        {
            return Ok(name);
        }
    }
    Ok(branch.clone())
}

impl Worktree {
    /// Makes the branch and the worktree, checked out at the commit that the user's checkout stands on.
    ///
    /// When the future is dropped half-way, or the process dies, what was made stays registered and locked under the
    /// run's name until [`Worktree::remove`] takes it away.
    ///
    /// # Errors
    /// See [`CreateError`]; nothing is left behind then.
    pub async fn create(git: &Git, repository: &Repository, names: Names) -> Result<Created, CreateError> {
        check_branch_is_free(git, repository, &names.branch).await?;
        let worktree = Self {
            git: git.clone(),
            common_dir: repository.common_dir().to_owned(),
            folder: names.folder,
            run: names.run,
            branch: names.branch,
            base: repository.head().clone(),
        };
        for path in [worktree.tree(), worktree.registration()] {
            if path.to_str().is_none_or(|text| text.contains(['\n', '\r'])) {
                return Err(CreateError::BadPath(path));
            }
            if std::fs::symlink_metadata(&path).is_ok() {
                return Err(CreateError::FolderExists(path));
            }
        }
        let notes = lock_files(repository.common_dir());
        let mut branch_is_ours = false;
        match worktree.make(&mut branch_is_ours).await {
            Ok(()) => Ok(Created { worktree, notes }),
            Err(error) => {
                worktree.take_back(branch_is_ours).await;
                Err(worktree.name_the_lock(error))
            }
        }
    }

    async fn make(&self, branch_is_ours: &mut bool) -> Result<(), WorktreeError> {
        let (private, tree) = (self.private_path(), self.tree());
        for folder in [self.folder.clone(), self.common_dir.join("logs").join("refs")] {
            std::fs::create_dir_all(&folder).map_err(|source| WorktreeError::file(&folder, source))?;
        }
        let head = format!("ref: {}", self.branch.full());
        let private = PrivateDir::make(&self.git, &self.common_dir, &private, &tree, &head).await?;
        self.blocking(|worktree| {
            worktree.register()?;
            worktree.make_tree()
        })
        .await?;
        let branch = self.on_objects("update-ref").args([
            "--no-deref",
            "-m",
            "worca: run started",
            &self.branch.full(),
            self.base.as_str(),
            "",
        ]);
        patiently(branch).await?;
        *branch_is_ours = true;
        private
            .fetching_call(&self.git, "read-tree")
            .args(["--reset", "-u", self.base.as_str()])
            .time_limit(CHECKOUT_LIMIT)
            .run()
            .await?;
        self.blocking(|worktree| {
            worktree.hand_over_index()?;
            // The last step: by this file a whole worktree is known from a half-made one.
            worktree.remember_tip(&worktree.base)
        })
        .await
    }

    /// Undoes a half-made worktree: only what [`Worktree::make`] makes, and the branch only where it still stands.
    pub(super) async fn take_back(&self, branch_is_ours: bool) {
        if branch_is_ours {
            let call = self.on_objects("update-ref").args([
                "--no-deref",
                "-d",
                &self.branch.full(),
                self.base.as_str(),
            ]);
            let _ = patiently(call).await;
        }
        let _ = self
            .blocking(|worktree| {
                let _ = std::fs::remove_dir_all(worktree.tree());
                worktree.unregister()?;
                let _ = std::fs::remove_dir_all(worktree.private_path());
                let _ = std::fs::remove_dir(&worktree.folder);
                Ok(())
            })
            .await;
    }

    /// Turns git's "File exists" into the lock's name and age. Git names it by the way through our own folder.
    fn name_the_lock(&self, error: WorktreeError) -> CreateError {
        if let WorktreeError::Git(GitError::Failed { stderr, .. }) = &error
            && let Some(path) = stderr
                .split('\'')
                .map(Path::new)
                .find(|word| word.extension().is_some_and(|end| end == "lock"))
        {
            let path = match path.strip_prefix(self.private_path()) {
                Ok(below) => self.common_dir.join(below),
                Err(_) => path.to_owned(),
            };
            if let Some(age_seconds) = age(&path) {
                return CreateError::Locked { path, age_seconds };
            }
        }
        CreateError::Make(error)
    }

    /// Runs file work off the async threads.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, WorktreeError> + Send + 'static,
    ) -> Result<T, WorktreeError> {
        let worktree = self.clone();
        tokio::task::spawn_blocking(move || work(&worktree)).await.map_err(|_| WorktreeError::BrokenOff)?
    }
}

/// Lock files that other gits keep in the repository. We need none of them to go away; a person may want to know.
fn lock_files(common: &Path) -> Vec<WorktreeNote> {
    ["config.lock", "packed-refs.lock", "shallow.lock"]
        .iter()
        .filter_map(|name| {
            let path = common.join(name);
            let age_seconds = age(&path)?;
            Some(WorktreeNote::LockFile { path, age_seconds })
        })
        .collect()
}

fn age(path: &Path) -> Option<u64> {
    let written = std::fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(written).unwrap_or_default().as_secs())
}
