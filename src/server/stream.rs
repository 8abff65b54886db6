//! One event stream: reads a page of the store when the client takes bytes, then waits for more. A client that
//! does not read costs a socket and one page; nothing of the database is held while it waits.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::app::App;
use super::gate::Caller;
use super::wire::StreamEnd;
use crate::events::{Event, RunStatus, StoredEvent};
use crate::ids::RunId;

/// A quiet stream carries a comment this often, so that nothing between us takes it for dead.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How soon a client that lost the stream comes back, in milliseconds.
const COME_BACK: &str = "retry: 1000\n\n";
/// What arrives within this time after a first event goes out with it.
const GATHER: Duration = Duration::from_millis(20);
/// The smallest and the largest page, in events. An event has at most some 64 KiB of text.
const PAGE: std::ops::RangeInclusive<u32> = 8..=128;
/// A page below this many bytes makes the next one larger, a page above makes it the smallest.
const PAGE_BYTES: usize = 64 * 1024;

/// A client that follows.
pub struct Follow {
    app: App,
    run: Option<RunId>,
    after: i64,
    caller: Caller,
    watch: watch::Receiver<i64>,
    page: u32,
    step: Step,
    end: Option<RunStatus>,
    every: Duration,
    beat: Instant,
    _place: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Greet,
    /// Events until the store has no more; it is not known yet whether the run had ended before.
    CatchUp,
    Live,
    Over,
}

impl Follow {
    /// Follows one run, or all, from the event after `after`.
    pub fn new(
        app: App,
        run: Option<RunId>,
        after: i64,
        caller: Caller,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let watch = app.store().watch_events();
        Self {
            app,
            run,
            after,
            caller,
            watch,
            page: *PAGE.start(),
            step: Step::Greet,
            end: None,
            every: KEEP_ALIVE,
            beat: Instant::now() + KEEP_ALIVE,
            _place: place,
        }
    }

    /// The same with another time between two comments.
    #[must_use]
    pub fn with_beat(mut self, every: Duration) -> Self {
        self.every = every;
        self.beat = Instant::now() + every;
        self
    }

    /// The bytes of the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        stream::unfold(self, |mut follow| async move {
            let bytes = follow.next().await?;
            Some((Ok(bytes), follow))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.step {
                Step::Greet => {
                    self.step = Step::CatchUp;
                    return Some(Bytes::from_static(COME_BACK.as_bytes()));
                }
                Step::Over => return None,
                Step::CatchUp | Step::Live => {}
            }
            // Marked as seen before the page is read: what comes in between wakes us again.
            self.watch.borrow_and_update();
            let events = match self.app.store().events_after(self.run.as_ref(), self.after, self.page).await {
                Ok(events) => events,
                Err(error) => {
                    tracing::warn!("an event stream ends: {error}");
                    return None;
                }
            };
            if !events.is_empty() {
                return Some(self.frames(&events));
            }
            if let Some(status) = self.end {
                self.step = Step::Over;
                return Some(end_frame(status));
            }
            if self.step == Step::CatchUp {
                self.step = Step::Live;
                if self.had_ended().await? {
                    // What was stored up to that end is read once more before the stream closes.
                    continue;
                }
            }
            if let Some(comment) = self.wait().await? {
                return Some(comment);
            }
        }
    }

    /// Whether the run had ended before this stream began, for a client that asks for what comes after its end.
    async fn had_ended(&mut self) -> Option<bool> {
        let Some(run) = &self.run else { return Some(false) };
        match self.app.store().run(run).await {
            Ok(Some(run)) => {
                self.end = run.status.is_end().then_some(run.status);
                Some(self.end.is_some())
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!("an event stream ends: {error}");
                None
            }
        }
    }

    /// Waits for the next event, or for the time of a comment. `None` ends the stream.
    async fn wait(&mut self) -> Option<Option<Bytes>> {
        let closing = self.app.closing().clone();
        tokio::select! {
            () = closing.cancelled() => None,
            () = tokio::time::sleep_until(self.beat) => {
                self.beat = Instant::now() + self.every;
                if let Caller::Session(key) = self.caller
                    && !self.app.sessions().touch(key, std::time::Instant::now())
                {
                    return None;
                }
                Some(Some(Bytes::from_static(b": still here\n\n")))
            }
            changed = self.watch.changed() => {
                changed.ok()?;
                tokio::time::sleep(GATHER).await;
                Some(None)
            }
        }
    }

    fn frames(&mut self, events: &[StoredEvent]) -> Bytes {
        let mut text = String::new();
        for stored in events {
            self.after = stored.seq;
            // The last status counts: a parked run that was taken up again has not ended.
            if let (Some(_), Event::Status { status, .. }) = (&self.run, &stored.event) {
                self.end = status.is_end().then_some(*status);
            }
            // JSON of these types has no line break in it, so it is one `data` line.
            let data = serde_json::to_string(stored).unwrap_or_default();
            text.push_str(&format!("id: {}\ndata: {data}\n\n", stored.seq));
        }
        self.page = if text.len() > PAGE_BYTES { *PAGE.start() } else { (self.page * 2).min(*PAGE.end()) };
        Bytes::from(text)
    }
}

fn end_frame(status: RunStatus) -> Bytes {
    let data = serde_json::to_string(&StreamEnd { status }).unwrap_or_default();
    Bytes::from(format!("event: end\ndata: {data}\n\n"))
}
