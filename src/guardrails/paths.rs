//! Where a path leads: as typed and through every link. Reads links; opens no file.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed before a path counts as endless (the kernel's own number).
const MAX_LINKS: usize = 40;

/// `path` from `directory`, with `.` and `..` taken as text. `~` is the agent's home, as its tools take it.
pub(super) fn typed(path: &str, directory: &Path, home: Option<&Path>) -> PathBuf {
    let whole = match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => directory.join(path),
    };
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Where the kernel would end up: each link followed, also one whose target is not there yet, `..` taken from the
/// real folder. `None` when it cannot be known (too many links).
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    let mut links = 0;
    let mut real = PathBuf::new();
    let mut ahead: Vec<OsString> = parts(path);
    while let Some(part) = ahead.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    real = PathBuf::new();
                }
                ahead.extend(parts(&target));
            }
            Err(_) => real = next,
        }
    }
    Some(real)
}

/// The components, the first one last; the root and a prefix count as one each.
fn parts(path: &Path) -> Vec<OsString> {
    let mut all: Vec<OsString> = path
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| part.as_os_str().to_owned())
        .collect();
    all.reverse();
    all
}

/// Whether `path` is `folder` or lies in it. Where file names ignore case, so does this.
pub(super) fn within(path: &Path, folder: &Path) -> bool {
    if cfg!(any(target_os = "macos", windows)) {
        let lower = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        return lower(path).starts_with(lower(folder));
    }
    path.starts_with(folder)
}
