//! What a line may cost. A line that costs more is denied; there is no number of commands after which one is let
//! through.

use std::cell::Cell;

/// How deep syntax may nest (substitutions, groups, quotes in braces).
pub(super) const MAX_NESTING: u32 = 48;
/// How deep commands may stand in commands (`sh -c`, `eval`, wrappers).
pub(super) const MAX_COMMANDS: u32 = 24;
/// How many lists and groups may stand around one another, over all texts of a line.
pub(super) const MAX_JUDGED: u32 = 120;
/// How many words one word may become by its braces.
pub(super) const MAX_WORDS: usize = 512;
/// In how many ways a command is tried whose words can have several values.
pub(super) const MAX_WAYS: usize = 24;
/// What it costs to read a command, beside its characters: mostly the memory that it takes.
pub(super) const READ: usize = 16;
/// What it costs to judge one, beside its characters.
pub(super) const COMMAND: usize = 32;
/// What a line in a line costs beside its characters, and a command of Windows' shells.
pub(super) const LINE: usize = 100;
/// What a word of a command of Windows' shells costs.
pub(super) const WORD: usize = 10;
/// What it costs to look at a path.
pub(super) const PATH: usize = 150;
/// Characters read, words made, words compared; some 40 ms of one processor, for a line with all
/// that stands in it. 64 KiB of ordinary text cost a half at most.
const STEPS: u64 = 250_000;

/// Why a line cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Not understood, at this character (from 0).
    Unreadable(usize),
    TooDeep,
    TooLong,
}

/// The steps that are left for one line.
#[derive(Debug)]
pub(super) struct Budget(Cell<u64>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(STEPS))
    }

    /// Pays for `steps` steps.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Trouble> {
        let left = self.0.get().checked_sub(steps as u64).ok_or(Trouble::TooLong)?;
        self.0.set(left);
        Ok(())
    }
}

impl Trouble {
    /// The same, seen from the text that holds the text in which it was met.
    pub(super) fn at(self, column: usize) -> Self {
        match self {
            Self::Unreadable(_) => Self::Unreadable(column),
            other => other,
        }
    }
}
