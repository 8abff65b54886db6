//! The answer on its way to the caller: what it says of its use is read as it goes by.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::blot::Blot;
use super::silence::Silence;
use super::upload::Slip;
use crate::keys::answer::{self, CutError, Reply};
use crate::keys::books::{Call, How};
use crate::keys::meter::{End, Watch};
use crate::keys::pass::Live;
use crate::keys::slot::Api;

/// Where an answer comes from.
pub(in crate::keys) enum From {
    /// A provider.
    Wire(Incoming),
    /// This service's own scripted model.
    Here(Reply),
}

impl From {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutError>>> {
        match self {
            Self::Wire(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(CutError::Broken)))
            }
            Self::Here(body) => Pin::new(body).poll_frame(context),
        }
    }
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Wire(body) => body.is_end_stream(),
            Self::Here(body) => body.is_end_stream(),
        }
    }
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Wire(body) => body.size_hint(),
            Self::Here(body) => body.size_hint(),
        }
    }
}

/// What is noted of an answer once it has gone through, or was cut.
pub(in crate::keys) struct Note {
    /// The pass.
    pub(in crate::keys) live: Arc<Live>,
    /// The status that the caller got.
    pub(in crate::keys) status: u16,
    /// When the request came.
    pub(in crate::keys) began: std::time::Instant,
}

/// Counts what a call uses.
struct Meter {
    watch: Watch,
    /// `None` until the call is admitted: a provider may begin to answer before it has got the whole request.
    call: Option<Call>,
    slip: Arc<Slip>,
}

impl Meter {
    /// Reads on. What comes last is not noted, because the end is, at once.
    fn see(&mut self, data: &[u8], last: bool) {
        if self.call.is_none() {
            self.call = self.slip.call();
        }
        if self.watch.see(data)
            && !last
            && let Some(call) = &mut self.call
        {
            call.saw(self.watch.counted());
        }
    }
    /// Books the call, and says what the provider said of a failure.
    fn end(mut self, whole: bool, live: &Live) {
        let end = self.watch.end();
        let how = match &end {
            End::Whole if whole => How::Whole,
            End::Whole | End::Cut => How::Cut,
            End::Failed(failure) => {
                tracing::warn!(pass = %live.id, run = %live.bond.run, kind = failure.kind, said = failure.message, "the provider failed in the middle of its answer");
                How::Failed
            }
        };
        if let Some(call) = self.call.take().or_else(|| self.slip.call()) {
            call.end(self.watch.counted(), how);
        }
    }
}

/// The body of an answer.
pub(in crate::keys) struct Download {
    from: Option<From>,
    seen: u64,
    events: bool,
    silence: Silence,
    blot: Option<Blot>,
    meter: Option<Meter>,
    outcome: &'static str,
    note: Note,
}

impl Download {
    /// `events` says that it is an event stream; `needle` is what must not stand in it.
    pub(in crate::keys) fn new(
        from: From,
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
            blot: needle.and_then(Blot::new),
            meter: None,
            outcome: "cut by the caller or with its pass",
            note,
        }
    }

    /// Counts what it says of its use.
    pub(in crate::keys) fn metered(mut self, api: Api, slip: Arc<Slip>) -> Self {
        let call = slip.call();
        let first = call.as_ref().map(|call| call.counted().clone()).unwrap_or_default();
        self.meter = Some(Meter { watch: Watch::new(api, self.events, first), call, slip });
        self
    }

    /// What is held back, at the end.
    fn rest(&mut self) -> Bytes {
        self.blot.take().map(|mut blot| blot.finish()).unwrap_or_default()
    }

    /// It is over.
    fn end(&mut self, outcome: &'static str) {
        self.from = None;
        self.outcome = outcome;
        if let Some(meter) = self.meter.take() {
            meter.end(outcome == WHOLE, &self.note.live);
        }
    }
}

const WHOLE: &str = "whole";

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
            match from.poll(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(mut data) = frame.into_data() else { continue };
                    this.silence.broken();
                    this.seen = this.seen.saturating_add(data.len() as u64);
                    let last = from.is_end_stream();
                    if let Some(meter) = &mut this.meter {
                        meter.see(&data, last);
                    }
                    if let Some(blot) = &mut this.blot {
                        data = blot.push(data);
                    }
                    // What is over is booked before the caller has it: whoever looks then finds it.
                    if last {
                        this.end(WHOLE);
                        let rest = this.rest();
                        data = if rest.is_empty() { data } else { [data, rest].concat().into() };
                    }
                    if data.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Ready(Some(Err(error))) => {
                    this.end("broken off by the provider");
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => {
                    this.end(WHOLE);
                    let rest = Some(this.rest()).filter(|rest| !rest.is_empty());
                    return Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))));
                }
                Poll::Pending => {
                    ready!(this.silence.poll(context));
                    this.end("silent for too long");
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
        // What is held back by the blot has still to come.
        self.from.is_none() && self.blot.is_none()
    }
    fn size_hint(&self) -> SizeHint {
        // A blot changes no length, but it delays: only the upstream's first word about the length counts.
        self.from.as_ref().filter(|_| self.seen == 0).map(From::size_hint).unwrap_or_default()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // A caller that has read as many bytes as were announced does not ask for the end.
        if self.from.as_ref().is_some_and(From::is_end_stream) {
            self.end(WHOLE);
        } else if let Some(meter) = self.meter.take() {
            meter.end(false, &self.note.live);
        }
        let Note { live, status, began } = &self.note;
        tracing::info!(
            pass = %live.id,
            run = %live.bond.run,
            status,
            bytes = self.seen,
            milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome = self.outcome,
            "an answer has gone through"
        );
    }
}
