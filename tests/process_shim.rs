//! What is left when the shim or core itself is killed, and what an agent can read of them. Core is played by this
//! test program, started once more.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/processes.rs"]
mod proc;
#[path = "support/spawned.rs"]
mod spawned;

use std::path::{Path, PathBuf};

use proc::until;
use spawned::{Place, output};
use worca::spawn::{self, SpawnRequest};

/// Runs a test in a process of its own: it changes what the whole process is.
fn again(test: &str, place: &Path) -> std::process::Child {
    #[allow(clippy::disallowed_methods, reason = "the test starts itself as a small core")]
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1", "--ignored"])
        .env("PLAY_CORE_IN", place)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
#[ignore = "a part of the tests below: plays core in a process of its own"]
async fn play_core() {
    let Some(folder) = std::env::var_os("PLAY_CORE_IN").map(PathBuf::from) else { return };
    spawn::adopt_strays().unwrap();
    spawn::harden_self().unwrap();
    let script = std::fs::read_to_string(folder.join("script")).unwrap();
    let mark = std::fs::read_to_string(folder.join("mark")).unwrap();
    let mut agent = spawn::start(SpawnRequest {
        shim: Some(env!("CARGO_BIN_EXE_worca").into()),
        program: "python3".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: folder.join("tree"),
        home: folder.join("home"),
        temporary: folder.join("tmp"),
        environment: vec![("MARK".into(), mark.into())],
        stdin: Vec::new(),
    })
    .await
    .unwrap();
    while agent.next_line().await.is_some() {}
    let exit = agent.wait().await;
    std::fs::write(folder.join("exit.new"), format!("{exit:?}")).unwrap();
    std::fs::rename(folder.join("exit.new"), folder.join("exit")).unwrap();
    // A helper of core's own, to be left alone by every sweep.
    #[allow(clippy::disallowed_methods, reason = "the test plays core's git")]
    let mut own = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    assert_eq!(spawn::sweep_strays(), 0);
    assert!(own.try_wait().unwrap().is_none());
    own.kill().unwrap();
    own.wait().unwrap();
    std::fs::write(folder.join("kept"), "1\n").unwrap();
    std::future::pending::<()>().await;
}

const DAEMON_AND: &str = r"
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        open('daemon.new', 'w').write(str(os.getpid()) + '\n'); os.rename('daemon.new', 'daemon')
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('daemon'): time.sleep(0.01)
";

impl Place {
    fn core(&self, script: &str) -> std::process::Child {
        std::fs::write(self.path("script"), format!("{DAEMON_AND}{script}")).unwrap();
        std::fs::write(self.path("mark"), &self.mark).unwrap();
        again("play_core", self.folder.path())
    }
}

#[tokio::test]
async fn an_agent_that_kills_its_shim_ends_with_all_it_started_and_core_says_so() {
    let place = Place::new();
    let mut core = place.core("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)");
    let exit = until("core tells the end", || {
        std::fs::read_to_string(place.path("exit")).map_err(|e| e.to_string())
    })
    .await;
    assert!(exit.contains("ShimKilled") && exit.contains("by_us: false"), "{exit}");
    assert!(!proc::alive(place.number("daemon").await));
    assert_eq!(place.living(), Vec::<i32>::new());
    until("core's own helper was left alone", || proc::number_in(&place.path("kept"))).await;
    core.kill().unwrap();
    core.wait().unwrap();
}

#[tokio::test]
async fn an_agent_that_stops_its_shim_is_found_out_and_ended() {
    let place = Place::new();
    let mut core = place.core("os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)");
    let exit = until("core tells the end", || {
        std::fs::read_to_string(place.path("exit")).map_err(|e| e.to_string())
    })
    .await;
    assert!(exit.contains("ShimKilled") && exit.contains("by_us: false"), "{exit}");
    assert_eq!(place.living(), Vec::<i32>::new());
    core.kill().unwrap();
    core.wait().unwrap();
}

#[tokio::test]
async fn the_whole_tree_ends_when_core_is_killed() {
    let place = Place::new();
    let mut core = place.core("open('ready','w').write('1\\n')\ntime.sleep(600)");
    place.number("ready").await;
    assert!(place.living().len() >= 3);
    core.kill().unwrap();
    core.wait().unwrap();
    place.all_gone().await;
}

/// What an agent of the same user sees of a process: `open` reads, the error's number otherwise.
const PEEK: &str = r"
import os, sys
for pid in (int(open('../core').read()), os.getppid()):
    for name in ('environ', 'mem', 'fd', 'maps'):
        try:
            f = os.readlink(f'/proc/{pid}/fd/0') if name == 'fd' else open(f'/proc/{pid}/{name}', 'rb')
            if name in ('environ', 'maps'): f.read(1)
            print(name, 'open', flush=True)
        except PermissionError: print(name, 'denied', flush=True)
        except OSError as e: print(name, e, flush=True)
open('seen.new', 'w').write('1\n'); os.rename('seen.new', 'seen')
os.kill(os.getpid(), 9)
";

#[tokio::test]
async fn an_agent_of_the_same_user_cannot_read_core_or_its_shim() {
    let place = Place::new();
    let run = |dumpable: &str| {
        let test = std::env::current_exe().unwrap();
        // Root with its capabilities reads everything; in the box, core is whoever it is without any.
        let (program, first): (&Path, &[&str]) = if rustix::process::getuid().is_root() {
            (Path::new("setpriv"), &["--bounding-set=-all", "--inh-caps=-all"])
        } else {
            (Path::new("env"), &[])
        };
        #[allow(clippy::disallowed_methods, reason = "the test starts itself as a small core")]
        let mut command = std::process::Command::new(program);
        command.args(first).arg(test);
        command.args(["--exact", "play_hardened_core", "--nocapture", "--test-threads=1", "--ignored"]);
        command.env("PLAY_CORE_IN", place.folder.path()).env("PLAY_DUMPABLE", dumpable);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let hardened = run("no");
    assert!(hardened.matches(" denied").count() == 8 && !hardened.contains(" open"), "{hardened}");
    let open = run("yes");
    assert_eq!(open.matches(" open").count(), 4, "without the attribute core is readable: {open}");
}

#[tokio::test]
#[ignore = "a part of the test above"]
async fn play_hardened_core() {
    let Some(folder) = std::env::var_os("PLAY_CORE_IN").map(PathBuf::from) else { return };
    std::fs::write(folder.join("core"), std::process::id().to_string()).unwrap();
    if std::env::var_os("PLAY_DUMPABLE").unwrap() == "no" {
        spawn::harden_self().unwrap();
        assert_eq!(
            rustix::process::dumpable_behavior().unwrap(),
            rustix::process::DumpableBehavior::NotDumpable
        );
    }
    let mut agent = spawn::start(SpawnRequest {
        shim: Some(env!("CARGO_BIN_EXE_worca").into()),
        program: "python3".into(),
        arguments: vec!["-c".into(), PEEK.into()],
        directory: folder.join("tree"),
        home: folder.join("home"),
        temporary: folder.join("tmp"),
        environment: Vec::new(),
        stdin: Vec::new(),
    })
    .await
    .unwrap();
    println!("{}", output(&mut agent).await);
    println!("{}", agent.stderr_tail());
}
