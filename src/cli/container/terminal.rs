//! This terminal and the signals of this process, joined to a program inside the box.
//!
//! The terminal is given back as it was, whatever happens in between.

use std::io::{IsTerminal as _, Read as _};

use tokio::sync::mpsc;

use crate::container::engine::Engine;
use crate::container::engine::exec::{Command, Input, Output};
use crate::failure::{Exit, Failure};

/// Parts of the input that wait while the engine is slow; the terminal holds the rest.
const WAITING: usize = 16;
/// The largest part of the input.
const PART: usize = 8 * 1024;

/// What the program's standard input is.
pub(super) enum Feed {
    /// Ours.
    Ours,
    /// These bytes, and then nothing.
    Bytes(Vec<u8>),
}

/// Whether there is a terminal to hand on.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Variables that say what this terminal can do.
pub(super) fn environment() -> Vec<String> {
    let names = ["TERM", "COLORTERM", "NO_COLOR"];
    names.iter().filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?))).collect()
}

/// Runs the command joined to this process, and gives its exit code.
///
/// # Errors
/// When the engine does not run it, or the connection breaks.
pub(super) async fn join(engine: &Engine, command: &Command, feed: Feed) -> Result<i64, Failure> {
    let (send, receive) = mpsc::channel(WAITING);
    let raw = if command.terminal { Some(Raw::enter()) } else { None };
    match feed {
        Feed::Ours => read_ours(send.clone()),
        Feed::Bytes(bytes) => {
            // Two of the free places.
            let _ = send.try_send(Input::Bytes(bytes));
            let _ = send.try_send(Input::End);
        }
    }
    let (mut out, mut err) = (tokio::io::stdout(), tokio::io::stderr());
    let work = engine.exec(command, receive, Output { out: &mut out, err: &mut err });
    let done = tokio::select! {
        done = work => Some(done),
        // Ends when a second signal says that waiting is over.
        () = pass_on(send, command.terminal) => None,
    };
    drop(raw);
    match done {
        Some(Err(error)) if error.is_unread() => Ok(0),
        Some(done) => Ok(done?),
        None => Ok(130),
    }
}

/// Ends this process with a program's own exit code.
pub(super) fn leave(code: i64) -> Result<Exit, Failure> {
    match code {
        0 => Ok(Exit::Done),
        1 => Ok(Exit::Failed),
        2 => Ok(Exit::Usage),
        3 => Ok(Exit::Parked),
        78 => Ok(Exit::Refused),
        other => std::process::exit(i32::try_from(other).unwrap_or(1)),
    }
}

/// Reads our standard input on a thread of its own: a read of a terminal cannot be broken off, and the program must
/// be able to end all the same.
fn read_ours(send: mpsc::Sender<Input>) {
    let read = move || {
        let mut part = [0; PART];
        let mut input = std::io::stdin();
        loop {
            let item = match input.read(&mut part) {
                Ok(count) if count > 0 => Input::Bytes(part.iter().take(count).copied().collect()),
                _ => Input::End,
            };
            let last = matches!(item, Input::End);
            if send.blocking_send(item).is_err() || last {
                return;
            }
        }
    };
    // Without the thread the program inside has no input, and says so.
    let _ = std::thread::Builder::new().name("input".into()).spawn(read);
}

/// Passes signals and sizes on. Ends when a second signal to end comes.
#[cfg(unix)]
async fn pass_on(send: mpsc::Sender<Input>, terminal: bool) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds =
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::window_change()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup), Ok(mut size)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    if terminal {
        send_size(&send).await;
    }
    let mut asked = false;
    loop {
        let name = tokio::select! {
            _ = interrupt.recv() => "INT",
            _ = terminate.recv() => "TERM",
            _ = hangup.recv() => "HUP",
            _ = size.recv() => {
                if terminal {
                    send_size(&send).await;
                }
                continue;
            }
        };
        if std::mem::replace(&mut asked, true) {
            let _ = send.send(Input::Signal("KILL")).await;
            return;
        }
        let _ = send.send(Input::Signal(name)).await;
    }
}

/// Passes Ctrl-C and sizes on. Ends when a second Ctrl-C comes.
#[cfg(not(unix))]
async fn pass_on(send: mpsc::Sender<Input>, terminal: bool) {
    let mut asked = false;
    let mut last = None;
    loop {
        tokio::select! {
            done = tokio::signal::ctrl_c() => {
                if done.is_err() || std::mem::replace(&mut asked, true) {
                    return;
                }
                let _ = send.send(Input::Signal("INT")).await;
            }
            // Windows tells nobody that a window has another size.
            () = tokio::time::sleep(std::time::Duration::from_millis(500)) => {
                let now = crossterm::terminal::size().ok();
                if terminal && now != last {
                    last = now;
                    send_size(&send).await;
                }
            }
        }
    }
}

async fn send_size(send: &mpsc::Sender<Input>) {
    if let Ok((columns, rows)) = crossterm::terminal::size() {
        let _ = send.send(Input::Size(columns, rows)).await;
    }
}

/// The terminal hands every key on, until this is dropped.
struct Raw;

impl Raw {
    fn enter() -> Self {
        // A terminal that cannot is still one; keys then come line by line.
        let _ = crossterm::terminal::enable_raw_mode();
        Self
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = crossterm::terminal::disable_raw_mode();
    }
}
