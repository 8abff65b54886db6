//! What is known about one start of an agent, gathered for the policy compiler: folders, files, ports. Looks at the
//! disk and at core's own settings, decides nothing, changes nothing.

mod programs;
mod walk;

use std::path::{Path, PathBuf};

use walk::Root;

use super::Settings;
use super::worktree::Worktree;
use crate::guardrails::{Facts, Filesystem, PathRules, Rule};
use crate::store::{Run, StoreError};

/// The facts, and what a person should know of how they were gathered.
pub(super) struct Gathered {
    pub(super) facts: Facts,
    pub(super) notes: Vec<String>,
}

/// Gathers them. `rules`: those of the set and of the project.
///
/// # Errors
/// When the store does not give the projects.
pub(super) async fn gather(
    settings: &Settings,
    filesystem: Filesystem,
    rules: &[Rule],
    run: &Run,
    worktree: &Worktree,
    worca: PathBuf,
) -> Result<Gathered, StoreError> {
    let folder = settings.home.run(&run.id);
    let home = folder.join("home");
    let known = settings.store.projects().await?;
    let mut projects: Vec<PathBuf> = known
        .into_iter()
        .flat_map(|project| [project.repository.checkout, project.repository.common_dir])
        .map(PathBuf::from)
        .chain(settings.mounted.iter().flatten().cloned())
        .filter(|path| path.is_absolute())
        .collect();
    projects.sort();
    projects.dedup();
    let path = std::env::var_os("PATH");
    let user_home = std::env::home_dir().filter(|home| home.is_absolute());
    let facts = Facts {
        worca_home: settings.home.path().to_owned(),
        temporary: home.join("tmp"),
        folder,
        worktree: worktree.tree(),
        common_dir: worktree.common_dir().to_owned(),
        worktree_admin: worktree.registration(),
        branch: run.branch.clone(),
        checkout: run.checkout.clone().into(),
        projects,
        protected: settings.protected.clone(),
        programs: programs::programs(path.as_deref(), &settings.claude, &worca, user_home.as_deref()),
        user_home,
        found: Vec::new(),
        service_ports: settings.keys_port.into_iter().collect(),
        closed_port: settings.listen_port,
        host: std::process::id(),
        worca,
        home,
    };
    let rules = PathRules::new(rules, &homes(&facts));
    // Where agents read no project at all there is nothing to close in one.
    if rules.is_empty() || filesystem == Filesystem::Project {
        return Ok(Gathered { facts, notes: Vec::new() });
    }
    let roots = roots(&facts);
    let looking = tokio::task::spawn_blocking(move || {
        walk::walk(&roots, walk::MOST_ENTRIES, &|path| rules.denies(path).is_some())
    });
    let found = looking.await.map_err(|_| StoreError::Ending)?;
    let notes = found.unseen.iter().take(5).map(|folder| {
        format!(
            "`{}` has more files than are looked through for the set's path rules, so the kernel closes it for this run",
            folder.display()
        )
    });
    let notes = notes.collect();
    Ok(Gathered { facts: Facts { found: found.closed, ..facts }, notes })
}

/// What `~` means.
fn homes(facts: &Facts) -> Vec<PathBuf> {
    [Some(facts.home.clone()), facts.user_home.clone()].into_iter().flatten().collect()
}

/// The folders that are looked through: the user's home and its keys one level deep; no project within another one, no git folder, and nothing of Worca's own,
/// which is closed as it is.
fn roots(facts: &Facts) -> Vec<Root> {
    let mut all: Vec<&Path> = facts
        .projects
        .iter()
        .chain([&facts.checkout])
        .map(PathBuf::as_path)
        .filter(|path| path.is_dir() && !path.starts_with(&facts.worca_home) && **path != *facts.common_dir)
        .filter(|path| !path.ends_with(".git"))
        .collect();
    all.sort();
    all.dedup();
    let outer = |path: &&Path| !all.iter().any(|other| other != path && path.starts_with(other));
    let projects =
        all.iter().copied().filter(outer).map(|path| Root { folder: path.to_owned(), whole: true });
    // Of the user's home what lies openly in it, and its keys.
    let home = facts.user_home.iter().flat_map(|home| [home.clone(), home.join(".ssh")]);
    home.map(|folder| Root { folder, whole: false }).chain(projects).collect()
}
