//! The control part: core alone, by its bearer secret, mints, renews and revokes passes, asks how
//! things are and what was used, and sets caps.

mod books;
mod passes;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::{Method, Request, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::answer::{self, Reply};
use super::serve::Shared;
use super::wire::{ReadyRequest, Refusal, RefusalBody, RenewRequest, SlotStatus, Status, code};
use crate::ids::{PassId, PersonId};
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

/// Answers a request below `/control/` that came from `from`.
pub(super) async fn answer(shared: &Shared, request: Request<Incoming>, from: IpAddr) -> Response<Reply> {
    if !shared.control.admits(&request) {
        tracing::warn!("a request to the control part came without its secret and was refused");
        return refuse(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, "the control part needs its secret");
    }
    route(shared, request, from).await.unwrap_or_else(|refusal| *refusal)
}

/// An answer that ends a request early. Boxed: it is large and rare.
type Refused = Box<Response<Reply>>;

async fn route(
    shared: &Shared,
    request: Request<Incoming>,
    from: IpAddr,
) -> Result<Response<Reply>, Refused> {
    let path = request.uri().path().to_owned();
    let known = match (request.method(), path.as_str()) {
        (&Method::GET, "/control/status") => answer::value(StatusCode::OK, &status(shared).await),
        (&Method::POST, "/control/ready") => {
            let wanted: ReadyRequest = read(request).await?;
            answer::value(StatusCode::OK, &passes::ready(shared, &wanted).await)
        }
        (&Method::POST, "/control/passes") => passes::mint(shared, read(request).await?, from).await,
        (&Method::POST, "/control/passes/renew") => {
            let wanted: RenewRequest = read(request).await?;
            answer::value(StatusCode::OK, &passes::renew(shared, &wanted.ids))
        }
        (&Method::GET, "/control/usage") => books::usage(shared, request.uri().query()).await,
        (&Method::GET, "/control/caps") => answer::value(StatusCode::OK, &shared.books.caps()),
        (&Method::PUT, "/control/caps") => books::set_caps(shared, read(request).await?).await,
        (&Method::DELETE, "/control/caps") => books::remove_caps(shared, read(request).await?).await,
        (&Method::DELETE, path) => match path.strip_prefix("/control/passes/").map(PassId::parse) {
            Some(Ok(id)) => passes::close(shared, &id).await,
            Some(Err(_)) | None => nothing_here(),
        },
        _ => nothing_here(),
    };
    Ok(known)
}

async fn status(shared: &Shared) -> Status {
    let mut slots = Vec::new();
    for slot in shared.slots.iter() {
        let origin = slot.endpoint().map(ToString::to_string);
        let found = shared.ready(slot, &PersonId::local()).await;
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

async fn read<T: serde::de::DeserializeOwned>(request: Request<Incoming>) -> Result<T, Refused> {
    let bad = |message: &str| Box::new(refuse(StatusCode::BAD_REQUEST, code::BAD_REQUEST, message));
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
