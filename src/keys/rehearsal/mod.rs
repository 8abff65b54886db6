//! Rehearsal: a scripted model that speaks the Messages API, so that a whole run goes with no account, no key
//! and no internet. Which turn comes next is read from the conversation that is sent; all that is kept, with the pass,
//! is how often an answer in which something goes wrong was asked for.

mod request;
mod scenario;
mod script;
mod speech;
mod words;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Body as _;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use tokio::sync::Semaphore;

use super::answer::{self, Reply};
use super::pass::Live;
use super::slot::Ask;
use super::transfer::Upload;
use super::wire::{RefusalKind, Scenario};
use request::Asked;
use scenario::parse;
pub use scenario::{check_scenario, scenario_names};
pub(super) use script::Attempts;
pub use script::Script;
use script::{Failure, Fault, Turn};
use speech::{End, Speech};

/// The largest conversation that is taken, in bytes. A scripted one is far below it.
const LARGEST: usize = 8 * 1024 * 1024;
/// How long one may take to come.
const SLOWEST: Duration = Duration::from_secs(60);
/// How much of all conversations is held at a time, in KiB: the others wait.
const HELD: usize = 16 * 1024;

static ROOM: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(HELD));

/// The scenario that is asked for, ready to be played.
///
/// # Errors
/// When there is none of that name, or its text is none; with a sentence.
pub(super) fn find(scenario: &Scenario) -> Result<Arc<Script>, String> {
    match scenario {
        Scenario::Named(name) => scenario::find(name).ok_or_else(|| {
            let known: Vec<&str> = scenario_names().collect();
            let name: String = name.chars().take(60).collect();
            format!("there is no scenario `{name}`; there are {}", known.join(", "))
        }),
        Scenario::Text(text) => match parse(text) {
            Ok(script) => Ok(Arc::new(script)),
            Err(error) => Err(format!("the scenario cannot be played: {error}")),
        },
    }
}

/// Answers a request to the rehearsal slot with the scenario that the pass is bound to.
pub(super) async fn answer(request: Request<Upload>, live: &Live, ask: Ask) -> Response<Reply> {
    let Some(script) = &live.bond.scenario else { return answer::not_found() };
    match ask {
        Ask::Presence => answer::empty(StatusCode::OK),
        // Not a path of this slot, which speaks Anthropic's API.
        Ask::ChatCompletions | Ask::Responses => answer::not_found(),
        Ask::Models => answer::value(StatusCode::OK, &models()),
        Ask::CountTokens | Ask::Messages => {
            let (asked, tokens) = match read(request.into_body()).await {
                Ok(read) => read,
                Err(refused) => return refused,
            };
            if ask == Ask::CountTokens {
                return answer::value(StatusCode::OK, &serde_json::json!({ "input_tokens": tokens }));
            }
            play(script, live, &asked, tokens).await
        }
    }
}

async fn play(script: &Script, live: &Live, asked: &Asked, tokens: u64) -> Response<Reply> {
    let (spoken, aside) = (asked.messages.spoken, asked.is_aside());
    let scripted = if aside { None } else { script.turn(spoken) };
    let fault = scripted.and_then(|turn| live.attempts.fault(turn, spoken));
    tracing::info!(pass = %live.id, run = %live.bond.run, turn = spoken, aside, fault = fault.is_some(), "the scripted model answers");
    let mut turn = match scripted {
        Some(turn) => turn.clone(),
        None if aside => Turn::says("Rehearsal"),
        None => Turn::says("The rehearsal is over: there is nothing left to do."),
    };
    asked.messages.words.fill(&mut turn);
    let pause = turn.pause;
    let speech = Speech::new(&asked.model, turn, tokens);
    match fault {
        None if asked.stream => speech.stream(&End::Whole),
        None => speech.whole(None).await,
        Some(Fault::Cut(place)) if asked.stream => speech.stream(&End::Cut(place)),
        Some(Fault::Cut(place)) => speech.whole(Some(place)).await,
        Some(Fault::Error(error)) if asked.stream => speech.stream(&End::Error(error)),
        Some(Fault::Error(error)) => {
            tokio::time::sleep(pause).await;
            failed(&error.failure, live)
        }
        Some(Fault::Fail(failure)) => failed(&failure, live),
    }
}

/// An error as a provider gives it, and as it reaches an agent: 401 speaks of the saved key, and becomes 403.
fn failed(failure: &Failure, live: &Live) -> Response<Reply> {
    if failure.status == StatusCode::UNAUTHORIZED.as_u16() {
        let message = format!("worca: the scripted provider refused the key (401): {}", failure.message);
        live.refused(RefusalKind::Key, &message);
        return answer::error(StatusCode::FORBIDDEN, failure.kind, &message);
    }
    let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = answer::error(status, failure.kind, &failure.message);
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

async fn read(body: Upload) -> Result<(Asked, u64), Response<Reply>> {
    let bad = |message: &str| answer::error(StatusCode::BAD_REQUEST, "invalid_request_error", message);
    let hint = body.size_hint();
    if hint.lower() > LARGEST as u64 {
        return Err(answer::too_large(LARGEST as u64));
    }
    let most = hint.upper().unwrap_or(LARGEST as u64).min(LARGEST as u64);
    let kilobytes = u32::try_from(most / 1024 + 1).unwrap_or(u32::MAX);
    let gathered = tokio::time::timeout(SLOWEST, async {
        // The semaphore is never closed.
        let room = ROOM.acquire_many(kilobytes).await.ok();
        (Limited::new(body, LARGEST).collect().await, room)
    });
    let (gathered, _room) = match gathered.await {
        Ok((Ok(gathered), room)) => (gathered.to_bytes(), room),
        Ok((Err(error), _)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(answer::too_large(LARGEST as u64));
        }
        Ok((Err(_), _)) => return Err(bad("worca: the request broke off")),
        Err(_) => {
            let message = "worca: the request took too long";
            return Err(answer::error(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message));
        }
    };
    let asked = serde_json::from_slice(&gathered)
        .map_err(|_| bad("worca: the rehearsal could not read this as a request for messages"))?;
    Ok((asked, speech::tokens(gathered.len())))
}

fn models() -> serde_json::Value {
    let data: Vec<_> = scenario_names()
        .map(|name| {
            serde_json::json!({
                "type": "model", "id": format!("rehearsal/{name}"), "display_name": format!("Rehearsal: {name}"),
                "created_at": "2026-01-01T00:00:00Z",
            })
        })
        .collect();
    serde_json::json!({ "data": data, "has_more": false, "first_id": null, "last_id": null })
}
