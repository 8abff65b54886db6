//! Keeps the passes of live agents alive: one task renews all of them in one call. When core is gone nobody
//! renews, and the key service lets them die.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ids::PassId;
use crate::keys::client::KeysClient;

/// Four renewals fit into one lease of the key service.
const EVERY: Duration = Duration::from_secs(2);

/// The passes that are renewed.
pub(super) struct Leases {
    live: Arc<Mutex<BTreeSet<PassId>>>,
    stop: CancellationToken,
    task: TaskTracker,
}

/// A pass that is renewed for as long as this value lives.
pub(super) struct Lease {
    id: PassId,
    live: Arc<Mutex<BTreeSet<PassId>>>,
}

impl Leases {
    /// Starts the task.
    pub(super) fn start(keys: KeysClient) -> Self {
        let live = Arc::new(Mutex::new(BTreeSet::new()));
        let stop = CancellationToken::new();
        let task = TaskTracker::new();
        task.spawn(renew(keys, Arc::clone(&live), stop.clone()));
        task.close();
        Self { live, stop, task }
    }

    /// Renews this pass from now on.
    pub(super) fn hold(&self, id: PassId) -> Lease {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        Lease { id, live: Arc::clone(&self.live) }
    }

    /// Ends the task.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.task.wait().await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

async fn renew(keys: KeysClient, live: Arc<Mutex<BTreeSet<PassId>>>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let ids: Vec<PassId> = live.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        if ids.is_empty() {
            continue;
        }
        // A pass that is gone stays gone: its agent is told so by the key service and ends by itself.
        if let Err(error) = keys.renew(&ids).await {
            tracing::warn!(%error, passes = ids.len(), "passes could not be renewed");
        }
    }
}
