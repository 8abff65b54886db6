//! Reads server-sent events from bytes as they come, whatever their chunking (HTML standard, section 9.2.6).
//! A line and an event have a size limit.

/// How many bytes a line or an event's data may have.
pub const FRAME_BYTES: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name; empty for an ordinary one.
    pub name: String,
    /// The last id that the stream gave, with this event or before.
    pub id: Option<String>,
    /// Its data, lines joined by a line break.
    pub data: String,
}

/// The stream has a line or an event over the limit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an event is larger than {} MiB", FRAME_BYTES / (1024 * 1024))]
pub struct FrameTooLarge;

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    after_return: bool,
    name: String,
    data: Vec<String>,
    bytes: usize,
    id: Option<String>,
}

impl Reader {
    /// A reader at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives the events that they complete.
    ///
    /// # Errors
    /// When a line or an event is over [`FRAME_BYTES`].
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, FrameTooLarge> {
        let mut frames = Vec::new();
        let mut rest = bytes;
        while let Some((&first, after_first)) = rest.split_first() {
            // The second half of `\r\n`, which may come with the next bytes.
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                rest = after_first;
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, more) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + part.len() > FRAME_BYTES {
                return Err(FrameTooLarge);
            }
            self.line.extend_from_slice(part);
            let Some((&closing, after)) = more.split_first() else { break };
            self.after_return = closing == b'\r';
            frames.extend(self.end_of_line()?);
            rest = after;
        }
        Ok(frames)
    }

    fn end_of_line(&mut self) -> Result<Option<Frame>, FrameTooLarge> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            self.bytes = 0;
            let frame = Frame { name, id: self.id.clone(), data: data.join("\n") };
            return Ok((!data.is_empty()).then_some(frame));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "data" => {
                self.bytes += value.len() + 1;
                if self.bytes > FRAME_BYTES {
                    return Err(FrameTooLarge);
                }
                self.data.push(value.to_owned());
            }
            // Comments have an empty field; `retry` is the caller's own affair.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = "retry: 1000\n\n: hello\n\nid: 1\ndata: {\"a\":1}\n\nid: 2\r\ndata: é→\r\ndata: two\r\n\r\n\
                          event: end\ndata: {}\n\nid: 3\ndata: cut";

    fn whole() -> Vec<Frame> {
        let frame = |name: &str, id: &str, data: &str| Frame {
            name: name.into(),
            id: Some(id.into()),
            data: data.into(),
        };
        vec![frame("", "1", "{\"a\":1}"), frame("", "2", "é→\ntwo"), frame("end", "2", "{}")]
    }

    proptest! {
        #[test]
        fn a_stream_reads_the_same_however_it_is_cut(sizes in prop::collection::vec(1usize..9, 1..80)) {
            let mut reader = Reader::new();
            let mut frames = Vec::new();
            let mut rest = STREAM.as_bytes();
            let mut sizes = sizes.into_iter().cycle();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                frames.extend(reader.take(now).unwrap());
                rest = later;
            }
            prop_assert_eq!(frames, whole());
        }
    }

    #[test]
    fn a_line_without_an_end_is_cut_off() {
        let mut reader = Reader::new();
        let chunk = vec![b'x'; 1024 * 1024];
        let result = (0..9).try_for_each(|_| reader.take(&chunk).map(drop));
        assert_eq!(result, Err(FrameTooLarge));
    }
}
