//! Odd states that an agent leaves, odd names, odd repositories.

use super::*;

#[tokio::test]
async fn an_agent_that_left_the_branch_loses_nothing() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("one"), "1\n");
        save(&worktree).await;
        // Detached, with a commit there, and a change on top.
        agent(&bench, &worktree, &["checkout", "--quiet", "--detach"]);
        write(&worktree.tree().join("two"), "2\n");
        agent(&bench, &worktree, &["add", "."]);
        agent(&bench, &worktree, &["commit", "--quiet", "-m", "Detached"]);
        write(&worktree.tree().join("three"), "3\n");
        let saved = save(&worktree).await;
        let files = files_of(&bench, worktree.branch().as_str());
        assert_eq!(files.keys().collect::<Vec<_>>(), ["README.md", "one", "src/main.txt", "three", "two"]);
        assert_eq!(saved.notes, []);
        assert_eq!(
            agent(&bench, &worktree, &["rev-parse", "--abbrev-ref", "HEAD"]).trim(),
            worktree.branch().as_str()
        );
    }
}

#[tokio::test]
async fn an_agent_on_an_older_commit_does_not_undo_the_branch() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("one"), "1\n");
        let first = save(&worktree).await;
        // Clean on an older commit: nothing to save.
        agent(&bench, &worktree, &["checkout", "--quiet", worktree.base().as_str()]);
        let saved = save(&worktree).await;
        assert_eq!((saved.made, &saved.tip), (None, &first.tip));
        assert_eq!(saved.notes, [WorktreeNote::HeadElsewhere { kept: None }]);
        assert!(worktree.tree().join("one").exists(), "the tree shows the branch again");
        // A change there is brought over.
        agent(&bench, &worktree, &["checkout", "--quiet", "-b", "elsewhere", worktree.base().as_str()]);
        write(&worktree.tree().join("two"), "2\n");
        save(&worktree).await;
        let files = files_of(&bench, worktree.branch().as_str());
        assert_eq!(files.keys().collect::<Vec<_>>(), ["README.md", "one", "src/main.txt", "two"]);
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "");
        // What does not merge is taken as it is, on top of the branch.
        write(&worktree.tree().join("README.md"), "on the branch\n");
        let before = save(&worktree).await;
        agent(&bench, &worktree, &["checkout", "--quiet", worktree.base().as_str()]);
        write(&worktree.tree().join("README.md"), "elsewhere\n");
        let saved = save(&worktree).await;
        assert_eq!(files_of(&bench, worktree.branch().as_str())["README.md"], "elsewhere\n");
        let parent = bench.in_folder("project", &["rev-parse", &format!("{}^", worktree.branch())]);
        assert_eq!(parent.trim(), before.tip.as_str());
        assert!(saved.made.is_some());
    }
}

#[tokio::test]
async fn an_agent_that_rewrote_or_deleted_the_branch_loses_nothing() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("one"), "1\n");
        let first = save(&worktree).await;
        agent(&bench, &worktree, &["reset", "--quiet", "--hard", worktree.base().as_str()]);
        write(&worktree.tree().join("two"), "2\n");
        let saved = save(&worktree).await;
        let [WorktreeNote::BranchRewritten { kept }] = saved.notes.as_slice() else { panic!("{saved:?}") };
        assert_eq!(bench.in_folder("project", &["rev-parse", kept]).trim(), first.tip.as_str());
        assert_eq!(
            files_of(&bench, saved.tip.as_str()).keys().collect::<Vec<_>>(),
            ["README.md", "src/main.txt", "two"]
        );
        // Amending is such a case, too, and the branch is the amended one.
        agent(&bench, &worktree, &["commit", "--quiet", "--amend", "-m", "Amended"]);
        let amended = save(&worktree).await;
        assert!(
            amended.made.is_none()
                && matches!(amended.notes.as_slice(), [WorktreeNote::BranchRewritten { .. }])
        );
        assert_eq!(
            bench.in_folder("project", &["log", "-1", "--format=%s", worktree.branch().as_str()]),
            "Amended\n"
        );
        // Deleted.
        agent(&bench, &worktree, &["checkout", "--quiet", "--detach"]);
        agent(&bench, &worktree, &["branch", "--quiet", "-D", worktree.branch().as_str()]);
        write(&worktree.tree().join("three"), "3\n");
        let saved = save(&worktree).await;
        assert!(saved.notes.contains(&WorktreeNote::BranchRestored), "{saved:?}");
        let parent = bench.in_folder("project", &["rev-parse", &format!("{}^", worktree.branch())]);
        assert_eq!(parent.trim(), amended.tip.as_str());
    }
}

#[tokio::test]
async fn a_rebase_left_half_way_is_saved_and_ended() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("README.md"), "mine\n");
        let mine = save(&worktree).await;
        agent(&bench, &worktree, &["checkout", "--quiet", "-b", "upstream", worktree.base().as_str()]);
        write(&worktree.tree().join("README.md"), "theirs\n");
        agent(&bench, &worktree, &["commit", "--quiet", "--all", "-m", "Theirs"]);
        agent(&bench, &worktree, &["checkout", "--quiet", worktree.branch().as_str()]);
        let (fine, _) = bench.try_in(&worktree.tree(), &["rebase", "upstream"]);
        assert!(!fine, "the rebase stops at a conflict");
        let saved = save(&worktree).await;
        assert!(
            saved.notes.contains(&WorktreeNote::LeftHalfWay { what: "rebase-merge".into() }),
            "{saved:?}"
        );
        let parent = bench.in_folder("project", &["rev-parse", &format!("{}^", worktree.branch())]);
        assert_eq!(parent.trim(), mine.tip.as_str());
        assert!(files_of(&bench, saved.tip.as_str())["README.md"].contains("<<<<<<<"));
        let status = agent(&bench, &worktree, &["status"]);
        assert!(status.contains("nothing to commit") && !status.contains("rebase"), "{status}");
    }
}

#[tokio::test]
async fn odd_paths_come_through_whole() {
    for git in gits() {
        let bench = Bench::empty(&git, "a project: ünï").await;
        bench.first_commit("a project: ünï");
        let worktree = start_in(&bench, "a project: ünï").await;
        let paths = [
            "with space",
            "ünïcode/日本",
            "new\nline",
            "tab\there",
            "colon:x",
            "-dash",
            "\"quote\"",
            "*glob?",
            ":(top)x",
            "#c",
        ];
        for path in paths {
            write(&worktree.tree().join(path), "x\n");
        }
        use std::os::unix::ffi::OsStrExt as _;
        std::fs::write(worktree.tree().join(std::ffi::OsStr::from_bytes(b"latin\xe9")), "x\n").unwrap();
        let saved = save(&worktree).await;
        let changes = worktree.changes().await.unwrap();
        let mut wanted: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        wanted.push("latin\u{fffd}".into());
        wanted.sort();
        let mut found: Vec<_> = changes.files.iter().map(|file| file.path.clone()).collect();
        found.sort();
        assert_eq!((found, saved.notes), (wanted, vec![]));
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "");
        worktree.remove().await.unwrap();
    }
}

#[tokio::test]
async fn moved_binary_and_large_files_are_told_as_such() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        std::fs::rename(worktree.tree().join("src/main.txt"), worktree.tree().join("moved.txt")).unwrap();
        std::fs::write(worktree.tree().join("binary"), [0u8, 1, 2, 255].repeat(1000)).unwrap();
        std::os::unix::fs::symlink("README.md", worktree.tree().join("z-link")).unwrap();
        save(&worktree).await;
        let files = worktree.changes().await.unwrap().files;
        let of = |path: &str| files.iter().find(|file| file.path == path).unwrap();
        assert_eq!((of("binary").kind, of("binary").lines), (ChangeKind::Added, None));
        assert_eq!(
            (of("moved.txt").kind, of("moved.txt").before.as_deref()),
            (ChangeKind::Moved, Some("src/main.txt"))
        );
        assert_eq!((of("z-link").kind, of("z-link").lines), (ChangeKind::Added, Some((1, 0))));
        assert!(worktree.diff(1_000_000).await.unwrap().text.contains("Binary files"));
    }
}

#[tokio::test]
async fn ignored_files_stay_out_and_line_endings_follow_the_repository() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.write("project/.gitignore", "*.log\n/target\n");
        bench.write("project/.gitattributes", "*.txt text eol=lf\n");
        bench.in_folder("project", &["add", "--all"]);
        bench.in_folder("project", &["commit", "--quiet", "-m", "Rules"]);
        bench.write("project/.git/info/exclude", "local-only\n");
        bench.in_folder("project", &["config", "core.autocrlf", "input"]);
        let worktree = start(&bench).await;
        for path in ["a.log", "target/x", "local-only", "kept"] {
            write(&worktree.tree().join(path), "a\r\nb\r\n");
        }
        let saved = save(&worktree).await;
        let files = files_of(&bench, saved.tip.as_str());
        assert_eq!(files["kept"], "a\nb\n");
        assert_eq!(files.len(), 5, "{files:?}");
        let backup = worktree.remove().await.unwrap().unwrap();
        assert_eq!((backup.ignored, backup.kept), (3, None));
    }
}

#[tokio::test]
async fn a_sha256_repository_works() {
    for git in gits() {
        let bench = Bench::empty(&git, "elsewhere").await;
        bench.in_folder(
            "",
            &["init", "--quiet", "--object-format=sha256", "--initial-branch=main", "project"],
        );
        bench.first_commit("project");
        let worktree = start(&bench).await;
        write(&worktree.tree().join("a"), "a\n");
        let saved = save(&worktree).await;
        assert_eq!(saved.tip.as_str().len(), 64);
        assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "");
        write(&worktree.tree().join("b"), "b\n");
        assert!(worktree.remove().await.unwrap().unwrap().kept.is_some());
    }
}

#[tokio::test]
async fn shallow_sparse_and_partial_clones_are_not_broken() {
    for git in gits() {
        let bench = Bench::empty(&git, "source").await;
        bench.first_commit("source");
        bench.write("source/src/main.txt", "second\n");
        bench.in_folder("source", &["commit", "--quiet", "--all", "-m", "Second"]);
        bench.in_folder("source", &["config", "uploadpack.allowFilter", "true"]);
        let url = format!("file://{}", bench.path("source").display());
        bench.in_folder("", &["clone", "--quiet", "--depth=1", &url, "shallow"]);
        bench.in_folder("", &["clone", "--quiet", &url, "sparse"]);
        bench.in_folder("sparse", &["sparse-checkout", "set", "nothing-here"]);
        bench.in_folder("", &["clone", "--quiet", "--filter=blob:none", "--no-checkout", &url, "partial"]);
        for project in ["shallow", "sparse", "partial"] {
            let before = bench.in_folder(project, &["status", "--porcelain=v2"]);
            let worktree = start_in(&bench, project).await;
            assert_eq!(
                std::fs::read_to_string(worktree.tree().join("src/main.txt")).unwrap(),
                "second\n",
                "{project}"
            );
            write(&worktree.tree().join("src/main.txt"), "third\n");
            write(&worktree.tree().join("new"), "new\n");
            let saved = save(&worktree).await;
            assert!(saved.made.is_some() && saved.notes.is_empty(), "{project}: {saved:?}");
            let diff = worktree.diff(10_000).await.unwrap();
            assert!(diff.text.contains("-second\n+third\n"), "{project}: {}", diff.text);
            assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "", "{project}");
            worktree.remove().await.unwrap();
            assert_eq!(bench.in_folder(project, &["status", "--porcelain=v2"]), before, "{project}");
        }
    }
}

#[tokio::test]
async fn a_worktree_of_a_bare_repository_and_a_submodule_are_projects_too() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.in_folder("", &["clone", "--quiet", "--bare", "project", "bare.git"]);
        bench.in_folder("bare.git", &["worktree", "add", "--quiet", "../of-bare", "main"]);
        bench.in_folder("", &["init", "--quiet", "outer"]);
        let inner = bench.path("project").display().to_string();
        bench.in_folder(
            "outer",
            &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &inner, "inner"],
        );
        for project in ["of-bare", "outer/inner"] {
            let worktree = start_in(&bench, project).await;
            write(&worktree.tree().join("new"), "new\n");
            assert_eq!(agent(&bench, &worktree, &["status", "--porcelain"]), "?? new\n", "{project}");
            let saved = save(&worktree).await;
            assert!(saved.made.is_some() && saved.notes.is_empty(), "{project}: {saved:?}");
            assert_eq!(bench.in_folder(project, &["status", "--porcelain"]), "", "{project}");
            worktree.remove().await.unwrap();
        }
    }
}

#[tokio::test]
async fn c086_the_agents_git_works_in_a_tree_of_another_user() {
    assert!(rustix::process::geteuid().is_root(), "root gives files away; nextest's profiles leave this out");
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        let mut open = vec![bench.path("project"), worktree.tree()];
        while let Some(path) = open.pop() {
            std::os::unix::fs::lchown(&path, Some(12345), Some(12345)).unwrap();
            if crate::runs::worktree::files::is_real_folder(&path) {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        let (fine, said) = bench.try_in(&worktree.tree(), &["status"]);
        assert!(!fine && said.contains("dubious ownership"), "{said}");
        let pairs = crate::git::agent_environment(&worktree.tree(), worktree.common_dir(), &person());
        write(&worktree.tree().join("new"), "new\n");
        let call = |subcommand: &str| bench.git.call(subcommand).envs(pairs.clone()).folder(&worktree.tree());
        call("add").arg(".").run().await.unwrap();
        call("commit").args(["--quiet", "-m", "By the agent"]).run().await.unwrap();
        let author = call("log").args(["-1", "--format=%an"]).text().await.unwrap();
        assert_eq!(author, "Per Son\n");
        assert_eq!(save(&worktree).await.made, None);
    }
}

#[tokio::test]
async fn an_attribute_that_stops_git_does_not_stop_the_commit() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        bench.in_folder("project", &["config", "core.autocrlf", "true"]);
        bench.in_folder("project", &["config", "core.safecrlf", "true"]);
        let worktree = start(&bench).await;
        write(
            &worktree.tree().join(".gitattributes"),
            "*.utf working-tree-encoding=UTF-16\n*.no working-tree-encoding=none-such\n",
        );
        write(&worktree.tree().join("a.utf"), "odd");
        write(&worktree.tree().join("b.no"), "other\r\n");
        write(&worktree.tree().join("c"), "mixed\r\nendings\n");
        let saved = save(&worktree).await;
        assert!(matches!(saved.notes.as_slice(), [WorktreeNote::TakenAsItIs { .. }]), "{saved:?}");
        let files = files_of(&bench, saved.tip.as_str());
        assert_eq!((files["a.utf"].as_str(), files["b.no"].as_str()), ("odd", "other\r\n"));
        assert!(files.contains_key("c"));
        worktree.remove().await.unwrap();
    }
}

#[tokio::test]
async fn a_file_name_that_git_does_not_take_is_told_and_not_removed() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        write(&worktree.tree().join("sub/.GIT/hidden"), "x\n");
        write(&worktree.tree().join("fine"), "x\n");
        let saved = save(&worktree).await;
        assert!(files_of(&bench, saved.tip.as_str()).contains_key("fine"));
        let is_in = files_of(&bench, saved.tip.as_str()).contains_key("sub/.GIT/hidden");
        let told = matches!(saved.notes.as_slice(), [WorktreeNote::LeftOut { .. }]);
        assert!(is_in || told, "{saved:?}");
        if told {
            assert!(worktree.remove().await.is_err() && worktree.tree().join("sub/.GIT/hidden").exists());
        }
    }
}

#[tokio::test]
async fn a_commit_message_is_text_and_never_an_option() {
    for git in gits() {
        let bench = Bench::new(&git).await;
        let worktree = start(&bench).await;
        for (number, message) in
            ["--amend", "-F/etc/passwd", "a\0b", "", "# not a comment"].iter().enumerate()
        {
            write(&worktree.tree().join("file"), &format!("{number}\n"));
            let saved = worktree.commit_all(message, &person()).await.unwrap();
            let stored =
                bench.in_folder("project", &["log", "-1", "--format=%B", saved.made.unwrap().as_str()]);
            assert_eq!(stored.trim(), message.replace('\0', ""));
        }
    }
}
