//! Paths of the host as a Compose file writes them: relative to its folder, or to the home folder with `~`.
//! By text alone, so that a Windows path can be read on Linux. Nothing is looked up on a disk.

/// The folders that relative paths start from, absolute and as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The folder of the Compose files.
    pub project: String,
    /// The home folder, if there is one.
    pub home: Option<String>,
}

impl Folders {
    /// The absolute form of a host path; `None` when `~` has nothing to stand for.
    pub fn resolve(&self, path: &str) -> Option<String> {
        if let Some(rest) = path.strip_prefix('~') {
            let home = self.home.as_deref()?;
            return match rest.strip_prefix(['/', '\\']) {
                Some(rest) => Some(normal(&format!("{home}/{rest}"))),
                None if rest.is_empty() => Some(home.to_owned()),
                None => None,
            };
        }
        Some(if is_absolute(path) { path.to_owned() } else { normal(&format!("{}/{path}", self.project)) })
    }
}

/// Begins at a root: `/`, `C:\`, `C:/`, `\\server`.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.starts_with(r"\\") || is_drive(path)
}

/// `C:` and a slash of either kind.
fn is_drive(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.next() == Some(b':')
        && matches!(bytes.next(), Some(b'/' | b'\\'))
}

/// Without `.`, `..`, doubled and trailing slashes. A Windows path keeps its kind of slash.
pub(crate) fn normal(path: &str) -> String {
    let windows = is_drive(path) || path.starts_with(r"\\");
    let slash = if windows { '\\' } else { '/' };
    let separators: &[char] = if windows { &['/', '\\'] } else { &['/'] };
    let (root, rest) = if is_drive(path) {
        (path.get(..2).unwrap_or_default().to_owned() + "\\", path.get(3..).unwrap_or_default())
    } else if windows {
        (r"\\".to_owned(), path.trim_start_matches(separators))
    } else if path.starts_with('/') {
        ("/".to_owned(), path)
    } else {
        (String::new(), path)
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split(separators) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut text = root;
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push(slash);
        }
        text.push_str(part);
    }
    text
}
