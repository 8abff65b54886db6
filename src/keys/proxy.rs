//! The agent part: a pass, a slot, one of few paths; then the request goes to the slot's origin with the key on
//! and the answer comes back as it is. No redirect is followed, nothing is tried twice.
//!
//! Two answers of a provider are not passed on as they are: a redirect (502, because it would lead the agent
//! elsewhere) and 401 (403, because it speaks of the saved key, and an agent would retry it for half a minute).

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::answer::{self, Reply};
use super::credential::{Credential, X_API_KEY};
use super::headers;
use super::pass::{Dead, Live, PREFIX};
use super::rehearsal;
use super::serve::{Limits, Shared};
use super::slot::{Ask, Slot, Upstream};
use super::transfer::{Download, Fault, Note, Upload};

/// How much of a refused body is still read, so that the caller gets to see the refusal.
const DRAINED: u64 = 64 * 1024 * 1024;
/// And for how long.
const DRAINING: Duration = Duration::from_secs(10);

/// Answers a request to the agent part that came from `from`, and tells `holder` of the pass that opened it before anything flows.
pub(super) async fn answer(
    shared: &Shared,
    request: Request<Incoming>,
    from: IpAddr,
    holder: impl FnOnce(&Arc<Live>),
) -> Response<Reply> {
    let (live, slot, path) = match admit(shared, &request, from) {
        Ok(admitted) => admitted,
        Err(refused) => {
            tracing::warn!(
                reason = refused.reason(),
                pass = refused.pass(),
                "a request without a valid pass was refused"
            );
            return answer::no_pass();
        }
    };
    holder(&live);
    let plain = request.uri().authority().is_none() && request.uri().scheme().is_none();
    let Some(ask) = Ask::of(request.method(), path).filter(|_| plain) else {
        tracing::warn!(pass = %live.id, run = %live.bond.run, slot = %slot.name, "a request for what the slot does not offer was refused");
        return answer::not_found();
    };
    if ask == Ask::Presence {
        return answer::empty(StatusCode::OK);
    }
    match &slot.upstream {
        Upstream::Rehearsal => rehearsal::answer(request, &live, ask).await,
        Upstream::Provider(_) => forward(shared, request, &live, slot).await,
    }
}

enum Refused {
    /// No pass, two of them, or something else in its place.
    Missing,
    Dead(Dead),
    /// The pass is for another slot.
    Foreign(Arc<Live>),
}

impl Refused {
    fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Dead(Dead::Unknown) => "unknown",
            Self::Dead(Dead::Revoked(_)) => "revoked",
            Self::Dead(Dead::Expired(_)) => "expired",
            Self::Dead(Dead::Elsewhere(_)) => "from another address",
            Self::Foreign(_) => "for another slot",
        }
    }
    fn pass(&self) -> Option<&str> {
        match self {
            Self::Missing | Self::Dead(Dead::Unknown) => None,
            Self::Dead(Dead::Revoked(id) | Dead::Expired(id) | Dead::Elsewhere(id)) => Some(id.as_str()),
            Self::Foreign(live) => Some(live.id.as_str()),
        }
    }
}

/// The pass, its slot, and the path below the slot as it came.
fn admit<'a, 'b>(
    shared: &'a Shared,
    request: &'b Request<Incoming>,
    from: IpAddr,
) -> Result<(Arc<Live>, &'a Slot, &'b str), Refused> {
    let presented = presented(request.headers()).ok_or(Refused::Missing)?;
    let live = shared.passes.look_up(presented, from).map_err(Refused::Dead)?;
    let path = request.uri().path().strip_prefix('/').unwrap_or("");
    let name = path.split('/').next().unwrap_or("");
    let rest = path.get(name.len()..).unwrap_or("");
    match shared.slots.get(name) {
        Some(slot) if slot.name == live.bond.slot => Ok((live, slot, rest)),
        Some(_) | None => Err(Refused::Foreign(live)),
    }
}

/// The one pass that the request carries, as Bearer or as `x-api-key`; both may carry the same.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let bearer =
        headers.get_all(AUTHORIZATION).iter().map(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let keys = headers.get_all(X_API_KEY).iter().map(|value| value.to_str().ok());
    let mut all = bearer.chain(keys);
    let first = all.next()??;
    (first.starts_with(PREFIX) && all.all(|other| other == Some(first))).then_some(first)
}

async fn forward(
    shared: &Shared,
    request: Request<Incoming>,
    live: &Arc<Live>,
    slot: &Slot,
) -> Response<Reply> {
    let began = Instant::now();
    let (credential, client) = match (shared.ready(slot).await, &shared.client) {
        (Ok(Some(credential)), Some(client)) => (credential, client),
        (found, _) => {
            let why = found.err().map(|why| why.to_string()).unwrap_or_default();
            tracing::warn!(pass = %live.id, slot = %slot.name, why, "a request was refused because the slot has no key to use");
            let message =
                format!("worca: slot `{}` cannot be used: {why}; see `worca container login`", slot.name);
            return answer::error(StatusCode::FORBIDDEN, "permission_error", &message);
        }
    };
    let limits = &shared.limits;
    if request.body().size_hint().lower() > limits.body {
        let waits = request.headers().contains_key(EXPECT);
        return refuse_large(limits, request.into_body(), waits).await;
    }
    let Some(upstream) = upstream_uri(&credential, slot, request.uri()) else { return answer::not_found() };
    let (parts, body) = request.into_parts();
    let (upload, rest) = Upload::new(body, limits.body, limits.idle);
    let mut outward = Request::new(upload);
    *outward.method_mut() = parts.method;
    *outward.uri_mut() = upstream;
    *outward.headers_mut() = headers::outward(&parts.headers, &credential);
    shared.keyring.used(&slot.name);
    let answered = tokio::time::timeout(limits.head, client.request(outward)).await;
    match answered {
        Ok(Ok(response)) => pass_back(response, &credential, slot, live, limits, began),
        Ok(Err(error)) => match rest.take() {
            Some((Fault::TooLarge, body)) => refuse_large(limits, body, false).await,
            Some((Fault::Idle, _)) => answer::error(
                StatusCode::REQUEST_TIMEOUT,
                "invalid_request_error",
                "worca: the request fell silent before it was whole",
            ),
            Some((Fault::Broken, _)) => answer::error(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "worca: the request broke off",
            ),
            None => {
                let why = why_unreachable(&error);
                tracing::warn!(pass = %live.id, slot = %slot.name, why, "the provider could not be reached");
                let message = format!("worca: the provider of slot `{}` cannot be reached: {why}", slot.name);
                answer::error(StatusCode::BAD_GATEWAY, "api_error", &message)
            }
        },
        Err(_) => {
            tracing::warn!(pass = %live.id, slot = %slot.name, "the provider did not begin to answer in time");
            let message = format!("worca: the provider of slot `{}` did not answer in time", slot.name);
            answer::error(StatusCode::GATEWAY_TIMEOUT, "api_error", &message)
        }
    }
}

/// The slot's origin with the path and query as they came. The path was compared with the list before.
fn upstream_uri(credential: &Credential, slot: &Slot, asked: &Uri) -> Option<Uri> {
    let whole = asked.path_and_query()?.as_str();
    let rest = whole.strip_prefix('/')?.strip_prefix(slot.name.as_str())?;
    Uri::try_from(format!("{}{rest}", credential.origin)).ok()
}

fn pass_back(
    response: Response<Incoming>,
    credential: &Credential,
    slot: &Slot,
    live: &Live,
    limits: &Limits,
    began: Instant,
) -> Response<Reply> {
    let (parts, body) = response.into_parts();
    let status = parts.status;
    if status.is_informational() || (status.is_redirection() && status != StatusCode::NOT_MODIFIED) {
        tracing::warn!(pass = %live.id, slot = %slot.name, status = status.as_u16(), "the provider answered with a redirect, which is not followed");
        let message = format!(
            "worca: the provider of slot `{}` answered with a redirect ({}), which is not followed",
            slot.name,
            status.as_u16()
        );
        return answer::error(StatusCode::BAD_GATEWAY, "api_error", &message);
    }
    if status == StatusCode::UNAUTHORIZED {
        tracing::warn!(pass = %live.id, slot = %slot.name, "the provider refused the saved key");
        let message = format!(
            "worca: the provider refused the key saved for slot `{}` (401); save another with `worca container login`",
            slot.name
        );
        let mut refused = answer::error(StatusCode::FORBIDDEN, "authentication_error", &message);
        if let Some(id) = headers::back(&parts.headers, credential).get("request-id") {
            refused.headers_mut().insert("request-id", id.clone());
        }
        return refused;
    }
    let failed = status.is_client_error() || status.is_server_error();
    let events = parts.headers.get(CONTENT_TYPE).is_some_and(is_event_stream);
    let needle = failed.then(|| credential.needle());
    let note =
        Note { pass: live.id.to_string(), run: live.bond.run.to_string(), status: status.as_u16(), began };
    let mut back = Response::new(Download::new(body, limits.idle, events, needle, note).boxed_unsync());
    *back.status_mut() = status;
    *back.version_mut() = Version::HTTP_11;
    *back.headers_mut() = headers::back(&parts.headers, credential);
    back
}

fn is_event_stream(value: &HeaderValue) -> bool {
    value.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Answers 413. A caller that is already sending would see a broken connection instead of the answer, so
/// what it sends is read, and thrown away, for a while.
async fn refuse_large(limits: &Limits, mut body: Incoming, waits: bool) -> Response<Reply> {
    if !waits {
        let drain = async {
            let mut thrown = 0u64;
            while let Some(Ok(frame)) = body.frame().await {
                thrown += frame.data_ref().map_or(0, |data| data.len() as u64);
                if thrown > DRAINED {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(DRAINING, drain).await;
    }
    let mut refused = answer::too_large(limits.body);
    if waits {
        refused.headers_mut().insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
    }
    refused.headers_mut().remove(CONTENT_LENGTH);
    refused
}

/// The innermost cause, in its own words: it names hosts and faults of the network, never a header.
fn why_unreachable(error: &hyper_util::client::legacy::Error) -> String {
    let mut cause = error.source();
    let mut text = String::from("the connection failed");
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text.chars().filter(|character| !character.is_control()).take(200).collect()
}
