//! Keeps the passes of live agents alive: one task renews all of them in one call. When core is gone nobody
//! renews, and the key service lets them die. What it says of their budgets becomes events of their runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::books::spent;
use crate::events::Event;
use crate::ids::{PassId, RunId};
use crate::keys::client::{KeysClient, Renewed};
use crate::store::Store;

/// Four renewals fit into one lease of the key service.
const EVERY: Duration = Duration::from_secs(2);

/// Each pass that is renewed, and the run that it is for.
type Held = Arc<Mutex<BTreeMap<PassId, RunId>>>;

/// The passes that are renewed.
pub(super) struct Leases {
    live: Held,
    stop: CancellationToken,
    task: TaskTracker,
}

/// A pass that is renewed for as long as this value lives.
pub(super) struct Lease {
    id: PassId,
    live: Held,
}

impl Leases {
    /// Starts the task.
    pub(super) fn start(keys: KeysClient, store: Store) -> Self {
        let live = Held::default();
        let stop = CancellationToken::new();
        let task = TaskTracker::new();
        task.spawn(renew(keys, store, Arc::clone(&live), stop.clone()));
        task.close();
        Self { live, stop, task }
    }

    /// Renews this pass of a run from now on.
    pub(super) fn hold(&self, id: PassId, run: RunId) -> Lease {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), run);
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

async fn renew(keys: KeysClient, store: Store, live: Held, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let held = live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if held.is_empty() {
            continue;
        }
        let ids: Vec<PassId> = held.keys().cloned().collect();
        // A pass that is gone stays gone: its agent is told so by the key service and ends by itself.
        match keys.renew(&ids).await {
            Ok(renewed) => tell(&store, &held, renewed).await,
            Err(error) => tracing::warn!(%error, passes = ids.len(), "passes could not be renewed"),
        }
    }
}

/// Writes the warnings down. A full disk costs one, and not the leases of all the others.
async fn tell(store: &Store, held: &BTreeMap<PassId, RunId>, renewed: Renewed) {
    for warning in renewed.warnings {
        let Some(run) = held.get(&warning.pass) else { continue };
        let event = Event::BudgetWarning { budget: spent(warning.reached) };
        if let Err(error) = store.append_event(run, event).await {
            tracing::error!(%run, %error, "the warning of a budget could not be stored");
        }
    }
}
