//! Where log lines go: to standard error, each by itself; those of the key service by a thread that writes what came in
//! the last moment at once: a write for each request would hold up the request, and all others that log meanwhile.

use std::io::{IsTerminal as _, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How long a line may wait for others.
const MOMENT: Duration = Duration::from_millis(50);
/// With so many bytes waiting, whoever logs writes them itself, and waits when nobody reads.
const MOST: usize = 256 * 1024;

/// Starts the log. `WORCA_LOG` chooses lines in the words of tracing's `EnvFilter`; without it a serving role says what
/// it does and an ordinary command only what is wrong. What is returned writes the last lines when it is dropped.
pub fn start(verbose: bool, gathered: bool) -> Option<Gathered> {
    let chosen = std::env::var("WORCA_LOG").ok().filter(|words| !words.is_empty());
    let words = chosen.unwrap_or_else(|| if verbose { "worca=debug" } else { "worca=info" }.to_owned());
    let filter = EnvFilter::try_new(&words).unwrap_or_else(|_| EnvFilter::new("worca=info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Else a line that cannot be written is reported on the same closed pipe, with a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false);
    match gathered.then(Gathered::start).flatten() {
        Some(writer) => {
            lines.with_writer(Lines(writer.shared.clone())).init();
            Some(writer)
        }
        None => {
            lines.with_writer(std::io::stderr).init();
            None
        }
    }
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    ending: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Held while lines are written, so that they stay in order.
    writing: Mutex<Vec<u8>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Writes what waits.
    fn write(&self) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *writing, &mut self.waiting().bytes);
        let _ = std::io::stderr().write_all(&writing);
        writing.clear();
    }
    /// Writes what waits, each moment, until told to end.
    fn write_on(&self) {
        let mut waiting = self.waiting();
        while !waiting.ending {
            if waiting.bytes.is_empty() {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            } else {
                let more = self.changed.wait_timeout_while(waiting, MOMENT, |waiting| !waiting.ending);
                drop(more);
                self.write();
                waiting = self.waiting();
            }
        }
    }
}

/// The thread that writes, until this is dropped.
pub struct Gathered {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Gathered {
    fn start() -> Option<Self> {
        let shared = Arc::<Shared>::default();
        let writer = shared.clone();
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || writer.write_on()).ok()?;
        Some(Self { shared, thread: Some(thread) })
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.shared.waiting().ending = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.write();
    }
}

/// What a line is given to.
struct Lines(Arc<Shared>);

struct Line<'a>(&'a Shared);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;
    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut waiting = self.0.waiting();
        let first = waiting.bytes.is_empty();
        waiting.bytes.extend_from_slice(line);
        let many = waiting.bytes.len() > MOST;
        // After the end nobody else would write it.
        let late = waiting.ending;
        drop(waiting);
        if many || late {
            self.0.write();
        } else if first {
            self.0.changed.notify_one();
        }
        Ok(line.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_in_order_and_written_at_the_end() {
        let shared = Shared::default();
        for number in 0..3 {
            writeln!(Line(&shared), "line {number}").unwrap();
        }
        assert_eq!(shared.waiting().bytes, b"line 0\nline 1\nline 2\n");
        shared.write();
        assert_eq!(shared.waiting().bytes, b"");
    }
}
