//! Which image a box is made of: what the user named, else the one that was built together with this program.

use std::path::{Path, PathBuf};

use super::files;
use crate::failure::{Exit, Explain};

/// The file that `scripts/image` writes beside the build of the program it packed.
const BUILT: &str = "worca-image";
/// An image reference is a short line.
const REFERENCE_BYTES: u64 = 4096;

/// An image reference that was read from somewhere, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageChoice {
    /// The reference.
    pub reference: String,
    /// Where it came from, for a person.
    pub origin: String,
}

/// No image is known.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Nothing names one.
    #[error("no image is known for the box")]
    Unknown,
    /// The text is no reference.
    #[error("`{text}` (from {origin}) is not an image reference")]
    Invalid {
        /// The text, without control characters.
        text: String,
        /// Where it came from.
        origin: String,
    },
}

impl Explain for ImageError {
    fn code(&self) -> &'static str {
        "image-unknown"
    }
    fn hint(&self) -> Option<String> {
        Some(
            "build it with `scripts/image` from the checkout, or name one: `worca container up --image REF`"
                .into(),
        )
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Unknown => Exit::Refused,
            Self::Invalid { .. } => Exit::Usage,
        }
    }
}

/// Chooses among what was named, in the order of precedence: the flag, the environment, what the box remembers, the
/// image built with this program, what `.env` says.
///
/// # Errors
/// When nothing names one, or the first that does is no reference.
pub fn choose(
    flag: Option<&str>,
    environment: Option<&str>,
    remembered: Option<&str>,
    program: Option<&Path>,
    dotenv: Option<&str>,
) -> Result<ImageChoice, ImageError> {
    let built = program.and_then(built_with);
    let from_file = built.as_ref().map(|(text, file)| (text.as_str(), format!("`{}`", file.display())));
    let candidates = [
        flag.map(|text| (text, "`--image`".to_owned())),
        environment.map(|text| (text, "`WORCA_IMAGE`".to_owned())),
        remembered.map(|text| (text, "an earlier `--image`".to_owned())),
        from_file,
        dotenv.map(|text| (text, "`.env`".to_owned())),
    ];
    let chosen = candidates.into_iter().flatten().find(|(text, _)| !text.trim().is_empty());
    let (text, origin) = chosen.ok_or(ImageError::Unknown)?;
    let text = text.trim();
    if is_reference(text) {
        return Ok(ImageChoice { reference: text.to_owned(), origin });
    }
    let text = text.chars().filter(|c| !c.is_control()).take(100).collect();
    Err(ImageError::Invalid { text, origin })
}

/// What `scripts/image` left in the folder above the program's own, as in `target/release/worca`.
fn built_with(program: &Path) -> Option<(String, PathBuf)> {
    let file = program.parent()?.parent()?.join(BUILT);
    let text = files::read_text(&file, REFERENCE_BYTES).ok().flatten()?;
    Some((text.trim().to_owned(), file))
}

/// The outer shape of a reference; the engine judges the rest.
fn is_reference(text: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '[' | ']');
    !text.is_empty()
        && text.len() <= 512
        && text.chars().all(fits)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_names_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("release/worca");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(BUILT), "worca:built\n").unwrap();
        let pick = |flag, environment, remembered, dotenv| {
            choose(flag, environment, remembered, Some(&program), dotenv).unwrap().reference
        };
        assert_eq!(pick(Some("a:1"), Some("b:1"), Some("c:1"), Some("d:1")), "a:1");
        assert_eq!(pick(None, Some("b:1"), Some("c:1"), Some("d:1")), "b:1");
        assert_eq!(pick(None, None, Some("c:1"), Some("d:1")), "c:1");
        assert_eq!(pick(None, Some(""), None, Some("d:1")), "worca:built");
        assert_eq!(choose(None, None, None, None, Some("d:1")).unwrap().reference, "d:1");
    }

    #[test]
    fn no_image_and_a_wrong_one_are_sentences() {
        assert!(matches!(choose(None, None, None, None, None), Err(ImageError::Unknown)));
        for text in ["-v", "a b", "a\nb", "$(x)", "ä"] {
            let error = choose(Some(text), None, None, None, None).unwrap_err();
            assert!(matches!(error, ImageError::Invalid { .. }) && error.exit() == Exit::Usage, "{text}");
        }
        for text in ["worca:dev", "registry.example:5000/team/worca@sha256:00", "[::1]:5000/w:1"] {
            choose(Some(text), None, None, None, None).unwrap();
        }
    }
}
