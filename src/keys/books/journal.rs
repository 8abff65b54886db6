//! The calls that are open, in a file of fixed cells: who pays, and what has been counted so far. A count is one small
//! write into the system's cache, so that killing the service loses nothing that it has seen; a machine that loses its
//! power loses the last seconds. What stands in a cell at the next start was cut, or had not reached the books.
//!
//! A cell is 1,024 bytes: at 0 the call (a JSON text behind its length and seal), at 768 and 896 its two last counts,
//! written in turn, each with its own seal: one that was cut in the middle leaves the one before.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Millis;
use crate::ids::{PassId, PersonId, RunId, StepName};
use crate::keys::meter::Counted;
use crate::keys::slot::SlotName;

const CELL: usize = 1024;
/// Cells that are free.
static BLANK: [u8; 32 * CELL] = [0; 32 * CELL];
/// Where the two counts begin.
const COUNTS: [usize; 2] = [768, 896];
/// The numbers of a count, and its seal.
const NUMBERS: usize = 9;
const COUNT: usize = (NUMBERS + 1) * 8;
/// Before the text of a call: its length and its seal.
const HEAD: usize = 16;
/// The longest model that is kept, in bytes: every character may need two in the text.
const LONGEST_MODEL: usize = 160;

/// Whose a call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// The number of the call: no two in these books have the same.
    pub(super) number: u64,
    /// When it began: the day that pays.
    pub(super) began: Millis,
    pub(super) pass: PassId,
    pub(super) run: RunId,
    pub(super) step: StepName,
    pub(super) person: PersonId,
    pub(super) slot: SlotName,
    /// As the agent asked for it.
    pub(super) asked: String,
    /// As the provider named it.
    pub(super) answered: Option<String>,
    /// Nobody is billed for it by use.
    pub(super) free: bool,
}

impl Owner {
    /// The model that the books name.
    pub(super) fn model(&self) -> &str {
        self.answered.as_deref().unwrap_or(&self.asked)
    }
}

/// A model's name as it fits into a cell.
pub(super) fn short(model: &str) -> String {
    let end =
        (0..=LONGEST_MODEL.min(model.len())).rev().find(|end| model.is_char_boundary(*end)).unwrap_or(0);
    model.get(..end).unwrap_or_default().to_owned()
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::keys) enum How {
    /// The answer was all there.
    Whole,
    /// The provider said that it failed, or could not be reached.
    Failed,
    /// It was cut before it was over.
    Cut,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) counted: Counted,
    /// How it ended, and what it cost by the price table of that moment: `None` where that knows no price.
    pub(super) ended: Option<(How, Option<u64>)>,
}

const ESTIMATED: u64 = 1;
const FAST: u64 = 2;
const ENDED: u64 = 4;
const FAILED: u64 = 8;
const CUT: u64 = 16;
const PRICED: u64 = 32;

impl State {
    fn numbers(&self, number: u64, turn: u64) -> [u64; NUMBERS] {
        let counted = &self.counted;
        let mut flags = 0;
        flags |= if counted.estimated { ESTIMATED } else { 0 };
        flags |= if counted.fast { FAST } else { 0 };
        let mut cost = 0;
        if let Some((how, micros)) = self.ended {
            cost = micros.unwrap_or(0);
            flags |= ENDED | if micros.is_some() { PRICED } else { 0 };
            flags |= match how {
                How::Whole => 0,
                How::Failed => FAILED,
                How::Cut => CUT,
            };
        }
        [
            number,
            turn,
            flags,
            cost,
            counted.input,
            counted.output,
            counted.cache_write_5m,
            counted.cache_write_1h,
            counted.cache_read,
        ]
    }

    fn of(numbers: [u64; NUMBERS]) -> Self {
        let [_, _, flags, cost, input, output, cache_write_5m, cache_write_1h, cache_read] = numbers;
        let counted = Counted {
            model: None,
            input,
            output,
            cache_write_5m,
            cache_write_1h,
            cache_read,
            estimated: flags & ESTIMATED != 0,
            fast: flags & FAST != 0,
        };
        let how = match flags & (FAILED | CUT) {
            0 => How::Whole,
            FAILED => How::Failed,
            _ => How::Cut,
        };
        let ended = (flags & ENDED != 0).then(|| (how, (flags & PRICED != 0).then_some(cost)));
        Self { counted, ended }
    }
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    free: Vec<u64>,
    used: u64,
}

/// A call's cell.
#[derive(Debug)]
pub(super) struct Cell {
    place: u64,
    turn: u64,
}

impl Journal {
    /// Opens the file, and reads what stands in it: each call and what was last known of it.
    pub(super) fn open(path: &Path) -> std::io::Result<(Self, Vec<(Owner, State)>)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let found = text.chunks(CELL).filter_map(read).collect();
        Ok((Self { file, places: Mutex::default() }, found))
    }

    /// Forgets everything: what was read at the opening stands in the books.
    pub(super) fn clear(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()
    }

    /// Writes a new call down.
    pub(super) fn begin(&self, owner: &Owner, state: &State) -> std::io::Result<Cell> {
        let place = {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.free.pop().unwrap_or_else(|| {
                places.used += 1;
                places.used - 1
            })
        };
        let mut text = [0; CELL];
        let written = call(&mut text, owner).and_then(|()| {
            count(text.get_mut(COUNTS[0]..COUNTS[1]).unwrap_or_default(), state.numbers(owner.number, 0));
            self.write(place, 0, &text)
        });
        match written {
            Ok(()) => Ok(Cell { place, turn: 0 }),
            Err(error) => {
                self.free_place(place);
                Err(error)
            }
        }
    }

    /// Writes whose the call is once more: the provider has named the model.
    pub(super) fn rename(&self, cell: &Cell, owner: &Owner) -> std::io::Result<()> {
        let mut text = [0; COUNTS[0]];
        call(&mut text, owner)?;
        self.write(cell.place, 0, &text)
    }

    /// Writes what is known of the call now.
    pub(super) fn note(&self, cell: &mut Cell, number: u64, state: &State) -> std::io::Result<()> {
        cell.turn += 1;
        let at = if cell.turn.is_multiple_of(2) { COUNTS[0] } else { COUNTS[1] };
        let mut text = [0; COUNT];
        count(&mut text, state.numbers(number, cell.turn));
        self.write(cell.place, at, &text)
    }

    /// The calls stand in the books: their cells may be used again. Cells that lie side by side are one write.
    pub(super) fn free(&self, cells: impl IntoIterator<Item = Cell>) -> std::io::Result<()> {
        let mut places: Vec<u64> = cells.into_iter().map(|cell| cell.place).collect();
        places.sort_unstable();
        for beside in places.chunk_by(|one, next| one + 1 == *next) {
            for some in beside.chunks(BLANK.len() / CELL) {
                let first = some.first().copied().unwrap_or_default();
                self.write(first, 0, BLANK.get(..some.len() * CELL).unwrap_or_default())?;
                self.places.lock().unwrap_or_else(PoisonError::into_inner).free.extend(some);
            }
        }
        Ok(())
    }

    fn free_place(&self, place: u64) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).free.push(place);
    }

    fn write(&self, place: u64, at: usize, text: &[u8]) -> std::io::Result<()> {
        let from = place * CELL as u64 + at as u64;
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_all_at(&self.file, text, from);
        #[cfg(not(unix))]
        return Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            format!("no journal here ({from})"),
        ));
    }
}

fn seal(text: &[u8]) -> u64 {
    let hash: [u8; 32] = Sha256::digest(text).into();
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

fn call(cell: &mut [u8], owner: &Owner) -> std::io::Result<()> {
    let text = serde_json::to_vec(owner)?;
    let length = text.len() as u64;
    let (head, rest) = cell.split_at_mut_checked(HEAD).ok_or(std::io::ErrorKind::InvalidInput)?;
    let place = rest.get_mut(..text.len()).filter(|_| text.len() <= COUNTS[0] - HEAD);
    place.ok_or(std::io::ErrorKind::InvalidInput)?.copy_from_slice(&text);
    let words = [length, seal(&text)];
    for (place, word) in head.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

fn count(place: &mut [u8], numbers: [u64; NUMBERS]) {
    let mut words = numbers.iter().flat_map(|number| number.to_le_bytes());
    let (text, rest) = place.split_at_mut(NUMBERS * 8);
    text.fill_with(|| words.next().unwrap_or(0));
    if let Some(place) = rest.first_chunk_mut() {
        *place = seal(text).to_le_bytes();
    }
}

fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// The call of one cell; `None` for an empty one, and for one whose beginning was never whole.
fn read(cell: &[u8]) -> Option<(Owner, State)> {
    let length =
        usize::try_from(word(cell, 0)?).ok().filter(|length| (1..=COUNTS[0] - HEAD).contains(length))?;
    let text = cell.get(HEAD..HEAD + length)?;
    if word(cell, 8)? != seal(text) {
        return None;
    }
    let mut owner: Owner = serde_json::from_slice(text).ok()?;
    let counts = COUNTS.iter().filter_map(|at| {
        let text = cell.get(*at..at + NUMBERS * 8)?;
        (word(cell, at + NUMBERS * 8)? == seal(text)).then_some(())?;
        let mut numbers = [0; NUMBERS];
        for (place, number) in numbers.iter_mut().zip(text.chunks_exact(8)) {
            *place = word(number, 0)?;
        }
        (numbers[0] == owner.number).then_some(numbers)
    });
    let last = counts.max_by_key(|numbers| numbers[1])?;
    owner.asked = short(&owner.asked);
    Some((owner, State::of(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> Owner {
        Owner {
            number,
            began: Millis(1),
            pass: PassId::random(),
            run: RunId::random(),
            step: StepName::work(),
            person: PersonId::parse(&"p".repeat(64)).unwrap(),
            slot: SlotName::rehearsal(),
            asked: short(&"\"".repeat(500)),
            answered: None,
            free: false,
        }
    }

    fn state(output: u64) -> State {
        State { counted: Counted { input: 7, output, estimated: true, ..Counted::default() }, ended: None }
    }

    #[test]
    fn what_was_last_noted_of_each_call_is_there_at_the_next_opening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.journal");
        let (journal, found) = Journal::open(&path).unwrap();
        assert!(found.is_empty());
        let owners: Vec<Owner> = (1..=3).map(owner).collect();
        let mut cells: Vec<Cell> =
            owners.iter().map(|owner| journal.begin(owner, &state(0)).unwrap()).collect();
        for output in 1..=5 {
            journal.note(&mut cells[0], 1, &state(output)).unwrap();
        }
        let done = State { ended: Some((How::Failed, Some(12))), ..state(8) };
        journal.note(&mut cells[1], 2, &done).unwrap();
        let named = Owner { answered: Some("model-1".into()), ..owners[0].clone() };
        journal.rename(&cells[0], &named).unwrap();
        journal.free([cells.remove(2)]).unwrap();
        drop(journal);

        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, vec![(named, state(5)), (owners[1].clone(), done)]);
        journal.clear().unwrap();
        drop(journal);
        assert!(Journal::open(&path).unwrap().1.is_empty());
    }

    #[test]
    fn a_count_that_was_cut_leaves_the_one_before_and_an_old_one_in_a_used_cell_counts_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.journal");
        let (journal, _) = Journal::open(&path).unwrap();
        let mut cell = journal.begin(&owner(1), &state(1)).unwrap();
        journal.note(&mut cell, 1, &state(2)).unwrap();
        journal.write(0, COUNTS[1] + 40, &[9; 8]).unwrap();
        assert_eq!(Journal::open(&path).unwrap().1[0].1, state(1));
        let place = cell.place;
        journal.free([cell]).unwrap();
        let second = journal.begin(&owner(2), &state(0)).unwrap();
        assert_eq!(second.place, place);
        assert_eq!(Journal::open(&path).unwrap().1[0].1, state(0));
        // A beginning that was cut was never let through to a provider.
        journal.write(0, HEAD + 3, b"?").unwrap();
        assert!(Journal::open(&path).unwrap().1.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.journal");
        for (byte, length) in [(0u8, 5000), (255, 5000), (1, 3), (1, 1024), (0x20, 1500)] {
            std::fs::write(&path, vec![byte; length]).unwrap();
            assert!(Journal::open(&path).unwrap().1.is_empty(), "{byte} {length}");
        }
    }
}
