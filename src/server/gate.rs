//! Who may ask for what: the Host of every request, the credential that a path wants, and where a browser's
//! request came from. Everything that is not known to be right is refused.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::app::App;
use super::hosts::split;
use super::reply::ApiError;
use super::route::Access;
use super::sessions::Key;
use crate::failure::{Exit, Explain};
use crate::secret::Secret;

/// What a page may do: load its own files and talk to this origin. `require-trusted-types-for` makes the browser
/// itself refuse to take text as HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'";

/// Who sends a request, once it was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Nobody in particular: the path is open.
    Anybody,
    /// One who holds the core token.
    Token,
    /// A signed-in browser.
    Session(Key),
}

/// The core token, kept as its hash.
pub struct CoreToken([u8; 32]);

impl CoreToken {
    /// The token that is asked for.
    pub fn new(token: &Secret) -> Self {
        Self(Sha256::digest(token.expose().as_bytes()).into())
    }
    /// Compares in a time that tells nothing, not even the length.
    fn is(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        self.0.ct_eq(&shown).into()
    }
}

/// A request was refused before anything looked at it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    /// No Host, or more than one.
    #[error("a request must name exactly one `Host`")]
    HostCount,
    /// A name that is not ours.
    #[error("core does not answer to the name `{0}`")]
    HostForeign(String),
    /// A page of another site sent it.
    #[error("this request comes from a page of another site")]
    OriginForeign,
    /// No credential, or a wrong one.
    #[error("this needs the core token, or a signed-in browser")]
    SignedOut,
    /// A browser's session asked for a change.
    #[error("a browser's session can only read in this version")]
    ReadsOnly,
}

impl Explain for GateError {
    fn code(&self) -> &'static str {
        match self {
            Self::HostCount | Self::HostForeign(_) => "host-foreign",
            Self::OriginForeign => "origin-foreign",
            Self::SignedOut => "signed-out",
            Self::ReadsOnly => "session-reads-only",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::HostCount => "open `http://localhost:4317`, or send one `Host` header".into(),
            Self::HostForeign(_) => {
                "use `localhost`, or start core with `--allow-host NAME` (WORCA_ALLOW_HOSTS)".into()
            }
            Self::OriginForeign => "open Worca's own page, or use the command line".into(),
            Self::SignedOut => "run `worca container open` for a sign-in link, or name the token file with \
                                `--core-token-file`"
                .into(),
            Self::ReadsOnly => "use the command line: `worca run`, `worca stop`".into(),
        })
    }
    fn exit(&self) -> Exit {
        match self {
            Self::SignedOut => Exit::Refused,
            _ => Exit::Usage,
        }
    }
}

/// Around everything: checks the Host and puts the security headers on each answer, errors too.
pub async fn outer(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match app.hosts().check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(error) => ApiError::from(error).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Around each path: lets through who may, and tells the handler who it is.
pub async fn inner(State((app, access)): State<(App, Access)>, mut request: Request, next: Next) -> Response {
    match admit(&app, access, request.method(), request.headers(), Instant::now()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => ApiError::from(error).into_response(),
    }
}

/// Whether who sends these headers may read.
pub fn may_read(app: &App, headers: &HeaderMap) -> bool {
    admit(app, Access::Read, &Method::GET, headers, Instant::now()).is_ok()
}

fn admit(
    app: &App,
    access: Access,
    method: &Method,
    headers: &HeaderMap,
    now: Instant,
) -> Result<Caller, GateError> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads && !is_same_origin(headers) {
        return Err(GateError::OriginForeign);
    }
    if access == Access::Open {
        return Ok(Caller::Anybody);
    }
    // Who shows a token is judged by the token alone.
    if headers.contains_key(header::AUTHORIZATION) {
        return match bearer(headers) {
            Some(shown) if app.token().is(shown) => Ok(Caller::Token),
            _ => Err(GateError::SignedOut),
        };
    }
    let session = cookies(headers, app.cookie()).find_map(|cookie| app.sessions().find(cookie, now));
    let session = session.ok_or(GateError::SignedOut)?;
    if !is_same_origin(headers) {
        return Err(GateError::OriginForeign);
    }
    if !reads || access == Access::Change {
        return Err(GateError::ReadsOnly);
    }
    Ok(Caller::Session(session))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The values of the cookies of that name: at most eight are looked at.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(known, _)| *known == name)
        .map(|(_, value)| value)
        .take(8)
}

/// Whether a browser says that this request comes from our own page, or typed by a person; a program that is no
/// browser says nothing. `same-site` is foreign: another port of localhost is another program.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if !sites.all(|site| site == "same-origin" || site == "none") {
        return false;
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.all(|origin| {
        let origin = origin.to_str().ok().and_then(|text| {
            let (scheme, rest) = text.split_once("://")?;
            let (host, port) = split(rest)?;
            let usual = match scheme {
                "http" => 80,
                "https" => 443,
                _ => return None,
            };
            Some((host, port.unwrap_or(usual), usual))
        });
        let host = headers.get(header::HOST).and_then(|host| split(host.to_str().ok()?));
        match (origin, host) {
            (Some((origin, origin_port, usual)), Some((host, port))) => {
                origin == host && origin_port == port.unwrap_or(usual)
            }
            _ => false,
        }
    })
}
