//! Connections: accepted up to a number, limited in time and size of their headers, and cut when the pass that
//! opened what flows on them dies.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Shared;
use super::gather::{Gather, Pieces};
use super::workers::Workers;
use crate::keys::answer::{self, Reply};
use crate::keys::pass::Live;
use crate::keys::{control, proxy};

/// The most headers of one request.
const HEADERS: usize = 128;
/// The most bytes of a request's head, and of what is read ahead of a slow reader.
const BUFFER: usize = 64 * 1024;
/// The pause after a failed accept (no more file descriptors), so that it is not tried in a circle.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn accept(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    workers: &Workers,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut workers = workers.in_turn();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match places.clone().try_acquire_owned() {
                Ok(place) => {
                    let _ = stream.set_nodelay(true);
                    let from = peer.ip().to_canonical();
                    // It is waited for where it is served, and no longer here.
                    let (Ok(stream), Some(worker)) = (stream.into_std(), workers.next()) else { continue };
                    let served = serve(stream, from, shared.clone(), stop.clone(), place);
                    drop(tasks.spawn_on(served, worker));
                }
                Err(_) => tracing::warn!("a connection was refused: there are too many"),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(
    stream: std::net::TcpStream,
    from: IpAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    // Which pass opened the last request on this connection. The connection, with everything that flows on
    // it, ends when that pass does, also while the caller does not read.
    let (opened, mut opening) = watch::channel(None::<Arc<Live>>);
    let limits = shared.limits.clone();
    let pieces = Pieces::default();
    let stream = Gather::new(TokioIo::new(stream), pieces.clone());
    let service = service_fn(|request| {
        let (shared, opened, pieces) = (shared.clone(), opened.clone(), pieces.clone());
        // Boxed: the place for it lasts as long as the connection, also while an answer flows for an hour.
        Box::pin(async move {
            let answer = answer(&shared, request, from, &opened).await;
            pieces.expect(answer.body().size_hint().exact().is_none());
            Ok::<_, Infallible>(answer)
        })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(stream, service);
    tokio::pin!(connection);
    let mut ending = None;
    loop {
        let pass = opening.borrow_and_update().clone();
        let dead = async {
            match pass {
                Some(pass) => pass.ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let over = async {
            match ending {
                Some(until) => tokio::time::sleep_until(until).await,
                None => stop.cancelled().await,
            }
        };
        tokio::select! {
            // An error here is a caller that went away or spoke no HTTP: its business.
            _ = connection.as_mut() => return,
            () = dead => return,
            Ok(()) = opening.changed() => {}
            () = over => {
                if ending.is_some() {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                ending = Some(tokio::time::Instant::now() + limits.drain);
            }
        }
    }
}

async fn answer(
    shared: &Shared,
    request: Request<Incoming>,
    from: IpAddr,
    opened: &watch::Sender<Option<Arc<Live>>>,
) -> Response<Reply> {
    let path = request.uri().path();
    if path == "/health" && request.method() == Method::GET {
        return answer::json(StatusCode::OK, r#"{"status":"ok"}"#);
    }
    if path.starts_with("/control/") {
        return control::answer(shared, request, from).await;
    }
    proxy::answer(shared, request, from, |live| {
        opened.send_if_modified(|opener| {
            let other = opener.as_ref().is_none_or(|opener| !Arc::ptr_eq(opener, live));
            if other {
                *opener = Some(live.clone());
            }
            other
        });
    })
    .await
}
