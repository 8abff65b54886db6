//! Takes connections and answers them until core ends: so many at once, each with a time for its request's head.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many connections there are at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 512;
/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// How large the head of a request may be, in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// How long answers that are under way may take once core ends.
const GRACE: Duration = Duration::from_secs(3);
/// How long to wait after the kernel refused a connection (no descriptors left).
const PAUSE: Duration = Duration::from_millis(100);

/// Answers on all of them until `closing` is cancelled and what was under way has ended, or its time is over.
pub async fn answer(listeners: Vec<TcpListener>, router: Router, closing: CancellationToken) {
    let tasks = TaskTracker::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let all = listeners.into_iter().map(|listener| take(listener, &router, &closing, &tasks, &places));
    futures_util::future::join_all(all).await;
    tasks.close();
    tasks.wait().await;
}

async fn take(
    listener: TcpListener,
    router: &Router,
    closing: &CancellationToken,
    tasks: &TaskTracker,
    places: &Arc<Semaphore>,
) {
    loop {
        // The connection first, then a place for it: a listener where nobody comes must hold none.
        let accepted = async {
            let socket = listener.accept().await;
            (socket, Arc::clone(places).acquire_owned().await)
        };
        let (socket, place) = tokio::select! {
            () = closing.cancelled() => return,
            accepted = accepted => accepted,
        };
        match (socket, place) {
            (Ok((socket, _)), Ok(place)) => {
                let (router, closing) = (router.clone(), closing.clone());
                tasks.spawn(async move {
                    connection(socket, router, closing).await;
                    drop(place);
                });
            }
            (_, Err(_)) => return,
            (Err(error), _) => {
                tracing::warn!("a connection could not be taken: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(socket: TcpStream, router: Router, closing: CancellationToken) {
    let _ = socket.set_nodelay(true);
    limit_silence(&socket);
    let service = TowerToHyperService::new(router);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(socket), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // A client that goes away, or writes no HTTP, is no event for the log.
        _ = serving.as_mut() => {}
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(GRACE, serving).await;
        }
    }
}

/// A client that takes no byte for five minutes is gone: it must not keep its place for ever.
#[cfg(target_os = "linux")]
fn limit_silence(socket: &TcpStream) {
    const SILENCE_MILLISECONDS: u32 = 5 * 60 * 1000;
    let _ = rustix::net::sockopt::set_tcp_user_timeout(socket, SILENCE_MILLISECONDS);
}

#[cfg(not(target_os = "linux"))]
fn limit_silence(_: &TcpStream) {}
