//! The core token: what the command line shows to core. In the box it is a mounted secret; without a box core
//! makes it once, for its own user alone.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::failure::{Exit, Explain};
use crate::secret::Secret;

/// The fewest characters that a token may have: 128 bits in base64.
const SHORTEST: usize = 22;
/// The most bytes that a token's file may have.
const LONGEST: u64 = 4096;

/// There is no token to use.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file is out of reach.
    #[error("the core token cannot be read from `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be made.
    #[error("the core token cannot be made at `{}`", path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds no token.
    #[error("`{}` holds no core token: it must have {SHORTEST} to {LONGEST} characters", path.display())]
    Form {
        /// The file.
        path: PathBuf,
    },
    /// Others can read the file.
    #[error("`{}` can be read by others (mode {mode:o})", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

impl Explain for TokenError {
    fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Make { .. } => "core-token-unreadable",
            Self::Form { .. } => "core-token-form",
            Self::Open { .. } => "core-token-open",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { .. } => {
                "in a box: `worca container shell core -- worca runs`; else start core first (`worca serve`, or \
                 `worca container up`), or name the file with `--core-token-file` (WORCA_CORE_TOKEN_FILE)"
                    .into()
            }
            Self::Make { path, .. } => {
                format!("`{}` must be a folder that this user can write", parent(path).display())
            }
            Self::Form { .. } => "put a random text into it, for example of `openssl rand -hex 32`".into(),
            Self::Open { path, .. } => format!("run `chmod 600 {}`", path.display()),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Reads the token at `path`.
///
/// # Errors
/// When it is not there or is no token.
pub fn read(path: &Path) -> Result<Secret, TokenError> {
    let unreadable = |source| TokenError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    let too_long = u64::try_from(text.len()).unwrap_or(u64::MAX) > LONGEST;
    let token = Secret::new(text);
    let plain = token.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if too_long || token.expose().len() < SHORTEST || !plain {
        return Err(TokenError::Form { path: path.to_owned() });
    }
    Ok(token)
}

/// Reads the token at `path`, or makes it there, readable by this user alone.
///
/// # Errors
/// When it can neither be read nor made, or others can read it.
pub fn read_or_make(path: &Path) -> Result<Secret, TokenError> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => {
            only_ours(path)?;
            read(path)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            make(path).map_err(|source| TokenError::Make { path: path.to_owned(), source })?;
            read(path)
        }
        Err(source) => Err(TokenError::Read { path: path.to_owned(), source }),
    }
}

/// Written beside and renamed, so that nobody ever reads half a token.
fn make(path: &Path) -> std::io::Result<()> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    let text = Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes));
    std::fs::create_dir_all(parent(path))?;
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = std::fs::remove_file(&beside);
    let mut file = options.open(&beside)?;
    file.write_all(format!("{}\n", text.expose()).as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(unix)]
fn only_ours(path: &Path) -> Result<(), TokenError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |source| TokenError::Read { path: path.to_owned(), source };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(TokenError::Open { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn only_ours(_: &Path) -> Result<(), TokenError> {
    Ok(())
}
