//! Settings that are changed while core runs and hold from the next thing that asks.

use axum::Json;
use axum::extract::State;
use axum::http::Method;
use axum::routing::{get, put};

use crate::failure::{Exit, Explain};
use crate::runs::{Runs, Switch, switches};
use crate::server::App;
use crate::server::reply::{ApiResult, Body};
use crate::server::route::{Access, Route};
use crate::server::wire::{ChangeSetting, ErrorAnswer, SettingAnswer, SettingList};

/// A setting cannot be changed like that.
#[derive(Debug, thiserror::Error)]
pub enum SettingRequestError {
    /// No such setting.
    #[error("there is no setting `{0}`")]
    Unknown(String),
    /// Not one of its values.
    #[error("the setting `{key}` is `on` or `off`, and not `{value}`")]
    Value {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
    },
}

impl Explain for SettingRequestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "setting-unknown",
            Self::Value { .. } => "setting-value",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => {
                let keys: Vec<String> = Switch::ALL.iter().map(|one| format!("`{}`", one.key())).collect();
                Some(format!("these exist: {}", keys.join(", ")))
            }
            Self::Value { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

async fn answer(runs: &Runs, switch: Switch) -> ApiResult<SettingAnswer> {
    Ok(SettingAnswer {
        key: switch.key().into(),
        value: switches::word(runs.switch(switch).await?).into(),
        about: switch.about().into(),
    })
}

/// Lists the settings.
#[utoipa::path(get, path = "/api/settings", responses(
    (status = 200, body = SettingList),
    (status = 401, body = ErrorAnswer),
))]
pub async fn list(State(app): State<App>) -> ApiResult<Json<SettingList>> {
    let mut settings = Vec::new();
    for switch in Switch::ALL {
        settings.push(answer(app.runs(), switch).await?);
    }
    Ok(Json(SettingList { settings }))
}

/// Changes one setting. It holds from the next start of an agent on; no restart is needed.
#[utoipa::path(put, path = "/api/settings", request_body = ChangeSetting, responses(
    (status = 200, body = SettingAnswer),
    (status = 400, body = ErrorAnswer, description = "No such setting, or not one of its values."),
    (status = 401, body = ErrorAnswer),
))]
pub async fn change(
    State(app): State<App>,
    Body(wanted): Body<ChangeSetting>,
) -> ApiResult<Json<SettingAnswer>> {
    let short = |text: &str| text.chars().take(60).collect::<String>();
    let switch =
        Switch::parse(&wanted.key).ok_or_else(|| SettingRequestError::Unknown(short(&wanted.key)))?;
    let on = switches::state(&wanted.value)
        .ok_or_else(|| SettingRequestError::Value { key: switch.key(), value: short(&wanted.value) })?;
    app.runs().set_switch(switch, on).await?;
    Ok(Json(answer(app.runs(), switch).await?))
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/settings", Access::Read, get(list)),
        Route::change(Method::PUT, "/api/settings", put(change)),
    ]
}
