//! Runs: list, create, look at, stop, take up again, and the diff of what came of one.

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tokio_util::io::ReaderStream;

use crate::amount::ParseAmountError;
use crate::failure::{Exit, Explain};
use crate::ids::{PersonId, RunId};
use crate::runs::{Budget, NewRun};
use crate::server::App;
use crate::server::reply::{ApiError, ApiResult, Body, BodyOrNone, RequestError};
use crate::server::route::{Access, Route};
use crate::server::wire::guard::PolicyAnswer;
use crate::server::wire::{CreateRun, ErrorAnswer, ResumeRun, RunAnswer, RunList, backup_diff};
use crate::store::StoreError;

/// How many runs a list holds when nobody says how many.
const LIST: u32 = 50;
/// How many runs a list holds at most.
const LIST_MOST: u32 = 500;

/// A run cannot be shown or taken.
#[derive(Debug, thiserror::Error)]
pub enum RunRequestError {
    /// No such run.
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    /// It has none yet.
    #[error("run `{run}` has no diff")]
    NoDiff {
        /// The run.
        run: RunId,
        /// The command that shows its backup, when there is one.
        backup: Option<String>,
    },
    /// The diff cannot be read.
    #[error("the diff of run `{run}` cannot be read")]
    Diff {
        /// The run.
        run: RunId,
        /// Why.
        source: std::io::Error,
    },
    /// The budget is none.
    #[error("`budget` is not right: {0}; `none` means no limit")]
    Budget(#[from] ParseAmountError),
}

impl Explain for RunRequestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "run-unknown",
            Self::NoDiff { .. } => "diff-none",
            Self::Diff { .. } => "diff-unreadable",
            Self::Budget(_) => "budget-amount",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`worca runs` lists the runs".into()),
            Self::NoDiff { backup: Some(read), .. } => {
                Some(format!("a backup holds its work; in the repository, run `{read}`"))
            }
            Self::NoDiff { backup: None, .. } => Some("a run has a diff once its work is committed".into()),
            Self::Diff { .. } | Self::Budget(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Budget(_) => Exit::Usage,
            Self::Unknown(_) | Self::NoDiff { .. } | Self::Diff { .. } => Exit::Failed,
        }
    }
}

/// The run that the path names.
pub struct RunPath(pub RunId);

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let wrong = |why: String| ApiError::from(RequestError::Parameter { name: "id", why });
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| wrong(error.body_text()))?;
        RunId::parse(&text).map(Self).map_err(|error| wrong(error.to_string()))
    }
}

/// How a list is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    limit: Option<u32>,
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/runs",
    params(("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when not given.")),
    responses((status = 200, body = RunList), (status = 401, body = ErrorAnswer)))]
pub async fn list(
    State(app): State<App>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> ApiResult<Json<RunList>> {
    let Query(query) =
        query.map_err(|error| RequestError::Parameter { name: "limit", why: error.body_text() })?;
    let limit = query.limit.unwrap_or(LIST);
    if !(1..=LIST_MOST).contains(&limit) {
        let why = format!("{limit} is not between 1 and {LIST_MOST}");
        return Err(RequestError::Parameter { name: "limit", why }.into());
    }
    let runs = app.store().runs(limit).await?.into_iter().map(Into::into).collect();
    Ok(Json(RunList { runs }))
}

/// Creates a run and starts it.
#[utoipa::path(post, path = "/api/runs", request_body = CreateRun, responses(
    (status = 201, body = RunAnswer),
    (status = 400, body = ErrorAnswer, description = "The request is not right."),
    (status = 401, body = ErrorAnswer),
    (status = 422, body = ErrorAnswer, description = "The project, the set or the machine does not allow it."),
))]
pub async fn create(
    State(app): State<App>,
    Body(new): Body<CreateRun>,
) -> ApiResult<(StatusCode, Json<RunAnswer>)> {
    let new = NewRun {
        project: new.project.into(),
        prompt: new.prompt,
        title: new.title,
        model: new.model,
        guardrails: new.guardrails,
        // Whoever holds the core token acts for the one person there is without a sign-in.
        payer: PersonId::local(),
        budget: budget(new.budget.as_deref())?,
        models: new.only_models,
        scenario: new.scenario,
    };
    // Whole or not at all: a client that goes away in the middle must not leave half a run.
    let runs = app.runs().clone();
    let creating = app.tasks().spawn(async move { runs.create(new).await });
    let run = creating.await.map_err(|_| StoreError::Ending)??;
    Ok((StatusCode::CREATED, Json(run.into())))
}

/// What is asked for, `standing` where nothing is.
fn budget(word: Option<&str>) -> Result<Budget, RunRequestError> {
    Ok(word.map(Budget::parse).transpose()?.unwrap_or_default())
}

/// Shows a run.
#[utoipa::path(get, path = "/api/runs/{id}", params(("id" = String, Path, description = "The run.")), responses(
    (status = 200, body = RunAnswer),
    (status = 401, body = ErrorAnswer),
    (status = 404, body = ErrorAnswer),
))]
pub async fn show(State(app): State<App>, RunPath(id): RunPath) -> ApiResult<Json<RunAnswer>> {
    let run = app.store().run(&id).await?.ok_or(RunRequestError::Unknown(id))?;
    let policy = app.store().last_spawn(&run.id).await?.map(PolicyAnswer::from);
    let usage = app.store().run_usage(&run.id).await?;
    let warnings = app.store().budget_warnings(&run.id).await?;
    Ok(Json(RunAnswer { policy, usage, warnings, ..run.into() }))
}

/// Asks a run to stop. It ends by itself soon after; its event stream tells when.
#[utoipa::path(post, path = "/api/runs/{id}/stop", params(("id" = String, Path, description = "The run.")), responses(
    (status = 202, description = "It was asked to stop."),
    (status = 401, body = ErrorAnswer),
    (status = 404, body = ErrorAnswer),
    (status = 409, body = ErrorAnswer, description = "It, or its agent, has already ended."),
))]
pub async fn stop(State(app): State<App>, RunPath(id): RunPath) -> ApiResult<StatusCode> {
    app.runs().stop(&id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Takes a parked or interrupted run up again: the same worktree, branch and guardrail set, and the agent's own
/// session where it is still there. The body may be left out.
#[utoipa::path(post, path = "/api/runs/{id}/resume", params(("id" = String, Path, description = "The run.")),
    request_body = Option<ResumeRun>, responses(
    (status = 202, body = RunAnswer, description = "Its agent is being started."),
    (status = 400, body = ErrorAnswer),
    (status = 401, body = ErrorAnswer),
    (status = 404, body = ErrorAnswer),
    (status = 409, body = ErrorAnswer, description = "It is at work, has ended for good, or its worktree is gone."),
    (status = 422, body = ErrorAnswer, description = "The project, the set or the machine does not allow it."),
))]
pub async fn resume(
    State(app): State<App>,
    RunPath(id): RunPath,
    BodyOrNone(wanted): BodyOrNone<ResumeRun>,
) -> ApiResult<(StatusCode, Json<RunAnswer>)> {
    let budget = budget(wanted.budget.as_deref())?;
    let runs = app.runs().clone();
    let resuming = app.tasks().spawn(async move { runs.resume(&id, budget).await });
    let run = resuming.await.map_err(|_| StoreError::Ending)??;
    Ok((StatusCode::ACCEPTED, Json(run.into())))
}

/// The diff of a run's work against the commit that it started from.
#[utoipa::path(get, path = "/api/runs/{id}/diff", params(("id" = String, Path, description = "The run.")), responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = 401, body = ErrorAnswer),
    (status = 404, body = ErrorAnswer),
))]
pub async fn diff(State(app): State<App>, RunPath(id): RunPath) -> ApiResult<Response> {
    let Some(run) = app.store().run(&id).await? else {
        return Err(RunRequestError::Unknown(id).into());
    };
    match tokio::fs::File::open(app.runs().diff_file(&id)).await {
        Ok(file) => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            Ok(([(header::CONTENT_TYPE, kind)], Bytes::from_stream(ReaderStream::new(file))).into_response())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let backup = run.end.backup.map(|backup| backup_diff(&run.base_commit, &backup));
            Err(RunRequestError::NoDiff { run: id, backup }.into())
        }
        Err(source) => Err(RunRequestError::Diff { run: id, source }.into()),
    }
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/runs", Access::Read, get(list)),
        Route::post("/api/runs", post(create)),
        Route::get("/api/runs/{id}", Access::Read, get(show)),
        Route::post("/api/runs/{id}/stop", post(stop)),
        Route::post("/api/runs/{id}/resume", post(resume)),
        Route::get("/api/runs/{id}/diff", Access::Read, get(diff)),
    ]
}
