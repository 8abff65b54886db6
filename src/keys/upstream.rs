//! The client of all upstreams: it connects, keeps connections for reuse, and follows nothing.

use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::transfer::Upload;

/// The client of all upstreams; it keeps connections for reuse.
pub(super) type UpstreamClient = Client<HttpsConnector<HttpConnector>, Upload>;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);
/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_secs(60);
/// How often a shared connection is asked whether it still lives, so that a dead one is not waited for.
const PING: Duration = Duration::from_secs(30);

/// The client, with the system's own root certificates (a company's too).
///
/// # Errors
/// When the system has none.
pub(super) fn client() -> std::io::Result<UpstreamClient> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    let connector = HttpsConnectorBuilder::new()
        .with_native_roots()?
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .http1_max_buf_size(64 * 1024)
        .http2_keep_alive_interval(Some(PING))
        .http2_keep_alive_timeout(PING)
        .build(connector))
}
