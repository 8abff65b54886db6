//! What an agent can write, and what core's git must not run or follow. Each attack leaves a mark when it works.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A program that leaves a mark, and passes its input on so that git would go on.
fn program(bench: &Bench, name: &str) -> String {
    let path = bench.path(name);
    write(&path, &format!("#!/bin/sh\necho \"$0\" >> '{}'\ncat\n", bench.path("mark").display()));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn mark(bench: &Bench) -> Option<String> {
    std::fs::read_to_string(bench.path("mark")).ok()
}

/// Everything that core does with a tree.
async fn all_of_core(worktree: &Worktree) -> Saved {
    worktree.removable().await.unwrap();
    worktree.backup().await.unwrap();
    let saved = save(worktree).await;
    worktree.changes().await.unwrap();
    worktree.diff(1_000_000).await.unwrap();
    saved
}

const HOOKS: &[&str] = &[
    "post-checkout",
    "pre-commit",
    "commit-msg",
    "post-commit",
    "reference-transaction",
    "post-index-change",
    "fsmonitor-watchman",
    "pre-auto-gc",
    "post-rewrite",
];

const SETTINGS: &[&str] = &[
    "core.fsmonitor",
    "diff.external",
    "filter.z.clean",
    "filter.z.smudge",
    "filter.z.process",
    "diff.z.textconv",
    "diff.z.command",
    "merge.z.driver",
    "gpg.program",
    "core.sshCommand",
    "core.pager",
    "core.editor",
    "credential.helper",
];

#[tokio::test]
async fn c082_hooks_and_settings_that_an_agent_writes_do_not_run_in_core() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.write("project/a.z", "by main\n");
        bench.in_folder("project", &["add", "--all"]);
        bench.in_folder("project", &["commit", "--quiet", "-m", "A file for the filter"]);
        let worktree = start(&bench).await;
        // Without the kernel's limits the agent reaches the repository itself: the worst case.
        let evil = program(&bench, "evil.sh");
        for hook in HOOKS {
            let path = bench.path("project/.git/hooks").join(hook);
            std::fs::copy(&evil, &path).unwrap();
        }
        for key in SETTINGS {
            bench.in_folder("project", &["config", key, &evil]);
        }
        bench.in_folder("project", &["config", "commit.gpgSign", "true"]);
        bench.in_folder("project", &["config", "filter.z.required", "true"]);
        bench.in_folder("project", &["config", "hook.ours.command", &evil]);
        bench.in_folder("project", &["config", "--add", "hook.ours.event", "reference-transaction"]);
        bench.in_folder("project", &["config", "include.path", &bench.path("more").display().to_string()]);
        bench.write("more", &format!("[core]\n\tfsmonitor = {evil}\n"));
        write(&worktree.tree().join(".gitattributes"), "* filter=z diff=z merge=z\n");
        write(&worktree.tree().join("a.z"), "by the agent\n");
        write(&worktree.tree().join("new.z"), "new\n");
        // They do run in a git that is careless: the marks mean something.
        bench.try_in(&worktree.tree(), &["-c", "core.hooksPath=/dev/null", "status"]);
        bench.try_in(&worktree.tree(), &["-c", "core.hooksPath=/dev/null", "diff"]);
        assert!(mark(&bench).is_some());
        std::fs::remove_file(bench.path("mark")).unwrap();

        let saved = all_of_core(&worktree).await;
        assert_eq!(mark(&bench), None);
        let second = start(&bench).await;
        assert_eq!(mark(&bench), None, "a further run of the same repository");
        second.remove().await.unwrap();
        worktree.remove().await.unwrap();
        assert_eq!(mark(&bench), None);
        // The ordinary thing beside it: the work is there, as it was written.
        let shown = bench.git.call("show").env("GIT_DIR", bench.path("project/.git"));
        let shown = shown.setting("core.fsmonitor=false").args(["--no-ext-diff", "--no-textconv"]);
        assert_eq!(shown.arg(format!("{}:new.z", saved.tip)).text().await.unwrap(), "new\n");
    }
}

#[tokio::test]
async fn c082_files_that_lead_git_elsewhere_are_not_followed() {
    for git in gits() {
        for attack in
            ["dot-git-file", "dot-git-folder", "commondir", "gitdir", "config.worktree", "index", "head"]
        {
            let bench = Bench::new(&git).await;
            let worktree = start(&bench).await;
            let evil = program(&bench, "evil.sh");
            // A repository of the agent's own making, with settings that run its program.
            bench.in_folder("", &["init", "--quiet", "trap"]);
            bench.in_folder("trap", &["config", "core.fsmonitor", &evil]);
            bench.in_folder("trap", &["config", "filter.z.clean", &evil]);
            let trap = bench.path("trap/.git");
            let registration = worktree.registration();
            let dot_git = worktree.tree().join(".git");
            write(&worktree.tree().join(".gitattributes"), "* filter=z\n");
            write(&worktree.tree().join("work.txt"), "work\n");
            match attack {
                "dot-git-file" => write(&dot_git, &format!("gitdir: {}\n", trap.display())),
                "dot-git-folder" => {
                    std::fs::remove_file(&dot_git).unwrap();
                    std::fs::rename(&trap, &dot_git).unwrap();
                }
                "commondir" => write(&registration.join("commondir"), &format!("{}\n", trap.display())),
                "gitdir" => write(&registration.join("gitdir"), "/etc/passwd\n"),
                "config.worktree" => {
                    bench.in_folder("project", &["config", "extensions.worktreeConfig", "true"]);
                    write(&registration.join("config.worktree"), &format!("[core]\n\tfsmonitor = {evil}\n"));
                }
                "index" => write(&registration.join("index"), "DIRC garbage"),
                _ => write(&registration.join("HEAD"), "ref: ../../../../etc/passwd\n"),
            }
            let saved = all_of_core(&worktree).await;
            assert_eq!(mark(&bench), None, "{attack}");
            assert!(saved.made.is_some(), "{attack}");
            assert_eq!(files_of(&bench, saved.tip.as_str())["work.txt"], "work\n", "{attack}");
            // The agent's git works again, on our repository.
            assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "", "{attack}");
            assert_eq!(mark(&bench), None, "{attack}: the files were put right");
            let common =
                agent(&bench, &worktree, &["rev-parse", "--path-format=absolute", "--git-common-dir"]);
            assert_eq!(Path::new(common.trim()), worktree.common_dir(), "{attack}");
            worktree.remove().await.unwrap();
            assert!(!worktree.tree().exists() && bench.path("project/.git/HEAD").exists());
        }
    }
}

#[tokio::test]
async fn c082_a_branch_that_stands_for_another_does_not_move_it() {
    for git in gits() {
        for content in ["ref: refs/heads/main\n", "garbage\n", ""] {
            let bench = Bench::new(&git).await;
            let main = bench.in_folder("project", &["rev-parse", "main"]);
            let worktree = start(&bench).await;
            write(&worktree.tree().join("one"), "1\n");
            let first = save(&worktree).await;
            write(&bench.path("project/.git").join(worktree.branch().full()), content);
            write(&worktree.tree().join("two"), "2\n");
            let saved = save(&worktree).await;
            assert!(saved.notes.contains(&WorktreeNote::BranchRestored), "{content:?}: {saved:?}");
            assert_eq!(bench.in_folder("project", &["rev-parse", "main"]), main, "{content:?}");
            let parent = bench.in_folder("project", &["rev-parse", &format!("{}^", worktree.branch())]);
            assert_eq!(parent.trim(), first.tip.as_str(), "{content:?}");
        }
    }
}

#[tokio::test]
async fn a_link_out_of_the_tree_is_kept_as_a_link() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.write("outside/file", "not yours\n");
        let worktree = start(&bench).await;
        std::os::unix::fs::symlink(bench.path("outside"), worktree.tree().join("link")).unwrap();
        std::fs::remove_dir_all(worktree.tree().join("src")).unwrap();
        std::os::unix::fs::symlink(bench.path("outside"), worktree.tree().join("src")).unwrap();
        let saved = save(&worktree).await;
        let files = files_of(&bench, saved.tip.as_str());
        assert_eq!(files["link"], bench.path("outside").display().to_string());
        assert!(!files.contains_key("src/main.txt") && !files.contains_key("src/file"), "{files:?}");
        worktree.remove().await.unwrap();
        assert!(bench.path("outside/file").exists());
    }
}

#[tokio::test]
async fn c082_a_clone_in_the_tree_is_not_entered_with_its_settings() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        let evil = program(&bench, "evil.sh");
        let inner = worktree.tree().join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert!(bench.try_in(&inner, &["init", "--quiet"]).0);
        write(&inner.join("file"), "x\n");
        assert!(bench.try_in(&inner, &["add", "."]).0);
        assert!(bench.try_in(&inner, &["commit", "--quiet", "-m", "Inner"]).0);
        for key in ["core.fsmonitor", "filter.z.clean", "diff.external"] {
            assert!(bench.try_in(&inner, &["config", key, &evil]).0);
        }
        // Also as a link in the agent's own commit.
        agent(&bench, &worktree, &["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
        agent(&bench, &worktree, &["commit", "--quiet", "-m", "With a repository inside"]);
        let _ = std::fs::remove_file(bench.path("mark"));
        write(&inner.join("file"), "changed\n");
        all_of_core(&worktree).await;
        assert_eq!(mark(&bench), None);
        let error = worktree.remove().await.unwrap_err();
        assert!(matches!(&error, RemoveError::OwnHistory(folders) if folders == &["inner"]), "{error:?}");
        assert_eq!(mark(&bench), None);
        assert!(inner.join("file").exists());
    }
}

#[tokio::test]
async fn a_file_of_the_first_commit_is_read_as_it_was_whatever_an_agent_makes_of_it() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.write("project/.claude/settings.json", "{\"first\":1}\n");
        std::os::unix::fs::symlink("settings.json", bench.path("project/.claude/link.json")).unwrap();
        bench.in_folder("project", &["add", "--force", ".claude"]);
        bench.in_folder("project", &["commit", "--quiet", "-m", "settings"]);
        let worktree = start(&bench).await;
        write(&worktree.tree().join(".claude/settings.json"), "{}\n");
        agent(&bench, &worktree, &["commit", "--quiet", "-am", "none"]);
        // Nor by leading git elsewhere.
        write(&worktree.registration().join("commondir"), "/nowhere\n");
        let read = async |path: &str, most: usize| worktree.first_file(path, most).await.unwrap();
        let text = FirstFile::Text(b"{\"first\":1}\n".to_vec());
        assert_eq!(read(".claude/settings.json", 1000).await, text);
        assert_eq!(read(".claude/settings.json", 5).await, FirstFile::Long);
        assert_eq!(read(".claude/link.json", 1000).await, FirstFile::Other);
        assert_eq!(read(".claude", 1000).await, FirstFile::Other);
        assert_eq!(read(".claude/settings.local.json", 1000).await, FirstFile::Absent);
    }
}
