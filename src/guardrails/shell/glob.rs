//! Wildcards of a shell's words: `*`, `?`, `[…]`. What was quoted or escaped is taken apart before, so that a `\` is
//! a letter here.

use super::super::glob;

/// Whether the pattern fits all of the text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    glob::fits(&pattern.replace('\\', r"\\"), text, false)
}
