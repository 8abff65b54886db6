//! One run at work: a pass, an agent through `spawn`, its lines as events, and the pass revoked the moment the
//! agent is gone. Whatever goes wrong here ends in an [`Outcome`]; `finish` makes the end of it.

use std::ffi::OsString;

use tokio::sync::watch;

use super::worktree::Worktree;
use super::{Cause, GRACE, Inner};
use crate::agents::claude::{self, Finish, Launch, Parser};
use crate::events::{Event, RunStatus, cut, cut_to};
use crate::failure::Explain;
use crate::git::{Person, agent_environment};
use crate::guardrails::{self, Confine, Environment, Facts, Filesystem, GuardrailSet, SetName};
use crate::ids::SpawnId;
use crate::keys::client::{MintRequest, Minted};
use crate::keys::slot::{Choice, SlotName};
use crate::spawn::{Agent, AgentEnd, AgentExit, Stopper};
use crate::store::{NewSpawn, Run, StoreError};

/// How the agent's part of a run ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Who asked it to end, if anybody.
    pub(super) cause: Option<Cause>,
    /// What went wrong, as a sentence for people.
    failure: Option<String>,
    pub(super) cost_micros: Option<u64>,
    pub(super) turns: Option<u64>,
    pub(super) answer: Option<String>,
    /// Processes of the agent that could not be ended: they may still write into the worktree.
    pub(super) left: u32,
}

impl Outcome {
    fn failed(error: &dyn Explain) -> Self {
        let mut sentence = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            sentence = format!("{sentence}: {error}");
            cause = error.source();
        }
        Self { failure: Some(sentence), ..Self::default() }
    }

    /// The status that a run with this outcome ends in, and why.
    pub(super) fn verdict(&self) -> (RunStatus, Option<String>) {
        match (&self.failure, self.cause) {
            (_, Some(Cause::Person)) => (RunStatus::Stopped, Some("a person stopped it".into())),
            (Some(reason), _) => (RunStatus::Failed, Some(cut_to(reason, 2_000))),
            (None, _) => (RunStatus::Done, None),
        }
    }
}

impl Inner {
    /// Brings a run from its worktree to its end. A store that fails for good ends it here; the next start
    /// finds it and makes it good.
    pub(super) async fn drive(&self, run: &Run, worktree: &Worktree, asked: watch::Receiver<Option<Cause>>) {
        let ended = async {
            self.set_status(&run.id, RunStatus::Running, None).await?;
            let outcome = self.work(run, worktree, asked).await?;
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
    ) -> Result<Outcome, StoreError> {
        let version = match claude::version(&self.settings.claude).await {
            Ok(version) => version,
            Err(error) => return Ok(Outcome::failed(&error)),
        };
        let program = format!("Claude Code {version}");
        let choice = Choice::for_model(run.model.as_deref());
        let spawn = SpawnId::random();
        let wanted = MintRequest {
            run: run.id.clone(),
            spawn: spawn.clone(),
            slot: choice.slot.clone(),
            scenario: choice.scenario,
        };
        let minted = match self.settings.keys.mint(&wanted).await {
            Ok(minted) => minted,
            Err(error) => return Ok(Outcome::failed(&error)),
        };
        let begins = NewSpawn {
            id: spawn.clone(),
            run: run.id.clone(),
            program,
            pass: minted.id.clone(),
            guardrails: run.guardrails.clone(),
            policy_digest: String::new(),
        };
        let outcome =
            match self.until_space(&run.id, || self.settings.store.spawn_begins(begins.clone())).await {
                Ok(()) => {
                    let base_url = self.settings.keys.base_url(&choice.slot);
                    self.run_agent(run, worktree, &begins, &minted, base_url, asked).await
                }
                Err(error) => Err(error),
            };
        // The agent program prices every model; a rehearsal costs nothing.
        let outcome = outcome.map(|outcome| match choice.slot == SlotName::rehearsal() {
            true => Outcome { cost_micros: None, ..outcome },
            false => outcome,
        });
        // Revoked already where an agent ran; the pass of an agent that never started dies here.
        if let Err(error) = self.settings.keys.revoke(&minted.id).await {
            tracing::warn!(run = %run.id, %error, "a pass could not be revoked; it ends with its lease");
        }
        outcome
    }

    async fn run_agent(
        &self,
        run: &Run,
        worktree: &Worktree,
        spawn: &NewSpawn,
        minted: &Minted,
        base_url: String,
        asked: watch::Receiver<Option<Cause>>,
    ) -> Result<Outcome, StoreError> {
        let lease = self.leases.hold(minted.id.clone());
        let launch = self.launch(run, worktree, minted, base_url);
        let mut agent = match start(launch).await {
            Ok(agent) => agent,
            Err(outcome) => {
                self.spawn_ended(run, spawn, "was not started").await?;
                return Ok(outcome);
            }
        };
        let started = Event::AgentStarted { spawn: spawn.id.clone(), program: spawn.program.clone() };
        self.record(&run.id, started).await?;
        let stopper = agent.stopper();
        let parser = Parser::new(vec![minted.pass.clone()]);

        // Three things at once: its lines, a wish to stop it, and its end, which is the end of its pass.
        let revoke = async {
            let exit = stopper.ended().await;
            drop(lease);
            if let Err(error) = self.settings.keys.revoke(&minted.id).await {
                tracing::warn!(run = %run.id, %error, "a pass could not be revoked; it ends with its lease");
            }
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

        let outcome = judge(&exit, cause, finish);
        let sentence = sentence(&exit);
        let stderr = outcome.failure.is_some().then(|| parser.scrub(&agent.stderr_tail()));
        let stderr = stderr.map(|text| cut(text.trim())).filter(|text| !text.is_empty());
        self.spawn_ended(run, spawn, &sentence).await?;
        self.record(&run.id, Event::AgentEnded { exit: sentence, stderr }).await?;
        Ok(outcome)
    }

    async fn spawn_ended(&self, run: &Run, spawn: &NewSpawn, how: &str) -> Result<(), StoreError> {
        self.until_space(&run.id, || self.settings.store.spawn_ended(&spawn.id, how.to_owned())).await
    }

    fn launch(&self, run: &Run, worktree: &Worktree, minted: &Minted, base_url: String) -> Launch {
        let settings = &self.settings;
        let facts = self.facts(run, worktree);
        let compiled = guardrails::compile(&bare_set(), &[], &facts);
        let person = Person::new(&run.author_name, &run.author_email).unwrap_or_else(|_| Person::nobody());
        let environment = agent_environment(&worktree.tree(), worktree.common_dir(), &person);
        Launch {
            program: settings.claude.clone(),
            model: run.model.clone(),
            facts,
            compiled,
            base_url,
            pass: minted.pass.clone(),
            prompt: run.prompt.clone(),
            resume: None,
            environment: environment.into_iter().map(|(name, value)| (name, OsString::from(value))).collect(),
        }
    }

    /// What of this start is known before it.
    fn facts(&self, run: &Run, worktree: &Worktree) -> Facts {
        let settings = &self.settings;
        let folder = settings.home.run(&run.id);
        let home = folder.join("home");
        Facts {
            worca: std::env::current_exe().unwrap_or_default(),
            worca_home: settings.home.path().to_owned(),
            worktree: worktree.tree(),
            temporary: home.join("tmp"),
            folder,
            home,
            common_dir: worktree.common_dir().to_owned(),
            worktree_admin: worktree.registration(),
            branch: run.branch.clone(),
            checkout: run.checkout.clone().into(),
            projects: Vec::new(),
            protected: settings.protected.clone(),
            programs: Vec::new(),
            user_home: None,
            found: Vec::new(),
            service_ports: Vec::new(),
            closed_port: None,
            host: std::process::id(),
        }
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

/// The set with no rule of its own.
fn bare_set() -> GuardrailSet {
    GuardrailSet {
        name: SetName::default(),
        extends: Vec::new(),
        rules: Vec::new(),
        deny_undecided: false,
        honor_project_rules: false,
        environment: Environment::default(),
        confine: Confine { filesystem: Filesystem::Open, tcp: None },
        require_kernel: false,
    }
}

/// Makes the files of the start and starts the agent.
async fn start(launch: Launch) -> Result<Agent, Outcome> {
    let request = match tokio::task::spawn_blocking(move || launch.prepare()).await {
        Ok(prepared) => prepared.map_err(|error| Outcome::failed(&error))?,
        Err(_) => return Err(Outcome::failed(&StoreError::Ending)),
    };
    crate::spawn::start(request).await.map_err(|error| Outcome::failed(&error))
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

fn judge(exit: &AgentExit, cause: Option<Cause>, finish: Option<Finish>) -> Outcome {
    let failure = match &finish {
        Some(finish) if finish.succeeded() && exit.is_success() => None,
        Some(finish) if !finish.succeeded() => {
            let said = finish.text.trim();
            let said = if said.is_empty() { finish.subtype.as_str() } else { said };
            Some(format!("the agent ended with an error: {said}"))
        }
        Some(_) => Some(format!("the agent program {}", sentence(exit))),
        None => Some(format!("the agent program gave no result: it {}", sentence(exit))),
    };
    let finish = finish.unwrap_or_default();
    Outcome {
        cause,
        failure,
        cost_micros: finish.cost_usd.and_then(micros),
        turns: Some(finish.turns),
        answer: Some(finish.text).filter(|text| !text.trim().is_empty()),
        left: exit.left,
    }
}

/// Dollars to millionths; `None` for what is no amount.
fn micros(dollars: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked: not negative, and far below 2^53 millionths"
    )]
    (0.0..1e9).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

fn sentence(exit: &AgentExit) -> String {
    let how = match exit.end {
        AgentEnd::Code(code) => format!("ended with code {code}"),
        AgentEnd::Signal(signal) => format!("was ended by signal {signal}"),
        AgentEnd::ShimKilled => "was killed from inside: its shim is gone".to_owned(),
    };
    let beside = match exit.ended {
        0 => String::new(),
        1 => "; one process that it left was ended".to_owned(),
        count => format!("; {count} processes that it left were ended"),
    };
    let left = match exit.left {
        0 => String::new(),
        count => format!("; {count} could not be ended and may still write"),
    };
    how + &beside + &left
}
