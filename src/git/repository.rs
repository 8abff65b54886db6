//! A repository of the user, found from any folder in it, and what it is known by. Opening one changes nothing in it
//! and runs nothing that its settings name.

use std::path::{Path, PathBuf};

use super::call::without_credentials;
use super::{BranchName, Call, CommitId, Git, GitError};
use crate::failure::{Exit, Explain};

/// How many folders up a repository is looked for.
const DEEPEST: usize = 128;
/// The longest `.git` file that is read, in bytes.
const LONGEST_POINTER: u64 = 8 * 1024;

/// A repository with at least one commit, and the checkout that it was opened from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    head: CommitId,
    branch: Option<BranchName>,
    identity: RepositoryIdentity,
}

/// What a repository is known by: the same from every worktree, subfolder and symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryIdentity {
    /// The canonical path of the git folder that all its worktrees share.
    pub common_dir: PathBuf,
    /// Its first commit; none in a shallow clone, whose first commit is not the true one.
    pub root: Option<CommitId>,
    /// Where `origin` is, without credentials.
    pub origin: Option<String>,
}

/// The folder cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing there.
    #[error("`{}` does not exist or cannot be read", .0.display())]
    NoFolder(PathBuf, #[source] std::io::Error),
    /// No repository there or above.
    #[error("`{}` is not in a git repository", .0.display())]
    NotARepository(PathBuf),
    /// No files to work on.
    #[error("`{}` is a bare repository: it has no checkout", .0.display())]
    Bare(PathBuf),
    /// In the git folder itself.
    #[error("`{}` is inside a git folder, not in a checkout", .0.display())]
    InsideGitDir(PathBuf),
    /// No commit to start from.
    #[error("the repository `{}` has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// A repository format that this git does not know.
    #[error("the repository `{}` uses `extensions.{extension}`, which git {}.{} does not know", top.display(), version.0, version.1)]
    UnknownExtension {
        /// The checkout.
        top: PathBuf,
        /// The extension's name.
        extension: String,
        /// This git.
        version: (u32, u32),
    },
    /// A `.git` file or folder that leads nowhere.
    #[error("`{}` does not lead to a git folder", .0.display())]
    Broken(PathBuf),
    /// Git failed otherwise.
    #[error("the repository `{}` could not be read", .0.display())]
    Git(PathBuf, #[source] GitError),
}

impl Explain for OpenError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFolder(..) => "project-not-found",
            Self::NotARepository(_) => "not-a-repository",
            Self::Bare(_) => "bare-repository",
            Self::InsideGitDir(_) => "inside-git-folder",
            Self::NoCommit(_) => "no-commit",
            Self::UnknownExtension { .. } => "repository-extension",
            Self::Broken(_) => "repository-broken",
            Self::Git(_, error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder(..) => Some("give the folder of a project".into()),
            Self::NotARepository(_) => Some("run `git init` there and make a first commit".into()),
            Self::Bare(_) | Self::InsideGitDir(_) => {
                Some("give the folder of a checkout: `git worktree add` makes one".into())
            }
            Self::NoCommit(_) => {
                Some("make a first commit: `git commit --allow-empty -m \"First commit\"`".into())
            }
            Self::UnknownExtension { .. } => {
                Some("use a newer git, or take the extension out of the repository".into())
            }
            Self::Broken(_) => {
                Some("if the project was moved, run `git worktree repair` in the main checkout".into())
            }
            Self::Git(_, error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Git(_, error) => error.exit(),
            _ => Exit::Refused,
        }
    }
}

impl Repository {
    /// Opens the repository that `folder` is in.
    ///
    /// # Errors
    /// When there is none, it has no checkout or no commit, or this git does not know its format.
    pub async fn open(git: &Git, folder: &Path) -> Result<Self, OpenError> {
        let asked = folder.to_owned();
        let found = tokio::task::spawn_blocking(move || find(&asked))
            .await
            .map_err(|_| OpenError::NotARepository(folder.to_owned()))??;
        let Found { top, git_dir } = found;
        let failed = |error| explain(git, &top, error);
        let call = |subcommand: &str| quiet(git.call(subcommand)).env("GIT_DIR", &git_dir).folder(&top);
        let facts = call("rev-parse")
            .args([
                "--path-format=absolute",
                "--git-common-dir",
                "--show-object-format",
                "--is-shallow-repository",
            ])
            .text()
            .await
            .map_err(failed)?;
        let mut lines = facts.lines();
        let (Some(common), Some(shallow)) = (lines.next(), lines.next()) else {
            return Err(OpenError::Broken(git_dir));
        };
        let common_dir =
            PathBuf::from(common).canonicalize().map_err(|_| OpenError::Broken(git_dir.clone()))?;
        let head =
            call("rev-parse").args(["--verify", "--quiet", "--end-of-options", "HEAD^{commit}"]).text().await;
        let head = match head {
            Ok(text) => CommitId::parse(&text).map_err(|_| OpenError::Broken(git_dir.clone()))?,
            Err(GitError::Failed { .. }) => return Err(OpenError::NoCommit(top)),
            Err(error) => return Err(failed(error)),
        };
        let branch = call("symbolic-ref").args(["--quiet", "--short", "HEAD"]).text().await.ok();
        let root = if shallow == "true" { None } else { first_commit(&call, &head).await.map_err(failed)? };
        let origin = call("config").args(["--get", "remote.origin.url"]).text().await.ok();
        let origin = origin.map(|url| without_credentials(url.trim())).filter(|url| !url.is_empty());
        let branch = branch.and_then(|name| BranchName::parse(name.trim()).ok());
        let identity = RepositoryIdentity { common_dir: common_dir.clone(), root, origin };
        Ok(Self { top, git_dir, common_dir, head, branch, identity })
    }

    /// The top folder of the checkout it was opened from.
    pub fn top(&self) -> &Path {
        &self.top
    }
    /// The git folder of that checkout (not the shared one when the checkout is a linked worktree).
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }
    /// The git folder that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
    /// The commit that the checkout stood on.
    pub fn head(&self) -> &CommitId {
        &self.head
    }
    /// The branch that the checkout stood on; none when its HEAD is detached.
    pub fn branch(&self) -> Option<&BranchName> {
        self.branch.as_ref()
    }
    /// What it is known by.
    pub fn identity(&self) -> &RepositoryIdentity {
        &self.identity
    }
}

/// The settings that could make a reading git start a program, off.
fn quiet(call: Call) -> Call {
    call.setting("core.fsmonitor=false")
        .setting("core.hooksPath=/dev/null")
        .setting("core.untrackedCache=false")
}

/// The commit without a parent that is furthest back; of several, the one that git lists last.
async fn first_commit(call: &impl Fn(&str) -> Call, head: &CommitId) -> Result<Option<CommitId>, GitError> {
    let list = call("rev-list").args(["--max-parents=0", head.as_str()]).text().await?;
    Ok(list.lines().last().and_then(|line| CommitId::parse(line).ok()))
}

struct Found {
    top: PathBuf,
    git_dir: PathBuf,
}

/// Looks for `.git` in the folder and above it. The folders found so are named to git, which then asks nobody who
/// owns them: the person chose them, and no other repository becomes readable by it.
fn find(folder: &Path) -> Result<Found, OpenError> {
    let start = folder.canonicalize().map_err(|error| OpenError::NoFolder(folder.to_owned(), error))?;
    for candidate in start.ancestors().take(DEEPEST) {
        let dot_git = candidate.join(".git");
        match std::fs::metadata(&dot_git) {
            Ok(data) if data.is_dir() && is_git_dir(&dot_git) => {
                let git_dir = dot_git.canonicalize().map_err(|_| OpenError::Broken(dot_git.clone()))?;
                return Ok(Found { top: candidate.to_owned(), git_dir });
            }
            Ok(data) if data.is_file() => {
                let git_dir = follow(&dot_git).ok_or_else(|| OpenError::Broken(dot_git.clone()))?;
                return Ok(Found { top: candidate.to_owned(), git_dir });
            }
            _ => {}
        }
        if is_git_dir(candidate) {
            let inside = candidate.file_name().is_some_and(|name| name == ".git")
                || candidate.join("commondir").is_file();
            return Err(if inside {
                OpenError::InsideGitDir(folder.to_owned())
            } else {
                OpenError::Bare(candidate.to_owned())
            });
        }
    }
    Err(OpenError::NotARepository(folder.to_owned()))
}

fn is_git_dir(folder: &Path) -> bool {
    let shared = folder.join("commondir").is_file();
    std::fs::symlink_metadata(folder.join("HEAD")).is_ok()
        && (shared || (folder.join("objects").is_dir() && folder.join("refs").is_dir()))
}

/// Where a `.git` file points.
fn follow(file: &Path) -> Option<PathBuf> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let git_dir = file.parent()?.join(target).canonicalize().ok()?;
    is_git_dir(&git_dir).then_some(git_dir)
}

/// What a first failure in a repository means.
fn explain(git: &Git, top: &Path, error: GitError) -> OpenError {
    if let GitError::Failed { stderr, .. } = &error {
        let after = stderr.split_once("unknown repository extension").map(|(_, after)| after);
        if let Some(after) = after {
            let name = after
                .split(['/', ':', ' '])
                .map(str::trim)
                .find(|word| !word.is_empty() && *word != "found" && *word != "s");
            if let Some(name) = name {
                return OpenError::UnknownExtension {
                    top: top.to_owned(),
                    extension: name.to_owned(),
                    version: git.version(),
                };
            }
        }
    }
    OpenError::Git(top.to_owned(), error)
}
