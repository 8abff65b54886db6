//! What every request can reach: the runs, the sessions, the names that core answers to.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::CoreToken;
use super::hosts::Hosts;
use super::sessions::Sessions;
use crate::runs::Runs;
use crate::store::Store;

/// How many event streams are open at once. A stream costs a task, a socket and at most one page of events.
pub const STREAMS: usize = 128;

/// The state of the API. Clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    runs: Runs,
    token: CoreToken,
    hosts: Hosts,
    sessions: Sessions,
    public_url: String,
    cookie: String,
    streams: Arc<Semaphore>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl App {
    /// The API over these runs. `public_url` is what a browser is told to open, such as
    /// `http://localhost:4317`; its host is answered to, like the loopback names and those of `hosts`.
    pub fn new(runs: Runs, token: CoreToken, mut hosts: Hosts, public_url: &url::Url) -> Self {
        if let Some(host) = public_url.host_str() {
            hosts.add(host);
        }
        let port = public_url.port_or_known_default().unwrap_or_default();
        Self(Arc::new(Inner {
            runs,
            token,
            hosts,
            sessions: Sessions::default(),
            public_url: public_url.origin().ascii_serialization(),
            // Cookies know no ports: without it a second box on this machine would sign the first one out.
            cookie: format!("worca_session_{port}"),
            streams: Arc::new(Semaphore::new(STREAMS)),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }
    /// The runs.
    pub fn runs(&self) -> &Runs {
        &self.0.runs
    }
    /// The store, for reading.
    pub fn store(&self) -> &Store {
        self.0.runs.store()
    }
    /// The browsers that are signed in.
    pub fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }
    /// Where a browser finds the page, without a slash at the end.
    pub fn public_url(&self) -> &str {
        &self.0.public_url
    }
    /// The name of the session cookie.
    pub fn cookie(&self) -> &str {
        &self.0.cookie
    }
    /// Cancelled when core ends: streams end then, and nothing new is accepted.
    pub fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }
    /// Work that goes on although its client has gone away; awaited when core ends.
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }
    /// A place for one more event stream, unless all are taken.
    pub fn stream_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.streams).try_acquire_owned().ok()
    }
    /// How many event streams are open.
    pub fn open_streams(&self) -> usize {
        STREAMS.saturating_sub(self.0.streams.available_permits())
    }
    pub(super) fn token(&self) -> &CoreToken {
        &self.0.token
    }
    pub(super) fn hosts(&self) -> &Hosts {
        &self.0.hosts
    }
}
