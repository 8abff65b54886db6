//! Settings that are changed while core runs and hold from the next thing that asks.

use axum::Json;
use axum::extract::State;
use axum::http::Method;
use axum::routing::{get, put};

use crate::failure::{Exit, Explain};
use crate::runs::{Runs, Setting};
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
}

impl Explain for SettingRequestError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "setting-unknown",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => {
                let keys: Vec<String> = Setting::ALL.iter().map(|one| format!("`{}`", one.key())).collect();
                Some(format!("these exist: {}", keys.join(", ")))
            }
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

async fn answer(runs: &Runs, setting: Setting) -> ApiResult<SettingAnswer> {
    Ok(SettingAnswer {
        key: setting.key().into(),
        value: runs.setting(setting).await?,
        about: setting.about().into(),
    })
}

/// Lists the settings.
#[utoipa::path(get, path = "/api/settings", responses(
    (status = 200, body = SettingList),
    (status = 401, body = ErrorAnswer),
))]
pub async fn list(State(app): State<App>) -> ApiResult<Json<SettingList>> {
    let mut settings = Vec::new();
    for setting in Setting::ALL {
        settings.push(answer(app.runs(), setting).await?);
    }
    Ok(Json(SettingList { settings }))
}

/// Changes one setting. It holds from the next thing that asks for it; no restart is needed.
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
    let setting =
        Setting::parse(&wanted.key).ok_or_else(|| SettingRequestError::Unknown(short(&wanted.key)))?;
    app.runs().set_setting(setting, &wanted.value).await?;
    Ok(Json(answer(app.runs(), setting).await?))
}

/// The paths of this file.
pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/settings", Access::Read, get(list)),
        Route::change(Method::PUT, "/api/settings", put(change)),
    ]
}
