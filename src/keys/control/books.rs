//! The books as core asks for them, and the caps that stand in them.

use hyper::{Response, StatusCode};

use super::refuse;
use crate::failure::Explain as _;
use crate::keys::answer::{self, Reply};
use crate::keys::books::BooksError;
use crate::keys::serve::Shared;
use crate::keys::wire::{CapScope, Caps, UsageQuery, code};

/// The most caps that one request names.
const MOST: usize = 1000;

/// What was used.
pub(super) async fn usage(shared: &Shared, query: Option<&str>) -> Response<Reply> {
    let Some(query) = read(query.unwrap_or_default()) else {
        return bad("the query is not as it should be");
    };
    match shared.books.usage(query).await {
        Some(Ok(usage)) => answer::value(StatusCode::OK, &usage),
        Some(Err(error)) => failed(&error),
        None => bad("`by` takes `person`, `run`, `step`, `slot`, `model` and `day`, with commas"),
    }
}

/// Sets caps.
pub(super) async fn set_caps(shared: &Shared, wanted: Caps) -> Response<Reply> {
    if wanted.caps.len() > MOST {
        return bad("at most 1000 caps are set at a time");
    }
    let strange = wanted.caps.iter().find_map(|cap| match &cap.scope {
        CapScope::SlotMonth(slot) => shared.slots.get(slot.as_str()).is_none().then_some(slot),
        CapScope::PersonDay(_) | CapScope::PersonMonth(_) => None,
    });
    if let Some(slot) = strange {
        return refuse(StatusCode::BAD_REQUEST, code::UNKNOWN_SLOT, &format!("there is no slot `{slot}`"));
    }
    let set = wanted.caps.into_iter().map(|cap| (cap.scope, cap.limit)).collect();
    change(shared, set, Vec::new()).await
}

/// Takes caps away; one that is not there is no error.
pub(super) async fn remove_caps(shared: &Shared, scopes: Vec<CapScope>) -> Response<Reply> {
    change(shared, Vec::new(), scopes).await
}

async fn change(
    shared: &Shared,
    set: Vec<(CapScope, crate::amount::Amount)>,
    removed: Vec<CapScope>,
) -> Response<Reply> {
    match shared.books.change_caps(set, removed).await {
        Ok(()) => answer::value(StatusCode::OK, &shared.books.caps()),
        Err(error) => failed(&error),
    }
}

/// The books could not be asked.
pub(super) fn failed(error: &BooksError) -> Response<Reply> {
    tracing::error!(%error, code = error.code(), "the books could not be asked");
    refuse(StatusCode::SERVICE_UNAVAILABLE, code::NOT_READY, &error.to_string())
}

fn bad(message: &str) -> Response<Reply> {
    refuse(StatusCode::BAD_REQUEST, code::BAD_REQUEST, message)
}

/// Each parameter at most once, and no other ones.
fn read(query: &str) -> Option<UsageQuery> {
    let mut fields = serde_json::Map::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = match &*name {
            "since" | "until" => value.parse::<u64>().ok()?.into(),
            _ => value.into_owned().into(),
        };
        if fields.insert(name.into_owned(), value).is_some() {
            return None;
        }
    }
    serde_json::from_value(fields.into()).ok()
}
