//! A started agent as core sees it: its lines, its last words, its end. Core never signals an agent itself; it
//! asks the shim, and the shim takes core's silence for core's death.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::{Line, SpawnError, SpawnRequest};
use crate::guardrails::Receipt;

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: its shim was killed or stopped, which only the agent itself or the machine's owner can have done.
    ShimKilled,
}

/// The end of an agent. When it is told, every process that the agent started is gone too (but for `left`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentExit {
    /// How.
    pub end: AgentEnd,
    /// Whether it had been asked to end from here.
    pub by_us: bool,
    /// Processes beside the agent that had to be ended.
    pub ended: u32,
    /// Processes that could not be ended in time (they hang in the kernel).
    pub left: u32,
}

impl AgentExit {
    /// Ended by itself with code 0.
    pub fn is_success(&self) -> bool {
        self.end == AgentEnd::Code(0)
    }
}

/// A running agent. Dropping it ends the agent and all that it started, within moments and without waiting.
///
/// Output is read only when [`Agent::next_line`] is called, one line at a time: an agent that writes faster than
/// it is read waits in its own write. Nothing is queued here.
pub struct Agent {
    pid: u32,
    receipt: Receipt,
    stdout: super::lines::Lines<tokio::process::ChildStdout>,
    stderr: Arc<Mutex<Tail>>,
    stopper: Stopper,
    /// Ends with this value: its end closes the control socket, which is the shim's signal.
    _tasks: tokio::task::JoinSet<()>,
}

/// Asks an agent to end from elsewhere.
#[derive(Clone)]
pub struct Stopper {
    commands: mpsc::Sender<u8>,
    exit: watch::Receiver<Option<AgentExit>>,
}

impl Stopper {
    /// SIGTERM to the agent, `grace` for it to end, then the end of its whole tree. Returns when all is gone.
    pub async fn stop(&self, grace: Duration) -> AgentExit {
        // A full or closed channel: somebody else has asked, or it is over.
        let _ = self.commands.try_send(super::wire::TERMINATE);
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(exit) => exit,
            Err(_) => self.kill().await,
        }
    }
    /// Ends the whole tree at once. Returns when all is gone.
    pub async fn kill(&self) -> AgentExit {
        let _ = self.commands.send(super::wire::KILL).await;
        self.ended().await
    }
    /// Waits for the end.
    pub async fn ended(&self) -> AgentExit {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        // The watcher is gone with a dropped `Agent`: the shim ends the tree by itself.
        ended.unwrap_or(AgentExit { end: AgentEnd::ShimKilled, by_us: true, ended: 0, left: 0 })
    }
}

/// Starts an agent. When the caller is dropped meanwhile, nothing is left running.
///
/// # Errors
/// When the request is refused, or the shim cannot hold or start the program.
#[cfg(not(unix))]
pub async fn start(_request: SpawnRequest) -> Result<Agent, SpawnError> {
    Err(SpawnError::Unsupported)
}

#[cfg(unix)]
pub use unix::start;

impl Agent {
    /// The agent's process id, in core's own process name space.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What was tried before it started, through its very limits.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The next line of its output; `None` when there will be none. May be dropped half-way.
    pub async fn next_line(&mut self) -> Option<Line> {
        let mut exit = self.stopper.exit.clone();
        tokio::select! {
            biased;
            line = self.stdout.next() => return line.ok().flatten(),
            _ = exit.wait_for(Option::is_some) => {}
        }
        // Every process of the tree is gone, so the end of the pipe follows what is still in it. It does not
        // when the agent handed its side to a process outside: that one is not waited for.
        match tokio::time::timeout(DRAIN, self.stdout.next()).await {
            Ok(line) => line.ok().flatten(),
            Err(_) => self.stdout.rest(),
        }
    }

    /// The last words on its standard error, at most 64 KiB.
    pub fn stderr_tail(&self) -> String {
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail.bytes).into_owned()
    }

    /// A handle to stop it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// See [`Stopper::stop`].
    pub async fn stop(&self, grace: Duration) -> AgentExit {
        self.stopper.stop(grace).await
    }

    /// Waits for the end; output that was not read until now is thrown away.
    pub async fn wait(&mut self) -> AgentExit {
        while self.next_line().await.is_some() {}
        self.stopper.ended().await
    }
}

/// Silence on a dead agent's output after which it is over.
const DRAIN: Duration = Duration::from_secs(2);
/// How much of standard error is kept.
const TAIL: usize = 64 * 1024;

#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    fn add(&mut self, new: &[u8]) {
        self.bytes.extend_from_slice(new);
        if self.bytes.len() > 2 * TAIL {
            self.bytes.drain(..self.bytes.len() - TAIL);
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream as StdStream;
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;
    use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
    use tokio::process::Child;

    use super::super::lines::{Lines, MAX_LINE};
    use super::super::wire::{Description, KILL, Refusal, Report, Task};
    use super::super::{MAX_STDIN, environment};
    use super::*;

    /// From the shim's start to the agent's; a busy machine needs a second or two.
    const START: Duration = Duration::from_secs(30);
    /// A shim that was told to end everything and says nothing for this long is killed.
    const UNRESPONSIVE: Duration = Duration::from_secs(75);
    /// From the shim's last word to its own end.
    const FAREWELL: Duration = Duration::from_secs(5);
    /// How often a shim is looked at: one that its agent has stopped would never tell the end.
    const LOOK: Duration = Duration::from_secs(1);
    /// Longest line that a shim writes.
    const MAX_REPORT: usize = super::super::wire::MAX_DESCRIPTION;

    /// Starts an agent. When the caller is dropped meanwhile, nothing is left running.
    ///
    /// # Errors
    /// When the request is refused, or the shim cannot hold or start the program.
    pub async fn start(request: SpawnRequest) -> Result<Agent, SpawnError> {
        let environment = environment::build(std::env::vars_os(), &request)?;
        for (what, path) in
            [("working folder", &request.directory), ("home", &request.home), ("TMPDIR", &request.temporary)]
        {
            if !path.is_absolute() || !path.is_dir() {
                return Err(SpawnError::Folder { what, path: path.clone() });
            }
        }
        if request.stdin.len() > MAX_STDIN {
            return Err(SpawnError::StdinTooLarge { size: request.stdin.len() });
        }
        let description = Description {
            program: request.program,
            arguments: request.arguments,
            directory: request.directory.into(),
            environment: environment.into_iter().collect(),
            stdin: request.stdin.len() as u64,
            task: Task { kernel: request.kernel, trial: request.trial },
        };
        let shim = match request.shim {
            Some(shim) => shim,
            None => own_path()?,
        };
        let failed = |source| SpawnError::Shim { shim: shim.clone(), source };
        let (mut child, control) = launch(&shim).map_err(failed)?;
        let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(SpawnError::Silent("no pipes".into()));
        };

        let (read, mut write) = control.into_split();
        let mut reports = Lines::new(read, MAX_REPORT);
        let talk = async {
            let mut line = serde_json::to_vec(&description).unwrap_or_default();
            line.push(b'\n');
            // A shim that refuses before it has read everything closes: its reason is the better error.
            if write.write_all(&line).await.is_ok() {
                let _ = write.write_all(&request.stdin).await;
            }
            reports.next().await
        };
        let first = match tokio::time::timeout(START, talk).await {
            Ok(Ok(Some(line))) => serde_json::from_slice(&line.bytes).ok(),
            Ok(_) => None,
            Err(_) => return Err(SpawnError::Silent("no answer in 30 s".into())),
        };
        let (pid, receipt) = match first {
            Some(Report::Started { pid, receipt }) => (pid, receipt),
            Some(Report::Refused(why)) => return Err(refused(why)),
            Some(Report::Ended { .. }) | None => {
                let mut said = vec![0u8; 1024];
                let size = tokio::time::timeout(FAREWELL, stderr.read(&mut said))
                    .await
                    .map_or(0, Result::unwrap_or_default);
                said.truncate(size);
                return Err(SpawnError::Silent(String::from_utf8_lossy(&said).trim().to_owned()));
            }
        };

        // Room for one stop and one kill from each of a few callers; a full channel makes `kill` wait its turn.
        let (commands, orders) = mpsc::channel(8);
        let (told, exit) = watch::channel(None);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            supervise(child, reports, write, orders, told).await;
        });
        let tail = Arc::new(Mutex::new(Tail::default()));
        let kept = Arc::clone(&tail);
        tasks.spawn(async move {
            let mut chunk = vec![0u8; 16 * 1024];
            while let Ok(size @ 1..) = stderr.read(&mut chunk).await {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(chunk.get(..size).unwrap_or_default());
            }
        });
        Ok(Agent {
            pid,
            receipt,
            stdout: Lines::new(stdout, MAX_LINE),
            stderr: tail,
            stopper: Stopper { commands, exit },
            _tasks: tasks,
        })
    }

    fn refused(why: Refusal) -> SpawnError {
        match why {
            Refusal::Start(sentence) => SpawnError::Refused(sentence),
            Refusal::Kernel(missing) => SpawnError::KernelLacks(missing),
            Refusal::Rules(why) => SpawnError::KernelRules(why),
            Refusal::Open(what) => SpawnError::Open(what),
            Refusal::Hook(what) => SpawnError::HookOpen(what),
        }
    }

    fn own_path() -> Result<PathBuf, SpawnError> {
        // On Linux this link is the running binary also after an update has replaced its file.
        if cfg!(target_os = "linux") {
            return Ok("/proc/self/exe".into());
        }
        std::env::current_exe().map_err(SpawnError::OwnPath)
    }

    /// The shim with its control socket as standard input, and nothing in its environment.
    #[expect(clippy::disallowed_methods, reason = "spawn starts the shim, and the shim alone starts agents")]
    fn launch(shim: &Path) -> std::io::Result<(Child, UnixStream)> {
        let (own, other) = StdStream::pair()?;
        own.set_nonblocking(true)?;
        let own = UnixStream::from_std(own)?;
        let mut command = tokio::process::Command::new(shim);
        command.arg0("worca").arg("shim").env_clear().current_dir("/");
        command.stdin(OwnedFd::from(other)).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(target_os = "linux")]
        let child = super::super::strays::starting(|| {
            let child = command.spawn()?;
            let number = child.id();
            Ok((child, number))
        })?;
        #[cfg(not(target_os = "linux"))]
        let child = command.spawn()?;
        // `command` holds the shim's end of the socket: it must be gone, or its close would never be seen.
        drop(command);
        Ok((child, own))
    }

    async fn supervise(
        mut shim: Child,
        mut reports: Lines<OwnedReadHalf>,
        mut write: OwnedWriteHalf,
        mut orders: mpsc::Receiver<u8>,
        told: watch::Sender<Option<AgentExit>>,
    ) {
        let mut by_us = false;
        let mut until = None;
        let number = shim.id().unwrap_or_default();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let report = loop {
            let limit = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                line = reports.next() => match line {
                    Ok(Some(line)) => break serde_json::from_slice(&line.bytes).ok(),
                    Ok(None) | Err(_) => break None,
                },
                Some(order) = orders.recv() => {
                    by_us = true;
                    if order == KILL && until.is_none() {
                        until = Some(tokio::time::Instant::now() + UNRESPONSIVE);
                    }
                    let _ = write.write_all(&[order]).await;
                }
                _ = look.tick() => if is_stopped(number) { break None },
                () = limit => break None,
            }
        };
        if let Some(Report::Ended { code, signal, ended, left }) = report {
            let end =
                code.map(AgentEnd::Code).or(signal.map(AgentEnd::Signal)).unwrap_or(AgentEnd::ShimKilled);
            // Told before the shim itself is gone: nothing of the agent is left, and its pass may die now.
            told.send_replace(Some(AgentExit { end, by_us, ended, left }));
            if tokio::time::timeout(FAREWELL, shim.wait()).await.is_ok() {
                return;
            }
        }
        let _ = shim.start_kill();
        let _ = tokio::time::timeout(FAREWELL, shim.wait()).await;
        let ended = sweep().await;
        told.send_if_modified(|told| {
            let lost = AgentExit { end: AgentEnd::ShimKilled, by_us, ended, left: 0 };
            told.is_none() && told.replace(lost).is_none()
        });
    }

    #[cfg(target_os = "linux")]
    async fn sweep() -> u32 {
        let swept = tokio::task::spawn_blocking(super::super::strays::sweep).await.unwrap_or_default();
        u32::try_from(swept).unwrap_or(u32::MAX)
    }

    #[cfg(target_os = "linux")]
    use super::super::strays::is_stopped;

    #[cfg(not(target_os = "linux"))]
    async fn sweep() -> u32 {
        0
    }

    #[cfg(not(target_os = "linux"))]
    fn is_stopped(_shim: u32) -> bool {
        false
    }
}
