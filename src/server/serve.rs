//! Core from its start to its end: one per home, listening, answering, told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::app::App;
use super::gate::CoreToken;
use super::hosts::Hosts;
use super::lock::{self, Holder, ServeLock, Taken};
use super::routes::links;
use super::wire::LinkAnswer;
use super::{listen, port, route, token};
use crate::failure::{Exit, Explain, Failure};
use crate::home::Home;
use crate::runs::Runs;
use crate::secret::Secret;
use crate::store::Store;

/// How long a run that is being made may take once core ends.
const LAST_WORK: Duration = Duration::from_secs(5);

/// What core is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its folder.
    pub home: Home,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What a browser is told to open; made from `listen` when not given.
    pub public_url: Option<String>,
    /// Names that it answers to beside the loopback ones.
    pub allow_hosts: Vec<String>,
    /// The file of the core token. When not given it is in the home, and made when it is not there.
    pub core_token_file: Option<PathBuf>,
}

/// A setting is not right.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The address for browsers.
    #[error("`{0}` is not an address such as `http://localhost:4317`")]
    PublicUrl(String),
    /// A name.
    #[error("`{0}` is not the name of a host")]
    AllowHost(String),
}

impl Explain for SettingError {
    fn code(&self) -> &'static str {
        match self {
            Self::PublicUrl(_) => "public-url-invalid",
            Self::AllowHost(_) => "allow-host-invalid",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::PublicUrl(_) => "give scheme, host and port, and nothing after them".into(),
            Self::AllowHost(_) => "give a name such as `worca.example.org`, without a scheme".into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// What a start came to.
pub enum Start {
    /// This process is core now.
    Ready(Box<Core>),
    /// Another core runs on this home.
    Running(Option<Holder>),
}

/// Core, ready to answer: it holds the lock and the port.
pub struct Core {
    app: App,
    listeners: Vec<tokio::net::TcpListener>,
    // Held until core has ended.
    _lock: ServeLock,
}

/// Takes the lock, the port, the token and the store, in this order, so that nothing is written by a process that
/// cannot serve. `make_runs` is called last and gets the store and the address.
///
/// # Errors
/// When one of them cannot be had; then all are let go.
pub async fn start<F>(settings: Settings, make_runs: F) -> Result<Start, Failure>
where
    F: AsyncFnOnce(Store, SocketAddr) -> Result<Runs, Failure>,
{
    let hosts = hosts(&settings.allow_hosts)?;
    if let Some(url) = &settings.public_url {
        public_url(url)?;
    }
    let mut lock = match lock::take(&settings.home.serve_lock()).await? {
        Taken::Ours(lock) => lock,
        Taken::Theirs(holder) => return Ok(Start::Running(holder)),
    };
    let listeners = port::listen(settings.listen).await?;
    let address = local(&listeners).unwrap_or(settings.listen);
    let url = match &settings.public_url {
        Some(url) => public_url(url)?,
        None => public_url(&local_url(address))?,
    };
    let secret = core_token(&settings)?;
    let database = settings.home.database();
    let store = tokio::task::spawn_blocking(move || Store::open(&database))
        .await
        .map_err(|_| crate::store::StoreError::Ending)??;
    let app = App::new(make_runs(store, address).await?, CoreToken::new(&secret), hosts, &url);
    let holder = Holder {
        url: app.public_url().to_owned(),
        listen: reachable(address).to_string(),
        pid: std::process::id(),
    };
    if let Err(error) = lock.tell(&holder) {
        tracing::warn!("the lock could not be told where core listens: {error}");
    }
    Ok(Start::Ready(Box::new(Core { app, listeners, _lock: lock })))
}

impl Core {
    /// The state, for who wants to look.
    pub fn app(&self) -> &App {
        &self.app
    }
    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        local(&self.listeners)
    }
    /// A sign-in link for a browser.
    pub fn link(&self) -> LinkAnswer {
        links::link(&self.app)
    }
    /// Answers until `stop` ends. Then no more is accepted, streams close, and `end_runs` is awaited beside the
    /// answers that are under way.
    pub async fn serve<S, E>(self, stop: S, end_runs: E)
    where
        S: Future<Output = ()>,
        E: Future<Output = ()>,
    {
        let closing = self.app.closing().clone();
        let answering = listen::answer(self.listeners, route::router(&self.app), closing.clone());
        let ending = async {
            stop.await;
            closing.cancel();
            end_runs.await;
        };
        tokio::join!(answering, ending);
        self.app.tasks().close();
        if tokio::time::timeout(LAST_WORK, self.app.tasks().wait()).await.is_err() {
            tracing::warn!("core ends although a run is still being made");
        }
    }
}

fn local(listeners: &[tokio::net::TcpListener]) -> Option<SocketAddr> {
    listeners.first()?.local_addr().ok()
}

/// The token: named, it must be there; in the home, it is made.
fn core_token(settings: &Settings) -> Result<Secret, token::TokenError> {
    match &settings.core_token_file {
        Some(path) => token::read(path),
        None => token::read_or_make(&settings.home.core_token()),
    }
}

fn hosts(names: &[String]) -> Result<Hosts, SettingError> {
    let mut hosts = Hosts::default();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let wrong = || SettingError::AllowHost(name.chars().take(100).collect());
        super::hosts::split(name).ok_or_else(wrong)?;
        hosts.add(name);
    }
    Ok(hosts)
}

fn public_url(text: &str) -> Result<url::Url, SettingError> {
    let wrong = || SettingError::PublicUrl(text.chars().take(200).collect());
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    let bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let known = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    if bare && known { Ok(url) } else { Err(wrong()) }
}

/// What a browser on this machine opens: a name for a loopback address, the address for any other.
fn local_url(address: SocketAddr) -> String {
    if address.ip().is_loopback() || address.ip().is_unspecified() {
        format!("http://localhost:{}", address.port())
    } else {
        format!("http://{address}")
    }
}

/// Where a program on this machine reaches a listener: "everywhere" is no address to call.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (std::net::Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (std::net::Ipv6Addr::LOCALHOST, v6.port()).into(),
        other => other,
    }
}
