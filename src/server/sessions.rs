//! Browsers: one-time sign-in links and the sessions that they open. In memory alone: a restart signs everybody
//! out. Only hashes are kept, so a dump of this memory signs nobody in.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::secret::Secret;

/// How long a sign-in link works.
pub const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a session lasts with nobody using it.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a session lasts at most.
pub const SESSION_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many unused links there are at once; the oldest goes when one more is made.
pub const LINKS: usize = 32;
/// How many sessions there are at once; the one that was idle for longest goes when one more is opened.
pub const SESSIONS: usize = 64;

/// The hash of a link or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

#[derive(Debug, Clone, Copy)]
struct Session {
    opened: Instant,
    used: Instant,
}

#[derive(Default)]
struct Inner {
    links: Vec<(Key, Instant)>,
    sessions: HashMap<Key, Session>,
}

/// All links and sessions of this core.
#[derive(Default)]
pub struct Sessions(Mutex<Inner>);

fn key(text: &str) -> Key {
    Key(Sha256::digest(text.as_bytes()).into())
}

fn random() -> Secret {
    let mut bytes = [0u8; 32];
    // Without randomness no link would be worth anything: nothing may go on.
    #[expect(clippy::expect_used, reason = "the kernel's random source does not fail after boot")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

fn alive(session: &Session, now: Instant) -> bool {
    now.saturating_duration_since(session.used) < SESSION_IDLE
        && now.saturating_duration_since(session.opened) < SESSION_LIFE
}

impl Sessions {
    /// Makes a link's secret. It works once, within [`LINK_LIFE`].
    pub fn make_link(&self, now: Instant) -> Secret {
        let secret = random();
        let mut inner = self.lock();
        inner.links.retain(|(_, made)| now.saturating_duration_since(*made) < LINK_LIFE);
        if inner.links.len() >= LINKS {
            inner.links.remove(0);
        }
        inner.links.push((key(secret.expose()), now));
        secret
    }
    /// Takes a link's secret and opens a session, whose secret is returned; `None` when the link was used, is
    /// too old, or never was.
    pub fn sign_in(&self, link: &str, now: Instant) -> Option<Secret> {
        let wanted = key(link);
        let mut inner = self.lock();
        // Hashes of random secrets: how long this comparison takes tells nothing of use.
        let place = inner.links.iter().position(|(known, _)| *known == wanted)?;
        let (_, made) = inner.links.remove(place);
        if now.saturating_duration_since(made) >= LINK_LIFE {
            return None;
        }
        inner.sessions.retain(|_, session| alive(session, now));
        if inner.sessions.len() >= SESSIONS {
            let idle = inner.sessions.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            idle.and_then(|key| inner.sessions.remove(&key));
        }
        let secret = random();
        inner.sessions.insert(key(secret.expose()), Session { opened: now, used: now });
        Some(secret)
    }
    /// The session of this cookie, if it lasts; this counts as a use.
    pub fn find(&self, cookie: &str, now: Instant) -> Option<Key> {
        let wanted = key(cookie);
        self.touch(wanted, now).then_some(wanted)
    }
    /// Counts a use of the session. `false` when it has ended.
    pub fn touch(&self, key: Key, now: Instant) -> bool {
        let mut inner = self.lock();
        let Some(session) = inner.sessions.get_mut(&key) else { return false };
        if alive(session, now) {
            session.used = now;
            return true;
        }
        inner.sessions.remove(&key);
        false
    }
    /// How many sessions there are.
    pub fn count(&self, now: Instant) -> usize {
        self.lock().sessions.values().filter(|session| alive(session, now)).count()
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
