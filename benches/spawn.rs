//! What the shim adds to a start: `true` as an agent (through the shim of the given binary, under the rules of a tier,
//! every probe tried and the hook called once) beside `true` as a plain child, in turn. Prints nanoseconds, two a line.
//!
//!     spawn WORCA ROUNDS TIER

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made ends")]
#![allow(clippy::disallowed_methods, reason = "the peer is a plain child")]

#[cfg(target_os = "linux")]
#[tokio::main]
async fn main() {
    use std::time::Instant;

    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (Some(worca), Some(rounds), Some(tier)) = (words.next(), words.next(), words.next()) else {
        println!("usage: spawn WORCA ROUNDS TIER");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    for _ in 0..rounds.parse().unwrap() {
        let request = request(place.path(), worca.as_ref(), &tier);
        let begin = Instant::now();
        let mut agent = worca::spawn::start(request).await.unwrap();
        let ours = begin.elapsed();
        agent.wait().await;
        let begin = Instant::now();
        let mut child = std::process::Command::new("/usr/bin/true").spawn().unwrap();
        let theirs = begin.elapsed();
        child.wait().unwrap();
        println!("{} {}", ours.as_nanos(), theirs.as_nanos());
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the shim is measured on Linux");
}

/// A start as a run has it, with `true` in the place of the agent program.
#[cfg(target_os = "linux")]
fn request(place: &std::path::Path, worca: &std::path::Path, tier: &str) -> worca::spawn::SpawnRequest {
    use worca::agents::claude::Launch;
    use worca::guardrails::{Facts, Library, SetName, compile};
    use worca::secret::Secret;

    let at = |name: &str| place.join(name);
    for folder in
        ["home/runs/r0/tree", "home/runs/r0/home", "home/runs/r0/home/tmp", "api/.git/worktrees/tree"]
    {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("home/core-token"), "token").unwrap();
    std::fs::write(at("api/.git/config"), "").unwrap();
    let facts = Facts {
        worca: worca.into(),
        worca_home: at("home"),
        folder: at("home/runs/r0"),
        worktree: at("home/runs/r0/tree"),
        home: at("home/runs/r0/home"),
        temporary: at("home/runs/r0/home/tmp"),
        common_dir: at("api/.git"),
        worktree_admin: at("api/.git/worktrees/tree"),
        branch: "worca/r0/bench".into(),
        checkout: at("api"),
        projects: vec![at("api")],
        protected: vec![at("home/core-token")],
        programs: vec!["/usr/bin".into(), "/bin".into(), worca.parent().unwrap().into()],
        user_home: Some(at("user")),
        found: Vec::new(),
        service_ports: vec![4318],
        closed_port: Some(4317),
        host: std::process::id(),
    };
    let set = Library::embedded().resolve(&SetName::parse(tier).unwrap()).unwrap();
    let launch = Launch {
        program: "/usr/bin/true".into(),
        model: None,
        compiled: compile(&set, &[], &facts),
        facts,
        base_url: "http://127.0.0.1:4318/rehearsal".into(),
        pass: Secret::new("wp_bench".into()),
        prompt: String::new(),
        resume: None,
        environment: Vec::new(),
    };
    let mut request = launch.prepare().unwrap();
    request.shim = Some(worca.into());
    request
}
