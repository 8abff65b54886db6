//! Guardrail sets: list, look at, save and delete. What is saved is checked as the command line checks it.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::routing::{delete as deleting, get, put as putting};
use serde::Serialize;
use utoipa::ToSchema;

use crate::failure::{Exit, Explain};
use crate::guardrails::{GuardrailSet, Library, Listed, Mode, Origin, OwnSets, SetName, Tier};
use crate::server::App;
use crate::server::reply::{ApiError, ApiResult, RequestError, YamlBody};
use crate::server::route::{Access, Route};
use crate::server::wire::ErrorAnswer;
use crate::store::StoreError;

/// All sets.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetList {
    /// The tiers from loose to tight, then the user's own by name, also those whose file is broken.
    pub sets: Vec<SetSummary>,
}

/// One set in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetSummary {
    /// Its name; the file's name where that is no set's name.
    pub name: String,
    /// `worca` for a tier, `own` for one of the user's.
    pub origin: &'static str,
    /// The sets that it extends, the nearest first.
    pub extends: Vec<String>,
    /// The tightest tier that it contains, with every rule and every limit.
    pub tier: Option<&'static str>,
    /// How many deny rules it comes to.
    pub rules: Option<usize>,
    /// What is wrong with it: no run can have it then.
    pub error: Option<String>,
}

/// One set.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetAnswer {
    /// What a list says of it.
    pub summary: SetSummary,
    /// Its file as it is written.
    pub yaml: String,
    /// Its rules with those of the sets that it extends, those first.
    pub rules: Vec<SetRule>,
    /// Its limits beside the rules.
    pub limits: Vec<SetLimit>,
}

/// One deny rule.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetRule {
    /// The set that brings it.
    pub set: String,
    /// `commands`, `tools` or `paths`.
    pub kind: &'static str,
    /// As it is written.
    pub pattern: String,
}

/// One limit.
#[derive(Debug, Serialize, ToSchema)]
pub struct SetLimit {
    /// Its key in the file, such as `confine.filesystem`.
    pub key: &'static str,
    /// What it comes to, in words.
    pub value: String,
}

impl SetSummary {
    fn of(listed: &Listed, library: &Library) -> (Self, Option<GuardrailSet>) {
        let origin = match listed.origin {
            Origin::Tier(_) => "worca",
            Origin::Own(_) => "own",
        };
        let name = listed.name.clone();
        let outcome = library.outcome(listed);
        let error = outcome.as_ref().err().cloned();
        let set = outcome.ok();
        let extends = set.iter().flat_map(|set| &set.extends).map(ToString::to_string).collect();
        let tier = set.as_ref().and_then(|set| library.tier_of(set)).map(Tier::as_str);
        let rules = set.as_ref().map(|set| set.rules.len());
        (Self { name, origin, extends, tier, rules, error }, set)
    }
}

impl SetAnswer {
    fn of(listed: &Listed, library: &Library) -> Self {
        let (summary, set) = SetSummary::of(listed, library);
        let rules = set.iter().flat_map(|set| &set.rules);
        let rules = rules.map(|rule| SetRule {
            set: rule.set.to_string(),
            kind: rule.kind.as_str(),
            pattern: rule.pattern.clone(),
        });
        let limits = set.iter().flat_map(GuardrailSet::limits).map(|(key, value)| SetLimit { key, value });
        Self { rules: rules.collect(), limits: limits.collect(), summary, yaml: listed.text.clone() }
    }
}

/// There is no such set at this path.
#[derive(Debug, thiserror::Error)]
#[error("there is no guardrail set `{0}`")]
struct NoSet(SetName);

impl Explain for NoSet {
    fn code(&self) -> &'static str {
        "guardrails-none"
    }
    fn hint(&self) -> Option<String> {
        Some("`GET /api/guardrails` lists those that exist".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// The set that the path names.
pub struct SetPath(pub SetName);

impl<S: Send + Sync> FromRequestParts<S> for SetPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let wrong = |why: String| ApiError::from(RequestError::Parameter { name: "name", why });
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| wrong(error.body_text()))?;
        SetName::parse(&text).map(Self).map_err(|error| wrong(error.to_string()))
    }
}

/// Work on the files, off the threads that answer.
async fn on_files<T, F>(app: &App, work: F) -> ApiResult<T>
where
    T: Send + 'static,
    F: FnOnce(&OwnSets) -> ApiResult<T> + Send + 'static,
{
    let sets = app.runs().own_sets();
    // Whole or not at all, also when the client goes away.
    app.tasks().spawn_blocking(move || work(&sets)).await.map_err(|_| ApiError::from(StoreError::Ending))?
}

/// Lists all guardrail sets.
#[utoipa::path(get, path = "/api/guardrails", responses(
    (status = 200, body = SetList),
    (status = 401, body = ErrorAnswer),
))]
pub async fn list(State(app): State<App>) -> ApiResult<Json<SetList>> {
    on_files(&app, |sets| {
        let library = sets.library()?;
        Ok(Json(SetList { sets: library.all().map(|listed| SetSummary::of(listed, &library).0).collect() }))
    })
    .await
}

/// Shows a guardrail set: its file, and what it comes to with all that it extends.
#[utoipa::path(get, path = "/api/guardrails/{name}", params(("name" = String, Path, description = "The set.")),
    responses(
        (status = 200, body = SetAnswer),
        (status = 401, body = ErrorAnswer),
        (status = 404, body = ErrorAnswer),
    ))]
pub async fn show(State(app): State<App>, SetPath(name): SetPath) -> ApiResult<Json<SetAnswer>> {
    on_files(&app, move |sets| {
        let library = sets.library()?;
        let listed = library.get(&name).map_err(|_| NoSet(name))?;
        Ok(Json(SetAnswer::of(listed, &library)))
    })
    .await
}

/// Saves a guardrail set of the user's own, new or in place of the one that is there. The body is its document, as
/// YAML, which is stored as it comes, or as JSON. It holds from the next start of an agent on.
#[utoipa::path(put, path = "/api/guardrails/{name}", params(("name" = String, Path, description = "The set.")),
    request_body(content = String, content_type = "application/yaml"),
    responses(
        (status = 200, body = SetAnswer, description = "It was replaced."),
        (status = 201, body = SetAnswer, description = "It is new."),
        (status = 400, body = ErrorAnswer),
        (status = 401, body = ErrorAnswer),
        (status = 409, body = ErrorAnswer, description = "The name is a tier's."),
        (status = 422, body = ErrorAnswer, description = "The document is refused; the message names line and column."),
    ))]
pub async fn put(
    State(app): State<App>,
    SetPath(name): SetPath,
    YamlBody(text): YamlBody,
) -> ApiResult<(StatusCode, Json<SetAnswer>)> {
    on_files(&app, move |sets| {
        let document = sets.check(&name, &text, "the body")?;
        // A file that people read and change by hand is YAML.
        let text = if text.trim_start().starts_with('{') { document.to_yaml() } else { text };
        let new = sets.save(&name, &text, "the body", Mode::Either)?;
        let library = sets.library()?;
        let answer = SetAnswer::of(library.get(&name)?, &library);
        Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(answer)))
    })
    .await
}

/// Deletes a guardrail set of the user's own that no other set extends and no run needs.
#[utoipa::path(delete, path = "/api/guardrails/{name}", params(("name" = String, Path, description = "The set.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 401, body = ErrorAnswer),
        (status = 404, body = ErrorAnswer),
        (status = 409, body = ErrorAnswer, description = "It is a tier, a set extends it, or a run needs it."),
    ))]
pub async fn delete(State(app): State<App>, SetPath(name): SetPath) -> ApiResult<StatusCode> {
    let runs = app.store().runs_that_need_set(name.as_str()).await?;
    on_files(&app, move |sets| {
        if sets.library()?.get(&name).is_err() {
            return Err(NoSet(name).into());
        }
        sets.delete(&name, runs)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/guardrails", Access::Read, get(list)),
        Route::get("/api/guardrails/{name}", Access::Read, get(show)),
        Route::change(Method::PUT, "/api/guardrails/{name}", putting(put)),
        Route::change(Method::DELETE, "/api/guardrails/{name}", deleting(delete)),
    ]
}
