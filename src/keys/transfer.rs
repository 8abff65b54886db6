//! Bodies on their way through, frame by frame: counted, limited, watched for silence; never gathered.

mod scrub;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::answer::{self, CutError};
use scrub::Scrub;

/// How an upload ended, for whoever has to answer when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// More than the limit came.
    TooLarge,
    /// The caller fell silent.
    Idle,
    /// The caller broke off.
    Broken,
}

/// What an [`Upload`] leaves behind when it fails: why, and the rest of the caller's body.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<Option<(Fault, Incoming)>>);

impl Rest {
    /// Takes it, once.
    pub(super) fn take(&self) -> Option<(Fault, Incoming)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The caller's body on its way to the upstream.
pub(super) struct Upload {
    from: Option<Incoming>,
    seen: u64,
    limit: u64,
    silence: Silence,
    rest: Arc<Rest>,
}

impl Upload {
    pub(super) fn new(from: Incoming, limit: u64, idle: Duration) -> (Self, Arc<Rest>) {
        let rest = Arc::<Rest>::default();
        (Self { from: Some(from), seen: 0, limit, silence: Silence::new(idle), rest: rest.clone() }, rest)
    }
    fn fail(&mut self, fault: Fault, error: CutError) -> Poll<Option<Result<Frame<Bytes>, CutError>>> {
        if let Some(from) = self.from.take() {
            *self.rest.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((fault, from));
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = CutError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutError>>> {
        let this = &mut *self;
        let Some(from) = this.from.as_mut() else { return Poll::Ready(None) };
        match Pin::new(from).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers could carry what headers may not.
                let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
                this.silence.broken();
                this.seen = this.seen.saturating_add(data.len() as u64);
                if this.seen > this.limit {
                    return this.fail(Fault::TooLarge, CutError::TooLarge);
                }
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Poll::Ready(Some(Err(error))) => this.fail(Fault::Broken, CutError::Broken(error)),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                ready!(this.silence.poll(context));
                this.fail(Fault::Idle, CutError::Idle)
            }
        }
    }
    fn is_end_stream(&self) -> bool {
        self.from.as_ref().is_none_or(Body::is_end_stream)
    }
    fn size_hint(&self) -> SizeHint {
        self.from.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

/// What is noted of an answer once it has gone through, or was cut.
#[derive(Debug)]
pub(super) struct Note {
    /// The pass's public name.
    pub(super) pass: String,
    /// The run's.
    pub(super) run: String,
    /// The status that the caller got.
    pub(super) status: u16,
    /// When the request came.
    pub(super) began: std::time::Instant,
}

/// The upstream's body on its way to the caller.
pub(super) struct Download {
    from: Option<Incoming>,
    seen: u64,
    events: bool,
    silence: Silence,
    scrub: Option<Scrub>,
    outcome: &'static str,
    note: Note,
}

impl Download {
    /// `events` says that it is an event stream; `needle` is what must not stand in it (errors only).
    pub(super) fn new(
        from: Incoming,
        idle: Duration,
        events: bool,
        needle: Option<&[u8]>,
        note: Note,
    ) -> Self {
        Self {
            from: Some(from),
            seen: 0,
            events,
            silence: Silence::new(idle),
            scrub: needle.and_then(Scrub::new),
            outcome: "cut by the caller or with its pass",
            note,
        }
    }
    fn finish(&mut self) -> Poll<Option<Result<Frame<Bytes>, CutError>>> {
        self.from = None;
        self.outcome = "whole";
        let rest = self.scrub.take().map(Scrub::finish).filter(|rest| !rest.is_empty());
        Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))))
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = CutError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutError>>> {
        let this = &mut *self;
        loop {
            let Some(from) = this.from.as_mut() else { return Poll::Ready(None) };
            match Pin::new(from).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(mut data) = frame.into_data() else { return this.finish() };
                    this.silence.broken();
                    this.seen = this.seen.saturating_add(data.len() as u64);
                    if let Some(scrub) = this.scrub.as_mut() {
                        data = scrub.push(&data);
                        if data.is_empty() {
                            continue;
                        }
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Ready(Some(Err(error))) => {
                    this.from = None;
                    this.outcome = "broken off by the provider";
                    return Poll::Ready(Some(Err(CutError::Broken(error))));
                }
                Poll::Ready(None) => return this.finish(),
                Poll::Pending => {
                    ready!(this.silence.poll(context));
                    this.from = None;
                    this.outcome = "silent for too long";
                    if !this.events {
                        return Poll::Ready(Some(Err(CutError::Idle)));
                    }
                    let text = answer::error_text(
                        "api_error",
                        "worca: the provider fell silent in the middle of its answer",
                    );
                    return Poll::Ready(Some(Ok(Frame::data(
                        format!("event: error\ndata: {text}\n\n").into(),
                    ))));
                }
            }
        }
    }
    fn is_end_stream(&self) -> bool {
        // The scrub may still hold the last bytes back.
        self.scrub.is_none() && self.from.as_ref().is_none_or(Body::is_end_stream)
    }
    fn size_hint(&self) -> SizeHint {
        // A scrub changes no length, but it delays: only the upstream's first word about the length counts.
        self.from.as_ref().filter(|_| self.seen == 0).map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let whole = self.from.as_ref().is_some_and(Body::is_end_stream);
        tracing::info!(
            pass = self.note.pass,
            run = self.note.run,
            status = self.note.status,
            bytes = self.seen,
            milliseconds = u64::try_from(self.note.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome = if whole { "whole" } else { self.outcome },
            "an answer has gone through"
        );
    }
}

/// The time since the last byte.
struct Silence {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    /// The timer is moved only when it fires: moving it for each frame would cost more than the frame.
    last: Instant,
}

impl Silence {
    fn new(limit: Duration) -> Self {
        Self { limit, timer: Box::pin(tokio::time::sleep(limit)), last: Instant::now() }
    }
    fn broken(&mut self) {
        self.last = Instant::now();
    }
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let over = self.last + self.limit;
            if over <= Instant::now() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(over);
        }
    }
}
