//! Workers: threads that serve connections, each with a runtime of its own. A connection stays with the worker that
//! got it, so that nothing of a request waits for another thread to wake up.

use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Id};
use tokio_util::sync::CancellationToken;

/// All of them: the runtime that the service was started on, and threads. When this is dropped the threads are told
/// to end, and are not waited for.
pub(super) struct Workers {
    all: Vec<Handle>,
    ending: CancellationToken,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// The calling runtime, and so many threads that there are `count`.
    ///
    /// # Errors
    /// When a thread or its runtime cannot be had.
    pub(super) fn start(count: usize) -> std::io::Result<Self> {
        let mut workers =
            Self { all: vec![Handle::current()], ending: CancellationToken::new(), threads: Vec::new() };
        for number in 1..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            workers.all.push(runtime.handle().clone());
            let ending = workers.ending.clone();
            let thread = std::thread::Builder::new().name(format!("worker-{number}"));
            workers.threads.push(thread.spawn(move || runtime.block_on(ending.cancelled()))?);
        }
        Ok(workers)
    }

    /// The names of all but the first, for what each has one of.
    pub(super) fn others(&self) -> impl Iterator<Item = Id> {
        self.all.iter().skip(1).map(Handle::id)
    }

    /// One after the other, for ever.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = &Handle> {
        self.all.iter().cycle()
    }

    /// Ends the threads, with whatever is still open on them, and waits for them.
    pub(super) async fn end(mut self) {
        self.ending.cancel();
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(|| {
            threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count()
        });
        if joined.await.unwrap_or(1) > 0 {
            tracing::warn!("a worker of the key service broke");
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}
