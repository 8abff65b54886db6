//! The look itself: through core's environment, homes, mounts, secrets and the catalogue.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::file::{self, MOST_BYTES, MOST_ENTRIES, Seen};
use super::programs::{ANY, Base, CATALOGUE, FILES, How, PROGRAMS, Program, SYSTEM};
use super::{Finding, Place, Report, Surroundings, Whose, names, text};
use crate::keys::shapes;

/// The most bytes that are read of a file of which only the folder is known.
const MOST_OF_ANY: u64 = 1024 * 1024;
/// Folders of secrets below one another.
const DEEPEST: usize = 4;
/// Names of files that are a sign-in wherever they are mounted.
const SIGN_INS: &[&str] =
    &[".credentials.json", "application_default_credentials.json", "auth.json", "oauth_creds.json"];

/// Looks everywhere. Reads within limits and changes nothing; it blocks, for some milliseconds as a rule.
pub fn look(around: &Surroundings) -> Report {
    let mut look = Look { around, found: BTreeSet::new() };
    look.environment();
    for home in &around.homes {
        look.home(home, Whose::Home, true);
    }
    for home in &around.other_homes {
        look.home(home, Whose::Machine, false);
    }
    if around.system {
        for (path, how) in SYSTEM {
            look.row(Path::new("/"), path.trim_start_matches('/'), "the system", *how, Whose::Machine);
        }
    }
    for folder in &around.projects {
        look.project(folder);
    }
    for mount in &around.mounts {
        look.mount(mount);
    }
    for folder in &around.secrets {
        let mut left = MOST_ENTRIES;
        look.secrets(folder, 0, &mut left);
    }
    for place in &around.catalogue {
        look.catalogue(place);
    }
    Report { findings: look.found.into_iter().collect() }
}

struct Look<'a> {
    around: &'a Surroundings,
    found: BTreeSet<Finding>,
}

impl Look<'_> {
    fn add(&mut self, path: &Path, line: Option<usize>, what: String, whose: Whose) {
        // A place is named once, by whom it is nearest to.
        let place = Place::File { path: path.to_owned(), line };
        if !self.found.iter().any(|finding| finding.place == place) {
            self.found.insert(Finding { place, what, whose });
        }
    }

    fn environment(&mut self) {
        for (name, value) in &self.around.environment {
            let (name, text) = (name.to_string_lossy(), value.to_string_lossy());
            if text.trim().is_empty() {
                continue;
            }
            let what = match (names::carried_by(&name), shapes::holds(text.as_bytes())) {
                (Some(what), _) => what.to_owned(),
                (None, Some(what)) => format!("{what}, by the shape of its value"),
                (None, None) => match shapes::holds(name.as_bytes()) {
                    Some(what) => format!("{what}, by the shape of its name"),
                    None => continue,
                },
            };
            let place = Place::Variable(name.into_owned());
            self.found.insert(Finding { place, what, whose: Whose::Core });
        }
        for (variable, program, how) in FILES {
            if let Some(path) = self.around.path(variable) {
                self.file(&path, program, *how, Whose::Core, MOST_BYTES);
            }
        }
        let around = self.around;
        for (name, value) in &around.environment {
            if names::names_a_file(&name.to_string_lossy()) && !value.is_empty() {
                self.file(
                    Path::new(value),
                    "a file that a variable names",
                    How::SignIn,
                    Whose::Core,
                    MOST_OF_ANY,
                );
            }
        }
    }

    /// Everything that programs keep below a home. `moved`: also where core's variables have moved it to.
    fn home(&mut self, home: &Path, whose: Whose, moved: bool) {
        for program in PROGRAMS {
            for folder in self.folders(program, home, moved) {
                for (below, how) in program.files {
                    self.row(&folder, below, program.name, *how, whose);
                }
            }
        }
    }

    fn folders(&self, program: &Program, home: &Path, moved: bool) -> Vec<PathBuf> {
        let (variable, usual) = match program.base {
            Base::Home => (None, home.to_owned()),
            Base::Config => (Some("XDG_CONFIG_HOME"), home.join(".config")),
            Base::Data => (Some("XDG_DATA_HOME"), home.join(".local/share")),
            Base::Cache => (Some("XDG_CACHE_HOME"), home.join(".cache")),
        };
        let mut folders = vec![usual.join(program.folder)];
        if moved {
            let base = variable.and_then(|name| self.around.path(name));
            folders.extend(base.map(|base| base.join(program.folder)));
            folders.extend(program.moved_by.and_then(|name| self.around.path(name)));
        }
        folders
    }

    /// One row of the table; each `*` of it is every entry.
    fn row(&mut self, folder: &Path, below: &str, program: &str, how: How, whose: Whose) {
        let Some((before, after)) = below.split_once('*') else {
            self.file(&folder.join(below), program, how, whose, MOST_BYTES);
            return;
        };
        let folder = folder.join(before);
        let (entries, more) = file::entries(&folder, MOST_ENTRIES);
        for entry in entries {
            match after.strip_prefix('/') {
                Some(after) => self.row(&entry, after, program, how, whose),
                None => self.file(&entry, program, how, whose, MOST_BYTES),
            }
        }
        if more {
            self.unseen(&folder, program, "it has more entries than are looked at", whose);
        }
    }

    fn unseen(&mut self, path: &Path, program: &str, why: &str, whose: Whose) {
        self.add(path, None, format!("not looked at ({program}): {why}"), whose);
    }

    fn file(&mut self, path: &Path, program: &str, how: How, whose: Whose, most: u64) {
        if self.around.is_ours(path) {
            return;
        }
        match file::read(path, most) {
            Seen::Nothing | Seen::Closed => {}
            Seen::Unseen(why) => self.unseen(path, program, why, whose),
            Seen::Bytes(bytes) => match how {
                How::SignIn if bytes.is_empty() => {}
                How::SignIn => self.add(path, None, format!("a sign-in or key ({program})"), whose),
                How::Text(words) | How::Credentials(words) => {
                    for hit in text::look(&bytes, words) {
                        self.add(path, hit.line, format!("{} ({program})", hit.what), whose);
                    }
                }
            },
        }
    }

    /// A mounted project: whole sign-ins alone. Its settings and `.env` belong to the repository, which is looked at
    /// for each run.
    fn project(&mut self, folder: &Path) {
        for program in PROGRAMS {
            for base in self.folders(program, folder, false) {
                for (below, how) in program.files.iter().filter(|(_, how)| !matches!(how, How::Text(_))) {
                    self.row(&base, below, program.name, *how, Whose::Core);
                }
            }
        }
    }

    /// Anything else that is mounted: a home, a folder of credentials, or one file.
    fn mount(&mut self, mount: &Path) {
        const WHAT: &str = "mounted";
        if !mount.is_dir() {
            self.secret(mount, WHAT);
            return;
        }
        self.home(mount, Whose::Core, false);
        let (entries, _) = file::entries(mount, MOST_ENTRIES);
        for path in entries {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let how = match name.as_str() {
                name if SIGN_INS.contains(&name) => How::SignIn,
                "credentials" | "msal_token_cache.json" => ANY,
                _ => How::Text(&[]),
            };
            // Of a folder that may hold anything, what is no credential by its name need not be readable whole.
            if !matches!(how, How::Text(&[])) || matches!(file::read(&path, MOST_OF_ANY), Seen::Bytes(_)) {
                self.file(&path, WHAT, how, Whose::Core, MOST_OF_ANY);
            }
        }
    }

    fn secrets(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        const WHAT: &str = "mounted secret";
        let (entries, more) = file::entries(folder, *left);
        *left -= entries.len().min(*left);
        for path in entries {
            if !path.is_dir() {
                self.secret(&path, WHAT);
            } else if depth < DEEPEST {
                self.secrets(&path, depth + 1, left);
            } else {
                self.unseen(&path, WHAT, "it lies too deep", Whose::Core);
            }
        }
        if more {
            self.unseen(folder, WHAT, "it has more entries than are looked at", Whose::Core);
        }
    }

    fn secret(&mut self, path: &Path, program: &str) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let by_name = names::secret_by_name(&name);
        let sign_in = by_name.is_some() || SIGN_INS.contains(&name.as_str());
        let how = if sign_in { How::SignIn } else { ANY };
        self.file(path, by_name.unwrap_or(program), how, Whose::Core, MOST_OF_ANY);
    }

    /// A file of the model catalogue, or a folder of such files.
    fn catalogue(&mut self, place: &Path) {
        const WHAT: &str = "model catalogue";
        if !place.is_dir() {
            self.file(place, WHAT, CATALOGUE, Whose::Core, MOST_BYTES);
            return;
        }
        let (entries, more) = file::entries(place, MOST_ENTRIES);
        let settings = |path: &Path| {
            let ends = ["yaml", "yml", "json", "toml", "env"];
            let named = path.file_name().is_some_and(|name| name == ".env");
            named || path.extension().is_some_and(|end| ends.iter().any(|known| end == *known))
        };
        for path in entries.into_iter().filter(|path| settings(path)) {
            self.file(&path, WHAT, CATALOGUE, Whose::Core, MOST_BYTES);
        }
        if more {
            self.unseen(place, WHAT, "it has more entries than are looked at", Whose::Core);
        }
    }
}
