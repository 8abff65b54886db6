//! Keys in a project itself: a committed or a working `.env`, settings of agent programs. They are the person's own
//! doing and part of the work, so they are named to the person and refuse nothing.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::file::{self, Seen};
use super::place::shown_path;
use super::programs::{CATALOGUE, CLAUDE_SETTINGS, How};
use super::text;

/// The most entries that are looked at in one project.
const MOST_ENTRIES: usize = 100_000;
/// The most bytes of one file.
const MOST_BYTES: u64 = 1024 * 1024;
/// Folders below one another: `apps/web/.env` and a little more.
const DEEPEST: usize = 4;
/// The most sentences.
const MOST: usize = 20;
/// What others made, and git's own.
const SKIPPED: [&str; 5] = [".git", "node_modules", "target", "vendor", ".venv"];
/// Samples that are made to be shown.
const SAMPLES: [&str; 6] = ["example", "sample", "template", "dist", "schema", "test"];

/// Sentences on the keys in these folders, which are a project's worktree and checkout: each file once, by its path in
/// the first folder that has it. It blocks.
pub fn in_project(folders: &[(&str, PathBuf)]) -> Vec<String> {
    within(folders, MOST_ENTRIES)
}

/// The same with at most so many entries of each folder.
pub(super) fn within(folders: &[(&str, PathBuf)], most: usize) -> Vec<String> {
    let mut said = Vec::new();
    let mut seen = BTreeSet::new();
    for (whose, folder) in folders {
        let mut left = most;
        let mut ahead = VecDeque::from([(folder.clone(), 0)]);
        while let Some((place, depth)) = ahead.pop_front() {
            let (entries, more) = entries(&place, left);
            left -= entries.len();
            for (path, is_folder) in entries {
                let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
                    continue;
                };
                if is_folder {
                    if depth < DEEPEST && !SKIPPED.contains(&name.as_str()) {
                        ahead.push_back((path, depth + 1));
                    }
                } else if let Some(how) = how(&path, &name)
                    && let Ok(below) = path.strip_prefix(folder)
                    && seen.insert(below.to_owned())
                {
                    said.extend(look(&path, below, whose, how));
                }
            }
            if more {
                said.push(format!("{whose} has more files than are looked through for keys"));
                break;
            }
        }
    }
    said.truncate(MOST);
    said
}

/// The entries of a folder in the order of their names, each with whether it is a folder itself: a link to one is none,
/// it may lead out of the project. And whether there are more.
fn entries(folder: &Path, most: usize) -> (Vec<(PathBuf, bool)>, bool) {
    let Ok(entries) = std::fs::read_dir(folder) else { return (Vec::new(), false) };
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let all = entries.take(most + 1).flatten().map(|entry| (entry.path(), is_folder(&entry)));
    let mut all: Vec<_> = all.collect();
    let more = all.len() > most;
    all.truncate(most);
    all.sort();
    (all, more)
}

fn look(path: &Path, below: &Path, whose: &str, how: How) -> Vec<String> {
    let words = match how {
        How::Text(words) | How::Credentials(words) => words,
        How::SignIn => &[],
    };
    match file::read(path, MOST_BYTES) {
        Seen::Nothing | Seen::Closed => Vec::new(),
        Seen::Unseen(why) => {
            vec![format!("`{}` in {whose} was not looked at for keys: {why}", shown_path(below))]
        }
        Seen::Bytes(bytes) => {
            let hits = text::look(&bytes, words).into_iter();
            let line = |line: Option<usize>| line.map(|line| format!(", line {line}")).unwrap_or_default();
            let said = hits.map(|hit| {
                format!(
                    "`{}`{} in {whose} holds {}: agents may be able to read it; take it out, and revoke what was committed",
                    shown_path(below),
                    line(hit.line),
                    hit.what
                )
            });
            said.collect()
        }
    }
}

/// Whether a file of this name is looked at.
fn how(path: &Path, name: &str) -> Option<How> {
    let env = name == ".env" || name == ".envrc" || name.starts_with(".env.") || name.ends_with(".env");
    if env {
        let sample = name.split('.').any(|part| SAMPLES.contains(&part));
        return (!sample).then_some(How::Text(&[]));
    }
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match (folder.as_deref(), name) {
        (Some(".claude"), "settings.json" | "settings.local.json") => Some(CLAUDE_SETTINGS),
        (Some(".codex"), "config.toml") | (Some(".gemini"), "settings.json") => Some(CATALOGUE),
        (_, ".mcp.json" | ".aider.conf.yml" | "opencode.json" | "opencode.jsonc") => Some(CATALOGUE),
        _ => None,
    }
}
