//! Path rules: gitignore-like patterns on absolute paths.

use std::path::{Component, Path, PathBuf};

use super::glob::{self, FOLDS_CASE};
use super::{Rule, RuleKind, tools};

/// Most parts of a pattern; of a longer one the last parts count, at any depth, which denies more.
const MOST_PARTS: usize = 60;

/// The path rules of a set, ready to be asked.
#[derive(Debug, Clone)]
pub struct PathRules {
    /// The names on the way to each home.
    homes: Vec<Vec<Vec<char>>>,
    all: Vec<(Rule, Pattern)>,
}

/// One pattern.
#[derive(Debug, Clone)]
struct Pattern {
    /// Whether it begins in each of the homes; else at the root.
    in_homes: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    /// `**`: any number of folders.
    Any,
    /// One name, with wildcards.
    Name(Vec<char>),
}

impl PathRules {
    /// Takes the rules of kind [`RuleKind::Paths`]; `homes` are what `~` means.
    pub fn new(rules: &[Rule], homes: &[PathBuf]) -> Self {
        let paths = rules.iter().filter(|rule| rule.kind == RuleKind::Paths);
        Self::of(paths.map(|rule| (rule.clone(), Pattern::new(&rule.pattern))), homes)
    }

    /// Takes the rules of a repository that are about editing alone.
    pub(super) fn of_edits(rules: &[Rule], homes: &[PathBuf]) -> Self {
        let edits = rules.iter().filter_map(|rule| Some((rule, tools::edited(rule)?)));
        Self::of(edits.map(|(rule, path)| (rule.clone(), Pattern::new(&path))), homes)
    }

    fn of(all: impl Iterator<Item = (Rule, Pattern)>, homes: &[PathBuf]) -> Self {
        Self { homes: homes.iter().map(|home| names(home)).collect(), all: all.collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The rule that an absolute path without `..` fits, or a folder that it lies in.
    pub fn denies(&self, path: &Path) -> Option<&Rule> {
        self.denies_names(&names(path))
    }

    /// The rule by which whatever lies in a folder is denied.
    pub(super) fn denies_all_in(&self, folder: &Path) -> Option<&Rule> {
        let mut below = names(folder);
        // A name that no rule means by itself.
        below.push(vec!['\u{1}']);
        self.denies_names(&below)
    }

    fn denies_names(&self, path: &[Vec<char>]) -> Option<&Rule> {
        let below: Vec<&[Vec<char>]> =
            self.homes.iter().filter_map(|home| path.strip_prefix(home.as_slice())).collect();
        let fits = |pattern: &Pattern| match pattern.in_homes {
            true => below.iter().any(|rest| pattern.fits(rest)),
            false => pattern.fits(path),
        };
        self.all.iter().find(|(_, pattern)| fits(pattern)).map(|(rule, _)| rule)
    }

    /// The rule that stands against a file name with wildcards, as a shell fills them in: nearly all that it can
    /// mean is denied, or it spells out so much of a denied name that it means just that (`.en?`, `id_r*`).
    pub(super) fn denies_wild(&self, path: &Path) -> Option<&Rule> {
        let name: Vec<char> = names(path).pop()?;
        let plain =
            |letters: &[char]| letters.iter().take_while(|letter| !"*?[\\".contains(**letter)).count();
        let spelt = plain(&name);
        if spelt < 2 || spelt == name.len() {
            return None;
        }
        let meant = |pattern: &Pattern| match pattern.parts.as_slice() {
            [Part::Any, Part::Name(own)] => {
                let start = spelt.min(plain(own));
                start >= 2 && name.get(..start) == own.get(..start) && meet(own, &name)
            }
            _ => false,
        };
        self.all.iter().find(|(_, pattern)| meant(pattern)).map(|(rule, _)| rule)
    }

    /// Folders and files that rules close whole.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        if cfg!(windows) {
            return Vec::new();
        }
        let roots = |pattern: &Pattern| match pattern.in_homes {
            true => self.homes.iter().map(|home| place(home)).collect(),
            false => vec![PathBuf::from("/")],
        };
        let below = |root: PathBuf, rest: &[String]| rest.iter().fold(root, |place, name| place.join(name));
        let whole = |pattern: &Pattern| Some((roots(pattern), pattern.place()?));
        let all = self.all.iter().filter_map(|(_, pattern)| whole(pattern));
        all.flat_map(|(roots, rest)| roots.into_iter().map(move |root| below(root, &rest))).collect()
    }
}

impl Pattern {
    /// `~` is each of the homes; `/x` is absolute; all else fits at any depth, so that a rule on `config/keys.json`
    /// holds for the checkout as well as for the worktree.
    fn new(pattern: &str) -> Self {
        let pattern = if cfg!(windows) { pattern.replace('\\', "/") } else { pattern.to_owned() };
        let split = |text: &str| -> Vec<Vec<char>> {
            let parts = text.split('/').filter(|part| !part.is_empty() && *part != ".");
            parts.map(|part| glob::letters(part, FOLDS_CASE)).collect()
        };
        let below = pattern.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(rest) = below {
            return Self { in_homes: true, parts: parts(split(rest)) };
        }
        let drive = cfg!(windows) && pattern.as_bytes().get(1) == Some(&b':');
        let mut all = split(&pattern);
        if !pattern.starts_with('/') && !drive {
            all.insert(0, ANY.into());
        }
        Self { in_homes: false, parts: parts(all) }
    }

    /// Whether the path, or a folder that it lies in, fits. A bit for each part that may be next.
    fn fits(&self, path: &[Vec<char>]) -> bool {
        if self.parts.is_empty() {
            // A home itself; the root means nothing by itself.
            return self.in_homes;
        }
        let end = 1_u64 << self.parts.len().min(MOST_PARTS);
        let mut at = 1_u64;
        for name in path {
            let mut next = 0;
            for (index, part) in self.parts.iter().enumerate() {
                let here = 1_u64 << index;
                if at & here == 0 {
                    continue;
                }
                match part {
                    // It takes this folder, or nothing: then the part behind it is next too.
                    Part::Any => {
                        next |= here;
                        at |= here << 1;
                    }
                    Part::Name(letters) if glob::letters_fit(letters, name) => next |= here << 1,
                    Part::Name(..) => {}
                }
            }
            if next & end != 0 {
                return true;
            }
            at = next;
            if at == 0 {
                return false;
            }
        }
        false
    }

    /// The folder or file that the pattern closes whole, from where it begins, where it has no wildcard but a last
    /// `/**`.
    fn place(&self) -> Option<Vec<String>> {
        if self.parts.is_empty() && !self.in_homes {
            return None;
        }
        let mut whole = self.parts.as_slice();
        if let Some((Part::Name(last), start)) = whole.split_last()
            && last == &['*']
        {
            whole = start;
        }
        let plain = |part: &Part| match part {
            Part::Any => None,
            Part::Name(letters) => glob::plain(&letters.iter().collect::<String>()),
        };
        whole.iter().map(plain).collect()
    }
}

/// Any number of folders.
const ANY: [char; 2] = ['*', '*'];

fn parts(mut all: Vec<Vec<char>>) -> Vec<Part> {
    all.dedup_by(|next, before| *next == ANY && *before == ANY);
    if all.len() > MOST_PARTS {
        let rest = all.split_off(all.len() - MOST_PARTS + 1);
        all = std::iter::once(ANY.into()).chain(rest).collect();
    }
    let last = all.len().saturating_sub(1);
    let part = |(index, letters): (usize, Vec<char>)| match letters == ANY {
        true if index < last => Part::Any,
        // `x/**` is what lies in `x`: this takes one name, and what is below a path that fits, fits.
        true => Part::Name(vec!['*']),
        false => Part::Name(letters),
    };
    all.into_iter().enumerate().map(part).collect()
}

/// The place that names lead to.
fn place(names: &[Vec<char>]) -> PathBuf {
    let mut place = PathBuf::from("/");
    place.extend(names.iter().map(|name| name.iter().collect::<String>()));
    place
}

/// Whether some text fits both patterns. A class of letters counts as any letter.
fn meet(one: &[char], other: &[char]) -> bool {
    let (one, other) = (loose(one), loose(other));
    let width = other.len() + 1;
    let mut row = vec![false; width];
    let mut before = vec![false; width];
    for at in (0..=one.len()).rev() {
        std::mem::swap(&mut row, &mut before);
        for to in (0..=other.len()).rev() {
            let (left, right) = (one.get(at), other.get(to));
            let get = |row: &[bool], index: usize| row.get(index).copied().unwrap_or(false);
            let met = match (left, right) {
                (None, None) => true,
                (Some('*'), _) if get(&before, to) => true,
                (_, Some('*')) if get(&row, to + 1) => true,
                (Some('*'), Some(_)) => get(&row, to + 1),
                (Some(_), Some('*')) => get(&before, to),
                (Some(left), Some(right)) => {
                    (left == right || *left == '?' || *right == '?') && get(&before, to + 1)
                }
                _ => false,
            };
            if let Some(cell) = row.get_mut(to) {
                *cell = met;
            }
        }
    }
    row.first().copied().unwrap_or(false)
}

/// The pattern with each class and each escaped letter as `?`.
fn loose(pattern: &[char]) -> Vec<char> {
    let mut all = Vec::new();
    let mut letters = pattern.iter();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
                all.push('?');
            }
            '[' => {
                letters.by_ref().skip(1).find(|letter| **letter == ']');
                all.push('?');
            }
            own => all.push(*own),
        }
    }
    all
}

fn name(part: Component<'_>) -> Option<String> {
    match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        // A drive is a name on Windows.
        Component::Prefix(prefix) => Some(prefix.as_os_str().to_string_lossy().into_owned()),
        _ => None,
    }
}

/// The names on a path, in letters.
fn names(path: &Path) -> Vec<Vec<char>> {
    path.components().filter_map(name).map(|name| glob::letters(&name, FOLDS_CASE)).collect()
}
