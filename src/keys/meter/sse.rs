//! Server-sent events, taken apart as they come (WHATWG HTML, 9.2.6): any cut, LF, CR or CRLF, several `data:` lines,
//! comments, a byte order mark. It gathers no event: what stands in `data` is handed on piece by piece.

use memchr::memchr2;

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const FIELD: &[u8] = b"data";

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The next bytes of the event's data.
    Data(&'a [u8]),
    /// The event is whole. It had data.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of the stream, so many bytes of a mark in.
    Mark(usize),
    /// In the name of a field, so many letters of `data` in.
    Name(usize),
    /// Behind the colon: one blank is not part of the value.
    Colon,
    /// In the value of `data`.
    Data,
    /// In a comment, or in a field that does not matter.
    Other,
}

/// The decoder.
#[derive(Debug)]
pub(super) struct Events {
    state: State,
    /// Whether the last byte was a CR, so that an LF belongs to it.
    returned: bool,
    /// Whether the event has data already.
    data: bool,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { state: State::Mark(0), returned: false, data: false }
    }

    /// Takes the next piece of the stream.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut impl FnMut(Piece<'_>)) {
        while let Some((byte, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.returned) && *byte == b'\n' {
                bytes = rest;
                continue;
            }
            if matches!(byte, b'\n' | b'\r') {
                self.returned = *byte == b'\r';
                self.line(out);
                bytes = rest;
                continue;
            }
            match self.state {
                State::Data | State::Other => {
                    let end = memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
                    let (line, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
                    if self.state == State::Data {
                        out(Piece::Data(line));
                    }
                    bytes = rest;
                }
                State::Colon => {
                    self.state = State::Data;
                    if *byte == b' ' {
                        bytes = rest;
                    }
                }
                State::Mark(at) if MARK.get(at) == Some(byte) => {
                    self.state = if at + 1 == MARK.len() { State::Name(0) } else { State::Mark(at + 1) };
                    bytes = rest;
                }
                // Half a mark is the beginning of some other name.
                State::Mark(at) => self.state = if at == 0 { State::Name(0) } else { State::Other },
                State::Name(at) => {
                    self.state = if FIELD.get(at) == Some(byte) {
                        State::Name(at + 1)
                    } else if at == FIELD.len() && *byte == b':' {
                        self.begin_data(out);
                        State::Colon
                    } else {
                        State::Other
                    };
                    bytes = rest;
                }
            }
        }
    }

    /// A line has ended.
    fn line(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        match self.state {
            // An empty line ends the event; without data it is none.
            State::Name(0) | State::Mark(0) if std::mem::take(&mut self.data) => out(Piece::End),
            // A field without a colon has an empty value.
            State::Name(at) if at == FIELD.len() => self.begin_data(out),
            _ => {}
        }
        self.state = State::Name(0);
    }

    fn begin_data(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        if std::mem::replace(&mut self.data, true) {
            out(Piece::Data(b"\n"));
        }
    }
}
