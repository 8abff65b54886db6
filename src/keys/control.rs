//! The control part: core alone, by its bearer secret, mints, renews and revokes passes and asks how things are.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::{Method, Request, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::answer::{self, Reply};
use super::keyring::NotReady;
use super::pass::Bond;
use super::rehearsal;
use super::serve::Shared;
use super::slot::{Slot, Upstream};
use super::wire::{
    MintAnswer, MintRequest, Refusal, RefusalBody, RenewRequest, Renewed, Scenario, SlotStatus, Status, code,
};
use crate::ids::PassId;
use crate::secret::Secret;

/// The largest request of the control part, in bytes.
const LARGEST: usize = 256 * 1024;
/// How long core may take to send one.
const SLOWEST: Duration = Duration::from_secs(10);

/// The control secret, as a hash: what is compared never depends on where two texts first differ.
pub(super) struct ControlSecret([u8; 32]);

impl ControlSecret {
    pub(super) fn new(secret: &Secret) -> Self {
        Self(Sha256::digest(secret.expose()).into())
    }
    fn admits(&self, request: &Request<Incoming>) -> bool {
        let mut values = request.headers().get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some(given) = value.as_bytes().strip_prefix(b"Bearer ") else { return false };
        let given: [u8; 32] = Sha256::digest(given).into();
        given.ct_eq(&self.0).into()
    }
}

/// Answers a request below `/control/`.
pub(super) async fn answer(shared: &Shared, request: Request<Incoming>) -> Response<Reply> {
    if !shared.control.admits(&request) {
        tracing::warn!("a request to the control part came without its secret and was refused");
        return refuse(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, "the control part needs its secret");
    }
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, "/control/status") => answer::value(StatusCode::OK, &status(shared).await),
        (&Method::POST, "/control/passes") => match read::<MintRequest>(request).await {
            Ok(wanted) => mint(shared, wanted).await,
            Err(refusal) => refusal,
        },
        (&Method::POST, "/control/passes/renew") => match read::<RenewRequest>(request).await {
            Ok(wanted) => {
                let (alive, gone) = shared.passes.renew(&wanted.ids);
                answer::value(StatusCode::OK, &Renewed { alive, gone, warnings: Vec::new() })
            }
            Err(refusal) => refusal,
        },
        (&Method::DELETE, path) => match path.strip_prefix("/control/passes/").map(PassId::parse) {
            Some(Ok(id)) => {
                if shared.passes.revoke(&id) {
                    tracing::info!(pass = %id, "a pass was revoked");
                }
                answer::empty(StatusCode::NO_CONTENT)
            }
            Some(Err(_)) | None => nothing_here(),
        },
        _ => nothing_here(),
    }
}

async fn mint(shared: &Shared, wanted: MintRequest) -> Response<Reply> {
    let Some(slot) = shared.slots.get(wanted.slot.as_str()) else {
        let message = format!("there is no slot `{}`", wanted.slot);
        return refuse(StatusCode::NOT_FOUND, code::UNKNOWN_SLOT, &message);
    };
    let scenario = match wanted.scenario {
        Some(Scenario::Named(name)) => Some(name),
        Some(Scenario::Text(_)) => {
            let message = "this service plays its own scenarios alone";
            return refuse(StatusCode::BAD_REQUEST, code::UNKNOWN_SCENARIO, message);
        }
        None => None,
    };
    if let Err((word, message)) = playable(slot, scenario.as_deref()) {
        return refuse(StatusCode::BAD_REQUEST, word, &message);
    }
    if let Err(why) = shared.ready(slot).await {
        let word = match why {
            NotReady::NoKey(_) | NotReady::OtherOrigin { .. } => code::NO_CREDENTIAL,
            NotReady::Vault(_) | NotReady::NoRoots => code::NOT_READY,
        };
        return refuse(StatusCode::CONFLICT, word, &why.to_string());
    }
    let bond = Bond { run: wanted.run, spawn: wanted.spawn, slot: wanted.slot, scenario };
    match shared.passes.mint(bond) {
        Ok((live, pass)) => {
            let bond = &live.bond;
            tracing::info!(pass = %live.id, run = %bond.run, spawn = %bond.spawn, slot = %bond.slot, "a pass was given out");
            let answer = MintAnswer {
                id: live.id.clone(),
                pass: pass.expose().to_owned(),
                lease_seconds: shared.passes.lease().as_secs(),
            };
            answer::value(StatusCode::CREATED, &answer)
        }
        Err(error) => refuse(StatusCode::CONFLICT, code::TOO_MANY_PASSES, &error.to_string()),
    }
}

/// A scenario goes with the rehearsal slot, and only one that exists.
fn playable(slot: &Slot, scenario: Option<&str>) -> Result<(), (&'static str, String)> {
    match (&slot.upstream, scenario) {
        (Upstream::Provider(_), None) => Ok(()),
        (Upstream::Provider(_), Some(_)) => {
            Err((code::BAD_REQUEST, format!("slot `{}` plays no scenario", slot.name)))
        }
        (Upstream::Rehearsal, None) => Err((code::UNKNOWN_SCENARIO, "a rehearsal needs a scenario".into())),
        (Upstream::Rehearsal, Some(name)) if rehearsal::scenario_names().any(|known| known == name) => Ok(()),
        (Upstream::Rehearsal, Some(name)) => {
            let known: Vec<&str> = rehearsal::scenario_names().collect();
            let name: String = name.chars().take(60).collect();
            Err((
                code::UNKNOWN_SCENARIO,
                format!("there is no scenario `{name}`; there are {}", known.join(", ")),
            ))
        }
    }
}

async fn status(shared: &Shared) -> Status {
    let mut slots = Vec::new();
    for slot in shared.slots.iter() {
        let origin = match &slot.upstream {
            Upstream::Provider(origin) => Some(origin.to_string()),
            Upstream::Rehearsal => None,
        };
        let found = shared.ready(slot).await;
        slots.push(SlotStatus {
            slot: slot.name.clone(),
            ready: found.is_ok(),
            kind: found.as_ref().ok().and_then(Option::as_ref).map(|credential| credential.kind),
            origin,
            why: found.err().map(|why| why.to_string()),
        });
    }
    Status {
        boot: shared.passes.boot().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        slots,
        passes: shared.passes.alive(),
    }
}

async fn read<T: serde::de::DeserializeOwned>(request: Request<Incoming>) -> Result<T, Response<Reply>> {
    let bad = |message: &str| refuse(StatusCode::BAD_REQUEST, code::BAD_REQUEST, message);
    let body = Limited::new(request.into_body(), LARGEST).collect();
    let body: Bytes = match tokio::time::timeout(SLOWEST, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Err(bad("the request broke off or is too large")),
        Err(_) => return Err(bad("the request took too long")),
    };
    // The parser's own words could quote the body.
    serde_json::from_slice(&body).map_err(|error| {
        bad(&format!("the request is not as it should be (line {}, column {})", error.line(), error.column()))
    })
}

fn nothing_here() -> Response<Reply> {
    refuse(StatusCode::NOT_FOUND, code::NOT_FOUND, "the control part does not offer this")
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response<Reply> {
    let refusal = Refusal { error: RefusalBody { code: code.to_owned(), message: message.to_owned() } };
    answer::value(status, &refusal)
}
