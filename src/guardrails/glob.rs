//! Small matchers for rules: a glob on one word, and gitignore-like patterns on a path. Nothing is built ahead: a
//! hook is a process per tool call, and reading a pattern costs less than a compiled matcher of it.

use std::path::{Component, Path, PathBuf};

use super::{Rule, RuleKind};

/// Whether letters of both cases are one in file names here.
pub(super) const FOLDS_CASE: bool = cfg!(any(target_os = "macos", windows));

/// Whether `text` fits `pattern` as a whole: `*` is any run of letters, `?` one, `[a-z]` and `[!a-z]` one of a class,
/// `\` takes the next letter as it is. A bracket that does not close is a letter.
pub(super) fn fits(pattern: &str, text: &str, fold: bool) -> bool {
    let pattern: Vec<char> = folded(pattern, fold);
    let text: Vec<char> = folded(text, fold);
    let (mut at, mut here) = (0, 0);
    // Where the last `*` stands, and how much of the text it has taken: only the last one has to give back.
    let mut star: Option<(usize, usize)> = None;
    while here < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, here));
            at += 1;
            continue;
        }
        match text.get(here).and_then(|letter| one(&pattern, at, *letter)) {
            Some(next) => {
                at = next;
                here += 1;
            }
            None => match star {
                Some((stood, taken)) => {
                    star = Some((stood, taken + 1));
                    at = stood + 1;
                    here = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == '*'))
}

fn folded(text: &str, fold: bool) -> Vec<char> {
    if fold { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() }
}

/// Where the pattern goes on after one letter that fits at `at`.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' => match pattern.get(at + 1) {
            Some(next) => (*next == letter).then_some(at + 2),
            None => (letter == '\\').then_some(at + 1),
        },
        '[' => match class(pattern, at, letter) {
            Some((inside, end)) => inside.then_some(end),
            None => (letter == '[').then_some(at + 1),
        },
        own => (*own == letter).then_some(at + 1),
    }
}

/// Whether the letter is in the class at `at`, and where the pattern goes on; `None` when it does not close.
fn class(pattern: &[char], at: usize, letter: char) -> Option<(bool, usize)> {
    let mut next = at + 1;
    let not = matches!(pattern.get(next), Some('!' | '^'));
    if not {
        next += 1;
    }
    let first = next;
    let mut inside = false;
    loop {
        let mut low = *pattern.get(next)?;
        if low == ']' && next > first {
            return Some((inside != not, next + 1));
        }
        if low == '\\' {
            next += 1;
            low = *pattern.get(next)?;
        }
        let range = pattern.get(next + 1) == Some(&'-') && pattern.get(next + 2).is_some_and(|to| *to != ']');
        if range {
            let high = *pattern.get(next + 2)?;
            inside |= (low..=high).contains(&letter);
            next += 3;
        } else {
            inside |= low == letter;
            next += 1;
        }
    }
}

/// The one text that a pattern means; `None` when it means several.
pub(super) fn plain(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' | '?' | '[' => return None,
            '\\' => text.push(letters.next().unwrap_or('\\')),
            own => text.push(own),
        }
    }
    Some(text)
}

/// One path rule for one meaning of `~`.
#[derive(Debug, Clone)]
struct PathPattern {
    /// Its parts; `**` is any number of folders. Starts with `**` where it fits at any depth.
    parts: Vec<String>,
}

impl PathPattern {
    /// The meanings of a pattern: `~` is each of the homes; `/x` is absolute; all else fits at any depth, so that a
    /// rule on `config/keys.json` holds for the checkout as well as for the worktree.
    fn all(pattern: &str, homes: &[PathBuf]) -> Vec<Self> {
        let pattern = if cfg!(windows) { pattern.replace('\\', "/") } else { pattern.to_owned() };
        let split = |text: &str| -> Vec<String> {
            text.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
        };
        let below_home = pattern.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(rest) = below_home {
            return homes
                .iter()
                .map(|home| {
                    let mut parts: Vec<String> = words(home).iter().map(|part| literal(part)).collect();
                    parts.extend(split(rest));
                    Self { parts }.closed()
                })
                .collect();
        }
        let drive = pattern.as_bytes().get(1) == Some(&b':') && cfg!(windows);
        let mut parts = split(&pattern);
        if !pattern.starts_with('/') && !drive {
            parts.insert(0, "**".into());
        }
        vec![Self { parts }.closed()]
    }

    /// `x/**` is what lies in `x`: the last `**` takes one part, and what is below a part that fits, fits.
    fn closed(mut self) -> Self {
        while self.parts.len() > 1 && self.parts.ends_with(&["**".into(), "**".into()]) {
            self.parts.pop();
        }
        if let Some(last) = self.parts.last_mut()
            && last == "**"
        {
            *last = "*".into();
        }
        self
    }

    /// Whether the path, or a folder that it lies in, fits.
    fn fits(&self, path: &[String]) -> bool {
        let end = self.parts.len();
        if end == 0 {
            return false;
        }
        let mut at = vec![false; end + 1];
        if let Some(start) = at.first_mut() {
            *start = true;
        }
        for word in path {
            let mut next = vec![false; end + 1];
            for (index, part) in self.parts.iter().enumerate() {
                // `**` takes nothing as well: then the part behind it is next too.
                if at.get(index) == Some(&true) && part == "**" {
                    set(&mut at, index + 1);
                }
                if at.get(index) != Some(&true) {
                    continue;
                }
                if part == "**" {
                    set(&mut next, index);
                } else if fits(part, word, FOLDS_CASE) {
                    set(&mut next, index + 1);
                }
            }
            at = next;
            if at.get(end) == Some(&true) {
                return true;
            }
        }
        false
    }

    /// The folder or file that the pattern closes whole, where it has no wildcard but a last `/**`.
    fn place(&self) -> Option<PathBuf> {
        let (last, start) = self.parts.split_last()?;
        let whole = if last == "*" { start } else { &self.parts };
        let mut place = PathBuf::from("/");
        for part in whole {
            place.push(plain(part)?);
        }
        Some(place)
    }
}

fn set(all: &mut [bool], index: usize) {
    if let Some(one) = all.get_mut(index) {
        *one = true;
    }
}

/// A word as a pattern that means just it.
fn literal(word: &str) -> String {
    let mut text = String::new();
    for letter in word.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// The names on a path. A drive is one of them on Windows.
pub(super) fn words(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::Prefix(prefix) => Some(prefix.as_os_str().to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

/// The path rules of a set, ready to be asked.
#[derive(Debug, Clone)]
pub struct PathRules {
    all: Vec<(Rule, Vec<PathPattern>)>,
}

impl PathRules {
    /// Takes the rules of kind [`RuleKind::Paths`]; `homes` are what `~` means.
    pub fn new(rules: &[Rule], homes: &[PathBuf]) -> Self {
        let paths = rules.iter().filter(|rule| rule.kind == RuleKind::Paths);
        Self { all: paths.map(|rule| (rule.clone(), PathPattern::all(&rule.pattern, homes))).collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The rule that an absolute path without `..` fits, or a folder that it lies in.
    pub fn denies(&self, path: &Path) -> Option<&Rule> {
        self.denies_words(&words(path))
    }

    fn denies_words(&self, path: &[String]) -> Option<&Rule> {
        let fits = |patterns: &[PathPattern]| patterns.iter().any(|pattern| pattern.fits(path));
        self.all.iter().find(|(_, patterns)| fits(patterns)).map(|(rule, _)| rule)
    }

    /// The rule by which whatever lies in a folder is denied.
    pub(super) fn denies_all_in(&self, folder: &Path) -> Option<&Rule> {
        let mut below = words(folder);
        // A name that no rule means by itself.
        below.push("\u{1}".into());
        self.denies_words(&below)
    }

    /// Folders and files that rules close whole.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        if cfg!(windows) {
            return Vec::new();
        }
        self.all.iter().flat_map(|(_, patterns)| patterns).filter_map(PathPattern::place).collect()
    }
}
