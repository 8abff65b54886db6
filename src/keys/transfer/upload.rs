//! The caller's body on its way to the upstream. That of a call that costs is held back by its last piece until the
//! call is admitted: a provider that has not got the whole request does nothing that costs.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::silence::Silence;
use crate::keys::admission::{Admission, Admitting, Denied};
use crate::keys::answer::CutError;
use crate::keys::books::Call;
use crate::keys::meter::RequestScan;

/// How an upload ended, for whoever has to answer when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::keys) enum Fault {
    /// More than the limit came.
    TooLarge,
    /// The caller fell silent.
    Idle,
    /// The caller broke off.
    Broken,
}

/// What an upload leaves behind: the call that was admitted, or why it failed and the rest of the caller's body.
#[derive(Default)]
pub(in crate::keys) struct Slip(Mutex<Left>);

#[derive(Default)]
struct Left {
    call: Option<Call>,
    denied: Option<Denied>,
    fault: Option<(Fault, Incoming)>,
}

impl Slip {
    /// The admitted call, once it is there; whoever takes it books it.
    pub(in crate::keys) fn call(&self) -> Option<Call> {
        self.left(|left| left.call.take())
    }
    /// Why it was not admitted.
    pub(in crate::keys) fn denied(&self) -> Option<Denied> {
        self.left(|left| left.denied.take())
    }
    /// How the caller's body failed, and the rest of it.
    pub(in crate::keys) fn fault(&self) -> Option<(Fault, Incoming)> {
        self.left(|left| left.fault.take())
    }
    fn left<T>(&self, see: impl FnOnce(&mut Left) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A body for the upstream.
pub(in crate::keys) struct Upload(Kind);

enum Kind {
    /// It came in one piece, and was admitted before anything was sent.
    Whole(Option<Bytes>),
    Flow(Box<Flow>),
}

struct Flow {
    from: Option<Incoming>,
    /// The piece that goes next.
    held: Option<Bytes>,
    seen: u64,
    limit: u64,
    silence: Silence,
    slip: Arc<Slip>,
    gate: Gate,
}

enum Gate {
    /// All pieces go.
    Open,
    /// A piece goes when another one has come behind it.
    Closed(Box<RequestScan>, Option<Admission>),
    /// The whole request is here.
    Admitting(Admitting),
}

/// Why a request ends before anything was sent.
pub(in crate::keys) enum Stop {
    /// It is not admitted; this is the rest of the caller's body.
    Denied(Denied, Incoming),
    /// The caller's body failed; this is its rest.
    Fault(Fault, Incoming),
}

impl Upload {
    /// Reads the first piece. A body that is here as a whole with it is admitted at once.
    ///
    /// # Errors
    /// When it is not admitted, or the body failed.
    pub(in crate::keys) async fn begin(
        mut from: Incoming,
        (limit, idle): (u64, Duration),
        slip: &Arc<Slip>,
        admission: Option<Admission>,
    ) -> Result<Self, Stop> {
        let mut silence = Silence::new(idle);
        let first = std::future::poll_fn(|context| match Pin::new(&mut from).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => silence.poll(context).map(|()| Err(Fault::Idle)),
        });
        let first = match first.await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(None) => Bytes::new(),
            Ok(Some(Err(_))) => return Err(Stop::Fault(Fault::Broken, from)),
            Err(fault) => return Err(Stop::Fault(fault, from)),
        };
        if first.len() as u64 > limit {
            return Err(Stop::Fault(Fault::TooLarge, from));
        }
        let Some(admission) = admission else {
            if from.is_end_stream() {
                return Ok(Self(Kind::Whole(Some(first).filter(|body| !body.is_empty()))));
            }
            return Ok(Self::flow(from, first, (limit, silence), slip, Gate::Open));
        };
        let mut scan = RequestScan::new();
        scan.push(&first);
        if !from.is_end_stream() {
            if let Err(denied) = admission.look() {
                return Err(Stop::Denied(denied, from));
            }
            let gate = Gate::Closed(Box::new(scan), Some(admission));
            return Ok(Self::flow(from, first, (limit, silence), slip, gate));
        }
        match admission.decide(scan.asked(first.len() as u64)).await {
            Ok(call) => slip.left(|left| left.call = Some(call)),
            Err(denied) => return Err(Stop::Denied(denied, from)),
        }
        Ok(Self(Kind::Whole(Some(first))))
    }

    fn flow(
        from: Incoming,
        first: Bytes,
        (limit, silence): (u64, Silence),
        slip: &Arc<Slip>,
        gate: Gate,
    ) -> Self {
        let (seen, slip) = (first.len() as u64, slip.clone());
        let flow = Flow { from: Some(from), held: Some(first), seen, limit, silence, slip, gate };
        Self(Kind::Flow(Box::new(flow)))
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, CutError>>>;

impl Flow {
    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        loop {
            if let Gate::Admitting(admitting) = &mut self.gate {
                match ready!(admitting.as_mut().poll(context)) {
                    Ok(call) => self.slip.left(|left| left.call = Some(call)),
                    Err(denied) => {
                        self.slip.left(|left| left.denied = Some(denied));
                        return Poll::Ready(Some(Err(CutError::Denied)));
                    }
                }
                self.gate = Gate::Open;
            }
            if matches!(self.gate, Gate::Open)
                && let Some(data) = self.held.take().filter(|data| !data.is_empty())
            {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            let Some(from) = self.from.as_mut() else { return Poll::Ready(None) };
            match Pin::new(from).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers could carry what headers may not.
                    let Ok(data) = frame.into_data() else { continue };
                    self.silence.broken();
                    self.seen = self.seen.saturating_add(data.len() as u64);
                    if self.seen > self.limit {
                        return self.fail(Fault::TooLarge, CutError::TooLarge);
                    }
                    let Gate::Closed(scan, _) = &mut self.gate else {
                        self.held = Some(data);
                        continue;
                    };
                    scan.push(&data);
                    if let Some(before) = self.held.replace(data).filter(|before| !before.is_empty()) {
                        return Poll::Ready(Some(Ok(Frame::data(before))));
                    }
                }
                Poll::Ready(Some(Err(error))) => return self.fail(Fault::Broken, CutError::Broken(error)),
                Poll::Ready(None) => {
                    self.from = None;
                    if let Gate::Closed(scan, admission) = &mut self.gate
                        && let Some(admission) = admission.take()
                    {
                        self.gate = Gate::Admitting(admission.admit(scan.asked(self.seen)));
                    }
                }
                Poll::Pending => {
                    ready!(self.silence.poll(context));
                    return self.fail(Fault::Idle, CutError::Idle);
                }
            }
        }
    }

    fn fail(&mut self, fault: Fault, error: CutError) -> Polled {
        if let Some(from) = self.from.take() {
            self.slip.left(|left| left.fault = Some((fault, from)));
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = CutError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match &mut self.0 {
            Kind::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Kind::Flow(flow) => flow.poll(context),
        }
    }
    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_none(),
            Kind::Flow(flow) => {
                let open = matches!(flow.gate, Gate::Open) && flow.held.is_none();
                open && flow.from.as_ref().is_none_or(Body::is_end_stream)
            }
        }
    }
    fn size_hint(&self) -> SizeHint {
        let flow = match &self.0 {
            Kind::Whole(body) => {
                return SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64));
            }
            Kind::Flow(flow) => flow,
        };
        let rest = flow.from.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let held = flow.held.as_ref().map_or(0, |held| held.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(most) = rest.upper() {
            hint.set_upper(most.saturating_add(held));
        }
        hint.set_lower(rest.lower().saturating_add(held));
        hint
    }
}
