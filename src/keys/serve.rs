//! `worca keys serve`: reads its secrets, opens the vault, listens, and ends in order. Nothing it reads is
//! printed, and it answers nobody before it is hardened.

mod connection;
mod gather;
mod workers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::books::{Books, BooksError};
use super::control::ControlSecret;
use super::credential::Credential;
use super::keyring::{Keyring, NotReady};
use super::meter::{Prices, ReadPricesError};
use super::pass::Passes;
use super::secret_file::{self, ReadSecretError};
use super::slot::{Origin, ReadSlotsError, Slot, Slots, Upstream};
use super::upstream::UpstreamClient;
use super::vault::{ReadVaultKeyError, Vault, VaultError, VaultKey};
use crate::failure::{Exit, Explain};
use crate::ids::PersonId;
use workers::Workers;

/// The shortest control secret that is taken, in characters.
const SHORTEST_CONTROL: usize = 32;
/// How often leases are looked at.
const SWEEP: Duration = Duration::from_millis(250);
/// With more threads than this it would only wait for the network.
const MOST_WORKERS: usize = 4;

/// The limits of the service. The defaults are what a box runs with; tests shorten them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long a pass lives without being renewed.
    pub lease: Duration,
    /// How many passes may live at a time.
    pub passes: usize,
    /// The largest request of an agent, in bytes.
    pub body: u64,
    /// How long either side may be silent in the middle of a body.
    pub idle: Duration,
    /// How long a provider may take to begin its answer.
    pub head: Duration,
    /// How long a caller may take for its headers, and stay silent between two requests.
    pub headers: Duration,
    /// How many connections are served at a time.
    pub connections: usize,
    /// How long open answers may go on once the service is told to end.
    pub drain: Duration,
    /// How many threads serve connections.
    pub workers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(8),
            passes: 1024,
            body: 32 * 1024 * 1024,
            idle: Duration::from_secs(300),
            head: Duration::from_secs(600),
            headers: Duration::from_secs(60),
            connections: 4096,
            drain: Duration::from_secs(5),
            workers: std::thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS),
        }
    }
}

/// What the service is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its folder, with the vault in it.
    pub data: PathBuf,
    /// The file with the control secret.
    pub control_file: PathBuf,
    /// The file with the vault key.
    pub vault_key_file: PathBuf,
    /// The slots file, when there is one.
    pub slots_file: Option<PathBuf>,
    /// Where the `anthropic` slot goes, whatever the slots file says.
    pub anthropic: Option<Origin>,
    /// A price table of the person's own, which comes before the built-in one.
    pub prices: Option<PathBuf>,
    /// Its limits.
    pub limits: Limits,
}

/// The service does not start, or stopped serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The kernel does not keep this process's memory to itself.
    #[error("this process cannot keep its memory to itself")]
    Harden(#[source] std::io::Error),
    /// The control secret.
    #[error(transparent)]
    Control(#[from] ReadSecretError),
    /// One that can be guessed.
    #[error("the control secret at `{path}` is shorter than {SHORTEST_CONTROL} characters", path = .0.display())]
    ShortControl(PathBuf),
    /// The vault key.
    #[error(transparent)]
    VaultKey(#[from] ReadVaultKeyError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The prices.
    #[error(transparent)]
    Prices(#[from] ReadPricesError),
    /// The books.
    #[error(transparent)]
    Books(#[from] BooksError),
    /// The slots file.
    #[error(transparent)]
    Slots(#[from] ReadSlotsError),
    /// The address.
    #[error("the key service cannot listen on `{address}`")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A task of its own broke.
    #[error("the key service could not start a part of itself")]
    Task,
    /// A thread of its own.
    #[error("the key service could not start its threads")]
    Threads(#[source] std::io::Error),
}

impl Explain for ServeError {
    fn code(&self) -> &'static str {
        match self {
            Self::Harden(_) => "harden",
            Self::Control(error) => error.code(),
            Self::ShortControl(_) => "control-secret-short",
            Self::VaultKey(error) => error.code(),
            Self::Vault(error) => error.code(),
            Self::Prices(error) => error.code(),
            Self::Books(error) => error.code(),
            Self::Slots(error) => error.code(),
            Self::Listen { .. } => "listen",
            Self::Task => "task",
            Self::Threads(_) => "threads",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Control(error) => error.hint(),
            Self::VaultKey(error) => error.hint(),
            Self::Vault(error) => error.hint(),
            Self::Prices(error) => error.hint(),
            Self::Books(error) => error.hint(),
            Self::Slots(error) => error.hint(),
            Self::ShortControl(_) => Some("`worca container up` writes one that is long enough".into()),
            Self::Listen { .. } => Some("choose another address with `--listen`".into()),
            Self::Harden(_) | Self::Task | Self::Threads(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::Harden(_) | Self::ShortControl(_) => Exit::Refused,
            Self::Control(error) => error.exit(),
            Self::VaultKey(error) => error.exit(),
            Self::Vault(error) => error.exit(),
            Self::Prices(error) => error.exit(),
            Self::Books(error) => error.exit(),
            Self::Slots(error) => error.exit(),
            Self::Listen { .. } | Self::Task | Self::Threads(_) => Exit::Failed,
        }
    }
}

/// What every request needs.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) slots: Slots,
    pub(super) passes: Passes,
    pub(super) keyring: Keyring,
    pub(super) books: Arc<Books>,
    pub(super) control: ControlSecret,
    pub(super) client: Option<UpstreamClient>,
}

impl Shared {
    /// The credential that a slot would use now for this person; `None` for a slot that needs none.
    pub(super) async fn ready(
        &self,
        slot: &Slot,
        person: &PersonId,
    ) -> Result<Option<Arc<Credential>>, NotReady> {
        match &slot.upstream {
            Upstream::Unset => {
                let file = self.slots.file().map(str::to_owned);
                Err(NotReady::NoPlace { slot: slot.name.clone(), file })
            }
            Upstream::Provider(_) if self.client.is_none() => Err(NotReady::NoRoots),
            Upstream::Provider(_) | Upstream::Rehearsal => self.keyring.credential(slot, person).await,
        }
    }
}

/// A key service that listens.
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    workers: Workers,
}

impl Service {
    /// Hardens the process, reads the secrets, opens the vault and listens.
    ///
    /// # Errors
    /// When any of that fails; then nothing listens.
    pub async fn start(settings: Settings) -> Result<Self, ServeError> {
        super::harden().map_err(ServeError::Harden)?;
        let control = secret_file::read(&settings.control_file, "control secret")?;
        if control.expose().len() < SHORTEST_CONTROL {
            return Err(ServeError::ShortControl(settings.control_file));
        }
        let (data, key_file) = (settings.data, settings.vault_key_file);
        let (slots_file, anthropic, prices) = (settings.slots_file, settings.anthropic, settings.prices);
        let (slots, vault, books) = tokio::task::spawn_blocking(move || {
            let slots = Slots::read(slots_file.as_deref(), anthropic)?;
            let prices = Prices::read(prices.as_deref())?;
            let vault = Vault::open(&data, VaultKey::read(&key_file)?)?;
            Ok::<_, ServeError>((slots, vault, Books::open(&data, prices)?))
        })
        .await
        .map_err(|_| ServeError::Task)??;
        let workers = Workers::start(settings.limits.workers).map_err(ServeError::Threads)?;
        let client = UpstreamClient::new(workers.others())
            .inspect_err(
                |error| tracing::warn!(%error, "no root certificates were found: no provider can be reached"),
            )
            .ok();
        let listen = |cause| ServeError::Listen { address: settings.listen, cause };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let tasks = TaskTracker::new();
        let shared = Arc::new(Shared {
            slots,
            passes: Passes::new(settings.limits.lease, settings.limits.passes),
            keyring: Keyring::new(vault, tasks.clone()),
            books: Arc::new(books),
            control: ControlSecret::new(&control),
            client,
            limits: settings.limits,
        });
        Ok(Self { listener, address, shared, tasks, workers })
    }

    /// Where it listens: with port 0, the one that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled; then takes no more, lets open answers go on for a moment, and ends.
    pub async fn run(self, stop: CancellationToken) {
        tracing::info!(address = %self.address, boot = self.shared.passes.boot(), "the key service listens");
        let sweeper = {
            let (shared, stop) = (self.shared.clone(), stop.clone());
            async move {
                let mut tick = tokio::time::interval(SWEEP);
                while stop.run_until_cancelled(tick.tick()).await.is_some() {
                    shared.passes.sweep();
                }
            }
        };
        let accept = connection::accept(&self.listener, &self.shared, &self.workers, &self.tasks, &stop);
        tokio::join!(sweeper, accept);
        drop(self.listener);
        self.tasks.close();
        // Connections end by themselves after the drain time; what remains is a last write to the vault.
        self.tasks.wait().await;
        self.workers.end().await;
        tracing::info!("the key service has ended");
    }
}
