//! The verdict on a path that an agent names: Worca's own state, and the path rules of the set. A path is judged as
//! typed and by where it leads.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::policy::Policy;
use super::{Denial, PathRules, Rule, RuleId, paths};

/// The rule that holds in every set.
const OWN_STATE: &str = "worca.own-state";

/// What paths of one call are judged by.
pub(super) struct Places<'a> {
    policy: &'a Policy,
    /// Read when the first path is judged.
    rules: OnceCell<PathRules>,
    /// Likewise.
    state: OnceCell<State>,
    /// What a path without a start is relative to.
    directory: &'a Path,
    /// What `~` means in a path that is typed.
    home: Option<&'a Path>,
}

impl<'a> Places<'a> {
    pub(super) fn new(policy: &'a Policy, directory: &'a Path, home: Option<&'a Path>) -> Self {
        Self { policy, rules: OnceCell::new(), state: OnceCell::new(), directory, home }
    }

    fn rules(&self) -> &PathRules {
        self.rules.get_or_init(|| PathRules::new(&self.policy.rules, &self.policy.homes))
    }

    pub(super) fn typed(&self, path: &str) -> PathBuf {
        paths::typed(path, self.directory, self.home)
    }

    /// The verdict on a path of a tool. `below`: everything under it is looked at too.
    ///
    /// # Errors
    /// What a path has that cannot be judged.
    pub(super) fn path(&self, path: &str, below: bool) -> Result<Option<Denial>, String> {
        let (typed, real) = self.both(path)?;
        Ok(self.own_state(path, below, [&typed, &real]).or_else(|| self.rule(path, below, &typed, &real)))
    }

    /// The verdict on a word of a command line, which may have wildcards that a shell fills in.
    ///
    /// # Errors
    /// As for [`Self::path`].
    pub(super) fn word(&self, word: &str) -> Result<Option<Denial>, String> {
        let typed = self.typed(word);
        // Text with blanks is a message or a script far more often than a path: it is one when something is there.
        if word.contains(char::is_whitespace) && typed.symlink_metadata().is_err() {
            let (typed, real) = self.both(word)?;
            return Ok(self.own_state(word, false, [&typed, &real]));
        }
        if let Some(denial) = self.path(word, false)? {
            return Ok(Some(denial));
        }
        let rule = self.rules().denies_wild(&typed);
        Ok(rule.map(|rule| by_rule(rule, &format!("`{}` means files", shown(word)))))
    }

    /// The verdict on a name with wildcards that a search asks for: denied where a rule means just these.
    pub(super) fn name(&self, whole: &Path, pattern: &str) -> Option<Denial> {
        let rule = self.rules().denies(whole).or_else(|| self.rules().denies_wild(whole))?;
        Some(by_rule(rule, &format!("`{}` asks for files", shown(pattern))))
    }

    /// The verdict on a path that is to be changed, by the repository's rules that are about that alone.
    ///
    /// # Errors
    /// As for [`Self::path`].
    pub(super) fn edit(&self, path: &str) -> Result<Option<Denial>, String> {
        let rules = PathRules::of_edits(&self.policy.rules, &self.policy.homes);
        let (typed, real) = self.both(path)?;
        let rule = rules.denies(&typed).or_else(|| rules.denies(&real));
        Ok(rule.map(|rule| Denial {
            rule: RuleId::Set(rule.clone()),
            part: None,
            reason: format!(
                "`{}` may be read and not edited; leave it as it is, or say in your answer what a person has to do",
                shown(path)
            ),
        }))
    }

    fn both(&self, path: &str) -> Result<(PathBuf, PathBuf), String> {
        if path.contains('\0') {
            return Err("a path with a zero byte".into());
        }
        let typed = self.typed(path);
        // `..` after a link goes up from where the link leads: so the real path is taken from what was typed.
        let raw = if path.starts_with('~') { typed.clone() } else { self.directory.join(path) };
        let real = paths::real(&raw).ok_or("a path of too many links")?;
        Ok((typed, real))
    }

    fn own_state(&self, path: &str, below: bool, places: [&PathBuf; 2]) -> Option<Denial> {
        let shown = shown(path);
        let state = self.state.get_or_init(|| State::new(self.policy));
        let what = if places.into_iter().any(|place| state.is_closed(place)) {
            format!("`{shown}` is part of Worca's own state")
        } else if below && places.into_iter().any(|place| state.holds_closed(place)) {
            format!("a search of `{shown}` would read Worca's own state below it")
        } else {
            return None;
        };
        let instead = match self.policy.open.first() {
            Some(open) => format!("work in `{}` and name paths below it", open.display()),
            None => "work in the project's own folder".into(),
        };
        Some(Denial { rule: RuleId::Built(OWN_STATE), part: None, reason: format!("{what}; {instead}") })
    }

    fn rule(&self, path: &str, below: bool, typed: &Path, real: &Path) -> Option<Denial> {
        if self.rules().is_empty() {
            return None;
        }
        let shown = shown(path);
        if let Some(rule) = self.rules().denies(typed) {
            return Some(by_rule(rule, &format!("`{shown}` is a file")));
        }
        if let Some(rule) = self.rules().denies(real) {
            return Some(by_rule(rule, &format!("`{shown}` leads to `{}`, a file", real.display())));
        }
        let all = || [typed, real].into_iter().find_map(|place| self.rules().denies_all_in(place));
        let rule = if below { all() } else { None };
        rule.map(|rule| by_rule(rule, &format!("all in `{shown}` are files")))
    }
}

fn by_rule(rule: &Rule, what: &str) -> Denial {
    let reason = format!(
        "{what} that this set neither lets read nor edit (`{}`); work without it, with made-up values, \
         or say in your answer what a person has to do",
        rule.pattern
    );
    Denial { rule: RuleId::Set(rule.clone()), part: None, reason }
}

/// A path as it is repeated.
fn shown(path: &str) -> String {
    path.chars().take(200).collect()
}

/// Worca's own state and what is open in it, as named and where that leads.
struct State {
    closed: Vec<PathBuf>,
    open: Vec<PathBuf>,
}

impl State {
    fn new(policy: &Policy) -> Self {
        let forms = |entries: &[PathBuf]| {
            let real = entries.iter().filter_map(|entry| paths::real(entry));
            let mut all: Vec<PathBuf> = entries.iter().cloned().chain(real).collect();
            all.sort();
            all.dedup();
            all
        };
        Self { closed: forms(&policy.closed), open: forms(&policy.open) }
    }

    /// Of all entries that hold the path the longest decides; a tie is closed.
    fn is_closed(&self, path: &Path) -> bool {
        let longest = |entries: &[PathBuf]| {
            let holding = entries.iter().filter(|entry| paths::within(path, entry));
            holding.map(|entry| entry.components().count()).max()
        };
        longest(&self.closed).is_some_and(|closed| longest(&self.open).is_none_or(|open| closed >= open))
    }

    fn holds_closed(&self, path: &Path) -> bool {
        self.closed.iter().filter(|entry| paths::within(entry, path)).any(|entry| self.is_closed(entry))
    }
}
