//! What each start of an agent used, from the key service's books into core's. The books are asked when the agent has
//! ended; where they did not answer, or core was killed, they are asked again until they do.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Inner;
use crate::events::{ModelUsage, SpentBudget};
use crate::keys::client::{Closing, KeysClient};
use crate::keys::wire::{Reached, UsageRow};
use crate::store::{NewSpawn, Run, Store, StoreError};

/// How long until a key service that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(10);

/// The task that asks again.
pub(super) struct Books {
    wake: Arc<Notify>,
    stop: CancellationToken,
    task: TaskTracker,
}

impl Books {
    /// Starts the task. What an earlier core left is asked for first.
    pub(super) fn start(keys: KeysClient, store: Store) -> Self {
        let (wake, stop, task) = (Arc::new(Notify::new()), CancellationToken::new(), TaskTracker::new());
        task.spawn(ask_again(keys, store, Arc::clone(&wake), stop.clone()));
        task.close();
        Self { wake, stop, task }
    }

    /// Ends the task. What is still open, the next core asks for.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.task.wait().await;
    }
}

async fn ask_again(keys: KeysClient, store: Store, wake: Arc<Notify>, stop: CancellationToken) {
    loop {
        let settled = tokio::select! {
            () = stop.cancelled() => return,
            settled = settle(&keys, &store) => settled,
        };
        let next = async {
            match settled {
                true => wake.notified().await,
                false => tokio::time::sleep(AGAIN).await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = next => {}
        }
    }
}

/// Asks for every start that is open. Whether none is left.
async fn settle(keys: &KeysClient, store: &Store) -> bool {
    loop {
        let open = match store.open_spawns().await {
            Ok(open) if open.is_empty() => return true,
            Ok(open) => open,
            Err(error) => {
                tracing::error!(%error, "the starts whose use is not known could not be read");
                return false;
            }
        };
        for spawn in open {
            let closing = match keys.revoke(&spawn.pass).await {
                Ok(closing) => closing,
                Err(error) => {
                    tracing::warn!(run = %spawn.run, %error, "what an agent used is not known yet");
                    return false;
                }
            };
            if let Err(error) = store.close_spawn(&spawn.id, &spawn.run, rows(&closing)).await {
                tracing::error!(run = %spawn.run, %error, "what an agent used could not be stored");
                return false;
            }
        }
    }
}

impl Inner {
    /// Ends the pass of a start and stores what was used with it. `None` when the key service does not answer: then
    /// it is asked again later, and the pass dies with its lease.
    pub(super) async fn close(&self, run: &Run, spawn: &NewSpawn) -> Result<Option<Closing>, StoreError> {
        match self.settings.keys.revoke(&spawn.pass).await {
            Ok(closing) => {
                let store = &self.settings.store;
                self.until_space(&run.id, || store.close_spawn(&spawn.id, &run.id, rows(&closing))).await?;
                Ok(Some(closing))
            }
            Err(error) => {
                tracing::warn!(run = %run.id, %error, "a pass could not be closed; it ends with its lease");
                self.books.wake.notify_one();
                Ok(None)
            }
        }
    }
}

fn rows(closing: &Closing) -> Vec<ModelUsage> {
    let name = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
    closing
        .used
        .iter()
        .cloned()
        .map(|row: UsageRow| ModelUsage {
            slot: name(row.slot.map(|slot| slot.to_string())),
            model: name(row.model),
            calls: row.calls,
            failed: row.failed,
            input: row.input,
            output: row.output,
            cache_write: row.cache_write,
            cache_read: row.cache_read,
            cost_micros: row.cost_micros,
            unpriced: row.unpriced,
            estimated: row.estimated,
        })
        .collect()
}

/// A warning of the key service, as it is stored.
pub(super) fn spent(reached: Reached) -> SpentBudget {
    SpentBudget {
        cap: reached.cap,
        spent: reached.spent,
        limit: reached.limit.value(),
        unit: reached.limit.unit(),
    }
}
