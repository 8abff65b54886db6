//! Names in a repository: a branch, a commit. Parsed once, so that neither can be an option or a path outside.

use std::fmt;

/// The text is not a name of the kind that was asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not {what}")]
pub struct ParseNameError {
    what: &'static str,
    text: String,
}

/// The longest branch name that is taken, in bytes: with `.lock` behind it a file name still fits everywhere.
const LONGEST_BRANCH: usize = 200;
/// The longest readable last part of a run's branch.
const LONGEST_SLUG: usize = 40;

/// A branch, without `refs/heads/`, as `git check-ref-format --branch` would take it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct BranchName(String);

impl BranchName {
    /// Reads a branch name.
    ///
    /// # Errors
    /// When git would not take it.
    pub fn parse(text: &str) -> Result<Self, ParseNameError> {
        let part_is_fine =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let byte_is_fine = |byte: u8| byte > 0x20 && byte != 0x7f && !b"~^:?*[\\".contains(&byte);
        let fine = text.len() <= LONGEST_BRANCH
            && !text.starts_with('-')
            && text != "HEAD"
            && text != "@"
            && !text.ends_with('.')
            && !text.contains("..")
            && !text.contains("@{")
            && text.bytes().all(byte_is_fine)
            && text.split('/').all(part_is_fine);
        if fine {
            return Ok(Self(text.to_owned()));
        }
        Err(ParseNameError { what: "a branch name", text: text.chars().take(80).collect() })
    }

    /// The branch of a run: `worca/<id>/<slug>`, the slug made from the run's title.
    pub fn of_run(run: &crate::ids::RunId, title: &str) -> Self {
        Self(format!("worca/{run}/{}", slug(title)))
    }

    /// The name as `git branch` shows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full name of its ref.
    pub fn full(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower-case letters, digits and single dashes; `run` when nothing of the title is left.
fn slug(title: &str) -> String {
    let mut text = String::new();
    for character in title.chars().flat_map(char::to_lowercase) {
        if text.len() >= LONGEST_SLUG {
            break;
        }
        if character.is_ascii_alphanumeric() {
            text.push(character);
        } else if !text.is_empty() && !text.ends_with('-') {
            text.push('-');
        }
    }
    let text = text.trim_end_matches('-');
    if text.is_empty() { "run".to_owned() } else { text.to_owned() }
}

/// The full id of a commit (or of another object): 40 hexadecimal digits, or 64 in a SHA-256 repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct CommitId(String);

impl CommitId {
    /// Reads a full id; white space around it is dropped.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, ParseNameError> {
        let text = text.trim();
        if matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Ok(Self(text.to_owned()));
        }
        Err(ParseNameError { what: "a full commit id", text: text.chars().take(80).collect() })
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunId;

    #[test]
    fn a_branch_name_is_what_git_takes() {
        for text in ["main", "feature/x", "worca/r0123456789/add-search", "ümlaut", "a.b"] {
            assert!(BranchName::parse(text).is_ok(), "{text}");
        }
        for text in [
            "", "-d", "a b", "a..b", "a/", "/a", "a//b", ".a", "a/.b", "a.lock", "a~1", "a:b", "a\nb", "@",
            "HEAD", "a@{1}",
        ] {
            assert!(BranchName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_title_makes_a_branch_name() {
        let run = RunId::random();
        for (title, end) in [
            ("Add a /search endpoint", "/add-a-search-endpoint"),
            ("", "/run"),
            ("日本語", "/run"),
            ("--force .lock", "/force-lock"),
            (&"x".repeat(500), &format!("/{}", "x".repeat(40))),
        ] {
            let branch = BranchName::of_run(&run, title);
            assert!(branch.as_str().ends_with(end), "{branch}");
            assert!(BranchName::parse(branch.as_str()).is_ok(), "{branch}");
        }
    }

    #[test]
    fn a_commit_id_is_whole_and_hexadecimal() {
        assert!(CommitId::parse(&"a".repeat(40)).is_ok());
        assert!(CommitId::parse(&format!("{}\n", "0".repeat(64))).is_ok());
        for text in ["", "HEAD", "abc", &"A".repeat(40), &"g".repeat(40)] {
            assert!(CommitId::parse(text).is_err(), "{text}");
        }
    }
}
