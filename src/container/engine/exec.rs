//! Runs a program inside a running container: with a terminal, with plain streams, or to hear its answer.
//!
//! The engine does not tell a program inside that its caller has gone. So each one carries a mark in its environment,
//! and a signal that reaches us is sent by a second exec to every process that carries the mark.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, ResizeExecOptions, StartExecOptions, StartExecResults};
use futures_util::StreamExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::connect::Engine;
use super::error::EngineError;

/// The variable that marks the processes of one exec.
const MARK: &str = "WORCA_EXEC";
/// Signals every process of a mark. The mark and the signal are arguments, so nothing is quoted into the text.
const SIGNAL_SCRIPT: &str = r#"for p in /proc/[0-9]*; do
  if tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qxF "WORCA_EXEC=$1"; then kill -s "$2" "${p#/proc/}" 2>/dev/null; fi
done; :"#;
/// How long the engine may take to know the exit code after the streams have ended.
const END: Duration = Duration::from_secs(10);

/// A program to run inside.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// The container's name.
    pub container: String,
    /// The program and its arguments. Never a secret.
    pub argv: Vec<String>,
    /// Variables as `NAME=value`. Never a secret.
    pub environment: Vec<String>,
    /// The working folder inside.
    pub folder: Option<String>,
    /// It gets a terminal.
    pub terminal: bool,
}

/// What happens on this side while the program runs.
#[derive(Debug)]
pub enum Input {
    /// Bytes for its standard input.
    Bytes(Vec<u8>),
    /// Its standard input ends.
    End,
    /// The terminal here has another size: columns, rows.
    Size(u16, u16),
    /// A signal reached us and is for it, by its name without `SIG`.
    Signal(&'static str),
}

/// Where its output goes.
pub struct Output<'a> {
    /// Standard output, and everything of a terminal.
    pub out: &'a mut (dyn AsyncWrite + Unpin + Send),
    /// Standard error.
    pub err: &'a mut (dyn AsyncWrite + Unpin + Send),
}

/// How many pieces of input wait here for the program to take them.
const WAITING: usize = 16;

/// Writes of the first piece what the pipe takes. Dropped half-way it has written nothing.
async fn write_some(
    to: &mut Option<Pin<Box<dyn AsyncWrite + Send>>>,
    waiting: &VecDeque<Vec<u8>>,
) -> std::io::Result<usize> {
    let (Some(pipe), Some(piece)) = (to.as_mut(), waiting.front()) else { return Ok(0) };
    let count = pipe.write(piece).await?;
    if count == 0 { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

/// Drops what was written of the first piece.
fn taken(waiting: &mut VecDeque<Vec<u8>>, count: usize) {
    if let Some(piece) = waiting.front_mut() {
        piece.drain(..count.min(piece.len()));
        if piece.is_empty() {
            waiting.pop_front();
        }
    }
}

/// The whole answer of a program.
#[derive(Clone, Default)]
pub struct Answer {
    /// Its exit code.
    pub code: i64,
    /// What it printed.
    pub out: Vec<u8>,
    /// What it complained.
    pub err: Vec<u8>,
}

impl Engine {
    /// Runs a program, feeding it what comes through `input` until that channel closes. Gives its exit code.
    ///
    /// When the caller drops this future, the program inside goes on.
    ///
    /// # Errors
    /// When the container is not there or does not run, or the connection breaks.
    pub async fn exec(
        &self,
        command: &Command,
        mut input: mpsc::Receiver<Input>,
        output: Output<'_>,
    ) -> Result<i64, EngineError> {
        let what = format!("run a program in container `{}`", command.container);
        let of = |error| EngineError::of(what.clone(), error);
        let mark = crate::ids::SpawnId::random();
        let mut environment = command.environment.clone();
        environment.push(format!("{MARK}={mark}"));
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(command.terminal),
            env: Some(environment),
            cmd: Some(command.argv.clone()),
            working_dir: command.folder.clone(),
            ..CreateExecOptions::default()
        };
        let id = self.docker.create_exec(&command.container, options).await.map_err(of)?.id;
        let start = StartExecOptions { tty: command.terminal, ..StartExecOptions::default() };
        let StartExecResults::Attached { output: mut from, input: to } =
            self.docker.start_exec(&id, Some(start)).await.map_err(of)?
        else {
            return Err(EngineError::refused(what, 500, "the engine did not attach"));
        };
        let mut to = Some(to);
        let mut open = true;
        // What the program has not taken yet. It is written beside the reading of its output: a program that waits
        // for its output to be read before it reads on would otherwise wait for ever.
        let mut waiting = VecDeque::<Vec<u8>>::new();
        let mut ends = false;
        loop {
            if ends
                && waiting.is_empty()
                && let Some(mut pipe) = to.take()
            {
                let _ = pipe.shutdown().await;
            }
            tokio::select! {
                written = write_some(&mut to, &waiting), if to.is_some() && !waiting.is_empty() => match written {
                    Ok(count) => taken(&mut waiting, count),
                    // A program that closed its input does not want more; its exit code tells the rest.
                    Err(_) => {
                        to = None;
                        waiting.clear();
                    }
                },
                part = from.next() => match part {
                    Some(Ok(part)) => {
                        let given = match part {
                            LogOutput::StdErr { message } => give(output.err, &message).await,
                            part => give(output.out, &part.into_bytes()).await,
                        };
                        if let Err(error) = given {
                            // As the system does to a program whose reader has gone away.
                            let _ = self.signal(&command.container, mark.as_str(), "PIPE").await;
                            return Err(EngineError::Output(error));
                        }
                    }
                    Some(Err(error)) => return Err(of(error)),
                    None => break,
                },
                item = input.recv(), if open && waiting.len() < WAITING => match item {
                    Some(Input::Bytes(bytes)) if to.is_some() && !bytes.is_empty() => waiting.push_back(bytes),
                    Some(Input::Bytes(_)) => {}
                    Some(Input::End) => ends = true,
                    Some(Input::Size(width, height)) => {
                        let size = ResizeExecOptions { height, width };
                        // One that has ended has no size.
                        let _ = self.docker.resize_exec(&id, size).await;
                    }
                    Some(Input::Signal(signal)) => {
                        let _ = self.signal(&command.container, mark.as_str(), signal).await;
                    }
                    None => open = false,
                },
            }
        }
        let _ = output.out.flush().await;
        self.exit_code(&id, &what).await
    }

    /// Runs a program to its end, gives it `input` and hears its answer, at most `limit` bytes of each stream.
    ///
    /// # Errors
    /// When the container is not there or does not run, the time passes, or the connection breaks.
    pub async fn ask(
        &self,
        container: &str,
        argv: &[&str],
        input: &[u8],
        limit: usize,
        time: Duration,
    ) -> Result<Answer, EngineError> {
        let command = Command {
            container: container.to_owned(),
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            ..Command::default()
        };
        let (send, receive) = mpsc::channel(2);
        // Two places are free, so neither call waits.
        let _ = send.try_send(Input::Bytes(input.to_vec()));
        let _ = send.try_send(Input::End);
        let (mut out, mut err) = (Capped::new(limit), Capped::new(limit));
        let work = self.exec(&command, receive, Output { out: &mut out, err: &mut err });
        let code = tokio::time::timeout(time, work).await.map_err(|_| EngineError::TooSlow {
            what: format!("run `{}` in container `{container}`", argv.first().copied().unwrap_or_default()),
            seconds: time.as_secs(),
        })??;
        Ok(Answer { code, out: out.bytes, err: err.bytes })
    }

    async fn signal(&self, container: &str, mark: &str, signal: &'static str) -> Result<(), EngineError> {
        let what = || format!("signal a program in container `{container}`");
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            cmd: Some(vec!["sh", "-c", SIGNAL_SCRIPT, "sh", mark, signal]),
            ..CreateExecOptions::default()
        };
        let id =
            self.docker.create_exec(container, options).await.map_err(|e| EngineError::of(what(), e))?.id;
        let start = StartExecOptions { detach: true, ..StartExecOptions::default() };
        self.docker.start_exec(&id, Some(start)).await.map_err(|e| EngineError::of(what(), e))?;
        Ok(())
    }

    async fn exit_code(&self, id: &str, what: &str) -> Result<i64, EngineError> {
        let until = tokio::time::Instant::now() + END;
        loop {
            let seen = self.docker.inspect_exec(id).await.map_err(|error| EngineError::of(what, error))?;
            match seen.exit_code {
                Some(code) if seen.running != Some(true) => return Ok(code),
                _ if tokio::time::Instant::now() >= until => {
                    return Err(EngineError::TooSlow { what: what.to_owned(), seconds: END.as_secs() });
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

async fn give(to: &mut (dyn AsyncWrite + Unpin + Send), bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

/// Keeps the first bytes and forgets the rest.
struct Capped {
    bytes: Vec<u8>,
    limit: usize,
}

impl Capped {
    fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }
}

impl AsyncWrite for Capped {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend(bytes.iter().take(room));
        std::task::Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
