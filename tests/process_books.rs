//! The books of a key service that is killed: what stands in them afterwards is what the provider sent.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the test starts the built program, as a person would")]

#[path = "support/keys.rs"]
mod support;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Method, StatusCode};
use tokio::sync::mpsc;
use worca::keys::client::KeysClient;
use worca::keys::credential::Kind;
use worca::keys::wire::{UsageQuery, UsageRow};
use worca::secret::Secret;

use support::{API_KEY, CONTROL, Place, Script, Upstream, call, client, request, soon, wanted};

const STREAMS: u64 = 50;

/// A key service as a process, which is killed when it is dropped.
struct Process {
    child: Child,
    url: String,
    client: KeysClient,
}

impl Process {
    fn start(place: &Place, upstream: &Upstream) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_worca"))
            .args(["keys", "serve", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("HOME", place.folder.path())
            .env("WORCA_KEYS_HOME", place.data())
            .env("WORCA_VAULT_KEY_FILE", place.vault_key())
            .env("WORCA_CONTROL_FILE", place.control())
            .env("WORCA_ANTHROPIC_ORIGIN", upstream.origin.as_str())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut told = Vec::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it does not listen: {told:?}")).unwrap();
            let Some((_, rest)) = line.split_once("address=") else {
                told.push(line);
                continue;
            };
            break rest.split_whitespace().next().unwrap().to_owned();
        };
        // Whoever does not read what it tells would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{address}");
        let client = KeysClient::new(&url, &Secret::new(CONTROL.into())).unwrap();
        Self { child, url, client }
    }
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn begun(number: u64) -> String {
    let usage = format!(
        r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":1}}"#,
        100 + number,
        number * 3,
        number * 7
    );
    format!(
        "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"model\":\"claude-opus-5\",\"usage\":{usage}}}}}\n\n"
    )
}

fn delta(output: u64) -> String {
    format!(
        "event: message_delta\ndata: {{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":{output}}}}}\n\n"
    )
}

const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// What all calls used, by the books.
async fn booked(keys: &KeysClient) -> UsageRow {
    let usage = keys.usage(&UsageQuery::default()).await.unwrap();
    assert_eq!(usage.rows.len(), 1, "{usage:?}");
    usage.rows.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_killed_in_the_middle_of_50_streams_has_booked_what_the_provider_sent() {
    let feeds = Arc::new(Mutex::new(HashMap::<u64, mpsc::Receiver<Bytes>>::new()));
    let waiting = feeds.clone();
    let upstream = Upstream::start(move |seen| {
        let asked: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        let number = asked["number"].as_u64().unwrap();
        Script::events(waiting.lock().unwrap().remove(&number).unwrap())
    })
    .await;
    let place = Place::new();
    place.put(Kind::ApiKey, &upstream.origin, API_KEY);
    let keys = Process::start(&place, &upstream);
    let caller = client();
    let minted = keys.client.mint(&wanted(None)).await.unwrap();
    let mut open = Vec::new();
    let mut wanted_row = UsageRow::default();
    for number in 0..STREAMS {
        let (feed, receiver) = mpsc::channel(1);
        feeds.lock().unwrap().insert(number, receiver);
        let body =
            format!(r#"{{"model":"claude-opus-5","max_tokens":9000,"stream":true,"number":{number}}}"#);
        let url = format!("{}/anthropic/v1/messages", keys.url);
        let asked = request(Method::POST, &url, Some(&minted.pass), &body);
        let mut answer = soon("the answer begins", caller.request(asked)).await.unwrap().into_body();
        let mut sent = vec![begun(number)];
        // Some have said little yet, some much, and some are over.
        sent.extend((1..=number % 9).map(|step| delta(step * 20 + number)));
        if number % 5 == 0 {
            sent.push(STOP.to_owned());
        }
        for piece in &sent {
            feed.send(Bytes::from(piece.clone())).await.unwrap();
            let mut got = 0;
            while got < piece.len() {
                got +=
                    soon("a piece arrives", answer.frame()).await.unwrap().unwrap().data_ref().unwrap().len();
            }
        }
        wanted_row.calls += 1;
        wanted_row.input += 100 + number;
        wanted_row.cache_write += number * 3;
        wanted_row.cache_read += number * 7;
        wanted_row.output += if number % 9 == 0 { 1 } else { number % 9 * 20 + number };
        if number % 5 == 0 {
            drop(feed);
            assert!(soon("the stream ends", answer.frame()).await.is_none());
        } else {
            open.push((feed, answer));
            wanted_row.failed += 1;
        }
    }
    keys.kill();
    for _ in 0..2 {
        // However often it is started and killed again: each call stands there once.
        let keys = Process::start(&place, &upstream);
        let mut row = booked(&keys.client).await;
        assert!(row.cost_micros > 0 && row.unpriced == 0, "{row:?}");
        (row.cost_micros, row.estimated) = (0, 0);
        assert_eq!(row, wanted_row);
        let dead =
            request(Method::POST, &format!("{}/anthropic/v1/messages", keys.url), Some(&minted.pass), "{}");
        assert_eq!(call(dead).await.status, StatusCode::FORBIDDEN);
        keys.kill();
    }
}
