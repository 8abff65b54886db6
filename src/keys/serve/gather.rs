//! Pieces of a stream that came together go out together. HTTP/1.1 hands an answer on piece by piece and would write each
//! by itself; before it writes, this lets the task that reads from the provider add what it already has. It waits for
//! nothing: when that task has no more, what is there is written in the same turn of the runtime.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// With so many bytes nothing more is let in: a write of this size is cheap for its length.
const ENOUGH: usize = 16 * 1024;

/// Whether the present answer comes in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces(Arc<AtomicBool>);

impl Pieces {
    /// Tells it of an answer before the first piece of it is written.
    pub(super) fn expect(&self, pieces: bool) {
        self.0.store(pieces, Ordering::Relaxed);
    }
}

/// The writing side of a connection.
#[derive(Debug)]
pub(super) struct Gather<S> {
    stream: S,
    pieces: Pieces,
    /// How much there was to write when it was put off.
    put_off: usize,
}

impl<S> Gather<S> {
    /// `pieces` is told of each answer.
    pub(super) fn new(stream: S, pieces: Pieces) -> Self {
        Self { stream, pieces, put_off: 0 }
    }
    /// Puts a write off while more has come since the last time.
    fn more(&mut self, ready: usize, context: &Context<'_>) -> bool {
        if ready > self.put_off && ready < ENOUGH && self.pieces.0.load(Ordering::Relaxed) {
            self.put_off = ready;
            context.waker().wake_by_ref();
            return true;
        }
        self.put_off = 0;
        false
    }
}

impl<S: Read + Unpin> Read for Gather<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Gather<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        if self.more(bytes.len(), context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if self.more(slices.iter().map(|slice| slice.len()).sum(), context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
