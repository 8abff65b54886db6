//! One start of an agent: its files and request from what is known, the start itself, and, where the setting says
//! so, a record of all of it without a secret.

use std::ffi::OsString;

use super::Inner;
use super::diagnostics::Diagnostics;
use super::guard::Guard;
use super::outcome::Outcome;
use super::resume::go_on;
use super::worktree::Worktree;
use crate::agents::claude::Launch;
use crate::events::{Event, cut};
use crate::failure::Explain as _;
use crate::git::{Person, agent_environment};
use crate::keys::client::Minted;
use crate::keys::slot::{Choice, SlotName};
use crate::spawn::{self, Agent, SpawnError};
use crate::store::{NewSpawn, Run, StoreError};

/// What one start is about.
pub(super) struct Start<'a> {
    pub(super) run: &'a Run,
    pub(super) worktree: &'a Worktree,
    pub(super) spawn: &'a NewSpawn,
    pub(super) minted: &'a Minted,
    pub(super) slot: &'a SlotName,
    /// The agent program's session to go on with.
    pub(super) session: Option<String>,
}

impl Inner {
    /// Makes the files of the start and starts the agent; else what the run comes to without it.
    pub(super) async fn start(
        &self,
        start: &Start<'_>,
        guard: Guard,
    ) -> Result<Result<Agent, Outcome>, StoreError> {
        let run = start.run;
        let launch = self.launch(start, guard);
        let request = match tokio::task::spawn_blocking(move || launch.prepare()).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => return Ok(Err(Outcome::unguarded(&run.guardrails, &error, false))),
            Err(_) => return Ok(Err(Outcome::failed(&StoreError::Ending))),
        };
        // Read at each start, so that it holds from the next one on.
        let wanted = self.writes_diagnostics().await?;
        let base_url = self.settings.keys.base_url(start.slot);
        let diagnostics = wanted.then(|| Diagnostics::of(&request, start, &base_url));
        let started = spawn::start(request).await;
        if let Ok(agent) = &started {
            // What held it is on disk before anything that it does.
            let receipt = serde_json::to_string(agent.receipt()).unwrap_or_default();
            let id = &start.spawn.id;
            self.until_space(&run.id, || self.settings.store.spawn_receipt(id, receipt.clone())).await?;
        }
        if let Some(diagnostics) = diagnostics {
            let text = diagnostics.text(started.as_ref().map(Agent::receipt));
            tracing::info!(target: "worca::spawn::diagnostics", run = %run.id, spawn = %start.spawn.id, "{text}");
            self.record(&run.id, Event::Note { text: cut(&text) }).await?;
        }
        Ok(started.map_err(|error| {
            tracing::warn!(run = %run.id, code = error.code(), %error, "an agent was not started");
            // What the kernel lacks may come with another kernel; what was let through is a fault to be looked at.
            let waits = matches!(error, SpawnError::KernelLacks(_));
            Outcome::unguarded(&run.guardrails, &error, waits)
        }))
    }

    fn launch(&self, start: &Start<'_>, guard: Guard) -> Launch {
        let (run, worktree) = (start.run, start.worktree);
        let person = Person::new(&run.author_name, &run.author_email).unwrap_or_else(|_| Person::nobody());
        let environment = agent_environment(&worktree.tree(), worktree.common_dir(), &person);
        Launch {
            program: self.settings.claude.clone(),
            model: Choice::for_model(run.model.as_deref()).ok().and_then(|choice| choice.model),
            facts: guard.facts,
            compiled: guard.compiled,
            base_url: self.settings.keys.base_url(start.slot),
            pass: start.minted.pass.clone(),
            prompt: match &start.session {
                Some(_) => go_on(&run.prompt),
                None => run.prompt.clone(),
            },
            resume: start.session.clone(),
            environment: environment.into_iter().map(|(name, value)| (name, OsString::from(value))).collect(),
        }
    }
}
