//! The user's own sets: one file each, `<name>.yaml`, in a folder of Worca's home. Written whole or not at all, and
//! never so that a set, or one that extends it, could not be read afterwards.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::document::{Document, DocumentError, MOST_BYTES};
use super::{Library, Listed, Origin, SetError, SetName, Tier};
use crate::failure::{Exit, Explain};
use crate::ids::RunId;

/// The most files that are looked at.
const MOST_FILES: usize = 500;

/// The folder of the user's own sets.
#[derive(Debug, Clone)]
pub struct OwnSets(PathBuf);

/// What may be there when a set is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No set of that name.
    New,
    /// A set of that name, which is replaced.
    Replace,
    /// Either.
    Either,
}

/// The user's own sets could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum OwnSetsError {
    /// The folder or a file in it.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// `read`, `write`, `delete`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// From the system.
        #[source]
        source: std::io::Error,
    },
    /// There are too many.
    #[error("`{}` holds more than {MOST_FILES} sets", .0.display())]
    TooMany(PathBuf),
    /// The document is refused.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The set cannot be had.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A tier is part of the program.
    #[error("`{0}` is a tier of Worca's and cannot be changed")]
    Tier(SetName),
    /// The name is not free.
    #[error("there is a guardrail set `{0}` already")]
    Exists(SetName),
    /// Others stand on it.
    #[error("the guardrail set `{name}` is extended by {}", quoted(by))]
    Extended {
        /// Which.
        name: SetName,
        /// By which.
        by: Vec<SetName>,
    },
    /// Runs need it.
    #[error("the guardrail set `{name}` is needed by {}", needed(runs))]
    Needed {
        /// Which.
        name: SetName,
        /// By which, the oldest first.
        runs: Vec<RunId>,
    },
    /// A set that stands on it could not be had afterwards.
    #[error("with that, the guardrail set `{by}` could not be used any more")]
    Breaks {
        /// Which.
        by: SetName,
        /// Why.
        #[source]
        source: Box<SetError>,
    },
}

fn quoted(names: &[SetName]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn needed(runs: &[RunId]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = runs.iter().take(SHOWN).map(|run| format!("`{run}`")).collect();
    let more = match runs.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}{more}", if runs.len() == 1 { "run" } else { "runs" }, names.join(", "))
}

impl Explain for OwnSetsError {
    fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "guardrails-file",
            Self::TooMany(_) => "guardrails-too-many",
            Self::Document(error) => error.code(),
            Self::Set(error) => error.code(),
            Self::Tier(_) => "guardrails-tier",
            Self::Exists(_) => "guardrails-exists",
            Self::Extended { .. } => "guardrails-extended",
            Self::Needed { .. } => "guardrails-needed",
            Self::Breaks { .. } => "guardrails-breaks",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::File { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Some("see who owns it: `sudo` may have written it in an earlier call".into())
            }
            Self::File { source, .. } if source.kind() == ErrorKind::StorageFull => {
                Some("free some space on the disk".into())
            }
            Self::File { .. } => None,
            Self::TooMany(_) => Some("move away those that no run needs".into()),
            Self::Document(error) => error.hint(),
            Self::Set(error) => error.hint(),
            Self::Tier(name) => Some(format!("extend it: `worca guardrails new NAME --from {name}`")),
            Self::Exists(name) => {
                Some(format!("change it with `worca guardrails edit {name}`, or take another name"))
            }
            Self::Extended { .. } => Some("delete those first, or let them extend another set".into()),
            Self::Needed { .. } => Some("let it end, or stop it: `worca stop RUN`".into()),
            Self::Breaks { source, .. } => source.hint(),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::File { .. } => Exit::Failed,
            _ => Exit::Usage,
        }
    }
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> OwnSetsError + use<'a> {
    move |source| OwnSetsError::File { what, path: path.to_path_buf(), source }
}

impl Library {
    /// The tiers and the sets of a folder. A folder that is not there holds none. A broken file is an error of that
    /// set alone.
    ///
    /// # Errors
    /// When the folder cannot be listed, or holds too many files.
    pub fn read(folder: &Path) -> Result<Self, OwnSetsError> {
        let mut library = Self::embedded();
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(library),
            Err(error) => return Err(failed("read", folder)(error)),
        };
        let mut count = 0;
        for entry in entries {
            let path = entry.map_err(failed("read", folder))?.path();
            let Some(listed) = listed(&path) else { continue };
            count += 1;
            if count > MOST_FILES {
                return Err(OwnSetsError::TooMany(folder.to_owned()));
            }
            library.put(listed);
        }
        Ok(library)
    }
}

/// What a file of the folder is as a set; `None` for what is none: drafts, notes, folders.
fn listed(path: &Path) -> Option<Listed> {
    let file = path.file_name()?.to_string_lossy().into_owned();
    let extension = path.extension()?.to_str()?;
    if file.starts_with('.') || !matches!(extension, "yaml" | "yml") {
        return None;
    }
    let shown = path.display().to_string();
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let origin = Origin::Own(path.to_owned());
    let refused = |name: String, what: &str, fix: String| Listed {
        name,
        origin: origin.clone(),
        text: String::new(),
        document: Err(DocumentError::whole(&shown, what, Some(fix))),
    };
    let Some(name) = SetName::parse(&stem).ok().filter(|_| extension == "yaml") else {
        let fix = "call it by a set's name and `.yaml`, such as `payments-strict.yaml`";
        return Some(refused(file, "the file's name is no set's name", fix.into()));
    };
    if reserved(&name) {
        // Not by its bare name: that one is the tier's, and stays so.
        let fix = "give the set another name, in the file and for the file".into();
        return Some(refused(file, &format!("`{name}` is a name that Worca keeps for itself"), fix));
    }
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => {
            return Some(refused(stem, &format!("the file cannot be read: {error}"), "see the file".into()));
        }
    };
    let document = Document::parse(&text, &shown).and_then(|document| named(document, &name, &shown));
    Some(Listed { name: stem, origin, text, document })
}

fn reserved(name: &SetName) -> bool {
    Tier::named(name).is_some() || name.is_of_the_project()
}

/// A set is called in its file as its file is called.
fn named(document: Document, name: &SetName, shown: &str) -> Result<Document, DocumentError> {
    if document.name == *name {
        return Ok(document);
    }
    let what = format!("the set in it is called `{}`, and the file is that of `{name}`", document.name);
    Err(DocumentError::whole(shown, what, Some(format!("write `name: {name}`, or rename the file"))))
}

/// The text of a regular file, read with a limit.
fn read(path: &Path) -> std::io::Result<String> {
    // A pipe or a device would never end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| std::io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

impl OwnSets {
    /// The sets of this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// All sets, as they are now.
    ///
    /// # Errors
    /// As of [`Library::read`].
    pub fn library(&self) -> Result<Library, OwnSetsError> {
        Library::read(&self.0)
    }

    /// The file of a set.
    pub fn file(&self, name: &SetName) -> PathBuf {
        self.0.join(format!("{name}.yaml"))
    }

    /// Checks a document as the set of that name, and every set that stands on it. `shown` is what errors call it.
    ///
    /// # Errors
    /// When it, or one that stands on it, could not be used.
    pub fn check(&self, name: &SetName, text: &str, shown: &str) -> Result<Document, OwnSetsError> {
        if Tier::named(name).is_some() {
            return Err(OwnSetsError::Tier(name.clone()));
        }
        if name.is_of_the_project() {
            let what =
                format!("`{name}` stands in the names of a repository's own rules, and no set can have it");
            return Err(DocumentError::whole(shown, what, Some("take another name".into())).into());
        }
        let document = Document::parse(text, shown).and_then(|document| named(document, name, shown))?;
        let before = self.library()?;
        let mut after = before.clone();
        after.put(Listed {
            name: name.as_str().into(),
            origin: Origin::Own(self.file(name)),
            text: text.to_owned(),
            document: Ok(document.clone()),
        });
        after.resolve(name)?;
        for other in before.all().filter_map(|listed| SetName::parse(&listed.name).ok()) {
            if let Err(source) = after.resolve(&other)
                && before.resolve(&other).is_ok()
            {
                return Err(OwnSetsError::Breaks { by: other, source: Box::new(source) });
            }
        }
        Ok(document)
    }

    /// Saves a document as the set of that name. Gives whether it is new.
    ///
    /// # Errors
    /// When the document is refused, the name is taken or not there, or the file cannot be written. Nothing has changed
    /// then.
    pub fn save(&self, name: &SetName, text: &str, shown: &str, mode: Mode) -> Result<bool, OwnSetsError> {
        self.check(name, text, shown)?;
        let path = self.file(name);
        let there = path.symlink_metadata().is_ok();
        match mode {
            Mode::New if there => return Err(OwnSetsError::Exists(name.clone())),
            Mode::Replace if !there => {
                // The library's own words for a name that is not there.
                self.library()?.get(name)?;
            }
            Mode::New | Mode::Replace | Mode::Either => {}
        }
        self.make_folder()?;
        let draft = self.0.join(format!(".{name}.{}.draft", crate::ids::SpawnId::random()));
        let written = write_new(&draft, text.as_bytes()).map_err(failed("write", &draft)).and_then(|()| {
            if mode == Mode::New {
                // A link takes the name only when nobody has it, and the file is whole by then.
                return std::fs::hard_link(&draft, &path).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => OwnSetsError::Exists(name.clone()),
                    _ => failed("write", &path)(error),
                });
            }
            std::fs::rename(&draft, &path).map_err(failed("write", &path))
        });
        let _ = std::fs::remove_file(&draft);
        written?;
        #[cfg(unix)]
        let _ = std::fs::File::open(&self.0).and_then(|folder| folder.sync_all());
        Ok(!there)
    }

    /// Deletes a set. `runs` are those that need it still, which the store knows.
    ///
    /// # Errors
    /// When there is none, it is a tier, others extend it, a run needs it, or the file cannot be deleted.
    pub fn delete(&self, name: &SetName, runs: Vec<RunId>) -> Result<(), OwnSetsError> {
        if Tier::named(name).is_some() {
            return Err(OwnSetsError::Tier(name.clone()));
        }
        let library = self.library()?;
        library.get(name)?;
        let by = library.extended_by(name);
        if !by.is_empty() {
            return Err(OwnSetsError::Extended { name: name.clone(), by });
        }
        if !runs.is_empty() {
            return Err(OwnSetsError::Needed { name: name.clone(), runs });
        }
        let path = self.file(name);
        std::fs::remove_file(&path).map_err(failed("delete", &path))
    }

    fn make_folder(&self) -> Result<(), OwnSetsError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0).map_err(failed("make the folder", &self.0))
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
