//! Agents that misbehave, started by the real `spawn` through the real shim of the built binary.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "support/processes.rs"]
mod proc;
#[path = "support/spawned.rs"]
mod spawned;

use std::time::Duration;

use proc::{PATIENCE, until};
use spawned::{Place, finish, output};
use worca::spawn::{self, Agent, AgentEnd, AgentExit, SpawnError, SpawnRequest};

#[tokio::test]
async fn an_ordinary_agent_reads_its_prompt_works_and_ends() {
    let place = Place::new();
    let mut request =
        place.request("sh", &["-c", "cat; pwd; echo warning >&2; echo done > made.txt; exit 3"]);
    request.stdin = b"do this\n".to_vec();
    let mut agent = spawn::start(request).await.unwrap();
    assert_eq!(output(&mut agent).await, format!("do this\n{}\n", place.path("tree").display()));
    let exit = finish(&mut agent).await;
    assert_eq!(exit, AgentExit { end: AgentEnd::Code(3), by_us: false, ended: 0, left: 0 });
    assert_eq!(agent.stderr_tail(), "warning\n");
    assert_eq!(std::fs::read_to_string(place.path("tree").join("made.txt")).unwrap(), "done\n");
}

#[tokio::test]
async fn the_environment_has_exactly_the_expected_names() {
    let place = Place::new();
    let mut agent = spawn::start(place.request("cat", &["/proc/self/environ"])).await.unwrap();
    let text = output(&mut agent).await;
    let text = text.replace('\0', "\n");
    let mut names: Vec<&str> = text.trim().lines().map(|line| line.split_once('=').unwrap().0).collect();
    names.sort_unstable();
    let mut expected: Vec<String> = std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| ["PATH", "LANG", "TZ"].contains(&name.as_str()) || name.starts_with("LC_"))
        .chain(["HOME", "MARK", "TERM", "TMPDIR", "WORCA_HOST_PID"].map(str::to_owned))
        .collect();
    expected.sort();
    assert_eq!(names, expected);
    assert!(text.contains(&format!("HOME={}\n", place.path("home").display())), "{text}");
    assert!(text.contains("TERM=dumb\n"), "{text}");
    assert!(text.contains(&format!("WORCA_HOST_PID={}\n", std::process::id())), "{text}");
}

#[tokio::test]
async fn c022_neither_prompt_nor_pass_stands_in_any_argv_or_foreign_environment() {
    let place = Place::new();
    let mut request = place.request("sh", &["-c", "cat > got; echo ready; sleep 600"]);
    let (prompt, pass) = (format!("pkill -f {}-prompt", place.mark), format!("wp_{}", place.mark));
    request.stdin = prompt.clone().into_bytes();
    request.environment.push(("ANTHROPIC_AUTH_TOKEN".into(), pass.clone().into()));
    let mut agent = spawn::start(request).await.unwrap();
    assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    assert_eq!(std::fs::read_to_string(place.path("tree").join("got")).unwrap(), prompt);
    assert_eq!(proc::in_any_argv(&prompt), Vec::<i32>::new());
    assert_eq!(proc::in_any_argv(&pass), Vec::<i32>::new());
    let shim = proc::parent(agent.pid() as i32).unwrap();
    assert_eq!(std::fs::read(format!("/proc/{shim}/environ")).unwrap_or_default(), b"");
    assert!(place.living().contains(&(agent.pid() as i32)));
    agent.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn no_descriptor_leaks_into_the_agent() {
    // A descriptor without close-on-exec, as a careless parent of core would leave it.
    let leak = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let place = Place::new();
    let mut agent =
        place.python("import os;print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])").await;
    assert_eq!(output(&mut agent).await.trim(), "[0, 1, 2]");
    drop(leak);
}

#[tokio::test]
async fn the_agent_is_confined_before_it_starts() {
    let place = Place::new();
    let script =
        "grep -E 'NoNewPrivs' /proc/self/status; grep 'core file' /proc/self/limits; ps -o sid= -p $$";
    let mut agent = place.sh(script).await;
    let text = output(&mut agent).await;
    assert!(text.contains("NoNewPrivs:\t1"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("Max core file size        0                    0")),
        "{text}"
    );
    let session: i32 = text.lines().last().unwrap().trim().parse().unwrap();
    // Not by getsid: the session of a test run may be one of an outer PID namespace, which has no number here.
    assert_ne!(session, proc::session(std::process::id() as i32).unwrap());
}

#[tokio::test]
async fn a_large_standard_input_arrives_whole() {
    let place = Place::new();
    let mut request = place.request("sh", &["-c", "sha256sum; wc -c < /dev/stdin"]);
    request.stdin = (0..20_000_000u32).map(|at| (at % 251) as u8).collect();
    let mut agent = spawn::start(request).await.unwrap();
    let text = output(&mut agent).await;
    use sha2::Digest as _;
    let expected = sha2::Sha256::digest((0..20_000_000u32).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
    let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn c101_an_agent_that_reads_to_the_end_of_its_input_starts_at_once_without_a_prompt() {
    let place = Place::new();
    let mut agent = place.sh("cat; echo read").await;
    assert_eq!(output(&mut agent).await, "read\n");
}

#[tokio::test]
async fn a_flood_waits_for_a_slow_reader_and_loses_nothing() {
    let place = Place::new();
    let mut agent = place
        .python("import sys\nfor n in range(300000): print('line', n)\nopen('over','w').write('x')")
        .await;
    assert_eq!(agent.next_line().await.unwrap().text(), "line 0");
    // Nobody reads now: the agent stands in its write, whatever time it gets.
    until("the agent waits in a pipe", || {
        match std::fs::read_to_string(format!("/proc/{}/wchan", agent.pid())) {
            Ok(place) if place.contains("pipe") => Ok(()),
            Ok(place) => Err(place),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    assert!(!place.path("tree").join("over").exists());
    let mut next = 1;
    while let Some(line) = agent.next_line().await {
        assert_eq!(line.text(), format!("line {next}"));
        next += 1;
    }
    assert_eq!(next, 300_000);
    assert!(finish(&mut agent).await.is_success());
}

#[tokio::test]
async fn c104_odd_lines_are_cut_or_replaced_and_the_last_one_counts() {
    let place = Place::new();
    let script = r"
import sys
out = sys.stdout.buffer
out.write(b'a' * 5_000_000 + b'\n')
out.write(b'x' * 40_000 + '→'.encode()[:2]); out.flush()
out.write('→'.encode()[2:] + b'\n')
out.write(b'\xff\xfe bad\n')
out.write(b'b' * 64_000_000 + b'\n')
out.write(b'last')
";
    let mut agent = place.python(script).await;
    let mut lines = Vec::new();
    while let Some(line) = agent.next_line().await {
        lines.push((line.bytes.len(), line.dropped, line.text().chars().rev().take(5).collect::<String>()));
    }
    let shown: Vec<_> = lines.iter().map(|(size, dropped, end)| (*size, *dropped, end.as_str())).collect();
    let limit = spawn::MAX_LINE;
    assert_eq!(
        shown,
        [
            (5_000_000, 0, "aaaaa"),
            (40_003, 0, "→xxxx"),
            (6, 0, "dab \u{fffd}"),
            (limit, 64_000_000 - limit as u64, "bbbbb"),
            (4, 0, "tsal"),
        ]
    );
}

#[tokio::test]
async fn c102_a_background_process_that_keeps_the_output_open_is_ended_and_no_output_is_lost() {
    let place = Place::new();
    let mut agent = place.sh("head -c 200000 /dev/zero | tr '\\0' x; echo; sleep 600 & exit 0").await;
    let text = tokio::time::timeout(PATIENCE, output(&mut agent)).await.expect("the output ends");
    assert_eq!(text.len(), 200_001);
    let exit = finish(&mut agent).await;
    assert_eq!((exit.end, exit.ended, exit.left), (AgentEnd::Code(0), 1, 0));
    place.all_gone().await;
}

#[tokio::test]
async fn daemons_of_every_kind_end_with_the_agent() {
    let place = Place::new();
    let script = r"
import os, signal, sys, time
def daemon(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
            for f in (0, 1, 2): os.close(f)
            open(name + '.new', 'w').write(str(os.getpid()) + '\n'); os.rename(name + '.new', name)
            while True: time.sleep(100)
        os._exit(0)
    os.wait()
daemon('one'); daemon('two')
os.system('nohup setsid sleep 600 >/dev/null 2>&1 &')
while not (os.path.exists('one') and os.path.exists('two')): time.sleep(0.01)
";
    let mut agent = place.python(script).await;
    let exit = finish(&mut agent).await;
    assert_eq!((exit.end, exit.left), (AgentEnd::Code(0), 0));
    assert!(exit.ended >= 3, "{exit:?}");
    for name in ["one", "two"] {
        assert!(!proc::alive(place.number(name).await), "{name}");
    }
    assert_eq!(place.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn c103_an_agent_that_ignores_sigterm_is_killed_after_its_grace_and_its_pipeline_too() {
    let place = Place::new();
    let mut agent = place
        .sh("trap '' TERM; sleep 600 | cat & echo $! > child; echo ready; while :; do sleep 1; done")
        .await;
    assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    let exit = agent.stop(Duration::from_millis(200)).await;
    assert_eq!((exit.end, exit.by_us, exit.left), (AgentEnd::Signal(9), true, 0));
    assert_eq!(place.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn an_agent_that_heeds_sigterm_may_end_by_itself() {
    let place = Place::new();
    let mut agent = place.python("import signal,sys,time\nsignal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(7)))\nprint('ready', flush=True)\ntime.sleep(600)").await;
    assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    let stopper = agent.stopper();
    let (exit, text) = tokio::join!(stopper.stop(PATIENCE), output(&mut agent));
    assert_eq!((exit.end, exit.by_us), (AgentEnd::Code(7), true));
    assert_eq!(text, "saved\n");
}

#[tokio::test]
async fn a_fork_loop_does_not_outrun_the_shim() {
    let place = Place::new();
    // Every process forks again and again; the old ones end, so that numbers change all the time. 60 lines at most.
    let script = r"
import os, sys, time
open('started', 'w').write('1\n')
for _ in range(12):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork() == 0:
                os.setsid()
            else:
                os._exit(0)
time.sleep(600)
";
    let agent = place.python(script).await;
    place.number("started").await;
    let exit =
        tokio::time::timeout(Duration::from_secs(55), agent.stop(Duration::ZERO)).await.expect("it ends");
    assert_eq!((exit.by_us, exit.left), (true, 0));
    assert_eq!(place.living(), Vec::<i32>::new());
}

#[tokio::test]
async fn an_agent_that_signals_its_own_group_does_not_meet_its_shim() {
    let place = Place::new();
    let mut agent = place.sh("trap '' TERM; kill 0; echo still here; exit 4").await;
    assert_eq!(output(&mut agent).await, "still here\n");
    assert_eq!(finish(&mut agent).await.end, AgentEnd::Code(4));
}

#[tokio::test]
async fn dropping_the_agent_ends_its_tree() {
    let place = Place::new();
    let mut agent = place.sh("setsid sleep 600 & echo ready; sleep 600").await;
    assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    until("the agent and its children are there", || match place.living() {
        living if living.len() >= 3 => Ok(()),
        living => Err(living),
    })
    .await;
    drop(agent);
    place.all_gone().await;
}

#[tokio::test]
async fn c100_ended_orphans_are_reaped_while_the_agent_works() {
    let place = Place::new();
    let mut agent = place.sh("for i in $(seq 100); do (sleep 0.01 &); done; sleep 0.1; echo $PPID > shim; echo ready; sleep 600").await;
    assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    let shim = place.number("shim").await;
    until("no zombie is left below the shim", || {
        let zombies: Vec<i32> = proc::pids()
            .into_iter()
            .filter(|pid| proc::parent(*pid) == Some(shim) && proc::state(*pid) == Some('Z'))
            .collect();
        if zombies.is_empty() { Ok(()) } else { Err(zombies) }
    })
    .await;
    assert!(proc::alive(agent.pid() as i32));
    agent.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn many_agents_at_once_do_not_touch_each_other() {
    let places: Vec<Place> = (0..8).map(|_| Place::new()).collect();
    let mut agents = Vec::new();
    for place in &places {
        agents.push(place.sh("sleep 600 & echo ready; read x; sleep 600").await);
    }
    for agent in &mut agents {
        assert_eq!(agent.next_line().await.unwrap().text(), "ready");
    }
    let last = agents.pop().unwrap();
    let stops = agents.iter().map(|agent| agent.stop(Duration::ZERO));
    for exit in futures_util::future::join_all(stops).await {
        assert_eq!(exit.left, 0);
    }
    for place in &places[..7] {
        assert_eq!(place.living(), Vec::<i32>::new());
    }
    assert!(places[7].living().len() >= 2);
    last.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn what_cannot_start_is_a_sentence_and_leaves_nothing() {
    let place = Place::new();
    let said = |result: Result<Agent, SpawnError>| result.err().expect("it is refused").to_string();
    let start = async |change: &dyn Fn(&mut SpawnRequest)| {
        let mut request = place.request("sh", &["-c", "sleep 600"]);
        change(&mut request);
        said(spawn::start(request).await)
    };
    let missing = start(&|request| request.program = "no-such-program-here".into()).await;
    assert_eq!(missing, "the shim refused: the program `no-such-program-here` was not found in PATH");
    let folder = start(&|request| request.program = "/etc".into()).await;
    assert_eq!(folder, "the shim refused: `/etc` is not a program that can be run");
    let gone = start(&|request| request.directory = "/no/such/folder".into()).await;
    assert_eq!(gone, "the agent's working folder `/no/such/folder` is not a folder");
    for name in ["ANTHROPIC_API_KEY", "LD_PRELOAD", "HOME", "A=B", "", "CLAUDE_CODE_OAUTH_TOKEN"] {
        let refused = start(&|request| request.environment.push((name.into(), "value-canary".into()))).await;
        assert!(refused.contains("may not be given") && !refused.contains("value-canary"), "{refused}");
    }
    let large = start(&|request| request.stdin = vec![0; spawn::MAX_STDIN + 1]).await;
    assert!(large.contains("bytes are") || large.contains("at most"), "{large}");
    let other = start(&|request| request.shim = Some("/bin/true".into())).await;
    assert!(other.starts_with("the shim gave no sign"), "{other}");
    assert_eq!(place.living(), Vec::<i32>::new());
}

#[test]
fn the_shim_role_refuses_to_be_called_by_a_person() {
    let run = |arguments: &[&str]| {
        #[allow(clippy::disallowed_methods, reason = "the test plays the person")]
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_worca"))
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, text) = run(&["shim"]);
    assert_eq!(code, Some(2));
    assert!(text.starts_with("error: `worca shim` is started by core"), "{text}");
    let (code, text) = run(&["shim", "--exec", "1", "--", "/bin/echo", "ran"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("the shim is gone"), "{text}");
    assert_eq!(run(&["shim", "odd"]).0, Some(2));
}
