//! The agent part: a pass, a slot, one of few paths; then the call is admitted, goes to the slot's origin with the key
//! on, and the answer comes back as it is, counted. No redirect is followed, nothing is tried twice.
//!
//! Three answers of a provider are not passed on as they are: a redirect (502, because it would lead the agent
//! elsewhere), 401 (403, because it speaks of the saved key, and an agent would retry it for half a minute), and an
//! answer in a coding that nobody asked for (502, because neither a key nor what was used could be seen in it).

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderValue,
};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::admission::Admission;
use super::answer::{self, Reply};
use super::credential::{Credential, X_API_KEY};
use super::headers;
use super::pass::{Dead, Live, PREFIX};
use super::rehearsal;
use super::serve::{Limits, Shared};
use super::slot::{Api, Ask, Endpoint, Slot, Upstream};
use super::transfer::{self, Download, Fault, From, Note, Slip, Stop, Upload};
use super::upstream::UpstreamClient;
use super::wire::RefusalKind;

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
    let Some(ask) = Ask::of(&slot.apis, request.method(), path).filter(|_| plain) else {
        tracing::warn!(pass = %live.id, run = %live.bond.run, slot = %slot.name, "a request for what the slot does not offer was refused");
        return answer::not_found();
    };
    if ask == Ask::Presence {
        return answer::empty(StatusCode::OK);
    }
    let exchange = match exchange(shared, live, slot, ask).await {
        Ok(exchange) => exchange,
        Err(refused) => return refused,
    };
    exchange.make(request).await
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

/// One request that may go on.
struct Exchange<'a> {
    shared: &'a Shared,
    live: Arc<Live>,
    slot: &'a Slot,
    ask: Ask,
    /// `None` for the scripted model.
    provider: Option<Provider<'a>>,
    slip: Arc<Slip>,
    began: Instant,
}

/// Who answers, and what is put on for it.
struct Provider<'a> {
    /// `None` where the slot takes no key.
    credential: Option<Arc<Credential>>,
    endpoint: &'a Endpoint,
    client: &'a UpstreamClient,
}

impl Provider<'_> {
    /// The bytes that must never come back.
    fn needle(&self) -> &[u8] {
        self.credential.as_deref().map(Credential::needle).unwrap_or_default()
    }
}

/// Finds who answers, and the key for it.
async fn exchange<'a>(
    shared: &'a Shared,
    live: Arc<Live>,
    slot: &'a Slot,
    ask: Ask,
) -> Result<Exchange<'a>, Response<Reply>> {
    let provider = if slot.upstream == Upstream::Rehearsal {
        None
    } else {
        let ready = shared.ready(slot, &live.bond.person).await;
        match (ready, slot.endpoint(), &shared.client) {
            (Ok(credential), Some(endpoint), Some(client)) => Some(Provider { credential, endpoint, client }),
            (found, _, _) => {
                let why = found.err().map(|why| why.to_string()).unwrap_or_default();
                tracing::warn!(pass = %live.id, slot = %slot.name, why, "a request was refused because the slot cannot be used");
                let message =
                    format!("worca: slot `{}` cannot be used: {why}; see `worca container login`", slot.name);
                live.refused(RefusalKind::Key, &message);
                return Err(answer::error(StatusCode::FORBIDDEN, "permission_error", &message));
            }
        }
    };
    Ok(Exchange { shared, live, slot, ask, provider, slip: Arc::default(), began: Instant::now() })
}

impl Exchange<'_> {
    async fn make(&self, request: Request<Incoming>) -> Response<Reply> {
        let limits = &self.shared.limits;
        if request.body().size_hint().lower() > limits.body {
            let waits = request.headers().contains_key(EXPECT);
            return refuse_large(limits, request.into_body(), waits).await;
        }
        let (parts, body) = request.into_parts();
        let upload = match Upload::begin(body, (limits.body, limits.idle), &self.slip, self.admission()).await
        {
            Ok(upload) => upload,
            Err(Stop::Denied(denied, body)) => {
                drain(body).await;
                return denied.answer();
            }
            Err(Stop::Fault(fault, body)) => return self.faulty(fault, body).await,
        };
        let mut outward = Request::new(upload);
        *outward.method_mut() = parts.method;
        let Some(provider) = &self.provider else {
            let answered = rehearsal::answer(outward, &self.live, self.ask).await;
            return match self.stopped().await {
                Some(refused) => refused,
                None => self.play(answered),
            };
        };
        let Some(upstream) = upstream_uri(provider.endpoint, self.slot, &parts.uri) else {
            return answer::not_found();
        };
        *outward.uri_mut() = upstream;
        *outward.headers_mut() = headers::outward(&parts.headers, provider.credential.as_deref());
        if provider.credential.is_some() {
            self.shared.keyring.used(&self.slot.name, &self.live.bond.person);
        }
        let answered = tokio::time::timeout(limits.head, provider.client.request(outward)).await;
        match answered {
            Ok(Ok(response)) => self.pass_back(response, provider).await,
            Ok(Err(error)) => match self.stopped().await {
                Some(refused) => refused,
                None => self.unreachable(&error),
            },
            Err(_) => {
                tracing::warn!(pass = %self.live.id, slot = %self.slot.name, "the provider did not begin to answer in time");
                let message =
                    format!("worca: the provider of slot `{}` did not answer in time", self.slot.name);
                answer::error(StatusCode::GATEWAY_TIMEOUT, "api_error", &message)
            }
        }
    }

    /// What decides about a call that costs.
    fn admission(&self) -> Option<Admission> {
        let credential = self.provider.as_ref().and_then(|provider| provider.credential.as_deref());
        let billed = credential.is_some_and(|credential| credential.kind.is_billed());
        self.ask.costs().then(|| Admission {
            books: self.shared.books.clone(),
            live: self.live.clone(),
            free: !billed,
        })
    }

    /// The answer when the request itself was what did not go on.
    async fn stopped(&self) -> Option<Response<Reply>> {
        if let Some(denied) = self.slip.denied() {
            return Some(denied.answer());
        }
        let (fault, body) = self.slip.fault()?;
        Some(self.faulty(fault, body).await)
    }

    async fn faulty(&self, fault: Fault, body: Incoming) -> Response<Reply> {
        let kind = "invalid_request_error";
        match fault {
            Fault::TooLarge => refuse_large(&self.shared.limits, body, false).await,
            Fault::Idle => {
                let message = "worca: the request fell silent before it was whole";
                answer::error(StatusCode::REQUEST_TIMEOUT, kind, message)
            }
            Fault::Broken => answer::error(StatusCode::BAD_REQUEST, kind, "worca: the request broke off"),
        }
    }

    fn unreachable(&self, error: &hyper_util::client::legacy::Error) -> Response<Reply> {
        // What broke after the connection stood may have been answered, and paid for.
        if error.is_connect() {
            self.no_cost();
        }
        let why = why_unreachable(error);
        tracing::warn!(pass = %self.live.id, slot = %self.slot.name, why, "the provider could not be reached");
        let message = format!("worca: the provider of slot `{}` cannot be reached: {why}", self.slot.name);
        answer::error(StatusCode::BAD_GATEWAY, "api_error", &message)
    }

    /// Books the call as one that failed before it cost anything.
    fn no_cost(&self) {
        if let Some(call) = self.slip.call() {
            call.fail();
        }
    }

    /// The scripted model's answer, counted as a provider's is.
    fn play(&self, answered: Response<Reply>) -> Response<Reply> {
        let (parts, body) = answered.into_parts();
        if !parts.status.is_success() {
            self.no_cost();
        }
        let body = self.download(From::Here(body), &parts.headers, parts.status, None);
        Response::from_parts(parts, body)
    }

    fn download(&self, from: From, headers: &HeaderMap, status: StatusCode, needle: Option<&[u8]>) -> Reply {
        let events = headers.get(CONTENT_TYPE).is_some_and(is_event_stream);
        let note = Note { live: self.live.clone(), status: status.as_u16(), began: self.began };
        let body = Download::new(from, self.shared.limits.idle, events, needle, note);
        match self.ask {
            ask if !ask.costs() || !status.is_success() => body.boxed_unsync(),
            ask => body.metered(ask.api().unwrap_or(Api::Anthropic), self.slip.clone()).boxed_unsync(),
        }
    }

    async fn pass_back(&self, response: Response<Incoming>, provider: &Provider<'_>) -> Response<Reply> {
        let (parts, body) = response.into_parts();
        let status = parts.status;
        let mut back = Response::new(answer::no_body());
        *back.status_mut() = status;
        *back.version_mut() = Version::HTTP_11;
        *back.headers_mut() = headers::back(&parts.headers, provider.credential.as_deref());
        if status.is_client_error() || status.is_server_error() {
            self.no_cost();
            return self.pass_error(parts.headers, body, back, provider).await;
        }
        let strange =
            if status.is_informational() || (status.is_redirection() && status != StatusCode::NOT_MODIFIED) {
                Some(format!("with a redirect ({}), which is not followed", status.as_u16()))
            } else if packed(&parts.headers) {
                Some("in a coding that was not asked for, in which nothing can be counted".to_owned())
            } else {
                None
            };
        if let Some(strange) = strange {
            self.no_cost();
            tracing::warn!(pass = %self.live.id, slot = %self.slot.name, status = status.as_u16(), "the provider answered {strange}");
            let message = format!("worca: the provider of slot `{}` answered {strange}", self.slot.name);
            return answer::error(StatusCode::BAD_GATEWAY, "api_error", &message);
        }
        *back.body_mut() = self.download(From::Wire(body), &parts.headers, status, Some(provider.needle()));
        back
    }

    /// A provider's error: its status and headers as they came, its text without anything that looks like a key.
    async fn pass_error(
        &self,
        headers: HeaderMap,
        body: Incoming,
        mut back: Response<Reply>,
        provider: &Provider<'_>,
    ) -> Response<Reply> {
        let status = back.status();
        let body = body.map_err(answer::CutError::Broken);
        let error = transfer::gather(body, &headers, self.shared.limits.idle, provider.needle()).await;
        let (live, slot) = (&self.live, &self.slot.name);
        tracing::warn!(pass = %live.id, run = %live.bond.run, %slot, status = status.as_u16(), kind = error.kind, said = error.message, milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX), "the provider answered with an error");
        if status == StatusCode::UNAUTHORIZED {
            let message = format!(
                "worca: the provider refused the key saved for slot `{slot}` (401); save another with `worca container login`"
            );
            live.refused(RefusalKind::Key, &message);
            let mut refused = answer::error(StatusCode::FORBIDDEN, "authentication_error", &message);
            if let Some(id) = back.headers_mut().remove("request-id") {
                refused.headers_mut().insert("request-id", id);
            }
            return refused;
        }
        back.headers_mut().remove(CONTENT_ENCODING);
        back.headers_mut().remove(CONTENT_LENGTH);
        let body = error.body.unwrap_or_else(|| {
            let message = format!(
                "worca: the provider of slot `{slot}` answered with an error ({}) that is too long, or in a coding that \
                 cannot be searched for keys",
                status.as_u16()
            );
            back.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            answer::error_text("api_error", &message).into()
        });
        *back.body_mut() = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        back
    }
}

/// Whether a body is coded in a way that was not asked for.
fn packed(headers: &HeaderMap) -> bool {
    let plain = |coding: &HeaderValue| matches!(coding.as_bytes().trim_ascii(), b"" | b"identity");
    !headers.get_all(CONTENT_ENCODING).iter().all(plain)
}

/// The slot's endpoint with the path and query as they came. The path was compared with the list before.
fn upstream_uri(endpoint: &Endpoint, slot: &Slot, asked: &Uri) -> Option<Uri> {
    let whole = asked.path_and_query()?.as_str();
    let rest = whole.strip_prefix('/')?.strip_prefix(slot.name.as_str())?;
    Uri::try_from(format!("{endpoint}{rest}")).ok()
}

fn is_event_stream(value: &HeaderValue) -> bool {
    value.as_bytes().get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Reads the rest of a refused body, and throws it away, for a while: a caller that is already sending would see a
/// broken connection instead of the answer.
async fn drain(mut body: Incoming) {
    let drained = async {
        let mut thrown = 0u64;
        while let Some(Ok(frame)) = body.frame().await {
            thrown += frame.data_ref().map_or(0, |data| data.len() as u64);
            if thrown > DRAINED {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAINING, drained).await;
}

/// Answers 413.
async fn refuse_large(limits: &Limits, body: Incoming, waits: bool) -> Response<Reply> {
    if !waits {
        drain(body).await;
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
