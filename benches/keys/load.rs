//! A closed loop: so many connections, each with one request at a time, the next as soon as the last is answered. Bytes
//! are read as they come and hardly looked at, so that the measuring side is not what is measured.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What is asked, and of whom.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub path: String,
    /// Headers of this target, each with its line end.
    pub headers: String,
}

impl Target {
    /// A request as an agent sends it, with this text in its one message.
    pub fn request(&self, stream: bool, text: &str) -> Vec<u8> {
        let body = format!(
            r#"{{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":{stream},"messages":[{{"role":"user","content":"A small question. {text}"}}]}}"#
        );
        format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\n{}content-type: application/json\r\naccept: application/json\r\nanthropic-version: \
             2023-06-01\r\nanthropic-beta: fine-grained-tool-streaming-2025-05-14\r\nuser-agent: bench/1.0\r\n\
             x-stainless-lang: js\r\nx-stainless-retry-count: 0\r\ncontent-length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            self.headers,
            body.len()
        )
        .into()
    }
}

/// What one loop saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// From the first byte sent to the last received, in nanoseconds.
    pub whole: Vec<u64>,
    /// To the first byte of the body.
    pub first: Vec<u64>,
    /// How long the loop took.
    pub took: Duration,
    /// All answers, also those that are not counted.
    pub asked: usize,
    /// Answers that were not 200, and connections that broke.
    pub failed: usize,
    /// What the first of them was.
    pub failure: Option<String>,
}

impl Seen {
    pub fn per_second(&self) -> f64 {
        self.whole.len() as f64 / self.took.as_secs_f64()
    }
}

/// A share of sorted numbers, in milliseconds.
pub fn share(sorted: &[u64], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(f64::NAN, |nanoseconds| *nanoseconds as f64 / 1e6)
}

/// Asks for a while, after a part of it that is not counted.
pub async fn run(target: &Target, request: &[u8], connections: usize, time: Duration) -> Seen {
    let warm = Instant::now() + time / 5;
    let end = warm + time;
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (target, request) = (target.clone(), request.to_vec());
        tasks.spawn(async move { connection(&target, &request, warm, end).await });
    }
    let mut all = Seen { took: time, ..Seen::default() };
    while let Some(seen) = tasks.join_next().await {
        let seen = seen.unwrap();
        all.whole.extend(seen.whole);
        all.first.extend(seen.first);
        all.asked += seen.asked;
        all.failed += seen.failed;
        all.failure = all.failure.or(seen.failure);
    }
    all.whole.sort_unstable();
    all.first.sort_unstable();
    all
}

async fn connection(target: &Target, request: &[u8], warm: Instant, end: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut line = None;
    while Instant::now() < end {
        let one = async {
            let mut open = match line.take() {
                Some(open) => open,
                None => Line::open(target.address).await?,
            };
            let began = Instant::now();
            let first = open.ask(request).await?;
            let first = first.duration_since(began);
            let again = open.finish().await?;
            Ok::<_, std::io::Error>((began, first, began.elapsed(), again.then_some(open)))
        };
        match one.await {
            Ok((began, first, whole, open)) => {
                line = open;
                seen.asked += 1;
                if began >= warm && began + whole < end {
                    seen.first.push(u64::try_from(first.as_nanos()).unwrap());
                    seen.whole.push(u64::try_from(whole.as_nanos()).unwrap());
                }
            }
            Err(error) => {
                seen.failed += 1;
                seen.failure.get_or_insert(error.to_string());
                // A target that is down would be asked in a circle.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    seen
}

/// How much of an answer is still to come.
enum Rest {
    Bytes(usize),
    Chunks(Chunks),
    /// Until the other side closes.
    Close,
}

/// One connection.
pub struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    rest: Rest,
    again: bool,
}

impl Line {
    pub async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 16 * 1024], filled: 0, rest: Rest::Bytes(0), again: true })
    }

    /// Sends a request and reads to the first byte of the answer's body; says when that came.
    pub async fn ask(&mut self, request: &[u8]) -> std::io::Result<Instant> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        let head = loop {
            self.more().await?;
            let bytes = self.buffer.get(..self.filled).unwrap_or_default();
            match memchr::memmem::find(bytes, b"\r\n\r\n") {
                Some(head) => break head + 4,
                None if self.filled == self.buffer.len() => return Err(fault("a head that is too long")),
                None => {}
            }
        };
        let text = self.buffer.get(..head).unwrap_or_default();
        if !text.starts_with(b"HTTP/1.1 200") {
            let seen = self.buffer.get(..self.filled).unwrap_or_default();
            return Err(fault(&String::from_utf8_lossy(seen)));
        }
        self.again = !header(text, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.rest = match header(text, "content-length").and_then(|value| value.parse().ok()) {
            Some(length) => Rest::Bytes(length),
            None if header(text, "transfer-encoding").is_some() => Rest::Chunks(Chunks::default()),
            None => Rest::Close,
        };
        if self.filled == head {
            self.filled = 0;
            self.more().await?;
            let first = Instant::now();
            self.take(0)?;
            return Ok(first);
        }
        let first = Instant::now();
        self.take(head)?;
        Ok(first)
    }

    /// Reads to the end, and says whether another request may follow.
    pub async fn finish(&mut self) -> std::io::Result<bool> {
        loop {
            match &self.rest {
                Rest::Bytes(0) => return Ok(self.again),
                Rest::Chunks(chunks) if chunks.over => return Ok(self.again),
                Rest::Bytes(_) | Rest::Chunks(_) => self.more().await?,
                Rest::Close => {
                    self.filled = 0;
                    if self.stream.read(&mut self.buffer).await? == 0 {
                        return Ok(false);
                    }
                }
            }
            self.take(0)?;
        }
    }

    async fn more(&mut self) -> std::io::Result<()> {
        let read = self.stream.read(self.buffer.get_mut(self.filled..).unwrap_or_default()).await?;
        if read == 0 {
            return Err(fault("the connection ended in the middle"));
        }
        self.filled += read;
        Ok(())
    }

    /// Counts what has come of the body, and forgets it.
    fn take(&mut self, from: usize) -> std::io::Result<()> {
        let body = self.buffer.get(from..self.filled).unwrap_or_default();
        match &mut self.rest {
            Rest::Bytes(left) => {
                *left = left.checked_sub(body.len()).ok_or_else(|| fault("too much came"))?;
            }
            Rest::Chunks(chunks) => chunks.push(body)?,
            Rest::Close => {}
        }
        self.filled = 0;
        Ok(())
    }
}

/// Where in a chunked body the reader is.
#[derive(Default)]
struct Chunks {
    /// Bytes of the present chunk that are still to come, with the line end behind it.
    left: usize,
    line: Vec<u8>,
    /// The last chunk has come, and what follows are trailers.
    last: bool,
    over: bool,
}

impl Chunks {
    fn push(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                bytes = bytes.get(taken..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.line.extend_from_slice(bytes.get(..end).unwrap_or_default());
            bytes = bytes.get(end + 1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            let line = line.trim_ascii();
            if self.last {
                self.over |= line.is_empty();
                continue;
            }
            let size = std::str::from_utf8(line).ok().and_then(|line| usize::from_str_radix(line, 16).ok());
            match size.ok_or_else(|| fault("a chunk without a size"))? {
                0 => self.last = true,
                size => self.left = size + 2,
            }
        }
        Ok(())
    }
}

/// The value of a header in the bytes of a head.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        let (found, value) = line.split_at(colon);
        found.eq_ignore_ascii_case(name.as_bytes()).then_some(())?;
        std::str::from_utf8(value.get(1..)?.trim_ascii()).ok()
    })
}

fn fault(text: &str) -> std::io::Error {
    std::io::Error::other(text.to_owned())
}
