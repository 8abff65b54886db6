//! Path rules: gitignore-like patterns on absolute paths.

use std::path::{Component, Path, PathBuf};

use super::glob::{self, FOLDS_CASE};
use super::{Rule, RuleKind, tools};

/// Most parts of a pattern; of a longer one the last parts count, at any depth, which denies more.
const MOST_PARTS: usize = 60;

/// The path rules of a set, ready to be asked.
#[derive(Debug, Clone)]
pub struct PathRules {
    all: Vec<(Rule, Vec<Pattern>)>,
}

/// One rule for one meaning of `~`: the parts of a path.
#[derive(Debug, Clone)]
struct Pattern(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    /// `**`: any number of folders.
    Any,
    /// One name, and its letters.
    Name(String, Vec<char>),
}

impl PathRules {
    /// Takes the rules of kind [`RuleKind::Paths`]; `homes` are what `~` means.
    pub fn new(rules: &[Rule], homes: &[PathBuf]) -> Self {
        let paths = rules.iter().filter(|rule| rule.kind == RuleKind::Paths);
        Self { all: paths.map(|rule| (rule.clone(), Pattern::all(&rule.pattern, homes))).collect() }
    }

    /// Takes the rules of a repository that are about editing alone.
    pub(super) fn of_edits(rules: &[Rule], homes: &[PathBuf]) -> Self {
        let edits = rules.iter().filter_map(|rule| Some((rule, tools::edited(rule)?)));
        Self { all: edits.map(|(rule, path)| (rule.clone(), Pattern::all(&path, homes))).collect() }
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
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(path));
        self.all.iter().find(|(_, patterns)| fits(patterns)).map(|(rule, _)| rule)
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
        let meant = |pattern: &Pattern| match pattern.0.as_slice() {
            [Part::Any, Part::Name(_, own)] => {
                let start = spelt.min(plain(own));
                start >= 2 && name.get(..start) == own.get(..start) && meet(own, &name)
            }
            _ => false,
        };
        self.all.iter().find(|(_, patterns)| patterns.iter().any(meant)).map(|(rule, _)| rule)
    }

    /// Folders and files that rules close whole.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        if cfg!(windows) {
            return Vec::new();
        }
        self.all.iter().flat_map(|(_, patterns)| patterns).filter_map(Pattern::place).collect()
    }
}

impl Pattern {
    /// The meanings of a pattern: `~` is each of the homes; `/x` is absolute; all else fits at any depth, so that a
    /// rule on `config/keys.json` holds for the checkout as well as for the worktree.
    fn all(pattern: &str, homes: &[PathBuf]) -> Vec<Self> {
        let pattern = if cfg!(windows) { pattern.replace('\\', "/") } else { pattern.to_owned() };
        let split = |text: &str| -> Vec<String> {
            text.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
        };
        if let Some(rest) = pattern.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            let below = |home: &PathBuf| {
                let start = home.components().filter_map(name).map(|name| glob::literal(&name));
                Self::of(start.chain(split(rest)).collect())
            };
            return homes.iter().map(below).collect();
        }
        let drive = cfg!(windows) && pattern.as_bytes().get(1) == Some(&b':');
        let mut parts = split(&pattern);
        if !pattern.starts_with('/') && !drive {
            parts.insert(0, "**".into());
        }
        vec![Self::of(parts)]
    }

    fn of(mut parts: Vec<String>) -> Self {
        parts.dedup_by(|next, before| next == "**" && before == "**");
        if parts.len() > MOST_PARTS {
            let rest = parts.split_off(parts.len() - MOST_PARTS + 1);
            parts = std::iter::once("**".to_owned()).chain(rest).collect();
        }
        let last = parts.len().saturating_sub(1);
        let part = |(index, text): (usize, String)| match text.as_str() {
            "**" if index < last => Part::Any,
            // `x/**` is what lies in `x`: this takes one name, and what is below a path that fits, fits.
            "**" => Part::Name("*".into(), vec!['*']),
            _ => {
                let letters = glob::letters(&text, FOLDS_CASE);
                Part::Name(text, letters)
            }
        };
        Self(parts.into_iter().enumerate().map(part).collect())
    }

    /// Whether the path, or a folder that it lies in, fits. A bit for each part that may be next.
    fn fits(&self, path: &[Vec<char>]) -> bool {
        let end = 1_u64 << self.0.len().min(MOST_PARTS);
        if self.0.is_empty() {
            return false;
        }
        let mut at = 1_u64;
        for name in path {
            let mut next = 0;
            for (index, part) in self.0.iter().enumerate() {
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
                    Part::Name(_, letters) if glob::letters_fit(letters, name) => next |= here << 1,
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

    /// The folder or file that the pattern closes whole, where it has no wildcard but a last `/**`.
    fn place(&self) -> Option<PathBuf> {
        let (last, start) = self.0.split_last()?;
        let whole = if matches!(last, Part::Name(text, _) if text == "*") { start } else { &self.0 };
        let mut place = PathBuf::from("/");
        for part in whole {
            match part {
                Part::Any => return None,
                Part::Name(text, _) => place.push(glob::plain(text)?),
            }
        }
        Some(place)
    }
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
