//! The ordinary life of a worktree.

use super::*;
use crate::failure::Explain as _;

#[tokio::test]
async fn c079_a_run_gets_a_worktree_and_a_branch_and_the_checkout_is_never_touched() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        // A checkout with everything in it that could be disturbed.
        bench.write("project/README.md", "stashed\n");
        bench.in_folder("project", &["stash", "--quiet"]);
        bench.write("project/staged.txt", "staged\n");
        bench.in_folder("project", &["add", "staged.txt"]);
        bench.write("project/README.md", "changed\n");
        bench.write("project/new.txt", "new\n");
        let before = checkout(&bench);

        let worktree = start(&bench).await;
        assert_eq!(std::fs::read_to_string(worktree.tree().join("README.md")).unwrap(), "first\n");
        assert!(!worktree.tree().join("staged.txt").exists());
        // The agent's git works there as in any worktree.
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "");
        assert_eq!(
            agent(&bench, &worktree, &["rev-parse", "--abbrev-ref", "HEAD"]).trim(),
            worktree.branch().as_str()
        );
        write(&worktree.tree().join("agent.txt"), "by the agent\n");
        agent(&bench, &worktree, &["add", "agent.txt"]);
        agent(&bench, &worktree, &["commit", "--quiet", "-m", "The agent's own"]);
        let list = agent(&bench, &worktree, &["worktree", "list", "--porcelain"]);
        assert!(list.contains(&format!("locked worca run {}", worktree.run)), "{list}");
        // And leaves something behind.
        write(&worktree.tree().join("src/main.txt"), "one\n2\nthree\n");
        write(&worktree.tree().join("left behind.txt"), "left\n");
        std::fs::remove_file(worktree.tree().join("README.md")).unwrap();

        let saved = save(&worktree).await;
        assert_eq!(saved.notes, []);
        let tip = bench.in_folder("project", &["rev-parse", worktree.branch().as_str()]);
        assert_eq!((tip.trim(), saved.made.as_ref()), (saved.tip.as_str(), Some(&saved.tip)));
        let files = files_of(&bench, saved.tip.as_str());
        assert_eq!(files.keys().collect::<Vec<_>>(), ["agent.txt", "left behind.txt", "src/main.txt"]);
        let log = bench.in_folder(
            "project",
            &["log", "--format=%an <%ae> %cn %s", &format!("main..{tip}", tip = tip.trim())],
        );
        assert_eq!(
            log,
            "Per Son <per@son.example> Per Son The work\nSome Body <some@body.example> Some Body The agent's own\n"
        );
        // The agent's git sees nothing to do, and core has nothing to add.
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "");
        assert_eq!(save(&worktree).await.made, None);
        assert_eq!(checkout(&bench), before);

        let changes = worktree.changes().await.unwrap();
        assert_eq!(
            changes.commits.iter().map(|c| c.subject.as_str()).collect::<Vec<_>>(),
            ["The agent's own", "The work"]
        );
        let kinds: Vec<_> =
            changes.files.iter().map(|file| (file.path.as_str(), file.kind, file.lines)).collect();
        assert_eq!(
            kinds,
            [
                ("README.md", ChangeKind::Deleted, Some((0, 1))),
                ("agent.txt", ChangeKind::Added, Some((1, 0))),
                ("left behind.txt", ChangeKind::Added, Some((1, 0))),
                ("src/main.txt", ChangeKind::Modified, Some((1, 1))),
            ]
        );
        let diff = worktree.diff(100_000).await.unwrap();
        assert!(diff.text.contains("-two\n+2\n") && !diff.was_cut, "{}", diff.text);
        let cut = worktree.diff(80).await.unwrap();
        assert!(cut.was_cut && cut.text.ends_with('\n') && cut.text.len() <= 80);

        assert!(worktree.removable().await.unwrap().is_on_branch);
        let backup = worktree.remove().await.unwrap().unwrap();
        assert_eq!(
            (backup.kept, worktree.tree().exists(), worktree.registration().exists()),
            (None, false, false)
        );
        assert_eq!(checkout(&bench), before);
        // The result can be read without the worktree.
        assert_eq!(worktree.changes().await.unwrap(), changes);
        assert_eq!(bench.in_folder("project", &["fsck", "--strict"]), "");
    }
}

#[tokio::test]
async fn a_run_starts_from_the_checkout_that_it_was_given() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("project", &["worktree", "add", "--quiet", "../side", "-b", "side"]);
        bench.write("side/only-here.txt", "x\n");
        bench.in_folder("side", &["add", "--all"]);
        bench.in_folder("side", &["commit", "--quiet", "-m", "Side"]);
        let worktree = start_in(&bench, "side").await;
        assert!(worktree.tree().join("only-here.txt").exists());
        assert_eq!(bench.in_folder("side", &["status", "--porcelain"]), "");
    }
}

#[tokio::test]
async fn c083_eight_runs_start_at_once_and_a_stale_lock_is_named_and_left() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.write("project/.git/config.lock", "");
        let repository = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (git, repository, names) =
                (bench.git.clone(), repository.clone(), names(&bench, "Same title"));
            tasks.spawn(async move { Worktree::create(&git, &repository, names).await.unwrap() });
        }
        let created = tasks.join_all().await;
        for Created { worktree, notes } in &created {
            assert!(worktree.tree().join("README.md").exists());
            assert!(
                matches!(notes.as_slice(), [WorktreeNote::LockFile { path, .. }] if path.ends_with("config.lock"))
            );
        }
        assert!(bench.path("project/.git/config.lock").exists());
        let list = bench.in_folder("project", &["worktree", "list"]);
        assert_eq!(list.lines().count(), 9, "{list}");
        // And their work is saved at once.
        let mut tasks = tokio::task::JoinSet::new();
        for Created { worktree, .. } in created {
            write(&worktree.tree().join("work.txt"), worktree.branch().as_str());
            tasks.spawn(async move { worktree.commit_all("At once", &person()).await.unwrap() });
        }
        for saved in tasks.join_all().await {
            assert!(saved.made.is_some() && saved.notes.is_empty(), "{saved:?}");
        }
    }
}

#[tokio::test]
async fn c083_a_lock_that_stays_is_named_with_its_age_and_nothing_is_left_behind() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        let repository = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        let names = names(&bench, "x");
        let lock = format!("project/.git/{}.lock", names.branch.full());
        bench.write(&lock, "");
        let before = (everything(&bench.path("project")), refs(&bench, "project"));
        let error = Worktree::create(&bench.git, &repository, names.clone()).await.unwrap_err();
        assert_eq!(error.code(), "git-locked", "{error:?}");
        assert!(error.to_string().contains("s old") && bench.path(&lock).exists(), "{error}");
        let after: Vec<_> = everything(&bench.path("project"));
        let extra: Vec<_> = after.iter().filter(|path| !before.0.contains(path)).collect();
        assert_eq!((extra, refs(&bench, "project")), (vec![], before.1));
        assert!(!names.folder.exists());
        // Without the lock the same names work.
        std::fs::remove_file(bench.path(&lock)).unwrap();
        Worktree::create(&bench.git, &repository, names).await.unwrap();
    }
}

#[tokio::test]
async fn c085_a_branch_in_the_way_is_found_before_anything_is_made() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        for branch in ["release/1", "run", "taken"] {
            bench.in_folder("project", &["branch", branch]);
        }
        bench.in_folder("project", &["pack-refs", "--all"]);
        let repository = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        let before = (everything(&bench.path("")), refs(&bench, "project"));
        for (wanted, code, free) in [
            ("release", "branch-in-the-way", "release-2"),
            ("run/7", "branch-in-the-way", "run-2/7"),
            ("taken", "branch-exists", "taken-2"),
        ] {
            let names = Names { branch: BranchName::parse(wanted).unwrap(), ..names(&bench, "x") };
            let error = Worktree::create(&bench.git, &repository, names.clone()).await.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.hint().unwrap().contains(&format!("`{free}` is free")), "{:?}", error.hint());
            assert_eq!((everything(&bench.path("")), refs(&bench, "project")), before);
            // The offered name works.
            let names = Names { branch: BranchName::parse(free).unwrap(), ..names };
            check_branch_is_free(&bench.git, &repository, &names.branch).await.unwrap();
        }
        // A branch named like our folder of branches.
        bench.in_folder("project", &["branch", "worca"]);
        let error = Worktree::create(&bench.git, &repository, names(&bench, "x")).await.unwrap_err();
        assert!(error.hint().unwrap().contains("git branch -m worca worca-old"), "{error}");
        bench.in_folder("project", &["branch", "-m", "worca", "worca-old"]);
        Worktree::create(&bench.git, &repository, names(&bench, "x")).await.unwrap();
    }
}

#[tokio::test]
async fn c080_worktrees_of_the_person_that_are_not_there_stay_registered() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("project", &["worktree", "add", "--quiet", "../away", "-b", "away"]);
        std::fs::rename(bench.path("away"), bench.path("away-for-now")).unwrap();
        let worktree = start(&bench).await;
        write(&worktree.tree().join("a"), "a\n");
        save(&worktree).await;
        // Ours survives a prune of somebody who cannot see its folder.
        std::fs::rename(worktree.tree(), bench.path("hidden")).unwrap();
        assert!(bench.path("project/.git/worktrees/away").exists());
        bench.in_folder("project", &["worktree", "list"]);
        std::fs::rename(bench.path("away-for-now"), bench.path("away")).unwrap();
        bench.in_folder("project", &["worktree", "prune", "--expire=now"]);
        assert!(worktree.registration().exists());
        std::fs::rename(bench.path("hidden"), worktree.tree()).unwrap();
        worktree.remove().await.unwrap();
        assert_eq!(bench.in_folder("away", &["rev-parse", "--abbrev-ref", "HEAD"]).trim(), "away");
    }
}
