//! Tests with the real git, each with every git that is on the search path.

use std::time::Duration;

use super::testing::{Bench, gits};
use super::*;
use crate::failure::Explain as _;

#[tokio::test]
async fn a_git_that_runs_too_long_is_ended_with_what_it_started() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        let mark = bench.path("mark");
        let alias = format!("!sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait", mark.display());
        let call =
            bench.git.call("slow").setting(&format!("alias.slow={alias}")).time_limit(Duration::from_secs(2));
        let error = call.run().await.unwrap_err();
        assert_eq!(error.code(), "git-timed-out", "{error}");
        let pid: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            // A process that nobody waited for still has its number; its state tells.
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if rustix::process::test_kill_process(pid).is_err() || state.contains(") Z ") {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "the child of git is alive: {state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn output_has_a_limit_and_may_be_cut() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        let call = || bench.git.call("cat-file").args(["-p", "HEAD"]).folder(&bench.path("project"));
        assert_eq!(call().output_limit(20).run().await.unwrap_err().code(), "git-too-much-output");
        let output = call().cut_at(20).run().await.unwrap();
        assert!(output.was_cut && output.stdout.len() == 20);
        assert!(!call().run().await.unwrap().was_cut);
    }
}

#[tokio::test]
async fn git_gets_nothing_of_our_environment_and_no_setting_of_the_person() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        let alias = "alias.show=!env";
        let text =
            bench.git.call("show-env").setting(&alias.replace("show", "show-env")).text().await.unwrap();
        for name in ["HOME=", "CARGO", "SSH_", "USER="] {
            assert!(!text.lines().any(|line| line.starts_with(name)), "{name} in {text}");
        }
        assert!(
            text.contains("GIT_CONFIG_GLOBAL=/dev/null") && text.contains("GIT_TERMINAL_PROMPT=0"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn what_git_says_is_shown_without_credentials() {
    let bench = Bench::new(&gits()[0]).await;
    let url = "https://name:hidden@127.0.0.1:1/x.git";
    let error = bench.git.call("ls-remote").arg(url).run().await.unwrap_err();
    assert!(!error.to_string().contains("hidden") && error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn one_repository_is_the_same_from_a_subfolder_a_link_and_a_worktree() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("project", &["remote", "add", "origin", "https://me:token@forge.example/a/b.git"]);
        bench.in_folder("project", &["worktree", "add", "--quiet", "../other tree", "-b", "side"]);
        std::os::unix::fs::symlink(bench.path("project"), bench.path("link")).unwrap();
        let first = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        assert_eq!(first.identity().origin.as_deref(), Some("https://forge.example/a/b.git"));
        assert!(first.identity().root.is_some());
        assert_eq!(first.branch().unwrap().as_str(), "main");
        for below in ["project/src", "link", "link/src", "other tree"] {
            let other = Repository::open(&bench.git, &bench.path("").join(below)).await.unwrap();
            assert_eq!(other.identity(), first.identity(), "{below}");
        }
        let side = Repository::open(&bench.git, &bench.path("other tree")).await.unwrap();
        assert_eq!(
            (side.branch().unwrap().as_str(), side.top()),
            ("side", bench.path("other tree").as_path())
        );
    }
}

#[tokio::test]
async fn c084_what_cannot_be_worked_on_is_refused_with_a_sentence() {
    for program in gits() {
        let bench = Bench::empty(&program, "fresh").await;
        bench.in_folder("", &["init", "--quiet", "--bare", "bare.git"]);
        std::fs::create_dir_all(bench.path("plain")).unwrap();
        bench.write("broken/.git", "gitdir: /nowhere/at/all\n");
        for (below, code) in [
            ("fresh", "no-commit"),
            ("bare.git", "bare-repository"),
            ("bare.git/objects", "bare-repository"),
            ("plain", "not-a-repository"),
            ("absent", "project-not-found"),
            ("fresh/.git", "inside-git-folder"),
            ("broken", "repository-broken"),
        ] {
            let error = Repository::open(&bench.git, &bench.path(below)).await.unwrap_err();
            assert_eq!(error.code(), code, "{below}: {error}");
            assert!(error.hint().is_some() && error.exit() == crate::failure::Exit::Refused, "{below}");
        }
    }
}

#[tokio::test]
async fn c081_an_extension_that_this_git_does_not_know_is_named() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("project", &["config", "core.repositoryFormatVersion", "1"]);
        bench.in_folder("project", &["config", "extensions.fromTheFuture", "true"]);
        let error = Repository::open(&bench.git, &bench.path("project")).await.unwrap_err();
        assert_eq!(error.code(), "repository-extension", "{error:?}");
        assert!(error.to_string().contains("extensions.fromthefuture"), "{error}");
    }
}

#[tokio::test]
async fn c086_a_repository_of_another_user_opens_and_no_other_one_does() {
    assert!(rustix::process::geteuid().is_root(), "root gives files away; nextest's profiles leave this out");
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("", &["init", "--quiet", "unrelated"]);
        let mut open = vec![bench.path("project"), bench.path("unrelated")];
        while let Some(path) = open.pop() {
            std::os::unix::fs::lchown(&path, Some(12345), Some(12345)).unwrap();
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        let (fine, said) = bench.try_in(&bench.path("project"), &["status"]);
        assert!(!fine && said.contains("dubious ownership"), "{said}");
        let repository = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        // The agent's git, with the environment that it gets: this repository and no other.
        let person = Person::new("A", "a@b.example").unwrap();
        let pairs = agent_environment(repository.top(), repository.common_dir(), &person);
        let call = |below: &str| bench.git.call("status").envs(pairs.clone()).folder(&bench.path(below));
        call("project").run().await.unwrap();
        let error = call("unrelated").run().await.unwrap_err();
        assert!(error.to_string().contains("dubious ownership"), "{error}");
        assert!(!bench.path("home/.gitconfig").exists());
    }
}

#[test]
fn a_person_is_what_git_takes_as_it_is() {
    assert!(Person::new("Zoë O'Neil", "zoe@example.com").is_ok());
    for (name, email) in
        [("", "a@b"), ("A", ""), ("A <b>", "a@b"), ("A", "a b@c"), ("A\nB", "a@b"), ("...", "a@b")]
    {
        assert!(Person::new(name, email).is_err(), "{name} {email}");
    }
}

#[tokio::test]
async fn the_person_of_a_repository_is_read_from_its_settings() {
    for program in gits() {
        let bench = Bench::new(&program).await;
        bench.in_folder("project", &["config", "user.name", "Re Po"]);
        bench.in_folder("project", &["config", "user.email", "re@po.example"]);
        let repository = Repository::open(&bench.git, &bench.path("project")).await.unwrap();
        let person = host_person(&bench.git, Some(&repository)).await.unwrap();
        assert_eq!(person, Some(Person::new("Re Po", "re@po.example").unwrap()));
    }
}
