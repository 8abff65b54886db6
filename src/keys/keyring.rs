//! The credentials in use: read from the vault at most once a second per slot, so that a key saved or removed
//! by another process counts at once and no request waits for the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use crate::keys::credential::Credential;
use crate::keys::slot::{Origin, Slot, SlotName, Upstream};
use crate::keys::vault::{Vault, VaultError};

/// How old what was read may be.
const FRESH: Duration = Duration::from_secs(1);
/// How often the date of last use is written.
const TOUCH: Duration = Duration::from_secs(60);

/// Why a slot cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// Nothing is saved.
    #[error("no key is saved for slot `{0}`")]
    NoKey(SlotName),
    /// The saved key belongs elsewhere.
    #[error("the key saved for slot `{slot}` is for `{saved}`, and the slot is at `{now}`")]
    OtherOrigin {
        /// Which slot.
        slot: SlotName,
        /// What the key was saved for.
        saved: Origin,
        /// Where the slot is now.
        now: Origin,
    },
    /// No https connection can be checked.
    #[error("no root certificates were found on this system")]
    NoRoots,
    /// The vault does not give it.
    #[error("the vault cannot be read")]
    Vault(#[source] VaultError),
}

#[derive(Default)]
struct Held {
    read: Option<(Instant, Option<Arc<Credential>>)>,
    touched: Option<Instant>,
}

/// Reads credentials, and remembers them for a moment.
pub(super) struct Keyring {
    vault: Arc<Mutex<Vault>>,
    held: Mutex<HashMap<SlotName, Held>>,
    tasks: TaskTracker,
}

impl Keyring {
    /// `tasks` is awaited at the end, so that no write is cut.
    pub(super) fn new(vault: Vault, tasks: TaskTracker) -> Self {
        Self { vault: Arc::new(Mutex::new(vault)), held: Mutex::default(), tasks }
    }

    /// The credential for a slot, when it has one for its present origin. `None` for a slot that needs none.
    pub(super) async fn credential(&self, slot: &Slot) -> Result<Option<Arc<Credential>>, NotReady> {
        let Upstream::Provider(origin) = &slot.upstream else { return Ok(None) };
        let credential = match self.remembered(&slot.name) {
            Some(known) => known,
            None => self.read(&slot.name).await.map_err(NotReady::Vault)?,
        };
        match credential {
            Some(credential) if credential.origin == *origin => Ok(Some(credential)),
            Some(credential) => Err(NotReady::OtherOrigin {
                slot: slot.name.clone(),
                saved: credential.origin.clone(),
                now: origin.clone(),
            }),
            None => Err(NotReady::NoKey(slot.name.clone())),
        }
    }

    /// Notes a use, at most once a minute, beside the request and not before it.
    pub(super) fn used(&self, slot: &SlotName) {
        {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = held.entry(slot.clone()).or_default();
            if entry.touched.is_some_and(|at| at.elapsed() < TOUCH) {
                return;
            }
            entry.touched = Some(Instant::now());
        }
        let (vault, slot) = (self.vault.clone(), slot.clone());
        drop(self.tasks.spawn_blocking(move || {
            let vault = vault.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = vault.touch(&slot) {
                tracing::warn!(slot = %slot, code = crate::failure::Explain::code(&error), "the date of last use could not be written");
            }
        }));
    }

    fn remembered(&self, slot: &SlotName) -> Option<Option<Arc<Credential>>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, credential) = held.get(slot)?.read.as_ref()?;
        (at.elapsed() < FRESH).then(|| credential.clone())
    }

    async fn read(&self, slot: &SlotName) -> Result<Option<Arc<Credential>>, VaultError> {
        let (vault, name) = (self.vault.clone(), slot.clone());
        let asked = Instant::now();
        let read = self
            .tasks
            .spawn_blocking(move || vault.lock().unwrap_or_else(PoisonError::into_inner).get(&name));
        // A panic in there is a fault of this program; the slot is then as good as damaged.
        let found = read.await.unwrap_or_else(|_| Err(VaultError::Damaged { slot: slot.to_string() }))?;
        let found = found.map(Arc::new);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.entry(slot.clone()).or_default().read = Some((asked, found.clone()));
        Ok(found)
    }
}
