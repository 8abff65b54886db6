//! The box as a whole, on the real engine with the real image and the real Claude Code inside: it comes up,
//! it is as closed as it says, it runs the main job, and it comes back from each way of ending.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "tests drive the binary, docker and git as a person would")]

mod support;

use std::process::Command;

use serde_json::Value;
use support::{TestBox, checkout_state, eventually, git, required, run, run_with};

fn compose(test: &TestBox, args: &[&str]) -> support::Said {
    let files = test.files();
    let mut command = Command::new(required("WORCA_TEST_COMPOSE"));
    command.current_dir(&files).env("HOME", test.home.path());
    command.args(["--project-name", &test.name, "-f", "compose.yaml", "-f", "compose.projects.yaml"]);
    run_with(command.args(args), "")
}

#[test]
fn a_run_in_the_box_leaves_a_branch_and_the_checkout_as_it_was() {
    let test = TestBox::new();
    // Work of the user's own, of each kind: staged, changed, untracked, stashed.
    std::fs::write(test.project.join("README.md"), "# stashed\n").unwrap();
    git(&test.project, &["stash"]).ok();
    std::fs::write(test.project.join("staged.txt"), "staged\n").unwrap();
    git(&test.project, &["add", "staged.txt"]).ok();
    std::fs::write(test.project.join("README.md"), "# changed\n").unwrap();
    std::fs::write(test.project.join("untracked.txt"), "untracked\n").unwrap();
    let before = checkout_state(&test.project);

    test.up();
    let run = test.rehearse("hello");
    assert_eq!(run["status"], "done", "{run:#}");
    let branch = run["branch"].as_str().unwrap();
    assert!(branch.starts_with("worca/"), "{branch}");

    let files = git(&test.project, &["diff", "--name-only", "main", branch]).ok();
    assert!(files.contains("HELLO.md"), "{files}");
    assert!(!files.contains("staged.txt") && !files.contains("untracked.txt"), "{files}");
    let author = git(&test.project, &["log", "-1", "--format=%an <%ae>", branch]).ok();
    assert_eq!(author.trim(), "Ada Tester <ada@example.invalid>");
    assert_eq!(checkout_state(&test.project), before);
    // Nothing of the run is left registered in the repository but its branch.
    assert_eq!(git(&test.project, &["worktree", "list"]).ok().lines().count(), 1);
    let owner = |path: &str| run_stat(&test.project.join(path));
    assert_eq!(owner(&format!(".git/refs/heads/{branch}")), owner(".git/HEAD"));
}

fn run_stat(path: &std::path::Path) -> String {
    run("stat", ["--format=%u:%g", path.to_str().unwrap()]).ok()
}

#[test]
fn the_box_is_as_closed_as_it_says() {
    let test = TestBox::new();
    test.up();

    for service in ["core", "keys"] {
        let found = test.inspect(service);
        let host = &found["HostConfig"];
        assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]), "{service}");
        assert!(host["CapAdd"].as_array().is_none_or(Vec::is_empty), "{service}");
        assert_eq!(host["Privileged"], false, "{service}");
        assert_eq!(host["ReadonlyRootfs"], true, "{service}");
        let options = host["SecurityOpt"].as_array().unwrap();
        assert!(options.iter().any(|option| option.as_str().unwrap().starts_with("no-new-privileges")));
        assert!(host["PidsLimit"].as_i64().unwrap() > 0, "{service}");
        assert!(host["Memory"].as_i64().unwrap() > 0, "{service}");
        assert!(host["NanoCpus"].as_i64().unwrap() > 0, "{service}");
        assert_eq!(host["IpcMode"], "private", "{service}");
        assert_eq!(host["PidMode"], "", "{service}");
        let status = test.inside(service, "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status");
        let status = status.ok().replace('\t', "");
        assert!(status.contains("CapEff:0000000000000000"), "{status}");
        assert!(status.contains("CapBnd:0000000000000000"), "{status}");
        assert!(status.contains("NoNewPrivs:1") && status.contains("Seccomp:2"), "{status}");
        let refused = test.inside(service, "echo x > /usr/local/bin/planted");
        assert_ne!(refused.code, 0, "the root file system takes a file");
    }

    let core = test.inspect("core");
    for mount in core["Mounts"].as_array().unwrap() {
        let (kind, source, target) = (&mount["Type"], text(&mount["Source"]), text(&mount["Destination"]));
        assert!(!source.ends_with(".sock"), "{mount}");
        let secrets = test.files().join("secrets");
        let allowed = kind == "volume"
            || kind == "tmpfs"
            || source == test.project.to_str().unwrap()
            || (source.starts_with(secrets.to_str().unwrap()) && mount["RW"] == false);
        assert!(allowed, "{mount}");
        assert!(kind != "bind" || target == source || target.starts_with("/run/secrets/"), "{mount}");
    }
    let ports = core["HostConfig"]["PortBindings"].as_object().unwrap();
    assert_eq!(ports.len(), 1);
    for binding in ports.values().flat_map(|binding| binding.as_array().unwrap()) {
        assert_eq!(binding["HostIp"], "127.0.0.1");
    }
    let keys = test.inspect("keys");
    assert_eq!(keys["HostConfig"]["Memory"], 64 << 20, "the key service is small");
    let settings = test.files().join("keys");
    let mut volumes = 0;
    for mount in keys["Mounts"].as_array().unwrap() {
        let (kind, source, target) = (&mount["Type"], text(&mount["Source"]), text(&mount["Destination"]));
        volumes += usize::from(kind == "volume");
        let own = (kind == "volume" && target == "/keys") || kind == "tmpfs";
        let read_only = mount["RW"] == false
            && (target.starts_with("/run/secrets/")
                || (target == "/etc/worca/keys" && source == settings.to_str().unwrap()));
        assert!(own || read_only, "{mount}");
    }
    assert_eq!(volumes, 1, "the vault is its one volume");
    for place in ["/etc/worca/keys/slots.yaml", "/run/secrets/vault_key", "/etc/worca/x"] {
        assert_ne!(test.inside("keys", &format!("echo x >> {place}")).code, 0, "{place} can be written");
    }
    assert!(keys["HostConfig"]["PortBindings"].as_object().is_none_or(serde_json::Map::is_empty));
    assert!(
        keys["NetworkSettings"]["Ports"]
            .as_object()
            .is_none_or(|ports| { ports.values().all(|binding| binding.is_null()) })
    );
    // Ordinary work beside it: core answers, and what it must write it can write.
    assert_eq!(test.api("/api/status")["alive_runs"], 0);
    test.inside("core", "touch /worca/x /tmp/x \"$HOME/x\" && rm /worca/x").ok();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn a_slots_file_counts_after_the_next_up_and_its_keys_are_saved_and_rotated_from_outside() {
    let test = TestBox::new();
    test.up();
    let first = test.container_id("keys");
    let slots = test.files().join("keys/slots.yaml");
    let text =
        "version: 1\nslots:\n  gateway: {origin: 'https://gate.invalid', api: anthropic, auth: bearer}\n";
    std::fs::write(&slots, text).unwrap();
    test.container(&["up"]).ok();
    assert_ne!(test.container_id("keys"), first, "the key service starts anew for its settings");
    let save = ["login", "--api-key", "--slot", "gateway", "--person", "ada"];
    test.container_with(&save, "key-of-a-gateway-EFGH\n").ok();
    let listed = || test.container(&["login", "--list"]).ok();
    assert!(
        listed().contains("gateway") && listed().contains("ada") && listed().contains("EFGH"),
        "{}",
        listed()
    );

    let second = test.container_id("keys");
    let file = test.files().join("secrets/vault_key");
    let read = || std::fs::read_to_string(&file).unwrap();
    let (before, list) = (read(), listed());
    test.container(&["rotate"]).ok();
    assert!(read().lines().count() == 1 && !read().contains(before.trim()), "the old key is in the file");
    assert_eq!(listed(), list);
    // Broken off before the vault was sealed anew: both keys stand in the file, and everything works.
    worca::keys::vault::VaultKey::begin(&file).unwrap();
    assert_eq!(listed(), list);
    run("docker", ["restart", &second]).ok();
    eventually("the key service is back", || {
        let found = test.container(&["login", "--list"]);
        (found.code == 0).then_some(()).ok_or(found.err)
    });
    test.container(&["rotate"]).ok();
    assert_eq!((read().lines().count(), listed()), (1, list));
    test.container(&["up"]).ok();
    assert_eq!(test.container_id("keys"), second, "a rotated vault key is no reason to start anew");
    // A broken file is told by the service that refuses it, and the one before it counts again.
    std::fs::write(&slots, "version: 1\nslots: [").unwrap();
    let broken = test.container(&["up", "--timeout", "20"]);
    assert_ne!(broken.code, 0, "{}", broken.err);
    std::fs::write(&slots, text).unwrap();
    test.container(&["up"]).ok();
    assert!(listed().contains("EFGH"));
}

#[test]
fn a_second_up_touches_nothing_and_a_change_recreates_only_what_changed() {
    let test = TestBox::new();
    test.up();
    let facts = |service: &str| {
        let found = test.inspect(service);
        (text(&found["Id"]).to_owned(), text(&found["State"]["StartedAt"]).to_owned())
    };
    let (core, keys) = (facts("core"), facts("keys"));
    let again = test.container(&["up"]);
    assert!(again.out.contains("http://"), "{}", again.out);
    assert_eq!((facts("core"), facts("keys")), (core.clone(), keys.clone()));

    std::fs::write(
        test.files().join("compose.override.yaml"),
        "services:\n  core:\n    environment:\n      GREETING: hello\n",
    )
    .unwrap();
    test.container(&["up"]).ok();
    assert_ne!(facts("core").0, core.0, "core has a new setting");
    assert_eq!(facts("keys"), keys, "the key service has none");
    assert_eq!(test.inside("core", "echo $GREETING").ok().trim(), "hello");
}

#[test]
fn the_real_compose_reads_lists_and_takes_down_what_up_made() {
    let test = TestBox::new();
    test.up();
    compose(&test, &["config", "--quiet"]).ok();
    let listed = compose(&test, &["ps", "--services"]).ok();
    assert!(listed.contains("core") && listed.contains("keys"), "{listed}");
    let logs = compose(&test, &["logs", "--no-color", "core"]).ok();
    assert!(!logs.trim().is_empty());
    compose(&test, &["down"]).ok();
    let left = run(
        "docker",
        ["ps", "--all", "--quiet", "--filter", &format!("label=com.docker.compose.project={}", test.name)],
    )
    .ok();
    assert_eq!(left.trim(), "");
    test.up();
    assert_eq!(test.rehearse("hello")["status"], "done");
}

#[test]
fn an_override_with_a_key_that_is_not_applied_is_refused_by_file_key_and_line() {
    let test = TestBox::new();
    let up = test.container(&["init", "--project", test.project.to_str().unwrap()]);
    up.ok();
    let file = test.files().join("compose.override.yaml");
    std::fs::write(&file, "services:\n  core:\n    blkio_config:\n      weight: 300\n").unwrap();
    let said = test.container(&["up"]).refused(78);
    assert!(said.contains("compose.override.yaml:3") && said.contains("blkio_config"), "{said}");
    std::fs::write(&file, "services:\n  core:\n    volumes:\n      - /var/run/docker.sock:/x\n").unwrap();
    let said = test.container(&["up"]).refused(78);
    assert!(said.contains("box.no-engine-socket"), "{said}");
    let none = run(
        "docker",
        ["ps", "--all", "--quiet", "--filter", &format!("label=com.docker.compose.project={}", test.name)],
    );
    assert_eq!(none.ok().trim(), "", "something was made");
    std::fs::remove_file(file).unwrap();
    test.up();
}

#[test]
fn two_boxes_stand_side_by_side() {
    let (first, second) = (TestBox::new(), TestBox::new());
    first.up();
    second.up();
    assert_eq!(first.rehearse("hello")["status"], "done");
    assert_eq!(second.rehearse("hello")["status"], "done");
    first.container(&["down", "--volumes", "--yes"]).ok();
    assert_eq!(second.api("/api/status")["alive_runs"], 0);
}

#[test]
fn down_keeps_the_volumes_and_up_finds_the_runs_again() {
    let test = TestBox::new();
    test.up();
    let run = test.rehearse("hello");
    test.container(&["down"]).ok();
    // Twice is the same as once.
    test.container(&["down"]).ok();
    test.container(&["up"]).ok();
    let found = test.api(&format!("/api/runs/{}", text(&run["id"])));
    assert_eq!(found["status"], "done");
    let asked = test.container(&["down", "--volumes"]);
    assert_ne!(asked.code, 0, "volumes went without a yes");
    test.api("/api/status");
    test.container(&["down", "--volumes", "--yes"]).ok();
    let left = run_volumes(&test);
    assert_eq!(left.trim(), "");
}

fn run_volumes(test: &TestBox) -> String {
    let label = format!("label=com.docker.compose.project={}", test.name);
    run("docker", ["volume", "ls", "--quiet", "--filter", &label]).ok()
}

#[test]
fn a_killed_core_leaves_no_agent_and_its_run_is_interrupted_with_its_work_safe() {
    let test = TestBox::new();
    test.up();
    let id = test.slow_run();

    // Core is the init's only child; its end is the end of the container, which the engine starts again.
    test.inside("core", "kill -9 $(pgrep -P 1 -f 'worca serve')");
    eventually("core comes back", || {
        let health = run(
            "curl",
            ["--silent", "--fail", "--max-time", "2", &format!("http://127.0.0.1:{}/health", test.port)],
        );
        (health.code == 0).then_some(()).ok_or(health.err)
    });
    let found = eventually("the run has ended", || {
        let found = test.api(&format!("/api/runs/{id}"));
        (found["status"] == "interrupted").then_some(found.clone()).ok_or(found.to_string())
    });
    let agents = test.inside("core", "pgrep -x claude; pgrep -f '[w]orca shim'");
    assert_eq!(agents.out.trim(), "", "an agent is still there");
    // The uncommitted work is a commit that the repository on the host can show.
    let backup = text(&found["backup"]);
    assert!(backup.starts_with("refs/worca/backup/"), "{found:#}");
    let kept = git(&test.project, &["show", "--stat", "--format=%s", backup]).ok();
    assert!(kept.contains("SLOW.md"), "{kept}");
    // And the box goes on.
    assert_eq!(test.rehearse("hello")["status"], "done");
}

#[test]
fn a_stopped_run_ends_with_its_agent_and_keeps_what_it_did() {
    let test = TestBox::new();
    test.up();
    let id = test.slow_run();
    test.inside("core", &format!("worca stop {id}")).ok();
    let found = eventually("the run has ended", || {
        let found = test.api(&format!("/api/runs/{id}"));
        (found["status"] == "stopped").then_some(found.clone()).ok_or(found.to_string())
    });
    assert_eq!(test.inside("core", "pgrep -x claude").out.trim(), "");
    let kept = git(&test.project, &["show", "--stat", text(&found["branch"])]).ok();
    assert!(kept.contains("SLOW.md"), "{kept}");
}

#[test]
fn a_box_that_goes_down_in_the_middle_of_a_run_keeps_its_work() {
    let test = TestBox::new();
    test.up();
    let id = test.slow_run();
    test.container(&["down"]).ok();
    test.container(&["up"]).ok();
    let found = test.api(&format!("/api/runs/{id}"));
    assert_eq!(found["status"], "interrupted", "{found:#}");
    assert!(text(&found["reason"]).contains("at work"), "{found:#}");
    let kept = git(&test.project, &["show", "--stat", "--format=%s", text(&found["backup"])]).ok();
    assert!(kept.contains("SLOW.md"), "{kept}");
    // The worktree is still there too, as it was.
    test.inside("core", &format!("cat /worca/runs/{id}/tree/SLOW.md")).ok();
}

#[test]
fn a_box_of_the_same_name_from_another_home_is_left_alone() {
    let (test, other) = (TestBox::new(), TestBox::new());
    test.up();
    let before = (test.container_id("core"), test.container_id("keys"));
    // The same name, from the other home.
    let theirs = |args: &[&str]| {
        run_with(other.worca().args(["container", "--name", &test.name]).args(args), "").refused(78)
    };
    let folder = test.files();
    for said in [
        theirs(&["up", "--project", other.project.to_str().unwrap()]),
        theirs(&["down"]),
        theirs(&["down", "--volumes", "--yes"]),
    ] {
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("--name"), "{said}");
    }
    assert_eq!((test.container_id("core"), test.container_id("keys")), before);
    assert_eq!(test.api("/api/status")["alive_runs"], 0);
    test.container(&["down"]).ok();
}

#[test]
fn much_input_and_much_output_at_once_pass_through_a_shell_verb() {
    let test = TestBox::new();
    test.up();
    let much = "0123456789abcdef".repeat(2 * 1024 * 1024);
    let said = test.container_with(&["shell", "core", "--", "cat"], &much);
    assert_eq!((said.code, said.out.len()), (0, much.len()), "{}", said.err);
    assert!(said.out == much, "other bytes came back");
}
