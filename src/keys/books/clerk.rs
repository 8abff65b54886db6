//! The one thread that writes the books. Calls that have ended wait here for at most a moment, so that many of them
//! share one transaction; until that is done they stand in the journal.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

enum Order {
    Book(Box<Booked>, Cell),
    Ask(Question),
}

/// The way to the thread. Dropping it lets the thread write what it has, and ends it.
pub(super) struct Clerk {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Clerk {
    /// Starts the thread.
    pub(super) fn start(path: PathBuf, database: Connection, journal: Arc<Journal>) -> std::io::Result<Self> {
        let (orders, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("books".into())
            .spawn(move || Desk { database, journal, waiting: Vec::new() }.work(&inbox))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), path })
    }

    /// Books a call that has ended. It stands in the journal already, so nobody waits for this.
    pub(super) fn book(&self, call: Booked, cell: Cell) {
        self.send(Order::Book(Box::new(call), cell));
    }

    /// Asks the database, after everything that was booked before.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BooksError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.send(Order::Ask(Box::new(move |database| {
            // Whoever asked may be gone.
            let _ = answer.send(question(database));
        })));
        let cause = match answered.await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(cause)) => cause,
            Err(_) => return Err(BooksError::Closed),
        };
        Err(BooksError::Database { path: self.path.clone(), cause })
    }

    fn send(&self, order: Order) {
        if self.orders.as_ref().is_none_or(|orders| orders.send(order).is_err()) {
            tracing::error!("the books are closed, and a call stays in the journal until the next start");
        }
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.orders = None;
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
}

impl Desk {
    fn work(mut self, inbox: &Receiver<Order>) {
        let mut open = true;
        while open {
            let mut question = None;
            // What could not be written is tried again after a pause.
            let mut gathered = PAUSE;
            if self.waiting.is_empty() {
                gathered = GATHERED;
                match inbox.recv() {
                    Ok(order) => question = self.take(order),
                    Err(_) => open = false,
                }
            }
            let until = Instant::now() + gathered;
            while open && question.is_none() && self.waiting.len() < TOGETHER {
                match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(order) => question = self.take(order),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => open = false,
                }
            }
            self.write();
            if let Some(question) = question {
                question(&mut self.database);
            }
        }
    }

    /// A call waits for the others; a question is given back.
    fn take(&mut self, order: Order) -> Option<Question> {
        match order {
            Order::Book(call, cell) => {
                self.waiting.push((call, cell));
                None
            }
            Order::Ask(question) => Some(question),
        }
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
        for (_, cell) in self.waiting.drain(..) {
            if let Err(error) = self.journal.free(&cell) {
                // It is read again at the next start, and found in the books.
                tracing::error!(%error, "a place in the journal could not be freed");
            }
        }
    }
}
