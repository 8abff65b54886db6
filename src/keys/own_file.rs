//! Files of settings that a person writes for the key service: prices and slots. Read once, at start.

use std::io::Read as _;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::{Location, Spanned};

/// Where in the file, and what is wrong.
pub(super) type Wrong = (Location, String);

/// What a plain file holds; `None` when it is longer than `most` bytes.
pub(super) fn read(path: &Path, most: u64) -> std::io::Result<Option<String>> {
    // Looked at before it is opened, because opening a pipe would wait for somebody to write to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a plain file"));
    }
    let mut text = String::new();
    let length = std::fs::File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    Ok((length as u64 <= most).then_some(text))
}

/// Reads a text of YAML. Nobody needs aliases in these files, and a small text could swell with them.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 0 },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let said = error.without_snippet().to_string();
        let said = said.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default();
        // The parser's advice is for programs.
        let said = said.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
        let said = said.chars().filter(|c| !c.is_control()).take(300).collect();
        (error.location().unwrap_or(Location::UNKNOWN), said)
    })
}

/// Whether a file is of the version that this program reads.
pub(super) fn check_version(found: &Spanned<u32>, known: u32) -> Result<(), Wrong> {
    if found.value == known {
        return Ok(());
    }
    let what = format!("it is of version {}, and this program reads version {known}", found.value);
    Err((found.referenced, what))
}
