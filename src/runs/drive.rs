//! One run at work: a pass, an agent through `spawn`, its lines as events, and the pass revoked the moment the
//! agent is gone. Whatever goes wrong here ends in an [`Outcome`]; `finish` makes the end of it.

use tokio::sync::watch;

use super::guard::{Guard, NoGuard};
use super::outcome::{Outcome, sentence};
use super::resume::straighten;
use super::start::Start;
use super::worktree::Worktree;
use super::{Cause, GRACE, Inner};
use crate::agents::claude::{self, Finish, Parser};
use crate::events::{Event, RunStatus, cut};
use crate::failure::Explain;
use crate::ids::{SpawnId, StepName};
use crate::keys::client::{KeysError, MintRequest, Minted};
use crate::keys::slot::Choice;
use crate::spawn::{Agent, Stopper};
use crate::store::{NewSpawn, Run, StoreError};

/// Whether a run is started or taken up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    First,
    /// From `parked` or `interrupted`; it is `running` already.
    Again,
}

/// The run's own scenario is gone.
#[derive(Debug, thiserror::Error)]
#[error("the run's scenario cannot be read")]
struct NoScenario(#[source] std::io::Error);

impl Explain for NoScenario {
    fn code(&self) -> &'static str {
        "scenario"
    }
}

impl Inner {
    /// Brings a run from its worktree to its end. A store that fails for good ends it here; the next start
    /// finds it and makes it good.
    pub(super) async fn drive(
        &self,
        run: &Run,
        worktree: &Worktree,
        asked: watch::Receiver<Option<Cause>>,
        begin: Begin,
    ) {
        let ended = async {
            if begin == Begin::First {
                self.set_status(&run.id, RunStatus::Running, None).await?;
            }
            let mut outcome = self.work(run, worktree, asked, begin).await?;
            // From here on nobody is told that it will be stopped; who was told so until now is right.
            if self.live.close(&run.id) == Some(Cause::Person) {
                outcome.cause = Some(Cause::Person);
            }
            if let Some(reason) = outcome.waits_for() {
                self.set_said(run, &outcome).await?;
                return self.set_status(&run.id, RunStatus::Parked, Some(reason)).await;
            }
            self.finish(run, worktree, outcome).await
        };
        if let Err(error) = ended.await {
            tracing::error!(run = %run.id, %error, "the run could not be recorded");
        }
    }

    async fn work(
        &self,
        run: &Run,
        worktree: &Worktree,
        asked: watch::Receiver<Option<Cause>>,
        begin: Begin,
    ) -> Result<Outcome, StoreError> {
        let version = match claude::version(&self.settings.claude).await {
            Ok(version) => version,
            Err(error) => return Ok(Outcome::failed(&error)),
        };
        if begin == Begin::Again {
            straighten(&self.settings.home.run(&run.id).join("home"));
        }
        let guard = match self.guard(run, worktree).await {
            Ok(guard) => guard,
            Err(NoGuard::Outcome(outcome)) => return Ok(outcome),
            Err(NoGuard::Store(error)) => return Err(error),
        };
        let session = if begin == Begin::Again { self.session(run).await? } else { None };
        let choice = match Choice::for_model(run.model.as_deref()) {
            Ok(choice) => choice,
            Err(error) => return Ok(Outcome::failed(&error)),
        };
        let scenario = match self.scenario(&run.id, &choice).await {
            Ok(scenario) => scenario,
            Err(source) => return Ok(Outcome::failed(&NoScenario(source))),
        };
        let wanted = MintRequest {
            run: run.id.clone(),
            step: StepName::work(),
            spawn: SpawnId::random(),
            person: run.payer.clone(),
            slot: choice.slot.clone(),
            models: run.models.clone(),
            cap: run.budget,
            scenario,
        };
        let (boot, minted) = match self.mint(&wanted).await {
            Ok(minted) => minted,
            Err(error) => return Ok(Outcome::no_pass(&error)),
        };
        let begins = NewSpawn {
            id: wanted.spawn,
            run: run.id.clone(),
            step: wanted.step,
            program: format!("Claude Code {version}"),
            pass: minted.id.clone(),
            guardrails: run.guardrails.clone(),
            policy_digest: guard.compiled.digest.clone(),
        };
        let start = Start { run, worktree, spawn: &begins, minted: &minted, slot: &choice.slot, session };
        let outcome =
            match self.until_space(&run.id, || self.settings.store.spawn_begins(begins.clone())).await {
                Ok(()) => self.run_agent(&start, guard, asked).await,
                Err(error) => Err(error),
            };
        // Revoked already where an agent ran; the pass of an agent that never started dies here.
        let closing = self.close(run, &begins).await?;
        let outcome = outcome?;
        let restarted = outcome.failure.is_some() && self.restarted(&boot).await;
        Ok(outcome.closed(&run.id, closing.as_ref(), restarted))
    }

    /// A pass, and the name of the key service's start that gave it out.
    async fn mint(&self, wanted: &MintRequest) -> Result<(String, Minted), KeysError> {
        // Asked first: what starts anew in between is taken for another one, and never the other way.
        let boot = self.settings.keys.status().await?.boot;
        Ok((boot, self.settings.keys.mint(wanted).await?))
    }

    /// Whether the key service is another one than that of this name.
    async fn restarted(&self, boot: &str) -> bool {
        self.settings.keys.status().await.is_ok_and(|status| status.boot != boot)
    }

    async fn run_agent(
        &self,
        start: &Start<'_>,
        guard: Guard,
        asked: watch::Receiver<Option<Cause>>,
    ) -> Result<Outcome, StoreError> {
        let (run, spawn) = (start.run, start.spawn);
        let lease = self.leases.hold(start.minted.id.clone(), run.id.clone());
        let mut agent = match self.start(start, guard).await? {
            Ok(agent) => agent,
            Err(outcome) => {
                self.spawn_ended(run, spawn, "was not started").await?;
                return Ok(outcome);
            }
        };
        let started = Event::AgentStarted { spawn: spawn.id.clone(), program: spawn.program.clone() };
        self.record(&run.id, started).await?;
        let stopper = agent.stopper();
        let parser = Parser::new(vec![start.minted.pass.clone()]);

        // Three things at once: its lines, a wish to stop it, and its end, which is the end of its pass.
        let revoke = async {
            let exit = stopper.ended().await;
            drop(lease);
            self.revoke(run, start.minted).await;
            exit
        };
        let listen = async {
            let heard = self.listen(run, spawn, &mut agent, &parser).await;
            if heard.is_err() {
                stopper.kill().await;
            }
            heard
        };
        let (exit, cause, heard) = tokio::join!(revoke, stop_when_asked(&stopper, asked), listen);
        let finish = heard?;

        let outcome = Outcome::judge(&exit, cause, finish);
        let sentence = sentence(&exit);
        let stderr = outcome.failure.is_some().then(|| parser.scrub(&agent.stderr_tail()));
        let stderr = stderr.map(|text| cut(text.trim())).filter(|text| !text.is_empty());
        self.spawn_ended(run, spawn, &sentence).await?;
        self.record(&run.id, Event::AgentEnded { exit: sentence, stderr }).await?;
        Ok(outcome)
    }

    /// Ends a pass at once; what was used with it is asked for after.
    async fn revoke(&self, run: &Run, minted: &Minted) {
        if let Err(error) = self.settings.keys.revoke(&minted.id).await {
            tracing::warn!(run = %run.id, %error, "a pass could not be revoked; it ends with its lease");
        }
    }

    async fn spawn_ended(&self, run: &Run, spawn: &NewSpawn, how: &str) -> Result<(), StoreError> {
        self.until_space(&run.id, || self.settings.store.spawn_ended(&spawn.id, how.to_owned())).await
    }

    /// Stores what the agent says, line by line, until it says no more. Gives its last word.
    async fn listen(
        &self,
        run: &Run,
        spawn: &NewSpawn,
        agent: &mut Agent,
        parser: &Parser,
    ) -> Result<Option<Finish>, StoreError> {
        let mut finish = None;
        while let Some(line) = agent.next_line().await {
            for event in parser.parse(&line) {
                match event {
                    claude::Event::Finished(last) => finish = Some(*last),
                    claude::Event::Started { session, model, .. } => {
                        let store = &self.settings.store;
                        self.until_space(&run.id, || store.spawn_session(&spawn.id, session.clone())).await?;
                        self.record(&run.id, Event::AgentReady { session, model }).await?;
                    }
                    other => {
                        if let Some(event) = told(other) {
                            self.record(&run.id, event).await?;
                        }
                    }
                }
            }
        }
        Ok(finish)
    }
}

/// Waits for a wish to end the agent, or for its end.
async fn stop_when_asked(stopper: &Stopper, mut asked: watch::Receiver<Option<Cause>>) -> Option<Cause> {
    let wish = async {
        // Copied out at once: the guard of the value must not be held over an await.
        let cause = asked.wait_for(Option::is_some).await.map(|cause| *cause);
        match cause {
            Ok(cause) => cause,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        cause = wish => {
            stopper.stop(GRACE).await;
            cause
        }
        _ = stopper.ended() => None,
    }
}

/// What of the agent's stream people are told.
fn told(event: claude::Event) -> Option<Event> {
    Some(match event {
        claude::Event::Text { text, .. } => Event::AgentText { text: cut(&text) },
        claude::Event::ToolUse { id, name, summary, .. } => Event::ToolUse { id, tool: name, summary },
        claude::Event::ToolResult { id, is_error, summary } => {
            Event::ToolResult { id, is_error, text: summary }
        }
        claude::Event::Denied { tool, reason } => {
            Event::Note { text: cut(&format!("`{tool}` was denied: {reason}")) }
        }
        claude::Event::Retry { attempt, of, status } => {
            let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
            Event::AgentRetry { text: format!("the model did not answer{status}; try {attempt} of {of}") }
        }
        claude::Event::Unreadable { note } => Event::Note { text: cut(&note) },
        claude::Event::Started { .. } | claude::Event::Finished(_) | claude::Event::Other { .. } => {
            return None;
        }
    })
}
