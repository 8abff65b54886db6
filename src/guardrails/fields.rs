//! What tools that we do not know say in their input: fields that look like paths, and addresses.

use serde_json::{Map, Value};

/// Parts of a field's name by which its text is a path.
const PATH_LIKE: [&str; 12] = [
    "path",
    "file",
    "dir",
    "folder",
    "uri",
    "source",
    "destination",
    "target",
    "root",
    "location",
    "cwd",
    "notebook",
];

/// Longest text that is taken for a path, in bytes (the system's own limit); a longer one is contents.
const LONGEST: usize = 4096;

/// The paths that an input names, in fields at any depth.
pub(super) fn paths(input: &Map<String, Value>) -> Vec<String> {
    let mut all = Vec::new();
    texts(input, false, &mut |path_like, text| {
        if let Some(path) = file_address(text) {
            all.push(path);
        } else if (path_like || text.starts_with(['/', '~'])) && !text.contains("://") {
            all.push(text.to_owned());
        }
    });
    all
}

/// The addresses that an input names.
pub(super) fn addresses(input: &Map<String, Value>) -> Vec<String> {
    let mut all = Vec::new();
    texts(input, false, &mut |_, text| {
        let lower = text.trim_start().to_ascii_lowercase();
        if ["http:", "https:", "ws:", "wss:", "ftp:"].iter().any(|scheme| lower.starts_with(scheme)) {
            all.push(text.to_owned());
        }
    });
    all
}

/// Each text of one line, and whether its field's name means a path.
fn texts(input: &Map<String, Value>, path_like: bool, told: &mut dyn FnMut(bool, &str)) {
    for (name, value) in input {
        // In `{"files": {"/a/b": "text"}}` the name is the path.
        if path_like && name.len() <= LONGEST {
            told(true, name);
        }
        let lower = name.to_ascii_lowercase();
        text(value, path_like || PATH_LIKE.iter().any(|part| lower.contains(part)), told);
    }
}

fn text(value: &Value, path_like: bool, told: &mut dyn FnMut(bool, &str)) {
    match value {
        Value::String(text) if text.len() <= LONGEST && !text.contains('\n') => told(path_like, text),
        Value::Array(all) => all.iter().for_each(|one| text(one, path_like, told)),
        Value::Object(inner) => texts(inner, path_like, told),
        _ => {}
    }
}

/// The path of a `file:` address.
fn file_address(text: &str) -> Option<String> {
    let start = text.trim_start().get(..5)?;
    if !start.eq_ignore_ascii_case("file:") {
        return None;
    }
    let url = url::Url::parse(text).ok()?;
    url.to_file_path().ok().map(|path| path.to_string_lossy().into_owned())
}
