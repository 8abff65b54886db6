//! The client of all upstreams: it connects, keeps connections for reuse, and follows nothing.

use std::time::Duration;

use hyper::Request;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::{Handle, Id};

use super::transfer::Upload;

type Connector = HttpsConnector<HttpConnector>;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);
/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_secs(60);
/// How often a shared connection is asked whether it still lives, so that a dead one is not waited for.
const PING: Duration = Duration::from_secs(30);

/// The client of all upstreams. Each runtime that asks has connections of its own: one that another runtime drives
/// would cost two wake-ups of threads for each request.
pub(super) struct UpstreamClient {
    first: Client<Connector, Upload>,
    others: Vec<(Id, Client<Connector, Upload>)>,
}

impl UpstreamClient {
    /// The client, with the system's own root certificates (a company's too), for one runtime and these others.
    ///
    /// # Errors
    /// When the system has none.
    pub(super) fn new(others: impl Iterator<Item = Id>) -> std::io::Result<Self> {
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
        let others = others.map(|runtime| (runtime, client(connector.clone()))).collect();
        Ok(Self { first: client(connector), others })
    }

    /// Sends a request. It is not tried again, except on another connection when nothing of it was sent on the first.
    pub(super) fn request(&self, request: Request<Upload>) -> ResponseFuture {
        let asking = Handle::current().id();
        let own = self.others.iter().find(|(runtime, _)| *runtime == asking).map(|(_, client)| client);
        own.unwrap_or(&self.first).request(request)
    }
}

fn client(connector: Connector) -> Client<Connector, Upload> {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .http1_max_buf_size(64 * 1024)
        .http2_keep_alive_interval(Some(PING))
        .http2_keep_alive_timeout(PING)
        .build(connector)
}
