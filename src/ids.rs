//! Identifiers, each its own type: made in one place, parsed at the edge, ordinary text nowhere else.

use std::fmt;

/// Crockford's base 32 in lower case: no `i`, `l`, `o`, `u`, so that an id can be read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The text is not an identifier of the kind that was asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not {what}")]
pub struct ParseIdError {
    what: &'static str,
    text: String,
}

fn random_id(prefix: char, length: usize) -> String {
    let mut bytes = vec![0u8; length];
    // Without randomness no id and no secret of this program would be worth anything: nothing may go on.
    #[expect(clippy::expect_used, reason = "the kernel's random source does not fail after boot")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    let mut text = String::with_capacity(length + 1);
    text.push(prefix);
    for byte in bytes {
        text.push(char::from(ALPHABET.get(usize::from(byte & 31)).copied().unwrap_or(b'0')));
    }
    text
}

/// What every checked text has beside its `parse`.
macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text of it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $length:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A new random one.
            pub fn random() -> Self {
                Self(random_id($prefix, $length))
            }
            /// Reads one that this program printed.
            ///
            /// # Errors
            /// When the text has another form.
            pub fn parse(text: &str) -> Result<Self, ParseIdError> {
                let body = text.strip_prefix($prefix).unwrap_or("");
                if body.len() == $length && body.bytes().all(|byte| ALPHABET.contains(&byte)) {
                    return Ok(Self(text.to_owned()));
                }
                Err(ParseIdError { what: $what, text: text.chars().take(60).collect() })
            }
        }
        text!($name);
    };
}

id!(
    /// One run: `r` and ten characters (50 bits).
    RunId, 'r', 10, "a run id (`r` and ten characters)"
);
id!(
    /// One start of an agent: `s` and ten characters.
    SpawnId, 's', 10, "a spawn id (`s` and ten characters)"
);
id!(
    /// One registered project: `p` and ten characters.
    ProjectId, 'p', 10, "a project id (`p` and ten characters)"
);
id!(
    /// The public name of a pass, safe to log; the pass itself is another value: `k` and sixteen characters.
    PassId, 'k', 16, "a pass id (`k` and sixteen characters)"
);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $longest:literal, $extra:pat, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Reads a name.
            ///
            /// # Errors
            /// When the text has another form.
            pub fn parse(text: &str) -> Result<Self, ParseIdError> {
                let shaped = (1..=$longest).contains(&text.len())
                    && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | $extra))
                    && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
                if shaped {
                    return Ok(Self(text.to_owned()));
                }
                Err(ParseIdError { what: $what, text: text.chars().take(60).collect() })
            }
        }
        text!($name);
    };
}

name!(
    /// Who causes a run and pays for it: up to 64 of `a-z`, `0-9`, `.`, `_`, `@`, `+`, `-`.
    PersonId, 64, b'.' | b'_' | b'@' | b'+' | b'-',
    "a person's name (1 to 64 of `a-z`, `0-9`, `.`, `_`, `@`, `+`, `-`)"
);
name!(
    /// A step of a run: up to 32 of `a-z`, `0-9`, `-`.
    StepName, 32, b'-', "the name of a step (1 to 32 of `a-z`, `0-9`, `-`)"
);

impl PersonId {
    /// Who pays while nobody signs in.
    pub fn local() -> Self {
        Self("local".into())
    }
}

impl StepName {
    /// The one step of a run that follows no workflow.
    pub fn work() -> Self {
        Self("work".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let id = RunId::random();
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        for text in ["", "r", "r123", "../../etc/passwd", "rABCDEFGHJK", "s0123456789", "r01234567890"] {
            assert!(RunId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_short_and_plain() {
        for text in ["local", "ada.l@example.com", "0", "a+b_c"] {
            assert_eq!(PersonId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", ".a", "-x", "Ada", "a b", "a/b", "ü", &"a".repeat(65)] {
            assert!(PersonId::parse(text).is_err(), "{text}");
        }
        assert!(StepName::parse("review-2").is_ok() && StepName::parse("a.b").is_err());
    }
}
