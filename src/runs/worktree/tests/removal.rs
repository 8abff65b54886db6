//! Removal: never without a way back, never more than the one worktree, and on from wherever it stopped.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::failure::Explain as _;

#[tokio::test]
async fn nothing_in_a_tree_goes_without_a_way_back() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("committed"), "c\n");
        save(&worktree).await;
        write(&worktree.tree().join("README.md"), "changed\n");
        write(&worktree.tree().join("untracked"), "u\n");
        write(&worktree.tree().join("staged-only"), "s\n");
        agent(&bench, &worktree, &["add", "staged-only"]);
        std::fs::remove_file(worktree.tree().join("staged-only")).unwrap();
        let before = checkout(&bench);
        assert!(!worktree.removable().await.unwrap().is_on_branch);
        let branch = bench.in_folder("project", &["rev-parse", worktree.branch().as_str()]);
        let kept = worktree.remove().await.unwrap().unwrap().kept.unwrap();
        assert!(kept.starts_with(&format!("refs/worca/backup/{}/", worktree.run)), "{kept}");
        let files = files_of(&bench, &kept);
        assert_eq!((files["README.md"].as_str(), files["untracked"].as_str()), ("changed\n", "u\n"));
        assert_eq!(files_of(&bench, &format!("{kept}^2"))["staged-only"], "s\n");
        assert_eq!(bench.in_folder("project", &["rev-parse", &format!("{kept}^1")]), branch);
        assert_eq!(checkout(&bench), before);
    }
}

#[tokio::test]
async fn a_backup_changes_nothing_and_is_made_once() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("untracked"), "u\n");
        let status = agent(&bench, &worktree, &["status", "--porcelain"]);
        let kept = worktree.backup().await.unwrap().kept.unwrap();
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), status);
        assert_eq!(files_of(&bench, &kept)["untracked"], "u\n");
        save(&worktree).await;
        assert_eq!(worktree.backup().await.unwrap().kept, None);
    }
}

#[tokio::test]
async fn c088_a_removal_goes_on_from_what_is_on_disk() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let neighbour = start(&bench).await;
        // The folder was deleted by hand.
        let first = start(&bench).await;
        std::fs::remove_dir_all(first.tree()).unwrap();
        assert_eq!(first.commit_all("x", &person()).await.unwrap_err().code(), "worktree-gone");
        assert_eq!(first.remove().await.unwrap(), None);
        assert!(!first.registration().exists());
        // The registration was.
        let second = start(&bench).await;
        write(&second.tree().join("work"), "w\n");
        std::fs::remove_dir_all(second.registration()).unwrap();
        let kept = second.remove().await.unwrap().unwrap().kept.unwrap();
        assert_eq!(files_of(&bench, &kept)["work"], "w\n");
        assert!(!second.tree().exists());
        // Both, and once more.
        second.remove().await.unwrap();
        // A folder that cannot be written.
        let third = start(&bench).await;
        write(&third.tree().join("cache/deep/file"), "x\n");
        for folder in ["cache/deep", "cache"] {
            std::fs::set_permissions(third.tree().join(folder), std::fs::Permissions::from_mode(0o555))
                .unwrap();
        }
        third.remove().await.unwrap();
        assert!(!third.tree().exists());
        // The neighbour is whole.
        assert_eq!(agent(&bench, &neighbour, &["status", "--porcelain"]), "");
        assert!(
            bench.in_folder("project", &["worktree", "list", "--porcelain"]).contains("locked worca run")
        );
    }
}

#[tokio::test]
async fn c088_what_was_half_deleted_is_not_taken_for_work() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("work"), "w\n");
        // As a removal leaves it that was stopped in the middle of deleting.
        write(&worktree.private_path().join("removing"), "kept\n");
        std::fs::remove_file(worktree.tree().join("README.md")).unwrap();
        assert_eq!(worktree.remove().await.unwrap(), None);
        assert!(!worktree.tree().exists() && !worktree.registration().exists());
    }
}

#[tokio::test]
async fn c088_one_that_somebody_else_locked_is_refused_with_the_reason() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        let tree = worktree.tree().display().to_string();
        bench.in_folder("project", &["worktree", "unlock", &tree]);
        bench.in_folder("project", &["worktree", "lock", "--reason", "I am looking at it", &tree]);
        let error = worktree.remove().await.unwrap_err();
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            ("worktree-locked", "the worktree is locked: I am looking at it")
        );
        assert!(worktree.tree().join("README.md").exists());
        bench.in_folder("project", &["worktree", "unlock", &tree]);
        worktree.remove().await.unwrap();
    }
}

#[tokio::test]
async fn c087_a_worktree_with_a_filled_submodule_goes_when_its_commits_are_published() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.in_folder("", &["init", "--quiet", "--initial-branch=main", "library"]);
        bench.first_commit("library");
        let library = bench.path("library").display().to_string();
        let allow = "protocol.file.allow=always";
        bench.in_folder("project", &["-c", allow, "submodule", "--quiet", "add", &library, "sub"]);
        bench.in_folder("project", &["commit", "--quiet", "-m", "With a submodule"]);
        let worktree = start(&bench).await;
        agent(&bench, &worktree, &["-c", allow, "submodule", "--quiet", "update", "--init"]);
        assert!(worktree.tree().join("sub/README.md").exists());
        assert_eq!(save(&worktree).await.made, None);
        // A commit that is nowhere else.
        let sub = worktree.tree().join("sub");
        write(&sub.join("README.md"), "mine\n");
        assert!(bench.try_in(&sub, &["commit", "--quiet", "--all", "-m", "Mine"]).0);
        let saved = save(&worktree).await;
        assert!(saved.made.is_some(), "the submodule's new place is recorded");
        let removal = worktree.removable().await.unwrap();
        assert_eq!(removal.own_history, ["sub"]);
        assert_eq!(worktree.remove().await.unwrap_err().code(), "worktree-own-history");
        assert!(sub.join("README.md").exists());
        // Published, and something not committed on top.
        let (fine, said) = bench.try_in(&sub, &["push", "--quiet", "origin", "HEAD:refs/heads/mine"]);
        assert!(fine, "{said}");
        write(&sub.join("loose"), "loose\n");
        let backup = worktree.remove().await.unwrap().unwrap();
        assert_eq!(files_of(&bench, &backup.kept.unwrap())["sub/loose"], "loose\n");
        assert!(!worktree.tree().exists() && !worktree.registration().exists());
        assert_eq!(bench.in_folder("project", &["submodule", "status"]).chars().next(), Some(' '));
    }
}

#[tokio::test]
async fn what_a_stopped_start_left_is_taken_away_by_a_removal() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let whole = start(&bench).await;
        let before = refs(&bench, "project");
        // Stopped in the middle of the checkout, after the branch was made.
        let half = start(&bench).await;
        std::fs::remove_file(half.private_path().join("worca-tip")).unwrap();
        std::fs::remove_dir_all(half.tree().join("src")).unwrap();
        std::fs::remove_file(half.registration().join("index")).unwrap();
        half.remove().await.unwrap();
        assert!(!half.registration().exists() && !half.folder.exists() && whole.registration().exists());
        assert_eq!(refs(&bench, "project"), before);
        // Stopped before there was a branch.
        let half = Worktree { run: RunId::random(), folder: bench.path("runs/half"), ..whole.clone() };
        half.register().unwrap();
        half.remove().await.unwrap();
        assert!(!half.registration().exists() && whole.registration().exists());
        assert_eq!(agent(&bench, &whole, &["status", "--porcelain"]), "");
    }
}

#[tokio::test]
async fn what_may_not_be_read_is_kept_all_the_same() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        for path in ["closed/deep/file", "secret", "src/main.txt"] {
            write(&worktree.tree().join(path), "written by the agent\n");
        }
        for path in ["closed/deep", "closed", "secret", "src/main.txt", "src"] {
            std::fs::set_permissions(worktree.tree().join(path), std::fs::Permissions::from_mode(0o000))
                .unwrap();
        }
        let saved = save(&worktree).await;
        let files = files_of(&bench, saved.tip.as_str());
        for path in ["closed/deep/file", "secret", "src/main.txt"] {
            assert_eq!(files[path], "written by the agent\n");
        }
        worktree.remove().await.unwrap();
    }
}
