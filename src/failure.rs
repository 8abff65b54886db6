//! How a failure reaches a person: one sentence, the causes below it, a hint, an exit code.
//! Rooms keep their own error enums and implement [`Explain`]; only `main` prints.

use std::fmt::Write as _;

/// The exit codes of every `worca` command. `--help` and docs/container.md list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// It was tried and failed.
    Failed = 1,
    /// The command line itself was wrong.
    Usage = 2,
    /// A run waits for something: a key, an answer, money.
    Parked = 3,
    /// The configuration, or what was found in reach of it, is refused (`EX_CONFIG` of sysexits.h).
    Refused = 78,
}

/// What an error must say beside its own sentence before a person may see it.
///
/// `Display` is this layer's sentence: lower case, names in backticks, no full stop, no secret, and without
/// its source, which the printer adds.
pub trait Explain: std::error::Error + Send + Sync + 'static {
    /// A stable word that a program can act on, such as `port-taken`.
    fn code(&self) -> &'static str;
    /// What to do about it, in the imperative.
    fn hint(&self) -> Option<String> {
        None
    }
    /// The exit code that it ends the program with.
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Any explained error, on its way to `main`.
pub struct Failure(Box<dyn Explain>);

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl Failure {
    /// The stable word of the error.
    pub fn code(&self) -> &'static str {
        self.0.code()
    }
    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.0.exit()
    }
    /// The hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        self.0.hint()
    }
    /// The sentence of this error alone.
    pub fn sentence(&self) -> String {
        self.0.to_string()
    }
    /// What a terminal shows: `error:`, each cause on a line of its own, `hint:`.
    pub fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.0);
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let _ = writeln!(text, "  because: {error}");
            cause = error.source();
        }
        if let Some(hint) = self.0.hint() {
            let _ = write!(text, "\nhint: {hint}\n");
        }
        text
    }
}

impl std::fmt::Debug for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render())
    }
}
