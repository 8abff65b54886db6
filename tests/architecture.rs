//! Holds the house together: which room may name which, where the heavy libraries may appear, how long a
//! file may be, and that each file says what it is for. docs/architecture.md draws the same map.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot read the sources fails"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and its floor. A room names rooms of lower floors, its own, and, on the ground floor, its
/// neighbours.
const FLOORS: &[(&str, u8)] = &[
    ("amount", 1),
    ("clock", 1),
    ("events", 1),
    ("failure", 1),
    ("findings", 1),
    ("git", 1),
    ("home", 1),
    ("http", 1),
    ("ids", 1),
    ("secret", 1),
    ("store", 1),
    ("guardrails", 2),
    ("keys", 2),
    ("agents", 3),
    ("spawn", 3),
    ("runs", 4),
    ("container", 5),
    ("server", 5),
    ("cli", 6),
];

/// Pairs on one floor that may see each other, with the reason.
const NEIGHBOURS: &[(&str, &str, &str)] = &[(
    "agents",
    "spawn",
    "what an agent program needs is written as spawn's request, and its output comes as spawn's lines",
)];

/// Rooms that must not know each other although their floors would allow it.
const STRANGERS: &[(&str, &[&str])] = &[
    // A small program that must be trusted: it shares the binary, not the code.
    ("keys", &["store", "git", "events"]),
    // The box from outside knows nothing of what runs in it.
    ("container", &["runs", "store", "spawn", "agents"]),
    ("guardrails", &["store", "git", "http"]),
];

/// A library and the only places that may name it.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("bollard", &["container/engine"]),
    ("rusqlite", &["store", "keys"]),
    ("axum", &["server", "keys"]),
    ("hyper_rustls", &["keys"]),
    ("aes_gcm", &["keys"]),
    ("saphyr_parser", &["container/compose"]),
    ("crossterm", &["container/engine", "cli"]),
    ("indicatif", &["cli"]),
    ("landlock", &["spawn", "guardrails/confine"]),
    ("seccompiler", &["spawn"]),
    ("clap", &["cli", "main.rs"]),
];

/// No file is longer. Above `LONG` an exception carries its reason.
const LONGEST: usize = 800;
const LONG: usize = 500;
const LONG_FILES: &[(&str, &str)] = &[];

struct Source {
    /// Below `src/`, with `/`.
    path: String,
    room: String,
    text: String,
    /// The text without comments and without the test module at its end.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            let room = path.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&file).unwrap();
            let code = text.lines().map(without_comment).collect::<Vec<_>>().join("\n");
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
            Source { path, room, text, code }
        })
        .collect()
}

/// A line without its comment: `//` at its start or after a blank, so that a URL is none.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") {
        return "";
    }
    line.split_once(" // ").map_or(line, |(code, _)| code)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn is_test(source: &Source) -> bool {
    source.path.ends_with("/tests.rs") || source.path.contains("/tests/")
}

/// The rooms that a piece of code names by `crate::room` or in a `use crate::{…}` list.
fn named_rooms(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut word = String::new();
            for character in list.chars() {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 1 && (character.is_alphanumeric() || character == '_') {
                    word.push(character);
                } else if depth <= 1 && !word.is_empty() {
                    rooms.push(std::mem::take(&mut word));
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            rooms.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    rooms
}

#[test]
fn a_room_names_only_rooms_below_it() {
    let floors: BTreeMap<_, _> = FLOORS.iter().copied().collect();
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !is_test(source)) {
        if source.path == "lib.rs" || source.path == "main.rs" {
            continue;
        }
        let Some(own) = floors.get(source.room.as_str()) else {
            wrong.push(format!("{} stands in a room that has no floor", source.path));
            continue;
        };
        for named in named_rooms(&source.code) {
            let Some(floor) = floors.get(named.as_str()) else { continue };
            let neighbour = NEIGHBOURS.iter().any(|(from, to, _)| *from == source.room && *to == named);
            let stranger = STRANGERS
                .iter()
                .any(|(room, others)| *room == source.room && others.contains(&named.as_str()));
            let allowed = named == source.room || floor < own || (*own == 1 && *floor == 1) || neighbour;
            if !allowed || stranger {
                wrong.push(format!("{} names `{named}`", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn heavy_libraries_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !is_test(source)) {
        for (library, places) in LIBRARIES {
            let used = source.code.contains(&format!("{library}::"))
                || source.code.contains(&format!("use {library}"));
            if used && !places.iter().any(|place| source.path.starts_with(place)) {
                wrong.push(format!("{} names `{library}`", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_file_says_what_it_is_for_and_stays_short() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if !is_test(&source) && !source.text.starts_with("//!") {
            wrong.push(format!("{} does not open with `//!`", source.path));
        }
        let excused = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        if lines > LONGEST || (lines > LONG && !excused && !is_test(&source)) {
            wrong.push(format!("{} has {lines} lines", source.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let main = sources().into_iter().find(|source| source.path == "main.rs").unwrap();
    assert!(main.text.lines().count() < 60, "main.rs only parses, dispatches and exits");
}

#[test]
fn the_map_in_the_documents_names_every_room() {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let map = fs::read_to_string(map).unwrap();
    let missing: Vec<_> =
        FLOORS.iter().map(|(room, _)| *room).filter(|room| !map.contains(&format!("`{room}`"))).collect();
    assert!(missing.is_empty(), "docs/architecture.md does not name {missing:?}");
    let present: Vec<String> = sources().into_iter().map(|source| source.room).collect();
    let gone: Vec<_> = FLOORS.iter().filter(|(room, _)| !present.iter().any(|p| p == room)).collect();
    assert!(gone.is_empty(), "rooms without a file: {gone:?}");
}

#[test]
fn nothing_in_the_repository_names_a_place_outside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "scripts", "docs", "images", "compose", "scenarios", ".github", ".ci"] {
        collect(&root.join(folder), &mut files);
    }
    for file in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml"] {
        files.push(root.join(file));
    }
    // Split, so that this file does not find itself.
    let words = [["/wo", "rk/"].concat(), ["../sha", "red"].concat()];
    let mut wrong = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for word in &words {
            if text.contains(word.as_str()) {
                wrong.push(format!("{} holds `{word}`", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
