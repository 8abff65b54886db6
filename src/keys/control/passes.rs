//! Passes as core asks for them: given out, renewed, taken back, and whether a run could have them at all.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::refuse;
use crate::ids::PassId;
use crate::keys::answer::{self, Reply};
use crate::keys::keyring::NotReady;
use crate::keys::pass::Bond;
use crate::keys::rehearsal::{self, Script};
use crate::keys::serve::Shared;
use crate::keys::slot::{Slot, SlotName, Upstream};
use crate::keys::wire::{
    Closing, MintAnswer, MintRequest, Missing, Ready, ReadyRequest, Renewed, Scenario, code,
};

/// The most models that one pass names, and the longest name, in bytes.
const MODELS: usize = 64;
const LONGEST_MODEL: usize = 200;

/// Why no pass is given out.
struct No {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl No {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }
    fn unknown_slot(name: &SlotName) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::UNKNOWN_SLOT, format!("there is no slot `{name}`"))
    }
}

/// Gives out a pass to whoever asks at `from`.
pub(super) async fn mint(shared: &Shared, wanted: MintRequest, from: IpAddr) -> Response<Reply> {
    match give(shared, wanted, from).await {
        Ok(answer) => answer::value(StatusCode::CREATED, &answer),
        Err(no) => refuse(no.status, no.code, &no.message),
    }
}

async fn give(shared: &Shared, wanted: MintRequest, from: IpAddr) -> Result<MintAnswer, No> {
    let Some(slot) = shared.slots.get(wanted.slot.as_str()) else {
        return Err(No::unknown_slot(&wanted.slot));
    };
    if wanted.models.len() > MODELS || wanted.models.iter().any(|model| model.len() > LONGEST_MODEL) {
        let message = format!("a pass names at most {MODELS} models of at most {LONGEST_MODEL} bytes each");
        return Err(No::new(StatusCode::BAD_REQUEST, code::BAD_REQUEST, message));
    }
    let scenario = playable(slot, wanted.scenario.as_ref())?;
    shared.ready(slot, &wanted.person).await.map_err(|why| {
        let word = match why {
            NotReady::NoKey { .. } | NotReady::OtherPlace { .. } => code::NO_CREDENTIAL,
            NotReady::NoPlace { .. } | NotReady::Vault(_) | NotReady::NoRoots => code::NOT_READY,
        };
        No::new(StatusCode::CONFLICT, word, why.to_string())
    })?;
    shared.books.open_run(&wanted.run).await.map_err(|error| {
        tracing::error!(%error, "the books do not say what a run has spent, and it gets no pass");
        No::new(StatusCode::CONFLICT, code::NOT_READY, error.to_string())
    })?;
    let bond = Bond {
        run: wanted.run,
        step: wanted.step,
        spawn: wanted.spawn,
        person: wanted.person,
        slot: wanted.slot,
        models: wanted.models,
        cap: wanted.cap,
        scenario,
        from,
    };
    let (live, pass) = shared
        .passes
        .mint(bond)
        .map_err(|error| No::new(StatusCode::CONFLICT, code::TOO_MANY_PASSES, error.to_string()))?;
    let bond = &live.bond;
    tracing::info!(pass = %live.id, run = %bond.run, step = %bond.step, spawn = %bond.spawn, person = %bond.person, slot = %bond.slot, "a pass was given out");
    Ok(MintAnswer {
        id: live.id.clone(),
        pass: pass.expose().to_owned(),
        lease_seconds: shared.passes.lease().as_secs(),
    })
}

/// Gives passes another lease.
pub(super) fn renew(shared: &Shared, ids: &[PassId]) -> Renewed {
    let (alive, gone) = shared.passes.renew(ids);
    let live = alive.iter().filter_map(|id| shared.passes.named(id));
    let warnings = live.flat_map(|live| shared.books.warnings(&live)).collect();
    Renewed { alive, gone, warnings }
}

/// Ends a pass, and says what became of it.
pub(super) async fn close(shared: &Shared, id: &PassId) -> Response<Reply> {
    let live = shared.passes.revoke(id);
    if live.is_some() {
        tracing::info!(pass = %id, "a pass was revoked");
    }
    match shared.books.closing(id).await {
        Ok(used) => {
            let refused = live.and_then(|live| live.refusal());
            answer::value(StatusCode::OK, &Closing { used, refused })
        }
        Err(error) => super::books::failed(&error),
    }
}

/// What stands in the way of a run of this person with these slots: all of it at once.
pub(super) async fn ready(shared: &Shared, wanted: &ReadyRequest) -> Ready {
    let mut ready = Ready { missing: Vec::new(), spent: Vec::new() };
    for name in &wanted.slots {
        let found = match shared.slots.get(name.as_str()) {
            Some(slot) => shared.ready(slot, &wanted.person).await.map_err(|why| why.to_string()),
            None => Err(No::unknown_slot(name).message),
        };
        let billed = match found {
            Ok(credential) => credential.is_some_and(|credential| credential.kind.is_billed()),
            Err(why) => {
                ready.missing.push(Missing { slot: name.clone(), why });
                continue;
            }
        };
        for reached in shared.books.spent(&wanted.person, name, !billed) {
            if !ready.spent.contains(&reached) {
                ready.spent.push(reached);
            }
        }
    }
    ready
}

/// A scenario goes with the rehearsal slot, and only one that can be played. It is read once for all calls of the pass.
fn playable(slot: &Slot, scenario: Option<&Scenario>) -> Result<Option<Arc<Script>>, No> {
    let bad = |code, message: String| Err(No::new(StatusCode::BAD_REQUEST, code, message));
    match (&slot.upstream, scenario) {
        (Upstream::Provider(_) | Upstream::Unset, None) => Ok(None),
        (Upstream::Provider(_) | Upstream::Unset, Some(_)) => {
            bad(code::BAD_REQUEST, format!("slot `{}` plays no scenario", slot.name))
        }
        (Upstream::Rehearsal, None) => bad(code::UNKNOWN_SCENARIO, "a rehearsal needs a scenario".into()),
        (Upstream::Rehearsal, Some(scenario)) => {
            rehearsal::find(scenario).map(Some).or_else(|why| bad(code::UNKNOWN_SCENARIO, why))
        }
    }
}
