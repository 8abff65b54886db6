//! The time since the last byte.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Is over once nothing has come for too long. The timer is made when the first pause comes: most bodies have none.
pub(super) struct Silence {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer is moved only when it fires: moving it for each frame would cost more than the frame.
    last: Option<Instant>,
}

impl Silence {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, last: None }
    }
    /// Something came.
    pub(super) fn broken(&mut self) {
        self.last = None;
    }
    /// Nothing is there.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        let over = *self.last.get_or_insert(now) + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(over)));
        loop {
            ready!(timer.as_mut().poll(context));
            if over <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(over);
        }
    }
}
