//! Core's own git folder on somebody's tree. It shares objects and refs with the repository through links that core
//! makes, and has a configuration, an index and a HEAD of its own: no setting, hook, filter, monitor, diff driver or
//! signing program of the repository or of the tree exists for a git that runs here.
//!
//! What it takes over from the repository's settings is a fixed list of words that name no program and no path.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Call, Git, GitError};
use crate::failure::Explain;

/// Settings that decide how files are written and read back. Anything else of the repository is left behind.
const TAKEN_OVER: &[&str] = &[
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.longpaths",
    "core.bigfilethreshold",
    "core.sharedrepository",
    "core.logallrefupdates",
    "core.trustctime",
    "core.checkstat",
    "extensions.objectformat",
];
/// Of a partial clone: where missing objects are fetched from. Used for the first checkout alone.
const PROMISOR: &[&str] = &[".url", ".promisor", ".partialclonefilter"];
/// How a fetch may reach it: none of these names a program.
const FETCH_BY: &[&str] = &["https", "http", "ssh", "git", "file"];
/// The largest exclude, attributes or shallow file that is taken over, in bytes.
const LARGEST_SIDE_FILE: u64 = 4 * 1024 * 1024;

/// A git folder of core's own, bound to a tree and to the repository whose objects and refs it uses.
#[derive(Debug, Clone)]
pub struct PrivateDir {
    path: PathBuf,
    tree: PathBuf,
    promisor: Vec<String>,
}

/// The folder could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// A file or a link.
    #[error("`{}` could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Refs in a form that needs the repository's own settings.
    #[error("the repository `{}` keeps its refs as `{format}`, which is not supported yet", common.display())]
    RefStorage {
        /// The git folder.
        common: PathBuf,
        /// The form.
        format: String,
    },
    /// Symbolic links are needed.
    #[error("worktrees of runs need symbolic links, which this system does not give without more rights")]
    Unsupported,
    /// Git itself.
    #[error("the settings of `{}` could not be read", common.display())]
    Settings {
        /// The git folder.
        common: PathBuf,
        /// Why.
        source: GitError,
    },
}

impl Explain for PrivateDirError {
    fn code(&self) -> &'static str {
        match self {
            Self::Write { .. } => "git-folder-not-written",
            Self::RefStorage { .. } => "ref-storage",
            Self::Unsupported => "unsupported-system",
            Self::Settings { .. } => "repository-settings",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::RefStorage { .. } => Some("run `git refs migrate --ref-format=files` in it".into()),
            Self::Unsupported => Some("run Worca in a container: `worca container up`".into()),
            Self::Write { .. } => {
                Some("see that the disk has room and that the folder belongs to you".into())
            }
            Self::Settings { source, .. } => source.hint(),
        }
    }
}

impl PrivateDir {
    /// One that was made before.
    pub fn existing(path: &Path, tree: &Path) -> Self {
        Self { path: path.to_owned(), tree: tree.to_owned(), promisor: Vec::new() }
    }

    /// Makes one at `path` for `tree`, on the objects and refs of the git folder `common`. What is there already is
    /// made anew, but for its index.
    ///
    /// # Errors
    /// When the settings cannot be read or a file cannot be written.
    pub async fn make(
        git: &Git,
        common: &Path,
        path: &Path,
        tree: &Path,
        head: &str,
    ) -> Result<Self, PrivateDirError> {
        let settings = Settings::read(git, common)
            .await
            .map_err(|source| PrivateDirError::Settings { common: common.to_owned(), source })?;
        if let Some(format) = settings.ref_storage.clone() {
            return Err(PrivateDirError::RefStorage { common: common.to_owned(), format });
        }
        let (common, path, tree) = (common.to_owned(), path.to_owned(), tree.to_owned());
        let head = head.to_owned();
        let private = Self { path: path.clone(), tree, promisor: settings.promisor.clone() };
        tokio::task::spawn_blocking(move || write(&common, &path, &settings, &head))
            .await
            .map_err(|_| PrivateDirError::Unsupported)??;
        Ok(private)
    }

    /// Makes every file be taken byte by byte, whatever the tree's attributes ask for.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn take_bytes_as_they_are(&self) -> Result<(), PrivateDirError> {
        let path = self.path.join("info").join("attributes");
        std::fs::write(&path, "* -text -ident -filter !eol !working-tree-encoding\n")
            .map_err(|source| PrivateDirError::Write { path, source })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the repository is a partial clone, in which objects may rightly be missing.
    pub fn is_partial(&self) -> bool {
        self.path.join("partial").exists()
    }

    /// Like [`PrivateDir::call`]; in a partial clone it may fetch what is missing from where the clone came from.
    pub fn fetching_call(&self, git: &Git, subcommand: &str) -> Call {
        let mut call = self.call(git, subcommand);
        if self.promisor.is_empty() {
            return call;
        }
        for setting in &self.promisor {
            call = call.setting(setting);
        }
        for way in FETCH_BY {
            call = call.setting(&format!("protocol.{way}.allow=always"));
        }
        call.env("GIT_NO_LAZY_FETCH", "0")
    }

    /// Describes a git that runs here, on the tree. It looks for no repository: every folder is named.
    pub fn call(&self, git: &Git, subcommand: &str) -> Call {
        git.call(subcommand)
            .env("GIT_DIR", &self.path)
            .env("GIT_COMMON_DIR", &self.path)
            .env("GIT_WORK_TREE", &self.tree)
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .folder(&self.tree)
    }
}

/// What is known of a repository's settings. Read as data: no include is followed.
struct Settings {
    taken: Vec<(String, String)>,
    ref_storage: Option<String>,
    promisor: Vec<String>,
}

impl Settings {
    async fn read(git: &Git, common: &Path) -> Result<Self, GitError> {
        let list = git
            .call("config")
            .arg("--file")
            .arg(common.join("config"))
            .args(["--no-includes", "--null", "--list"])
            .output_limit(4 * 1024 * 1024)
            .run()
            .await?;
        let (mut taken, mut ref_storage, mut promisor) = (Vec::new(), None, Vec::new());
        for entry in list.stdout.split(|byte| *byte == 0) {
            let entry = String::from_utf8_lossy(entry);
            // A key without a value means true.
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            let is_a_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if key == "extensions.refstorage" && value != "files" {
                ref_storage = Some(value.chars().filter(char::is_ascii_alphanumeric).take(40).collect());
            } else if TAKEN_OVER.contains(&key) && is_a_word {
                taken.push((key.to_owned(), value.to_owned()));
            } else if PROMISOR.iter().any(|end| key.starts_with("remote.") && key.ends_with(end)) {
                promisor.push(format!("{key}={value}"));
            }
        }
        let is_partial = promisor.iter().any(|setting| setting.ends_with(".promisor=true"));
        if !is_partial {
            promisor.clear();
        }
        Ok(Self { taken, ref_storage, promisor })
    }

    fn render(&self) -> String {
        let mut text = String::from(
            "# Core's own. Nothing in the repository or in the tree is read from a git that runs here.\n\
             [core]\n\tbare = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n\tuntrackedCache = false\n\
             \tattributesFile = /dev/null\n\texcludesFile = /dev/null\n\tcommitGraph = false\n\tmultiPackIndex = false\n\
             \tlogAllRefUpdates = true\n\tsafecrlf = false\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[protocol]\n\tallow = never\n\
             [submodule]\n\trecurse = false\n[commit]\n\tgpgSign = false\n[user]\n\tuseConfigOnly = true\n",
        );
        let other_format = self.taken.iter().any(|(key, _)| key.starts_with("extensions."));
        let _ = writeln!(text, "[core]\n\trepositoryFormatVersion = {}", u8::from(other_format));
        for (key, value) in &self.taken {
            if let Some((section, name)) = key.split_once('.') {
                let _ = writeln!(text, "[{section}]\n\t{name} = {value}");
            }
        }
        text
    }
}

fn write(common: &Path, path: &Path, settings: &Settings, head: &str) -> Result<(), PrivateDirError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| PrivateDirError::Write { path, source }
    };
    for folder in [path.join("info"), path.join("logs")] {
        std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
    }
    for (name, target) in [
        ("objects", common.join("objects")),
        ("refs", common.join("refs")),
        ("packed-refs", common.join("packed-refs")),
        ("shallow", common.join("shallow")),
        ("logs/refs", common.join("logs").join("refs")),
    ] {
        let link = path.join(name);
        if std::fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        make_link(&target, &link)?;
    }
    for name in ["exclude", "attributes"] {
        if let Some(bytes) = read_small(&common.join("info").join(name)) {
            let file = path.join("info").join(name);
            std::fs::write(&file, bytes).map_err(failed(&file))?;
        }
    }
    if !settings.promisor.is_empty() {
        let file = path.join("partial");
        std::fs::write(&file, "objects may be missing\n").map_err(failed(&file))?;
    }
    for (name, text) in [("config", settings.render()), ("HEAD", format!("{head}\n"))] {
        let file = path.join(name);
        std::fs::write(&file, text).map_err(failed(&file))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_link(target: &Path, link: &Path) -> Result<(), PrivateDirError> {
    let failed = |source| PrivateDirError::Write { path: link.to_owned(), source };
    std::os::unix::fs::symlink(target, link).map_err(failed)
}

#[cfg(not(unix))]
fn make_link(_: &Path, _: &Path) -> Result<(), PrivateDirError> {
    Err(PrivateDirError::Unsupported)
}

/// The bytes of an ordinary file that is not too large.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let data = std::fs::metadata(path).ok()?;
    if !data.is_file() || data.len() > LARGEST_SIDE_FILE {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LARGEST_SIDE_FILE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
