//! Brace expansion: `{a,b}`, `{1..3}`.

use super::limits::{MAX_WORDS, Trouble};
use super::syntax::Part;
use super::values::UNKNOWN;

/// A character of unquoted text, or a part that braces do not look into.
#[derive(Clone)]
enum Atom<'a> {
    Char(char),
    Part(&'a Part),
}

/// The words that a word's braces make of it.
pub(super) fn expand(parts: &[Part]) -> Result<Vec<Vec<Part>>, Trouble> {
    let opened = |part: &Part| match part {
        Part::Text { text, quoted: false } => text.matches('{').count(),
        _ => 0,
    };
    let count: usize = parts.iter().map(opened).sum();
    if count == 0 {
        return Ok(vec![parts.to_vec()]);
    }
    if count > 64 {
        return Err(Trouble::TooLong);
    }
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Text { text, quoted: false } => atoms.extend(text.chars().map(Atom::Char)),
            other => atoms.push(Atom::Part(other)),
        }
    }
    Ok(words(&atoms)?.into_iter().map(joined).collect())
}

fn joined(atoms: Vec<Atom<'_>>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Char(character) => match parts.last_mut() {
                Some(Part::Text { text, quoted: false }) => text.push(character),
                _ => parts.push(Part::Text { text: character.to_string(), quoted: false }),
            },
            Atom::Part(part) => parts.push(part.clone()),
        }
    }
    parts
}

fn words<'a>(atoms: &[Atom<'a>]) -> Result<Vec<Vec<Atom<'a>>>, Trouble> {
    let mut start = 0;
    while let Some(open) = atoms.iter().skip(start).position(|atom| matches!(atom, Atom::Char('{'))) {
        let open = open + start;
        let Some((alternatives, close)) = alternatives(atoms, open)? else {
            start = open + 1;
            continue;
        };
        let before = atoms.get(..open).unwrap_or_default();
        let after = words(atoms.get(close + 1..).unwrap_or_default())?;
        let mut all = Vec::new();
        for middle in alternatives {
            for end in &after {
                if all.len() >= MAX_WORDS {
                    return Err(Trouble::TooLong);
                }
                let mut word = before.to_vec();
                word.extend(middle.iter().cloned());
                word.extend(end.iter().cloned());
                all.push(word);
            }
        }
        return Ok(all);
    }
    Ok(vec![atoms.to_vec()])
}

type Alternatives<'a> = Option<(Vec<Vec<Atom<'a>>>, usize)>;

/// What stands in the brace that opens here, and where it closes; `None` when it is no expansion.
fn alternatives<'a>(atoms: &[Atom<'a>], open: usize) -> Result<Alternatives<'a>, Trouble> {
    let mut depth = 0_u32;
    let mut from = open + 1;
    let mut pieces: Vec<&[Atom<'a>]> = Vec::new();
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Char('{') => depth += 1,
            Atom::Char(',') if depth == 1 => {
                pieces.push(atoms.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            Atom::Char('}') => {
                depth -= 1;
                if depth == 0 {
                    let last = atoms.get(from..at).unwrap_or_default();
                    if pieces.is_empty() {
                        return Ok(sequence(last).map(|items| (items, at)));
                    }
                    pieces.push(last);
                    let mut all = Vec::new();
                    for piece in pieces {
                        all.extend(words(piece)?);
                        if all.len() > MAX_WORDS {
                            return Err(Trouble::TooLong);
                        }
                    }
                    return Ok(Some((all, at)));
                }
            }
            Atom::Char(_) | Atom::Part(_) => {}
        }
    }
    Ok(None)
}

/// `1..3`, `a..c`, with a step. A long one is one word that is not known.
fn sequence<'a>(atoms: &[Atom<'a>]) -> Option<Vec<Vec<Atom<'a>>>> {
    let mut text = String::new();
    for atom in atoms {
        match atom {
            Atom::Char(character) if text.len() < 64 => text.push(*character),
            _ => return None,
        }
    }
    let mut ends = text.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() || first.is_empty() || last.is_empty() {
        return None;
    }
    let unknown = || Some(vec![vec![Atom::Char(UNKNOWN)]]);
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let padded = first.starts_with('0') || last.starts_with('0');
        if step.is_some() || padded || from.abs_diff(to) > 16 {
            return unknown();
        }
        let all: Vec<i64> = if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() };
        return Some(all.iter().map(|item| item.to_string().chars().map(Atom::Char).collect()).collect());
    }
    let single = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|first| first.is_ascii_alphabetic() && characters.next().is_none())
    };
    let (from, to) = (single(first)?, single(last)?);
    if step.is_some() {
        return unknown();
    }
    let all: Vec<char> = if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() };
    Some(all.into_iter().map(|item| vec![Atom::Char(item)]).collect())
}
