//! Reads lines of any bytes with a size limit. Holds at most one line in memory.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line that is kept whole, in bytes; the rest of a longer one is dropped and counted.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

/// One line of an agent's output, without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// At most [`MAX_LINE`] bytes, as they came: any bytes, not only UTF-8.
    pub bytes: Vec<u8>,
    /// How many bytes at its end were dropped; 0 for a whole line.
    pub dropped: u64,
}

impl Line {
    /// The text; bytes that are not UTF-8 become replacement characters.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// A reader of lines. [`Lines::next`] may be dropped half-way and called again: nothing is lost.
pub(super) struct Lines<R> {
    reader: R,
    limit: usize,
    chunk: Box<[u8]>,
    start: usize,
    end: usize,
    line: Vec<u8>,
    dropped: u64,
    over: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            chunk: vec![0; 64 * 1024].into(),
            start: 0,
            end: 0,
            line: Vec::new(),
            dropped: 0,
            over: false,
        }
    }

    /// The next line; a last one without a newline counts. `None` at the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let ready = self.chunk.get(self.start..self.end).unwrap_or_default();
            let (part, whole) = match memchr(ready) {
                Some(at) => (ready.get(..at).unwrap_or_default(), true),
                None => (ready, false),
            };
            let room = self.limit.saturating_sub(self.line.len());
            let kept = part.get(..part.len().min(room)).unwrap_or_default();
            self.line.extend_from_slice(kept);
            self.dropped += (part.len() - kept.len()) as u64;
            self.start += part.len() + usize::from(whole);
            if whole {
                return Ok(Some(self.take()));
            }
            if self.over {
                let rest = !self.line.is_empty() || self.dropped > 0;
                return Ok(rest.then(|| self.take()));
            }
            // Everything that was read stands in `line` now: a drop at this await loses nothing.
            (self.start, self.end) = (0, 0);
            let read = self.reader.read(&mut self.chunk).await?;
            self.end = read;
            self.over = read == 0;
        }
    }

    /// What stands there unfinished, when no more is waited for.
    pub(super) fn rest(&mut self) -> Option<Line> {
        self.over = true;
        (!self.line.is_empty() || self.dropped > 0).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        Line { bytes: std::mem::take(&mut self.line), dropped: std::mem::take(&mut self.dropped) }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}
