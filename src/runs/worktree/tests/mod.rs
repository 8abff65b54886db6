//! Tests with real repositories and the real git, each with every git that is on the search path.

mod attacks;
mod life;
mod odd;
mod removal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::git::testing::{Bench, gits, write};
use crate::git::{Person, Repository};

/// A new run's names.
fn names(bench: &Bench, title: &str) -> Names {
    let run = RunId::random();
    let folder = bench.path("runs").join(run.as_str());
    let branch = BranchName::of_run(&run, title);
    Names { run, folder, branch }
}

async fn start_in(bench: &Bench, project: &str) -> Worktree {
    let repository = Repository::open(&bench.git, &bench.path(project)).await.unwrap();
    Worktree::create(&bench.git, &repository, names(bench, "Do it")).await.unwrap().worktree
}

async fn start(bench: &Bench) -> Worktree {
    start_in(bench, "project").await
}

fn person() -> Person {
    Person::new("Per Son", "per@son.example").unwrap()
}

async fn save(worktree: &Worktree) -> Saved {
    worktree.commit_all("The work", &person()).await.unwrap()
}

/// The agent's own git in its worktree: it must succeed.
fn agent(bench: &Bench, worktree: &Worktree, arguments: &[&str]) -> String {
    let (fine, text) = bench.try_in(&worktree.tree(), arguments);
    assert!(fine, "git {arguments:?}: {text}");
    text
}

/// What a commit holds: path to content.
fn files_of(bench: &Bench, commit: &str) -> BTreeMap<String, String> {
    let list = bench.in_folder("project", &["ls-tree", "-r", "-z", "--name-only", commit]);
    list.split('\0')
        .filter(|path| !path.is_empty())
        .map(|path| {
            (path.to_owned(), bench.try_in(&bench.path("project"), &["show", &format!("{commit}:{path}")]).1)
        })
        .collect()
}

/// Everything of the person's checkout that a run must leave as it is.
fn checkout(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let git = bench.path("project/.git");
    let mut seen = vec![(
        "status".to_owned(),
        bench.in_folder("project", &["status", "--porcelain=v2", "-z"]).into_bytes(),
    )];
    for name in [
        "HEAD",
        "index",
        "config",
        "logs/HEAD",
        "refs/stash",
        "logs/refs/stash",
        "refs/heads/main",
        "ORIG_HEAD",
    ] {
        seen.push((name.to_owned(), std::fs::read(git.join(name)).unwrap_or_default()));
    }
    for entry in std::fs::read_dir(git.join("hooks")).unwrap() {
        let path = entry.unwrap().path();
        seen.push((path.display().to_string(), std::fs::read(&path).unwrap()));
    }
    seen
}

/// Every ref with what it stands for.
fn refs(bench: &Bench, project: &str) -> Vec<String> {
    let text = bench.in_folder(project, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    text.lines().map(str::to_owned).collect()
}

/// Every file and folder below, but for objects.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut seen = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.ends_with(".git/objects") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path.clone());
            }
            seen.push(path);
        }
    }
    seen.sort();
    seen
}
