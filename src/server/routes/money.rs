//! What was used, by the books of the key service, and the budgets that it holds everybody to. Core keeps none of it:
//! it asks.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::routing::{delete, get, put};
use serde::Deserialize;

use crate::amount::{Amount, ParseAmountError};
use crate::failure::{Exit, Explain};
use crate::ids::{PersonId, RunId};
use crate::keys::client::{Caps, UsageQuery};
use crate::keys::slot::SlotName;
use crate::keys::wire::{Cap, CapScope};
use crate::server::App;
use crate::server::reply::{ApiError, ApiResult, Body, RequestError};
use crate::server::route::{Access, Route};
use crate::server::wire::ErrorAnswer;
use crate::server::wire::money::{BudgetList, BudgetScope, CostsAnswer, SetBudget};

/// What rows can be put together by, in the order in which they are told.
const BY: [&str; 6] = ["person", "run", "step", "slot", "model", "day"];

/// No such budget.
#[derive(Debug, thiserror::Error)]
pub enum BudgetRequestError {
    /// None stands there.
    #[error("there is no {scope} budget of `{of}`")]
    None {
        /// What it would be for.
        scope: &'static str,
        /// Of whom.
        of: String,
    },
    /// Not an amount.
    #[error(transparent)]
    Amount(#[from] ParseAmountError),
}

impl Explain for BudgetRequestError {
    fn code(&self) -> &'static str {
        match self {
            Self::None { .. } => "budget-none",
            Self::Amount(_) => "budget-amount",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::None { .. } => Some("`worca budgets list` shows those that stand".into()),
            Self::Amount(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Which costs are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostsQuery {
    by: Option<String>,
    run: Option<RunId>,
    person: Option<PersonId>,
    since: Option<u64>,
    until: Option<u64>,
}

/// What was used of models, by the books of the key service.
#[utoipa::path(get, path = "/api/costs",
    params(
        ("by" = Option<String>, Query, description = "How rows are put together: some of `person`, `run`, `step`, \
            `slot`, `model`, `day`, with commas. All in one row without it."),
        ("run" = Option<String>, Query, description = "Of one run."),
        ("person" = Option<String>, Query, description = "Of one person."),
        ("since" = Option<u64>, Query, description = "Calls that ended at this time or later (milliseconds since 1970)."),
        ("until" = Option<u64>, Query, description = "Calls that ended before this time."),
    ),
    responses(
        (status = 200, body = CostsAnswer),
        (status = 400, body = ErrorAnswer),
        (status = 401, body = ErrorAnswer),
        (status = 502, body = ErrorAnswer, description = "The key service does not answer."),
    ))]
pub async fn costs(
    State(app): State<App>,
    query: Result<Query<CostsQuery>, QueryRejection>,
) -> ApiResult<Json<CostsAnswer>> {
    let Query(query) =
        query.map_err(|error| RequestError::Parameter { name: "query", why: error.body_text() })?;
    let by = by(query.by.as_deref().unwrap_or_default())?;
    let CostsQuery { run, person, since, until, .. } = query;
    let usage = app.runs().keys().usage(&UsageQuery { by, run, person, since, until }).await?;
    Ok(Json(usage.into()))
}

/// The words of `by`, each once.
fn by(text: &str) -> Result<String, RequestError> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some(known) = BY.iter().find(|known| **known == word) else {
            let word: String = word.chars().take(40).collect();
            let why = format!("`{word}` is none of {}", BY.map(|word| format!("`{word}`")).join(", "));
            return Err(RequestError::Parameter { name: "by", why });
        };
        if !words.contains(known) {
            words.push(known);
        }
    }
    Ok(words.join(","))
}

/// The budget that the path names.
pub struct BudgetPath(CapScope);

impl<S: Send + Sync> FromRequestParts<S> for BudgetPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let wrong = |name, why: String| ApiError::from(RequestError::Parameter { name, why });
        let Path((scope, of)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|error| wrong("of", error.body_text()))?;
        let Some(scope) = BudgetScope::parse(&scope) else {
            let known = BudgetScope::ALL.map(|scope| format!("`{}`", scope.as_str())).join(", ");
            let scope: String = scope.chars().take(40).collect();
            return Err(wrong("scope", format!("`{scope}` is none of {known}")));
        };
        let person = || PersonId::parse(&of).map_err(|error| wrong("of", error.to_string()));
        Ok(Self(match scope {
            BudgetScope::PersonDay => CapScope::PersonDay(person()?),
            BudgetScope::PersonMonth => CapScope::PersonMonth(person()?),
            BudgetScope::SlotMonth => {
                CapScope::SlotMonth(SlotName::parse(&of).map_err(|error| wrong("of", error.to_string()))?)
            }
        }))
    }
}

/// Lists the budgets that stand, with what is spent of each now.
#[utoipa::path(get, path = "/api/budgets", responses(
    (status = 200, body = BudgetList),
    (status = 401, body = ErrorAnswer),
    (status = 502, body = ErrorAnswer, description = "The key service does not answer."),
))]
pub async fn list(State(app): State<App>) -> ApiResult<Json<BudgetList>> {
    Ok(Json(app.runs().keys().caps().await?.into()))
}

/// Sets a budget, new or in place of the one that stands. It holds at once, for what is at work too.
#[utoipa::path(put, path = "/api/budgets/{scope}/{of}",
    params(
        ("scope" = BudgetScope, Path, description = "What it is for."),
        ("of" = String, Path, description = "Of which person or slot."),
    ),
    request_body = SetBudget,
    responses(
        (status = 200, body = BudgetList, description = "The budgets that stand now."),
        (status = 400, body = ErrorAnswer),
        (status = 401, body = ErrorAnswer),
        (status = 502, body = ErrorAnswer, description = "The key service refuses it or does not answer."),
    ))]
pub async fn set(
    State(app): State<App>,
    BudgetPath(scope): BudgetPath,
    Body(wanted): Body<SetBudget>,
) -> ApiResult<Json<BudgetList>> {
    let limit: Amount = wanted.limit.parse().map_err(BudgetRequestError::from)?;
    let caps = Caps { caps: vec![Cap { scope, limit, spent: 0 }] };
    Ok(Json(app.runs().keys().set_caps(&caps).await?.into()))
}

/// Removes a budget.
#[utoipa::path(delete, path = "/api/budgets/{scope}/{of}",
    params(
        ("scope" = BudgetScope, Path, description = "What it is for."),
        ("of" = String, Path, description = "Of which person or slot."),
    ),
    responses(
        (status = 200, body = BudgetList, description = "The budgets that stand now."),
        (status = 401, body = ErrorAnswer),
        (status = 404, body = ErrorAnswer),
        (status = 502, body = ErrorAnswer, description = "The key service does not answer."),
    ))]
pub async fn remove(State(app): State<App>, BudgetPath(scope): BudgetPath) -> ApiResult<Json<BudgetList>> {
    let keys = app.runs().keys();
    if !keys.caps().await?.caps.iter().any(|cap| cap.scope == scope) {
        let (scope, of) = match scope {
            CapScope::PersonDay(person) => (BudgetScope::PersonDay, person.to_string()),
            CapScope::PersonMonth(person) => (BudgetScope::PersonMonth, person.to_string()),
            CapScope::SlotMonth(slot) => (BudgetScope::SlotMonth, slot.to_string()),
        };
        return Err(BudgetRequestError::None { scope: scope.as_str(), of }.into());
    }
    Ok(Json(keys.remove_caps(std::slice::from_ref(&scope)).await?.into()))
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/costs", Access::Read, get(costs)),
        Route::get("/api/budgets", Access::Read, get(list)),
        Route::change(Method::PUT, "/api/budgets/{scope}/{of}", put(set)),
        Route::change(Method::DELETE, "/api/budgets/{scope}/{of}", delete(remove)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_together_by_known_words_each_once() {
        assert_eq!(by("").unwrap(), "");
        assert_eq!(by("day, model,day").unwrap(), "day,model");
        assert!(by("model,price").unwrap_err().to_string().contains("`price` is none of `person`"));
    }
}
