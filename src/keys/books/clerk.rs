//! The one thread that writes the books. Calls that have ended wait here for at most a moment, so that many of them
//! share one transaction; until that is done they stand in the journal.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::database::{self, Booked, BooksError};
use super::journal::{Cell, Journal};

/// How long ended calls are gathered.
const GATHERED: Duration = Duration::from_millis(20);
/// The most calls of one transaction.
const TOGETHER: usize = 1024;
/// The pause after a failed transaction (a full disk).
const PAUSE: Duration = Duration::from_secs(1);

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

/// What was brought to the thread and not yet taken by it.
#[derive(Default)]
struct Tray {
    ended: Vec<(Box<Booked>, Cell)>,
    questions: Vec<Question>,
    /// Nothing comes any more.
    closed: bool,
    /// The thread is gone.
    left: bool,
}

impl Tray {
    fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.questions.is_empty()
    }
}

/// Where it is brought. The thread is woken for the first call of a batch and for a question, not for every call: waking
/// it costs more than a call does.
#[derive(Default)]
struct Inbox {
    tray: Mutex<Tray>,
    brought: Condvar,
}

impl Inbox {
    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the thread. Dropping it lets the thread write what it has, and ends it.
pub(super) struct Clerk {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Clerk {
    /// Starts the thread.
    pub(super) fn start(path: PathBuf, database: Connection, journal: Arc<Journal>) -> std::io::Result<Self> {
        let inbox = Arc::<Inbox>::default();
        let desk = Desk { database, journal, waiting: Vec::new(), inbox: inbox.clone() };
        let thread = std::thread::Builder::new().name("books".into()).spawn(move || desk.work())?;
        Ok(Self { inbox, thread: Some(thread), path })
    }

    /// Books a call that has ended. It stands in the journal already, so nobody waits for this.
    pub(super) fn book(&self, call: Booked, cell: Cell) {
        let mut tray = self.inbox.tray();
        if tray.left {
            tracing::error!("the books are closed, and a call stays in the journal until the next start");
            return;
        }
        let wake = tray.is_empty() || tray.ended.len() + 1 == TOGETHER;
        tray.ended.push((Box::new(call), cell));
        drop(tray);
        if wake {
            self.inbox.brought.notify_one();
        }
    }

    /// Asks the database, after everything that was booked before.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BooksError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let question: Question = Box::new(move |database| {
            // Whoever asked may be gone.
            let _ = answer.send(question(database));
        });
        self.bring(question);
        let cause = match answered.await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(cause)) => cause,
            Err(_) => return Err(BooksError::Closed),
        };
        Err(BooksError::Database { path: self.path.clone(), cause })
    }

    /// A question that nobody takes is dropped, which answers it.
    fn bring(&self, question: Question) {
        let mut tray = self.inbox.tray();
        if !tray.left {
            tray.questions.push(question);
        }
        drop(tray);
        self.inbox.brought.notify_one();
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.inbox.tray().closed = true;
        self.inbox.brought.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed; what it had not written stands in the journal.
            let _ = thread.join();
        }
    }
}

struct Desk {
    database: Connection,
    journal: Arc<Journal>,
    waiting: Vec<(Box<Booked>, Cell)>,
    inbox: Arc<Inbox>,
}

impl Desk {
    fn work(mut self) {
        loop {
            let (questions, closed) = self.take();
            self.write();
            for question in questions {
                question(&mut self.database);
            }
            if closed {
                return;
            }
        }
    }

    /// Takes what has been brought, once there is something, and some time for more.
    fn take(&mut self) -> (Vec<Question>, bool) {
        let Inbox { tray, brought } = &*self.inbox;
        let mut tray = tray.lock().unwrap_or_else(PoisonError::into_inner);
        // What could not be written is tried again after a pause.
        let mut gathered = PAUSE;
        if self.waiting.is_empty() {
            gathered = GATHERED;
            let nothing = |tray: &mut Tray| tray.is_empty() && !tray.closed;
            tray = brought.wait_while(tray, nothing).unwrap_or_else(PoisonError::into_inner);
        }
        let more = |tray: &mut Tray| tray.questions.is_empty() && !tray.closed && tray.ended.len() < TOGETHER;
        let (mut tray, _) =
            brought.wait_timeout_while(tray, gathered, more).unwrap_or_else(PoisonError::into_inner);
        self.waiting.append(&mut tray.ended);
        (std::mem::take(&mut tray.questions), tray.closed)
    }

    /// Writes what waits; what cannot be written goes on waiting, here and in the journal.
    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if let Err(error) = database::book(&mut self.database, self.waiting.iter().map(|(call, _)| &**call)) {
            tracing::error!(%error, calls = self.waiting.len(), "the books could not be written; it is tried again");
            return;
        }
        if let Err(error) = self.journal.free(self.waiting.drain(..).map(|(_, cell)| cell)) {
            // They are read again at the next start, and found in the books.
            tracing::error!(%error, "places in the journal could not be freed");
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Also after a panic: whoever asked is not kept waiting.
        let mut tray = self.inbox.tray();
        tray.left = true;
        tray.questions.clear();
    }
}
