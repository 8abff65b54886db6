//! The credentials in use: read from the vault at most once a second per slot and person, so that a key saved or removed
//! by another process counts at once and no request waits for the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use crate::ids::PersonId;
use crate::keys::credential::Credential;
use crate::keys::slot::{Auth, Endpoint, Slot, SlotName, Upstream};
use crate::keys::vault::{Vault, VaultError};

/// How old what was read may be.
const FRESH: Duration = Duration::from_secs(1);
/// How often the date of last use is written.
const TOUCH: Duration = Duration::from_secs(60);

/// How many people's credentials are remembered per slot; with one more, all are read anew.
const MOST_HELD: usize = 1024;

/// Why a slot cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// Nothing is saved.
    #[error("{}", no_key(.slot, .person))]
    NoKey {
        /// For which slot.
        slot: SlotName,
        /// Whose.
        person: PersonId,
    },
    /// The saved key belongs elsewhere.
    #[error("the key saved for slot `{slot}` is for `{saved}`, and the slot is at `{now}`")]
    OtherPlace {
        /// Which slot.
        slot: SlotName,
        /// What the key was saved for.
        saved: Endpoint,
        /// Where the slot is now.
        now: Endpoint,
    },
    /// Nobody said where the slot goes.
    #[error("slot `{slot}` goes nowhere yet: its `origin` belongs into the slots file{}", named(.file.as_deref()))]
    NoPlace {
        /// Which slot.
        slot: SlotName,
        /// The slots file, when there is one.
        file: Option<String>,
    },
    /// No https connection can be checked.
    #[error("no root certificates were found on this system")]
    NoRoots,
    /// The vault does not give it.
    #[error("the vault cannot be read")]
    Vault(#[source] VaultError),
}

fn no_key(slot: &SlotName, person: &PersonId) -> String {
    // While nobody signs in there is one person, and no need to name it.
    let whose = if *person == PersonId::local() { String::new() } else { format!(" by `{person}`") };
    format!("no key is saved for slot `{slot}`{whose}")
}

fn named(file: Option<&str>) -> String {
    file.map_or_else(|| " (`worca keys serve --slots FILE`)".to_owned(), |file| format!(" `{file}`"))
}

#[derive(Default)]
struct Held {
    read: Option<(Instant, Option<Arc<Credential>>)>,
    touched: Option<Instant>,
}

/// Reads credentials, and remembers them for a moment.
pub(super) struct Keyring {
    vault: Arc<Mutex<Vault>>,
    held: Mutex<HashMap<SlotName, HashMap<PersonId, Held>>>,
    tasks: TaskTracker,
}

impl Keyring {
    /// `tasks` is awaited at the end, so that no write is cut.
    pub(super) fn new(vault: Vault, tasks: TaskTracker) -> Self {
        Self { vault: Arc::new(Mutex::new(vault)), held: Mutex::default(), tasks }
    }

    /// This person's own credential for a slot, when there is one for its present place: nobody's key stands in for
    /// another's. `None` for a slot that needs none.
    pub(super) async fn credential(
        &self,
        slot: &Slot,
        person: &PersonId,
    ) -> Result<Option<Arc<Credential>>, NotReady> {
        let Upstream::Provider(endpoint) = &slot.upstream else { return Ok(None) };
        if slot.auth == Auth::None {
            return Ok(None);
        }
        let credential = match self.remembered(&slot.name, person) {
            Some(known) => known,
            None => self.read(slot, person).await.map_err(NotReady::Vault)?,
        };
        match credential {
            Some(credential) if credential.endpoint == *endpoint => Ok(Some(credential)),
            Some(credential) => Err(NotReady::OtherPlace {
                slot: slot.name.clone(),
                saved: credential.endpoint.clone(),
                now: endpoint.clone(),
            }),
            None => Err(NotReady::NoKey { slot: slot.name.clone(), person: person.clone() }),
        }
    }

    /// Notes a use, at most once a minute, beside the request and not before it.
    pub(super) fn used(&self, slot: &SlotName, person: &PersonId) {
        {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = entry(&mut held, slot, person);
            if entry.touched.is_some_and(|at| at.elapsed() < TOUCH) {
                return;
            }
            entry.touched = Some(Instant::now());
        }
        let (vault, slot, person) = (self.vault.clone(), slot.clone(), person.clone());
        drop(self.tasks.spawn_blocking(move || {
            let vault = vault.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = vault.touch(&slot, &person) {
                tracing::warn!(slot = %slot, code = crate::failure::Explain::code(&error), "the date of last use could not be written");
            }
        }));
    }

    fn remembered(&self, slot: &SlotName, person: &PersonId) -> Option<Option<Arc<Credential>>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, credential) = held.get(slot)?.get(person)?.read.as_ref()?;
        (at.elapsed() < FRESH).then(|| credential.clone())
    }

    async fn read(&self, slot: &Slot, person: &PersonId) -> Result<Option<Arc<Credential>>, VaultError> {
        let (vault, name, whose) = (self.vault.clone(), slot.name.clone(), person.clone());
        let asked = Instant::now();
        let read = self
            .tasks
            .spawn_blocking(move || vault.lock().unwrap_or_else(PoisonError::into_inner).get(&name, &whose));
        // A panic in there is a fault of this program; the slot is then as good as damaged.
        let damaged = || VaultError::Damaged { slot: slot.name.to_string(), person: person.to_string() };
        let found = match read.await.unwrap_or_else(|_| Err(damaged()))? {
            Some(saved) => Some(Arc::new(Credential::new(saved, slot.auth).ok_or_else(damaged)?)),
            None => None,
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        entry(&mut held, &slot.name, person).read = Some((asked, found.clone()));
        Ok(found)
    }
}

/// What is held for a person and a slot.
fn entry<'a>(
    held: &'a mut HashMap<SlotName, HashMap<PersonId, Held>>,
    slot: &SlotName,
    person: &PersonId,
) -> &'a mut Held {
    let people = held.entry(slot.clone()).or_default();
    if people.len() >= MOST_HELD && !people.contains_key(person) {
        people.clear();
    }
    people.entry(person.clone()).or_default()
}
