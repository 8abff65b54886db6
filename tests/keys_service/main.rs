//! The key service against a scripted provider that notes what it receives. Both are real servers on ports of
//! their own; nothing in between is replaced.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod control;
mod errors;
mod money;
mod passes;
mod process;
mod proxy;
mod rehearsal;
mod slots;
#[path = "../support/keys.rs"]
mod support;

use std::time::Duration;

use support::{Script, Seen, Stage, soon};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use worca::keys::serve::Limits;

const DEAD: &str = r#"{"type":"error","error":{"type":"permission_error","message":"worca: this pass is not valid here (key service)"}}"#;

fn ok(_: &Seen) -> Script {
    Script::json(200, r#"{"type":"message"}"#)
}

fn short_leases() -> Limits {
    Limits { lease: Duration::from_secs(2), ..Limits::default() }
}

/// What a raw client gets back for exactly these bytes, until the service closes.
async fn raw(stage: &Stage, text: &str) -> String {
    let mut stream = TcpStream::connect(stage.keys.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the service answers and closes", stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}
