//! The environment of the agent's own git. The agent is confined by others; this only keeps its git usable.

use std::path::Path;

use super::Person;

/// The variables for an agent whose worktree is `tree`, in the repository whose git folder is `common`.
///
/// They switch off the two chores that would print errors under confinement, name the two folders (and no other) that
/// git may take although they belong to another user, and say who commits.
pub fn agent_environment(tree: &Path, common: &Path, person: &Person) -> Vec<(String, String)> {
    let mut settings = vec![("gc.auto", "0".to_owned()), ("maintenance.auto", "false".to_owned())];
    for path in [tree, common] {
        settings.push(("safe.directory", path.display().to_string()));
    }
    let mut pairs = settings_environment(&settings);
    pairs.extend(person.environment().map(|(name, value)| (name.to_owned(), value)));
    pairs
}

/// Git settings as environment variables.
pub(super) fn settings_environment(settings: &[(&str, String)]) -> Vec<(String, String)> {
    let mut pairs = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (index, (key, value)) in settings.iter().enumerate() {
        pairs.push((format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned()));
        pairs.push((format!("GIT_CONFIG_VALUE_{index}"), value.clone()));
    }
    pairs
}
