//! The one provider behind everything that is measured: as little work as a server can do, so that what is seen is the
//! proxy. What it answers stands in the request's body, because a proxy may drop headers.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A stream that stops for a while after its first event.
pub const PAUSE: &str = "pause-after-the-first-event";
/// A stream that stays open after its first event.
pub const HOLD: &str = "hold-after-the-first-event";
/// How long the pause is.
pub const PAUSED: Duration = Duration::from_millis(50);
/// Pieces of text in a stream.
const DELTAS: usize = 8;

const JSON: &str = concat!(
    r#"{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","#,
    r#""text":"A short answer of some forty words, as an agent gets it when it asks a small question: long enough to be "#,
    r#"real, short enough that what is measured is the way there and back, and not the copying."}],"stop_reason":"end_turn","#,
    r#""stop_sequence":null,"usage":{"input_tokens":42,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":40}}"#
);

/// What is sent, made once.
struct Answers {
    json: Vec<u8>,
    head: Vec<u8>,
    first: Vec<u8>,
    /// What follows, as many events in one write as a provider's network would bring together.
    rest: Vec<Vec<u8>>,
}

/// Events in one write.
const TOGETHER: usize = 4;

impl Answers {
    fn new() -> Self {
        let common = "request-id: req_bench\r\nanthropic-ratelimit-requests-remaining: 999\r\n";
        let length = JSON.len();
        let json = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{common}content-length: {length}\r\n\r\n{JSON}"
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n{common}transfer-encoding: chunked\r\n\r\n"
        );
        let mut events = vec![event(
            "message_start",
            r#""message":{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":42,"output_tokens":1}}"#,
        )];
        let start = r#""index":0,"content_block":{"type":"text","text":""}"#;
        let delta = r#""index":0,"delta":{"type":"text_delta","text":"five words or so here "}"#;
        let end = r#""delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":40}"#;
        events.push(event("content_block_start", start));
        events.extend((0..DELTAS).map(|_| event("content_block_delta", delta)));
        events.push(event("content_block_stop", r#""index":0"#));
        events.push(event("message_delta", end));
        events.push(event("message_stop", r#""end":true"#));
        if let Some(last) = events.last_mut() {
            last.extend_from_slice(b"0\r\n\r\n");
        }
        let first = events.remove(0);
        let rest = events.chunks(TOGETHER).map(<[Vec<u8>]>::concat).collect();
        Self { json: json.into(), head: head.into(), first, rest }
    }
}

/// One event as a chunk of its own.
fn event(kind: &str, rest: &str) -> Vec<u8> {
    let text = format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into()
}

/// Serves until the process ends; its port is printed first.
pub async fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let answers: &'static Answers = Box::leak(Box::new(Answers::new()));
    let mut open = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        open.spawn(async move {
            // A caller that went away.
            let _ = talk(stream, answers).await;
        });
        while open.try_join_next().is_some() {}
    }
}

async fn talk(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut filled = 0;
    loop {
        let Some((head, length)) = whole(buffer.get(..filled).unwrap_or_default()) else {
            let read = stream.read(buffer.get_mut(filled..).unwrap_or_default()).await?;
            if read == 0 {
                return Ok(());
            }
            filled += read;
            continue;
        };
        let body = buffer.get(head..head + length).unwrap_or_default();
        let has = |word: &str| memchr::memmem::find(body, word.as_bytes()).is_some();
        if !(has("\"stream\":true") || has("\"stream\": true")) {
            stream.write_all(&answers.json).await?;
        } else {
            let (pause, hold) = (has(PAUSE), has(HOLD));
            stream.write_all(&[answers.head.as_slice(), &answers.first].concat()).await?;
            if hold {
                // Until the other side has gone.
                while stream.read(&mut [0]).await? > 0 {}
                return Ok(());
            }
            if pause {
                tokio::time::sleep(PAUSED).await;
            }
            for some in &answers.rest {
                stream.write_all(some).await?;
            }
        }
        // One request at a time: nothing follows before it is answered.
        filled = 0;
    }
}

/// Where the body begins and how long it is, once all of it is there.
fn whole(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
    let length = crate::load::header(bytes.get(..head)?, "content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    (bytes.len() >= head + length).then_some((head, length))
}
