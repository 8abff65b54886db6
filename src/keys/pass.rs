//! Passes: what an agent holds in place of a key. Only its hash is kept, in memory alone, so that a restart
//! ends them all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::ids::{PassId, PersonId, RunId, SpawnId, StepName};
use crate::keys::answer;
use crate::keys::pattern;
use crate::keys::rehearsal::{Attempts, Script};
use crate::keys::slot::SlotName;
use crate::keys::wire::{Amount, PassRefusal, RefusalKind};
use crate::secret::Secret;

/// How every pass begins.
pub const PREFIX: &str = "wp_";
/// Random bytes in a pass.
const RANDOM: usize = 32;
/// How long it is remembered why a pass died, for the log.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What a pass is bound to, beside the start of the service, whose table it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// The run that it belongs to.
    pub run: RunId,
    /// The run's step.
    pub step: StepName,
    /// The one start of an agent.
    pub spawn: SpawnId,
    /// Who pays: only this person's key is put on.
    pub person: PersonId,
    /// The one slot that it opens.
    pub slot: SlotName,
    /// The models that it opens, with `*` for anything; every model when there is none.
    pub models: Vec<String>,
    /// The most that its run may spend, over all the run's passes.
    pub cap: Option<Amount>,
    /// What the rehearsal slot plays for it.
    pub scenario: Option<Arc<Script>>,
    /// The address that asked for it, and the only one that it opens anything from.
    pub from: IpAddr,
}

impl Bond {
    /// Whether it opens this model.
    pub fn opens(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|pattern| pattern::fits(pattern, model))
    }
}

/// A pass that lives, or did when it was looked up.
#[derive(Debug)]
pub struct Live {
    /// Its public name.
    pub id: PassId,
    /// What it is bound to.
    pub bond: Bond,
    /// Cancelled at the moment when the pass dies; whatever it opened ends with it.
    pub ended: CancellationToken,
    /// What went wrong so far as its scenario says.
    pub(super) attempts: Attempts,
    refused: Mutex<Option<PassRefusal>>,
    /// One bit per cap that core has been warned of.
    warned: AtomicU8,
}

impl Live {
    fn new(bond: Bond) -> Self {
        Self {
            id: PassId::random(),
            bond,
            ended: CancellationToken::new(),
            attempts: Attempts::default(),
            refused: Mutex::default(),
            warned: AtomicU8::new(0),
        }
    }
    /// Notes that a call was refused for a reason that ends an agent, with the sentence that the agent gets.
    pub fn refused(&self, kind: RefusalKind, message: &str) {
        let refusal = PassRefusal { kind, message: message.to_owned() };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
    }
    /// Notes that a later call was let through: what was refused before did not end the agent.
    pub fn admitted(&self) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
    /// Whether nobody was warned of the cap in this place until now.
    pub(super) fn warn_once(&self, place: usize) -> bool {
        let bit = 1 << (place % 8);
        self.warned.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
    /// Why the last call was refused, when it was.
    pub fn refusal(&self) -> Option<PassRefusal> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a pass is not valid. For the log alone: a caller is told the same thing each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dead {
    /// Never seen here, or forgotten, or of an earlier start.
    Unknown,
    /// Core took it back.
    Revoked(PassId),
    /// Core did not renew it in time.
    Expired(PassId),
    /// It was presented from another address than the one that asked for it.
    Elsewhere(PassId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive { until: Instant },
    Revoked { at: Instant },
    Expired { at: Instant },
}

#[derive(Debug)]
struct Entry {
    live: Arc<Live>,
    fate: Fate,
}

impl Entry {
    /// Ends it when its lease is over, and says whether that was now.
    fn end_if_over(&mut self, now: Instant) -> bool {
        match self.fate {
            Fate::Alive { until } if until <= now => {
                self.fate = Fate::Expired { at: now };
                self.live.ended.cancel();
                true
            }
            Fate::Alive { .. } | Fate::Revoked { .. } | Fate::Expired { .. } => false,
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    by_hash: HashMap<[u8; 32], Entry>,
    by_id: HashMap<PassId, [u8; 32]>,
    alive: usize,
}

/// There are as many live passes as are allowed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} passes are alive, and no more are given out")]
pub struct TooManyError(usize);

/// All passes of this start of the service.
#[derive(Debug)]
pub struct Passes {
    boot: String,
    lease: Duration,
    most: usize,
    table: Mutex<Table>,
}

impl Passes {
    /// None yet. Each lives for `lease` after it was made or renewed; at most `most` live at a time.
    pub fn new(lease: Duration, most: usize) -> Self {
        Self { boot: random_text(12), lease, most, table: Mutex::default() }
    }
    /// The name of this start. Another one means that every earlier pass is dead.
    pub fn boot(&self) -> &str {
        &self.boot
    }
    /// How long a pass lives without being renewed.
    pub fn lease(&self) -> Duration {
        self.lease
    }
    /// How many are alive.
    pub fn alive(&self) -> usize {
        self.bury(Instant::now()).alive
    }
    /// Makes one. What is returned is the only copy of the pass itself.
    ///
    /// # Errors
    /// When too many are alive.
    pub fn mint(&self, bond: Bond) -> Result<(Arc<Live>, Secret), TooManyError> {
        let now = Instant::now();
        let pass = Secret::new(format!("{PREFIX}{}", random_text(RANDOM)));
        let live = Arc::new(Live::new(bond));
        let mut table = self.bury(now);
        if table.alive >= self.most {
            return Err(TooManyError(table.alive));
        }
        let hash = hash(pass.expose());
        table.by_id.insert(live.id.clone(), hash);
        table
            .by_hash
            .insert(hash, Entry { live: live.clone(), fate: Fate::Alive { until: now + self.lease } });
        table.alive += 1;
        Ok((live, pass))
    }
    /// The pass behind what a caller at `from` presents. The comparison is of hashes, so its timing tells nothing.
    ///
    /// # Errors
    /// When it is not alive, or not for this caller; the reason is for the log.
    pub fn look_up(&self, presented: &str, from: IpAddr) -> Result<Arc<Live>, Dead> {
        let hash = hash(presented);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Only this one entry is judged: the rest is the sweep's, so that a look-up costs the same with many.
        let entry = table.by_hash.get_mut(&hash).ok_or(Dead::Unknown)?;
        let ended = entry.end_if_over(Instant::now());
        let live = &entry.live;
        let found = match entry.fate {
            // Whoever presents it from elsewhere changes nothing about it.
            _ if live.bond.from != from => Err(Dead::Elsewhere(live.id.clone())),
            Fate::Alive { .. } => Ok(live.clone()),
            Fate::Revoked { .. } => Err(Dead::Revoked(live.id.clone())),
            Fate::Expired { .. } => {
                live.refused(RefusalKind::Pass, answer::NO_PASS);
                Err(Dead::Expired(live.id.clone()))
            }
        };
        table.alive = table.alive.saturating_sub(usize::from(ended));
        found
    }
    /// Gives those that are alive another lease, and says which are and which are not. A dead one stays dead.
    pub fn renew(&self, ids: &[PassId]) -> (Vec<PassId>, Vec<PassId>) {
        let now = Instant::now();
        let until = now + self.lease;
        let mut table = self.bury(now);
        ids.iter().cloned().partition(|id| {
            let Some(hash) = table.by_id.get(id).copied() else { return false };
            match table.by_hash.get_mut(&hash).map(|entry| &mut entry.fate) {
                Some(fate @ Fate::Alive { .. }) => {
                    *fate = Fate::Alive { until };
                    true
                }
                Some(Fate::Revoked { .. } | Fate::Expired { .. }) | None => false,
            }
        })
    }
    /// Ends one, and whatever it opened, and says which it was. `None` for one that is not known here (any more).
    pub fn revoke(&self, id: &PassId) -> Option<Arc<Live>> {
        let now = Instant::now();
        let mut table = self.bury(now);
        let hash = table.by_id.get(id).copied()?;
        let entry = table.by_hash.get_mut(&hash)?;
        let live = entry.live.clone();
        if matches!(entry.fate, Fate::Alive { .. }) {
            entry.fate = Fate::Revoked { at: now };
            live.ended.cancel();
            table.alive = table.alive.saturating_sub(1);
        }
        Some(live)
    }
    /// The pass of this public name, alive or not.
    pub fn named(&self, id: &PassId) -> Option<Arc<Live>> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_hash.get(table.by_id.get(id)?).map(|entry| entry.live.clone())
    }
    /// Ends those whose lease is over. Called often, so that an open stream ends too, and by every look-up.
    pub fn sweep(&self) {
        drop(self.bury(Instant::now()));
    }

    /// The table as it is at `now`: leases that are over have ended, and what died long ago is forgotten.
    fn bury(&self, now: Instant) -> MutexGuard<'_, Table> {
        let mut guard = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let table = &mut *guard;
        let mut ended = 0;
        let by_id = &mut table.by_id;
        table.by_hash.retain(|_, entry| {
            ended += usize::from(entry.end_if_over(now));
            if let Fate::Revoked { at } | Fate::Expired { at } = entry.fate
                && now.duration_since(at) > REMEMBERED
            {
                by_id.remove(&entry.live.id);
                return false;
            }
            true
        });
        table.alive = table.alive.saturating_sub(ended);
        guard
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

pub(super) fn random_text(length: usize) -> String {
    let mut bytes = vec![0u8; length];
    #[expect(clippy::expect_used, reason = "the kernel's random source does not fail after boot")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn bond() -> Bond {
        Bond {
            run: RunId::random(),
            step: StepName::work(),
            spawn: SpawnId::random(),
            person: PersonId::local(),
            slot: SlotName::rehearsal(),
            models: Vec::new(),
            cap: None,
            scenario: None,
            from: HERE,
        }
    }

    #[test]
    fn a_pass_opens_while_it_lives_and_nothing_like_it_does() {
        let passes = Passes::new(LONG, 10);
        let (live, pass) = passes.mint(bond()).unwrap();
        assert_eq!(pass.expose().len(), PREFIX.len() + 43);
        assert_eq!(passes.look_up(pass.expose(), HERE).unwrap().id, live.id);
        for wrong in [
            "",
            "wp_",
            live.id.as_str(),
            pass.expose().trim_start_matches(PREFIX),
            &format!("{}A", pass.expose()),
        ] {
            assert_eq!(passes.look_up(wrong, HERE).unwrap_err(), Dead::Unknown);
        }
    }

    #[test]
    fn a_revoked_pass_is_dead_at_once_and_its_streams_are_told() {
        let passes = Passes::new(LONG, 10);
        let (live, pass) = passes.mint(bond()).unwrap();
        assert_eq!(passes.revoke(&live.id).unwrap().id, live.id);
        assert!(live.ended.is_cancelled());
        assert_eq!(passes.look_up(pass.expose(), HERE).unwrap_err(), Dead::Revoked(live.id.clone()));
        assert!(passes.revoke(&live.id).is_some() && passes.revoke(&PassId::random()).is_none());
        assert_eq!(passes.renew(std::slice::from_ref(&live.id)), (vec![], vec![live.id.clone()]));
        assert_eq!(passes.alive(), 0);
    }

    #[test]
    fn a_lease_that_ends_kills_and_cannot_be_renewed_back_to_life() {
        let passes = Passes::new(Duration::ZERO, 10);
        let (live, pass) = passes.mint(bond()).unwrap();
        passes.sweep();
        assert!(live.ended.is_cancelled());
        assert_eq!(passes.renew(std::slice::from_ref(&live.id)).1, vec![live.id.clone()]);
        assert_eq!(passes.look_up(pass.expose(), HERE).unwrap_err(), Dead::Expired(live.id.clone()));
    }

    #[test]
    fn a_pass_opens_nothing_from_another_address_and_lives_on_where_it_belongs() {
        let passes = Passes::new(LONG, 10);
        let (live, pass) = passes.mint(bond()).unwrap();
        for elsewhere in ["127.0.0.2", "::1", "10.0.0.1"] {
            let refused = passes.look_up(pass.expose(), elsewhere.parse().unwrap());
            assert_eq!(refused.unwrap_err(), Dead::Elsewhere(live.id.clone()));
        }
        assert!(passes.look_up(pass.expose(), HERE).is_ok());
        assert_eq!(live.refusal(), None);
    }

    #[test]
    fn a_pass_opens_the_models_that_it_names() {
        for (pattern, opened, closed) in [
            ("claude-x", &["claude-x"][..], &["claude-x-1", "a-claude-x", ""][..]),
            ("claude-*", &["claude-", "claude-x-1"], &["claude", "aclaude-x"]),
            ("*-x", &["-x", "a-x", "a-x-x"], &["-xa", "x"]),
            ("a*b*c", &["abc", "a1b2c", "abbcc"], &["ac", "acb", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("*", &["", "anything/at-all"], &[]),
        ] {
            let bond = Bond { models: vec!["other".into(), pattern.into()], ..bond() };
            assert!(opened.iter().all(|name| bond.opens(name)), "{pattern}");
            assert!(!closed.iter().any(|name| bond.opens(name)), "{pattern}");
        }
        assert!(bond().opens("anything"));
    }

    #[test]
    fn the_last_refusal_is_remembered_until_a_call_is_let_through() {
        let passes = Passes::new(LONG, 10);
        let (live, _) = passes.mint(bond()).unwrap();
        live.refused(RefusalKind::Model, "not this one");
        live.admitted();
        assert_eq!(live.refusal(), None);
        live.refused(RefusalKind::Budget, "spent");
        let remembered = passes.revoke(&live.id).unwrap().refusal().unwrap();
        assert_eq!((remembered.kind, remembered.message.as_str()), (RefusalKind::Budget, "spent"));
    }

    #[test]
    fn there_is_a_cap_on_live_passes_and_a_dead_one_makes_room() {
        let passes = Passes::new(LONG, 2);
        let (first, _) = passes.mint(bond()).unwrap();
        passes.mint(bond()).unwrap();
        assert_eq!(passes.mint(bond()).unwrap_err(), TooManyError(2));
        passes.revoke(&first.id);
        assert!(passes.mint(bond()).is_ok());
    }

    #[test]
    fn neither_a_debug_print_nor_the_table_holds_a_pass() {
        let passes = Passes::new(LONG, 2);
        let (live, pass) = passes.mint(bond()).unwrap();
        let shown = format!("{passes:?} {live:?} {pass:?}");
        assert!(!shown.contains(pass.expose().trim_start_matches(PREFIX)));
    }
}
