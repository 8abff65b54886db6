//! A real key service on a port of its own, a scripted provider that notes what it receives, and a plain client.

#![allow(dead_code, reason = "each test file uses its part")]

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use worca::ids::{PersonId, RunId, SpawnId, StepName};
use worca::keys::client::{KeysClient, MintRequest, Minted};
use worca::keys::credential::Kind;
use worca::keys::serve::{Limits, Service, Settings};
use worca::keys::slot::{Choice, Endpoint, Origin, SlotName};
use worca::keys::vault::{Vault, VaultKey};
use worca::keys::wire::Scenario;
use worca::secret::Secret;

/// The longest that anything is waited for; far above what it takes, also on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);
pub const CONTROL: &str = "control-secret-of-the-tests-0123456789abcdef";
pub const API_KEY: &str = "sk-ant-api03-canary-aVeryLongKeyThatIsEasyToFind-WXYZ";
pub const TOKEN: &str = "sk-ant-oat01-canary-aVeryLongTokenThatIsEasyToFind-ABCD";

pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// Waits until `look` finds something, and says what it saw last when it never does.
pub async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if tokio::time::Instant::now() > end => panic!("{what}: never; last seen: {seen}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Awaits something that must come, within the deadline.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: never"))
}

pub fn write_private(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The folder of a key service: its secrets and its vault.
pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("control"), CONTROL);
        write_private(&folder.path().join("vault_key"), &VaultKey::generate().unwrap());
        Self { folder }
    }
    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }
    pub fn vault_key(&self) -> PathBuf {
        self.folder.path().join("vault_key")
    }
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
    /// The vault, as another process would open it.
    pub fn vault(&self) -> Vault {
        Vault::open(&self.data(), VaultKey::read(&self.vault_key()).unwrap()).unwrap()
    }
    pub fn put(&self, kind: Kind, origin: &Origin, secret: &str) {
        self.put_of(&SlotName::anthropic(), &PersonId::local(), kind, &origin.clone().into(), secret);
    }
    pub fn put_of(&self, slot: &SlotName, person: &PersonId, kind: Kind, at: &Endpoint, secret: &str) {
        self.vault().put(slot, person, kind, at, &Secret::new(secret.into())).unwrap();
    }
    pub fn settings(&self, anthropic: Origin, limits: Limits) -> Settings {
        Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: self.data(),
            control_file: self.control(),
            vault_key_file: self.vault_key(),
            slots_file: None,
            anthropic: Some(anthropic),
            prices: None,
            limits,
        }
    }
    /// A service whose slots are those of this file.
    pub async fn start_with(&self, slots: &str) -> Running {
        let file = self.folder.path().join("slots.yaml");
        std::fs::write(&file, slots).unwrap();
        let settings = self.settings(Origin::anthropic(), Limits::default());
        let settings = Settings { slots_file: Some(file), anthropic: None, ..settings };
        Running::of(Service::start(settings).await.unwrap())
    }
    pub async fn start(&self, anthropic: Origin, limits: Limits) -> Running {
        Running::of(Service::start(self.settings(anthropic, limits)).await.unwrap())
    }
}

/// A key service that runs in this process until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub client: KeysClient,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    fn of(service: Service) -> Self {
        let address = service.address();
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(service.run(stop.clone()));
        let client = KeysClient::new(&format!("http://{address}"), &Secret::new(CONTROL.into())).unwrap();
        Self { address, client, stop, task }
    }
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
    pub async fn mint(&self, model: Option<&str>) -> Minted {
        self.client.mint(&wanted(model)).await.unwrap()
    }
    pub async fn end(mut self) {
        self.stop.cancel();
        soon("the service ends", self.task.join_next()).await;
    }
}

pub fn wanted(model: Option<&str>) -> MintRequest {
    let choice = Choice::for_model(model).unwrap();
    MintRequest {
        run: RunId::random(),
        step: StepName::work(),
        spawn: SpawnId::random(),
        person: PersonId::local(),
        slot: choice.slot,
        models: Vec::new(),
        cap: None,
        scenario: choice.scenario.map(Scenario::Named),
    }
}

/// A service with a key saved for a scripted provider.
pub struct Stage {
    pub place: Place,
    pub upstream: Upstream,
    pub keys: Running,
}

impl Stage {
    pub async fn set(script: impl Fn(&Seen) -> Script + Send + Sync + 'static) -> Self {
        // Nobody renews a pass here, and a busy machine takes its time.
        let limits = Limits { lease: DEADLINE, ..Limits::default() };
        Self::with(Kind::ApiKey, API_KEY, limits, script).await
    }
    pub async fn with(
        kind: Kind,
        secret: &str,
        limits: Limits,
        script: impl Fn(&Seen) -> Script + Send + Sync + 'static,
    ) -> Self {
        let place = Place::new();
        let upstream = Upstream::start(script).await;
        place.put(kind, &upstream.origin, secret);
        let keys = place.start(upstream.origin.clone(), limits).await;
        Self { place, upstream, keys }
    }
    /// Posts a small message with this pass.
    pub async fn ask(&self, pass: &Secret) -> Answer {
        call(message(&self.keys, pass)).await
    }
}

pub fn message(keys: &Running, pass: &Secret) -> Request<Body> {
    request(
        Method::POST,
        &keys.url("/anthropic/v1/messages?beta=true"),
        Some(pass),
        r#"{"model":"m","messages":[]}"#,
    )
}

pub fn request(method: Method, url: &str, pass: Option<&Secret>, body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(url).header("content-type", "application/json");
    if let Some(pass) = pass {
        request = request.header("authorization", format!("Bearer {}", pass.expose()));
    }
    request.body(Full::new(Bytes::from(body.to_owned())).boxed_unsync()).unwrap()
}

/// What came back, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub fn client() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub async fn call(request: Request<Body>) -> Answer {
    let response = soon("an answer comes", client().request(request)).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = soon("the answer is whole", body.collect()).await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

/// A body that the test sends piece by piece. The sender tells when the other side has gone.
pub fn fed() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, fed_by(receiver))
}

fn fed_by(receiver: mpsc::Receiver<Bytes>) -> Body {
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// What the provider received.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    /// The body, of a small request.
    pub body: Bytes,
    /// Its length, of any.
    pub length: u64,
    /// Whether all of it came.
    pub whole: bool,
}

/// What the provider answers.
pub enum Script {
    Whole(Response<Bytes>),
    Fed(Response<()>, mpsc::Receiver<Bytes>),
    /// Nothing, ever.
    Silence,
}

impl Script {
    pub fn json(status: u16, body: &str) -> Self {
        let builder = Response::builder().status(status).header("content-type", "application/json");
        Self::Whole(builder.body(Bytes::from(body.to_owned())).unwrap())
    }
    /// An event stream that the test feeds through the sender.
    pub fn events(receiver: mpsc::Receiver<Bytes>) -> Self {
        Self::Fed(Response::builder().header("content-type", "text/event-stream").body(()).unwrap(), receiver)
    }
}

/// A script that answers one request with a stream which the test feeds.
pub fn one_stream() -> (mpsc::Sender<Bytes>, impl Fn(&Seen) -> Script + Send + Sync + 'static) {
    let (sender, receiver) = mpsc::channel(1);
    let receiver = Mutex::new(Some(receiver));
    (sender, move |_: &Seen| Script::events(receiver.lock().unwrap().take().expect("one request alone")))
}

/// A provider on a port of its own.
pub struct Upstream {
    pub origin: Origin,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    pub async fn start(script: impl Fn(&Seen) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap()), false).unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let connections = Arc::<Mutex<usize>>::default();
        let script: Arc<dyn Fn(&Seen) -> Script + Send + Sync> = Arc::new(script);
        let mut tasks = JoinSet::new();
        let (noted, counted) = (seen.clone(), connections.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                let (script, noted) = (script.clone(), noted.clone());
                open.spawn(async move {
                    let service = service_fn(move |request| {
                        let (script, noted) = (script.clone(), noted.clone());
                        async move { Ok::<_, std::convert::Infallible>(play(request, &*script, &noted).await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { origin, seen, connections, _tasks: tasks }
    }
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
    /// How many connections were made to it so far.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
    pub fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.into_iter().next().unwrap()
    }
}

async fn play(
    request: Request<Incoming>,
    script: &(dyn Fn(&Seen) -> Script + Send + Sync),
    noted: &Mutex<Vec<Seen>>,
) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let mut kept = Vec::new();
    let mut length = 0;
    let mut whole = true;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => {
                length += data.len() as u64;
                if kept.len() < 100_000 {
                    kept.extend_from_slice(&data);
                }
            }
            Ok(Err(_)) | Err(_) => {
                whole = false;
                break;
            }
        }
    }
    let seen = Seen {
        method: parts.method,
        target: parts.uri.to_string(),
        headers: parts.headers,
        body: kept.into(),
        length,
        whole,
    };
    noted.lock().unwrap().push(seen.clone());
    match script(&seen) {
        Script::Whole(response) => response.map(|body| Full::new(body).boxed_unsync()),
        Script::Fed(response, receiver) => response.map(|()| fed_by(receiver)),
        Script::Silence => std::future::pending().await,
    }
}
