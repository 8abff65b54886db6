//! How the command line talks to core: its address, its token, and an event stream that comes back by itself
//! after a loss, without a gap and without a double.

use std::path::PathBuf;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::{Method, header};
use tokio::time::Instant;

use crate::amount::Amount;
use crate::events::StoredEvent;
use crate::failure::{Exit, Explain, Failure};
use crate::home::Home;
use crate::http::sse::Reader;
use crate::http::{CallError, Client};
use crate::ids::RunId;
use crate::runs::Budget;
use crate::server::token;
use crate::server::wire::money::{BudgetList, BudgetScope, CostsAnswer, SetBudget};
use crate::server::wire::{
    ChangeSetting, CreateRun, LinkAnswer, ResumeRun, RunAnswer, RunList, SettingAnswer, SettingList,
    StatusAnswer, StreamEnd,
};

/// How long a lost stream is tried again before the command gives up.
const COME_BACK_FOR: Duration = Duration::from_secs(5 * 60);
/// The first and the longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// A stream that is silent for this long is lost: core sends a comment every 15 s.
const SILENCE: Duration = Duration::from_secs(60);
/// How long making a run may take: a worktree of a large repository.
const CREATE_TIME: Duration = Duration::from_secs(5 * 60);

/// Where core is, and the token for it.
#[derive(Debug, Clone, clap::Args)]
pub struct CoreArgs {
    /// Where core listens
    #[arg(
        long,
        env = "WORCA_CORE_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:4317"
    )]
    pub core_url: String,
    /// The file of the core token; without it, `core-token` in Worca's home
    #[arg(long, env = "WORCA_CORE_TOKEN_FILE", hide_env_values = true, value_name = "FILE")]
    pub core_token_file: Option<PathBuf>,
}

/// The event stream was lost for good.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It did not come back.
    #[error("core has not been back for {} min; the run goes on without this command", COME_BACK_FOR.as_secs() / 60)]
    Lost(#[source] CallError),
    /// It is no stream of this program's core.
    #[error("core sent an event that this program does not know")]
    Foreign,
}

impl Explain for FollowError {
    fn code(&self) -> &'static str {
        match self {
            Self::Lost(_) => "stream-lost",
            Self::Foreign => "stream-foreign",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Lost(_) => "`worca show RUN` shows where it stands once core is back".into(),
            Self::Foreign => "use the `worca` of the same version as core".into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Core, as the command line sees it.
#[derive(Clone)]
pub struct Core(Client);

impl CoreArgs {
    /// Reads the token and makes the client. Nothing is called yet.
    ///
    /// # Errors
    /// When the address is none or the token cannot be read.
    pub fn connect(&self) -> Result<Core, Failure> {
        let named = self.core_token_file.as_ref().filter(|path| !path.as_os_str().is_empty());
        let path = match named {
            Some(path) => path.clone(),
            None => Home::find()?.core_token(),
        };
        Ok(Core(Client::new(&self.core_url)?.with_bearer(token::read(&path)?)))
    }
}

impl Core {
    /// Core behind this client.
    pub fn over(client: Client) -> Self {
        Self(client)
    }
    /// Creates a run.
    ///
    /// # Errors
    /// When core refuses it.
    pub async fn create(&self, new: &CreateRun) -> Result<RunAnswer, CallError> {
        self.0.clone().with_time_limit(CREATE_TIME).post("/api/runs", new).await
    }
    /// One run.
    ///
    /// # Errors
    /// When there is none.
    pub async fn run(&self, id: &RunId) -> Result<RunAnswer, CallError> {
        self.0.get(&format!("/api/runs/{id}")).await
    }
    /// The newest runs.
    ///
    /// # Errors
    /// When core does not answer.
    pub async fn runs(&self, limit: u32) -> Result<RunList, CallError> {
        self.0.get(&format!("/api/runs?limit={limit}")).await
    }
    /// Asks a run to stop.
    ///
    /// # Errors
    /// When there is none, or it has ended.
    pub async fn stop(&self, id: &RunId) -> Result<(), CallError> {
        self.0.call(Method::POST, &format!("/api/runs/{id}/stop"), None).await.map(drop)
    }
    /// Takes a run up again.
    ///
    /// # Errors
    /// When core refuses it.
    pub async fn resume(&self, id: &RunId, wanted: &ResumeRun) -> Result<RunAnswer, CallError> {
        self.0.clone().with_time_limit(CREATE_TIME).post(&format!("/api/runs/{id}/resume"), wanted).await
    }
    /// What was used, by the words of a query.
    ///
    /// # Errors
    /// When the query is not right, or core or the key service does not answer.
    pub async fn costs(&self, query: &str) -> Result<CostsAnswer, CallError> {
        self.0.get(&format!("/api/costs?{query}")).await
    }
    /// The budgets that stand.
    ///
    /// # Errors
    /// When core or the key service does not answer.
    pub async fn budgets(&self) -> Result<BudgetList, CallError> {
        self.0.get("/api/budgets").await
    }
    /// Sets a budget.
    ///
    /// # Errors
    /// When core or the key service refuses it or does not answer.
    pub async fn set_budget(
        &self,
        scope: BudgetScope,
        of: &str,
        limit: Amount,
    ) -> Result<BudgetList, CallError> {
        let wanted = SetBudget { limit: Budget::Limit(limit).to_string() };
        self.0.put(&format!("/api/budgets/{}/{of}", scope.as_str()), &wanted).await
    }
    /// Removes a budget.
    ///
    /// # Errors
    /// When there is none, or core or the key service does not answer.
    pub async fn remove_budget(&self, scope: BudgetScope, of: &str) -> Result<(), CallError> {
        self.0.call(Method::DELETE, &format!("/api/budgets/{}/{of}", scope.as_str()), None).await.map(drop)
    }
    /// How core is doing.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn status(&self) -> Result<StatusAnswer, CallError> {
        self.0.get("/api/status").await
    }
    /// The settings.
    ///
    /// # Errors
    /// When core does not answer.
    pub async fn settings(&self) -> Result<SettingList, CallError> {
        self.0.get("/api/settings").await
    }
    /// Changes a setting.
    ///
    /// # Errors
    /// When core knows no such setting or value.
    pub async fn change_setting(&self, wanted: &ChangeSetting) -> Result<SettingAnswer, CallError> {
        self.0.put("/api/settings", wanted).await
    }
    /// A sign-in link.
    ///
    /// # Errors
    /// When core does not answer.
    pub async fn link(&self) -> Result<LinkAnswer, CallError> {
        self.0.post("/api/links", &serde_json::json!({})).await
    }
    /// The diff of a run, to be read piece by piece.
    ///
    /// # Errors
    /// When there is none.
    pub async fn diff(&self, id: &RunId) -> Result<Pieces, CallError> {
        let body = self.0.open(Method::GET, &format!("/api/runs/{id}/diff"), &[]).await?;
        Ok(Pieces { base: self.0.base().to_owned(), body })
    }
    /// Follows a run from its first event.
    pub fn follow(&self, id: &RunId) -> Follower {
        self.follow_after(id, 0)
    }
    /// Follows a run from the event after this one.
    pub fn follow_after(&self, id: &RunId, after: i64) -> Follower {
        Follower {
            client: self.0.clone(),
            run: id.clone(),
            after,
            stream: None,
            ready: std::collections::VecDeque::new(),
            lost: None,
            pause: PAUSE.0,
        }
    }
}

/// A long answer.
pub struct Pieces {
    base: String,
    body: Incoming,
}

impl Pieces {
    /// The next piece, `None` at the end.
    ///
    /// # Errors
    /// When the answer breaks off or stands still.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let broken = |why: &str| CallError::Answer { base: self.base.clone(), why: why.into() };
        loop {
            match tokio::time::timeout(SILENCE, self.body.frame()).await {
                Err(_) => return Err(broken("it stands still")),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(broken("it broke off")),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// What following a run gives.
#[derive(Debug)]
pub enum Followed {
    /// Something happened.
    Event(Box<StoredEvent>),
    /// The stream was lost and is being tried again.
    Lost,
    /// The run has ended and everything was given.
    End(StreamEnd),
}

/// Follows a run.
pub struct Follower {
    client: Client,
    run: RunId,
    after: i64,
    stream: Option<(Pieces, Reader)>,
    ready: std::collections::VecDeque<Followed>,
    lost: Option<(Instant, CallError)>,
    pause: Duration,
}

impl Follower {
    /// The next thing. Can be dropped while it waits, and called again: nothing is lost.
    ///
    /// # Errors
    /// When core refuses the stream, or stays away too long.
    pub async fn next(&mut self) -> Result<Followed, Failure> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(ready);
            }
            if self.stream.is_none() {
                match self.connect().await {
                    Ok(body) => {
                        let base = self.client.base().to_owned();
                        self.stream = Some((Pieces { base, body }, Reader::new()));
                    }
                    Err(error) => {
                        self.after_loss(error).await?;
                        continue;
                    }
                }
            }
            let Some((pieces, reader)) = &mut self.stream else { continue };
            let lost = match pieces.next().await {
                Ok(Some(bytes)) => match reader.take(&bytes) {
                    Ok(frames) => {
                        self.take(frames)?;
                        continue;
                    }
                    Err(_) => return Err(FollowError::Foreign.into()),
                },
                Ok(None) => CallError::Answer { base: pieces.base.clone(), why: "it ended too soon".into() },
                Err(error) => error,
            };
            self.stream = None;
            self.lost = Some((Instant::now(), lost));
            return Ok(Followed::Lost);
        }
    }

    fn take(&mut self, frames: Vec<crate::http::sse::Frame>) -> Result<(), FollowError> {
        for frame in frames {
            if frame.name == "end" {
                let end = serde_json::from_str(&frame.data).map_err(|_| FollowError::Foreign)?;
                self.ready.push_back(Followed::End(end));
            } else if frame.name.is_empty() {
                let event: StoredEvent =
                    serde_json::from_str(&frame.data).map_err(|_| FollowError::Foreign)?;
                self.after = event.seq;
                self.ready.push_back(Followed::Event(Box::new(event)));
            }
            self.lost = None;
            self.pause = PAUSE.0;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Incoming, CallError> {
        let path = format!("/api/runs/{}/events", self.run);
        let last = [(header::HeaderName::from_static("last-event-id"), self.after.to_string())];
        self.client.open(Method::GET, &path, &last).await
    }

    /// A refusal is final, but for "not now"; an absence is waited for.
    async fn after_loss(&mut self, error: CallError) -> Result<(), Failure> {
        let comes_back = match &error {
            CallError::Refused { status, .. } => *status == 503,
            CallError::Unreachable { .. } | CallError::TooSlow { .. } | CallError::Answer { .. } => true,
            CallError::Address(_) => false,
        };
        if !comes_back {
            return Err(error.into());
        }
        let since = self.lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        if since.elapsed() >= COME_BACK_FOR {
            return Err(FollowError::Lost(error).into());
        }
        self.lost = Some((since, error));
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE.1);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
