use std::time::Duration;

use futures_util::StreamExt as _;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::{PATIENCE, TestCore};
use crate::events::{Event, RunStatus};
use crate::http::sse::Reader;
use crate::ids::RunId;
use crate::server::app::STREAMS;
use crate::server::gate::Caller;
use crate::server::stream::Follow;

/// Reads a stream from `after`, at most `most` events of it, and cuts the connection then. Gives the numbers
/// and whether the end came.
async fn read(core: &TestCore, path: &str, after: i64, most: usize) -> (Vec<i64>, bool) {
    let mut socket = TcpStream::connect(core.address).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: {}\r\nlast-event-id: {after}\r\n\r\n",
        core.bearer()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut seen, mut chunk) = (Reader::new(), Vec::new(), vec![0; 7001]);
    let mut text = Vec::new();
    let reading = async {
        // The head first; an HTTP/1.0 answer has no chunks.
        loop {
            let count = socket.read(&mut chunk).await.unwrap();
            text.extend_from_slice(&chunk[..count]);
            if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
                text.drain(..end + 4);
                break;
            }
            assert!(count > 0, "{}", String::from_utf8_lossy(&text));
        }
        loop {
            for frame in reader.take(&text).unwrap() {
                if frame.name == "end" {
                    return true;
                }
                if seen.len() == most {
                    return false;
                }
                let stored: crate::events::StoredEvent = serde_json::from_str(&frame.data).unwrap();
                assert_eq!(frame.id, Some(stored.seq.to_string()));
                seen.push(stored.seq);
            }
            if seen.len() == most {
                return false;
            }
            let count = socket.read(&mut chunk).await.unwrap();
            if count == 0 {
                return false;
            }
            text = chunk[..count].to_vec();
        }
    };
    let ended = tokio::time::timeout(PATIENCE, reading).await;
    let ended = ended.unwrap_or_else(|_| panic!("the stream gave {} events and no end", seen.len()));
    (seen, ended)
}

async fn stored(core: &TestCore, run: &RunId) -> Vec<i64> {
    let events = core.store().events_after(Some(run), 0, 100_000).await.unwrap();
    events.into_iter().map(|event| event.seq).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn a_resumed_stream_has_no_gap_and_no_double_while_events_are_written(
        cuts in prop::collection::vec(1usize..60, 1..8),
        sizes in prop::collection::vec(0usize..20_000, 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let core = TestCore::start().await;
            let (run, other) = (core.run().await, core.run().await);
            let write = async {
                for number in 0..150usize {
                    let text = "x".repeat(sizes[number % sizes.len()]);
                    core.store().append_event(&run, Event::AgentText { text }).await.unwrap();
                    if number % 3 == 0 {
                        core.store().append_event(&other, Event::Note { text: "n".into() }).await.unwrap();
                    }
                }
                core.store().set_run_status(&run, RunStatus::Done, None).await.unwrap();
            };
            let follow = async {
                let path = format!("/api/runs/{run}/events");
                let (mut seen, mut cuts) = (Vec::new(), cuts.iter().cycle());
                loop {
                    let after = seen.last().copied().unwrap_or(0);
                    let (more, ended) = read(&core, &path, after, *cuts.next().unwrap()).await;
                    seen.extend(more);
                    if ended {
                        return seen;
                    }
                }
            };
            let ((), seen) = tokio::join!(write, follow);
            assert_eq!(seen, stored(&core, &run).await);
        });
    }
}

#[tokio::test]
async fn the_stream_of_an_ended_run_ends_at_once_wherever_it_is_resumed() {
    let core = TestCore::start().await;
    let run = core.run().await;
    core.store().append_event(&run, Event::Note { text: "n".into() }).await.unwrap();
    core.store().set_run_status(&run, RunStatus::Failed, Some("why".into())).await.unwrap();
    let last = core.store().append_event(&run, Event::Note { text: "after the end".into() }).await.unwrap();
    let path = format!("/api/runs/{run}/events");
    let all = stored(&core, &run).await;
    assert_eq!(read(&core, &path, 0, 1000).await, (all.clone(), true));
    assert_eq!(read(&core, &path, all[1], 1000).await, (all[2..].to_vec(), true));
    assert_eq!(read(&core, &path, last, 1000).await, (vec![], true));
}

#[tokio::test]
async fn the_stream_of_all_runs_shows_what_is_written_later() {
    let core = TestCore::start().await;
    let (first, second) = (core.run().await, core.run().await);
    let newest = *core.store().watch_events().borrow();
    let write = async {
        let first = core.store().append_event(&first, Event::Note { text: "a".into() }).await.unwrap();
        let second = core.store().append_event(&second, Event::Note { text: "b".into() }).await.unwrap();
        vec![first, second]
    };
    let (written, (seen, ended)) = tokio::join!(write, read(&core, "/api/events", newest, 2));
    assert_eq!((seen, ended), (written, false));
}

#[tokio::test]
async fn a_stream_beyond_the_limit_is_refused_and_a_closed_one_makes_room() {
    let core = TestCore::start().await;
    let mut places: Vec<_> = (0..STREAMS).map(|_| core.app.stream_place().unwrap()).collect();
    let bearer = core.bearer();
    let token = [("authorization", bearer.as_str())];
    let refused = core.get("/api/events", &token).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "streams-full"));
    assert!(refused.header("retry-after").is_some());
    places.pop();
    assert_eq!(core.get("/api/events", &token).await.status, 200);
    // That client is gone; core notices by itself and the place is free again.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while core.app.open_streams() >= STREAMS {
        assert!(tokio::time::Instant::now() < deadline, "{} streams are open", core.app.open_streams());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn c091_a_client_that_does_not_read_costs_one_page_and_no_transaction() {
    let core = TestCore::start().await;
    let run = core.run().await;
    let mut socket = TcpStream::connect(core.address).await.unwrap();
    let head = format!(
        "GET /api/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\r\n",
        core.bearer()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let text = "x".repeat(60_000);
    for _ in 0..600 {
        core.store().append_event(&run, Event::AgentText { text: text.clone() }).await.unwrap();
    }
    let log = core.folder.path().join("worca.db-wal");
    let bytes = std::fs::metadata(log).map_or(0, |file| file.len());
    assert!(bytes < 20 * 1024 * 1024, "the write-ahead log has {bytes} bytes");
    // The one beside it is served as always.
    core.store().set_run_status(&run, RunStatus::Done, None).await.unwrap();
    let near_the_end = *core.store().watch_events().borrow() - 5;
    let (seen, ended) = read(&core, &format!("/api/runs/{run}/events"), near_the_end, 100_000).await;
    assert_eq!((seen.len(), ended), (5, true));
    drop(socket);
}

#[tokio::test]
async fn a_quiet_stream_carries_comments_until_its_session_has_ended() {
    let core = TestCore::start().await;
    let link = core.app.sessions().make_link(std::time::Instant::now());
    let early = std::time::Instant::now();
    let session = core.app.sessions().sign_in(link.expose(), early).unwrap();
    let key = core.app.sessions().find(session.expose(), early).unwrap();
    let place = || core.app.stream_place().unwrap();
    let follow =
        |caller| Follow::new(core.app.clone(), None, 0, caller, place()).with_beat(Duration::from_millis(5));
    let mut stream = Box::pin(follow(Caller::Session(key)).into_stream());
    stream.next().await.unwrap().unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), ": still here\n\n");
    // The session ends: nobody used it for longer than it lasts.
    let late = early + crate::server::sessions::SESSION_IDLE * 2;
    assert!(!core.app.sessions().touch(key, late));
    let ended = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the stream ends");
    let mut stream = Box::pin(follow(Caller::Token).into_stream());
    stream.next().await.unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(stream.next().await.unwrap().unwrap(), ": still here\n\n");
    }
}

#[tokio::test]
async fn streams_end_when_core_ends() {
    let core = TestCore::start().await;
    let run = core.run().await;
    let path = format!("/api/runs/{run}/events");
    let end = async {
        while core.app.open_streams() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        core.app.closing().cancel();
    };
    let ((_, ended), ()) = tokio::join!(read(&core, &path, 0, 1000), end);
    assert!(!ended, "the run has not ended, so the stream must not say so");
    core.tasks.close();
    tokio::time::timeout(PATIENCE, core.tasks.wait()).await.expect("core ends");
}

#[tokio::test]
async fn a_stream_of_a_run_that_was_taken_up_again_does_not_end_where_it_waited() {
    let core = TestCore::start().await;
    let run = core.run().await;
    let path = format!("/api/runs/{run}/events");
    core.store().set_run_status(&run, RunStatus::Parked, Some("it waits".into())).await.unwrap();
    let (seen, ended) = read(&core, &path, 0, 100).await;
    assert!(ended && seen.len() == 2, "{seen:?}");
    assert!(core.store().resume_run(&run, None).await.unwrap());
    // At work again: the same stream gives what came after, and goes on.
    let (seen, ended) = read(&core, &path, 0, 3).await;
    assert!(!ended && seen.len() == 3, "{seen:?}");
    core.store().set_run_status(&run, RunStatus::Done, None).await.unwrap();
    let (seen, ended) = read(&core, &path, 0, 100).await;
    assert!(ended && seen.len() == 4, "{seen:?}");
}
