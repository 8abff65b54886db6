//! The two commands of the README, as a newcomer types them: `scripts/start` in a checkout.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests drive the scripts as a person would")]

mod support;

use std::path::Path;
use std::process::Command;

use support::{git, repository, required, run_with};

#[test]
fn a_start_from_a_checkout_ends_with_a_branch_and_an_untouched_sample() {
    // The image is there already, so that this start finds what `scripts/test` has built.
    required("WORCA_TEST_IMAGE");
    let home = tempfile::Builder::new().prefix("worca-start-").tempdir().unwrap();
    let sample = home.path().join("sample");
    repository(&sample);
    std::fs::write(sample.join("mine.txt"), "not committed\n").unwrap();
    let before = support::checkout_state(&sample);
    let name = home.path().file_name().unwrap().to_str().unwrap().to_lowercase();
    let _gone_at_the_end = BoxOf { home: home.path(), name: &name };
    let start = |label: &str| {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/start"));
        command.env("WORCA_HOME", home.path().join(".worca")).env("WORCA_SAMPLE", &sample);
        command
            .env("WORCA_BOX", &name)
            .env("WORCA_PROFILE", "dev")
            .env("WORCA_PORT", free_port().to_string());
        let said = run_with(&mut command, "");
        assert_eq!(said.code, 0, "{label}\nstdout:\n{}\nstderr:\n{}", said.out, said.err);
        said
    };
    let first = start("the first time");
    let branches = || git(&sample, &["for-each-ref", "--format=%(refname:short)", "refs/heads/worca/"]).ok();
    let made = branches();
    assert_eq!(made.lines().count(), 1, "{made}");
    assert!(first.out.contains(made.trim()) && first.out.contains("HELLO.md"), "{}", first.out);
    assert!(first.out.contains("http://localhost:"), "{}", first.out);
    assert_eq!(support::checkout_state(&sample), before);
    start("the second time");
    assert_eq!(branches().lines().count(), 2);
}

/// The box that the script made; it goes with this value, also when the test fails.
struct BoxOf<'a> {
    home: &'a Path,
    name: &'a str,
}

impl Drop for BoxOf<'_> {
    fn drop(&mut self) {
        let mut down = Command::new(env!("CARGO_BIN_EXE_worca"));
        down.env("WORCA_HOME", self.home.join(".worca"));
        let said = run_with(down.args(["container", "--name", self.name, "down", "--volumes", "--yes"]), "");
        if said.code != 0 {
            eprintln!("the box `{}` is left: {}", self.name, said.err);
        }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
