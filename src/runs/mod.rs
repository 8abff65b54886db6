//! What a run is: a prompt, a worktree and a branch of its own, one agent, a result.
//!
//! It moves through `preparing`, `running` and `finishing` to one end, each step stored before it is taken, so
//! that a core that is killed finds at its next start what to make good. A run whose guardrail set is missing, broken
//! or more than the kernel can hold is `parked` and waits for a person. It must never build a command for an agent
//! (that is `spawn`), never start one under another set than the run's, never touch the user's checkout (that is what
//! `worktree` holds off), and never end a run with work in its worktree that no commit holds.

mod books;
mod create;
mod diagnostics;
pub mod doctor;
mod drive;
mod error;
mod facts;
mod finish;
mod guard;
mod lease;
mod live;
mod outcome;
pub mod pay;
mod reach;
mod recover;
mod resume;
pub mod scenario;
pub mod settings;
mod start;
pub mod worktree;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

pub use diagnostics::probe_words;
pub use error::{CreateRunError, ResumeRunError, StopRunError};
pub use guard::{GuardError, kernel_lacks, lacking};
pub use pay::Budget;
pub use reach::Reach;
pub use settings::{SetSettingError, Setting};

use crate::events::{Event, RunStatus};
use crate::git::{Git, Person};
use crate::guardrails::OwnSets;
use crate::home::Home;
use crate::ids::{PersonId, RunId};
use crate::keys::client::KeysClient;
use crate::store::{Run, RunEnd, Store, StoreError};
use books::Books;
use drive::Begin;
use lease::Leases;
use live::{Asked, Cause, Live};

/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 512 * 1024;
/// The largest diff that is kept beside a run, in bytes; a larger one is cut, the branch has it whole.
pub const MAX_DIFF: usize = 16 * 1024 * 1024;
/// How long an agent has to end by itself when it is asked to, before its tree is killed.
const GRACE: Duration = Duration::from_secs(3);

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The project: a folder in a repository.
    pub project: PathBuf,
    /// What to do.
    pub prompt: String,
    /// A short line for people; made from the prompt when none is given.
    pub title: Option<String>,
    /// The model; the agent program's own choice when none is given.
    pub model: Option<String>,
    /// The guardrail set; `normal` when none is given.
    pub guardrails: Option<String>,
    /// Who pays: the person whose action causes it.
    pub payer: PersonId,
    /// What it may spend.
    pub budget: Budget,
    /// The models that it may use, as names in which `*` stands for anything; every model when there is none.
    pub models: Vec<String>,
    /// The text of the scenario, where the model is a rehearsal by a file.
    pub scenario: Option<String>,
}

/// What the runs of a core stand on.
pub struct Settings {
    /// Worca's home.
    pub home: Home,
    /// The store.
    pub store: Store,
    /// The user's git.
    pub git: Git,
    /// The key service, as core speaks to it.
    pub keys: KeysClient,
    /// Claude Code: a name that `PATH` holds, or a path.
    pub claude: OsString,
    /// Whose name the commits bear where the repository names nobody.
    pub person: Option<Person>,
    /// The folders that may be worked on; any when this core runs without a box.
    pub mounted: Option<Vec<PathBuf>>,
    /// Files that are closed to every agent (the core token, the control secret).
    pub protected: Vec<PathBuf>,
    /// Where keys are looked for before each start of an agent.
    pub reach: Reach,
    /// The port of the key service, which agents need.
    pub keys_port: Option<u16>,
    /// The port that core itself listens on, which no agent needs.
    pub listen_port: Option<u16>,
}

/// The runs of this core. Clones share it.
#[derive(Clone)]
pub struct Runs(Arc<Inner>);

struct Inner {
    settings: Settings,
    leases: Leases,
    books: Books,
    tasks: TaskTracker,
    live: Live,
}

impl Runs {
    /// Takes up the runs of an earlier core (they become `interrupted`, their work safe), then is ready.
    ///
    /// # Errors
    /// When the store does not give or take what that needs.
    pub async fn start(settings: Settings) -> Result<Self, StoreError> {
        let (keys, store) = (settings.keys.clone(), settings.store.clone());
        // Before the books are asked: they are not of a start that is thought to be at work.
        store.end_lost_spawns().await?;
        let leases = Leases::start(keys.clone(), store.clone());
        let books = Books::start(keys, store);
        let tasks = TaskTracker::new();
        let runs = Self(Arc::new(Inner { settings, leases, books, tasks, live: Live::default() }));
        runs.0.recover().await?;
        Ok(runs)
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        &self.0.settings.store
    }

    /// The key service, which keeps the books and the budgets.
    pub fn keys(&self) -> &KeysClient {
        &self.0.settings.keys
    }

    /// Checks everything that could refuse the run, makes its worktree and starts it.
    ///
    /// # Errors
    /// With the reason; then no row, no branch and no folder is left.
    pub async fn create(&self, new: NewRun) -> Result<Run, CreateRunError> {
        // Core waits for this at its end, as it waits for the run that comes of it.
        let _making = self.0.tasks.token();
        let (run, worktree) = self.0.make(new).await?;
        // The id is new, so nobody is there under it.
        let asked = self.0.live.enter(&run.id).ok_or(CreateRunError::Ending)?;
        if self.0.tasks.is_closed() {
            self.0.live.ask(&run.id, Cause::Ending);
        }
        let inner = Arc::clone(&self.0);
        let driven = run.clone();
        self.0.tasks.spawn(async move {
            inner.drive(&driven, &worktree, asked, Begin::First).await;
            inner.live.leave(&driven.id);
        });
        Ok(run)
    }

    /// Asks a run to stop. It ends by itself within moments, with its work committed. A parked run ends likewise.
    ///
    /// # Errors
    /// When there is no such run, its agent has ended already, or it has.
    pub async fn stop(&self, id: &RunId) -> Result<(), StopRunError> {
        match self.0.live.ask(id, Cause::Person) {
            Asked::Heard => return Ok(()),
            Asked::TooLate => return Err(StopRunError::Finishing(id.clone())),
            Asked::Absent => {}
        }
        let run = self.0.settings.store.run(id).await?.ok_or_else(|| StopRunError::Unknown(id.clone()))?;
        match run.status {
            RunStatus::Parked => self.stop_parked(run).await,
            status if status.is_end() => Err(StopRunError::Ended(id.clone())),
            _ => Err(StopRunError::Moving(id.clone())),
        }
    }

    /// Where the diff of a run is, once it has one: at most [`MAX_DIFF`] bytes.
    pub fn diff_file(&self, id: &RunId) -> PathBuf {
        self.0.settings.home.run(id).join("diff.patch")
    }

    /// The user's own guardrail sets, which a run may name.
    pub fn own_sets(&self) -> OwnSets {
        OwnSets::at(self.0.settings.home.guardrails())
    }

    /// Ends all agents, saves their work and waits for it. The runs end as `interrupted`.
    pub async fn shut_down(&self) {
        self.0.tasks.close();
        self.0.live.ask_all(Cause::Ending);
        self.0.tasks.wait().await;
        self.0.leases.stop().await;
        self.0.books.stop().await;
    }
}

impl Inner {
    /// Stores something, and waits while the disk is full: the agent, whose output is not read meanwhile, waits
    /// with it, and all goes on by itself once there is space. A core that is told to end waits no longer; its
    /// next start makes the run good.
    async fn until_space<T, F, Fut>(&self, run: &RunId, store: F) -> Result<T, StoreError>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T, StoreError>>,
    {
        loop {
            match store().await {
                Err(StoreError::DiskFull) if !self.tasks.is_closed() => {
                    tracing::warn!(%run, "the disk is full: the run waits for space");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                other => return other,
            }
        }
    }

    async fn record(&self, run: &RunId, event: Event) -> Result<(), StoreError> {
        self.until_space(run, || self.settings.store.append_event(run, event.clone())).await.map(|_| ())
    }

    async fn set_status(
        &self,
        run: &RunId,
        status: RunStatus,
        reason: Option<String>,
    ) -> Result<(), StoreError> {
        let store = &self.settings.store;
        self.until_space(run, || store.set_run_status(run, status, reason.clone())).await.map(|_| ())
    }

    async fn set_end(&self, run: &RunId, end: &RunEnd) -> Result<(), StoreError> {
        self.until_space(run, || self.settings.store.set_run_end(run, end.clone())).await
    }

    async fn set_worktree_removed(&self, run: &RunId) -> Result<(), StoreError> {
        self.until_space(run, || self.settings.store.worktree_removed(run)).await
    }
}
