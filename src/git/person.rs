//! Who a commit is by: a name and an address that git takes as they are.

use super::{Git, GitError, Repository};
use crate::failure::{Exit, Explain};

/// The longest name or address that is taken, in bytes.
const LONGEST: usize = 200;

/// A person, as author and committer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    name: String,
    email: String,
}

/// Not a name or an address that can stand in a commit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PersonError {
    /// The name.
    #[error("`{0}` cannot be the name in a commit")]
    Name(String),
    /// The address.
    #[error("`{0}` cannot be the e-mail address in a commit")]
    Email(String),
}

impl Explain for PersonError {
    fn code(&self) -> &'static str {
        "git-identity"
    }
    fn hint(&self) -> Option<String> {
        Some(
            "set `git config --global user.name` and `user.email`, or `WORCA_GIT_NAME` and `WORCA_GIT_EMAIL`"
                .into(),
        )
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

impl Person {
    /// A person of this name and address.
    ///
    /// # Errors
    /// When one is empty, too long, or holds a character that git would drop (`<`, `>`, a line break).
    pub fn new(name: &str, email: &str) -> Result<Self, PersonError> {
        let fine = |text: &str| {
            !text.is_empty()
                && text.len() <= LONGEST
                && !text.chars().any(|character| character.is_control() || matches!(character, '<' | '>'))
                && text.chars().any(char::is_alphanumeric)
        };
        let (name, email) = (name.trim(), email.trim());
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(80).collect();
        if !fine(name) {
            return Err(PersonError::Name(shown(name)));
        }
        if !fine(email) || email.contains(char::is_whitespace) {
            return Err(PersonError::Email(shown(email)));
        }
        Ok(Self { name: name.to_owned(), email: email.to_owned() })
    }

    /// Who commits when nobody was named.
    pub fn nobody() -> Self {
        Self { name: "Worca".into(), email: "worca@localhost".into() }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The e-mail address.
    pub fn email(&self) -> &str {
        &self.email
    }

    /// The variables that make git use this person and no other.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("GIT_AUTHOR_NAME", self.name.clone()),
            ("GIT_AUTHOR_EMAIL", self.email.clone()),
            ("GIT_COMMITTER_NAME", self.name.clone()),
            ("GIT_COMMITTER_EMAIL", self.email.clone()),
        ]
    }
}

/// The person that git knows on this machine: `user.name` and `user.email` as `repository` sees them when one is
/// given, else of the person's own settings. `None` when one of the two is not set or cannot stand in a commit.
///
/// Reading a setting runs nothing, whatever the settings hold.
///
/// # Errors
/// When git does not run.
pub async fn host_person(git: &Git, repository: Option<&Repository>) -> Result<Option<Person>, GitError> {
    let mut values = Vec::new();
    for key in ["user.name", "user.email"] {
        let mut call = git.call("config").with_user_settings().arg("--get").arg(key);
        call = match repository {
            Some(repository) => call.env("GIT_DIR", repository.git_dir()),
            None => call.arg("--global"),
        };
        // `--global` does not look at the system's file; a machine-wide identity is nobody's own.
        match call.text().await {
            Ok(value) => values.push(value),
            Err(GitError::Failed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let [name, email] = values.as_slice() else { return Ok(None) };
    Ok(Person::new(name, email).ok())
}
