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
use spawned::Place;
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
        keep: Vec::new(),
        stdin: Vec::new(),
        kernel: spawned::open(),
        trial: None,
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

/// No agent can do it (`process_confine.rs`) but where the kernel has no rules for signals, and the machine's owner.
async fn a_shim_that_gets(name: &str, signal: rustix::process::Signal) {
    let place = Place::new();
    let mut core = place.core("open('shim.new','w').write(str(os.getppid()) + '\\n')\nos.rename('shim.new', 'shim')\ntime.sleep(600)");
    let shim = place.number("shim").await;
    rustix::process::kill_process(rustix::process::Pid::from_raw(shim).unwrap(), signal).unwrap();
    let exit = until("core tells the end", || {
        std::fs::read_to_string(place.path("exit")).map_err(|e| e.to_string())
    })
    .await;
    assert!(exit.contains("ShimKilled") && exit.contains("by_us: false"), "{name}: {exit}");
    assert!(!proc::alive(place.number("daemon").await));
    assert_eq!(place.living(), Vec::<i32>::new());
    until("core's own helper was left alone", || proc::number_in(&place.path("kept"))).await;
    core.kill().unwrap();
    core.wait().unwrap();
}

#[tokio::test]
async fn an_agent_whose_shim_is_killed_ends_with_all_it_started_and_core_says_so() {
    a_shim_that_gets("killed", rustix::process::Signal::KILL).await;
}

#[tokio::test]
async fn an_agent_whose_shim_is_stopped_is_found_out_and_ended() {
    a_shim_that_gets("stopped", rustix::process::Signal::STOP).await;
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

/// What a process of the same user, and under no kernel rules, sees of others: `open`, or the error.
const PEEK: &str = r"
import os, sys
for pid in sys.argv[1:]:
    for name in ('environ', 'mem', 'fd', 'maps'):
        try:
            f = os.readlink(f'/proc/{pid}/fd/0') if name == 'fd' else open(f'/proc/{pid}/{name}', 'rb')
            if name in ('environ', 'maps'): f.read(1)
            print(name, 'open', flush=True)
        except PermissionError: print(name, 'denied', flush=True)
        except OSError as e: print(name, e, flush=True)
";

#[tokio::test]
async fn core_and_its_shims_are_unreadable_for_the_same_user_also_without_kernel_rules() {
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
    if std::env::var_os("PLAY_DUMPABLE").unwrap() == "no" {
        spawn::harden_self().unwrap();
        assert_eq!(
            rustix::process::dumpable_behavior().unwrap(),
            rustix::process::DumpableBehavior::NotDumpable
        );
    }
    let agent = spawn::start(SpawnRequest {
        shim: Some(env!("CARGO_BIN_EXE_worca").into()),
        program: "sleep".into(),
        arguments: vec!["600".into()],
        directory: folder.join("tree"),
        home: folder.join("home"),
        temporary: folder.join("tmp"),
        environment: Vec::new(),
        keep: Vec::new(),
        stdin: Vec::new(),
        kernel: spawned::open(),
        trial: None,
    })
    .await
    .unwrap();
    let shim = proc::parent(agent.pid() as i32).unwrap();
    #[allow(clippy::disallowed_methods, reason = "the test looks as something that is no agent")]
    let mut peek = std::process::Command::new("python3");
    peek.args(["-c", PEEK]).args([std::process::id().to_string(), shim.to_string()]);
    assert!(peek.status().unwrap().success());
    agent.stop(std::time::Duration::ZERO).await;
}
