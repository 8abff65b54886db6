//! `status`: what a box is doing, by the engine's word.

use serde::{Deserialize, Serialize};

use super::{CORE, Job, link, prepare};
use crate::container::engine::found::{FoundContainer, Health, State};
use crate::failure::Failure;

/// A box, seen from outside.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// `up` when every service runs and none is unhealthy, `partly` when some do, else `down`.
    pub state: &'static str,
    /// The engine, in words.
    pub engine: String,
    /// Where the UI is, while core publishes it.
    pub url: Option<String>,
    /// The services that are there.
    pub services: Vec<ServiceStatus>,
    /// The folders that are mounted at the next `up`.
    pub projects: Vec<String>,
    /// The folder of its files.
    pub folder: String,
    /// What the kernel under core can hold of an agent, while core answers.
    pub kernel: Option<Kernel>,
}

/// What the kernel under core can hold of an agent, as core says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kernel {
    /// The Landlock ABI that it offers; 0: none.
    pub abi: u32,
    /// The guardrail set of a run that names none.
    pub default_set: String,
    /// What of that set the kernel does not hold.
    pub default_set_loses: Vec<String>,
}

impl Kernel {
    /// In one line.
    pub fn words(&self) -> String {
        let offers = match self.abi {
            0 => "no Landlock".to_owned(),
            abi => format!("Landlock ABI {abi}"),
        };
        let set = &self.default_set;
        match self.default_set_loses.as_slice() {
            [] => format!("{offers}; it holds all that the guardrail set `{set}` asks of it"),
            loses => {
                format!("{offers}; under the guardrail set `{set}` it does not hold {}", loses.join(", nor "))
            }
        }
    }
}

/// One service.
#[derive(Debug, Serialize)]
pub struct ServiceStatus {
    /// Its name.
    pub service: String,
    /// Its container.
    pub container: String,
    /// What it is doing.
    pub state: &'static str,
    /// What its health check says.
    pub health: &'static str,
    /// The image that it was made from.
    pub image: String,
    /// The engine's words, such as since when.
    pub since: String,
}

/// Looks at the box.
///
/// # Errors
/// When there is no engine, or what the box remembers cannot be read.
pub async fn status(job: &Job<'_>) -> Result<Status, Failure> {
    let engine = job.connect().await?;
    let all = engine.look_at_containers(job.files.name()).await?;
    let ours: Vec<FoundContainer> = all.into_iter().filter(|one| one.ours && !one.one_off).collect();
    let runs = |one: &&FoundContainer| one.state == State::Running && one.health != Health::Unhealthy;
    let running = ours.iter().filter(runs).count();
    let state = match running {
        0 => "down",
        count if count == ours.len() && count >= 2 => "up",
        _ => "partly",
    };
    let core = ours.iter().find(|one| one.service == CORE && one.state == State::Running);
    let port = core.and_then(|core| core.ports.first().copied());
    let mut services: Vec<ServiceStatus> = ours
        .iter()
        .map(|one| ServiceStatus {
            service: one.service.clone(),
            container: one.name.clone(),
            state: one.state.word(),
            health: one.health.word(),
            image: one.image.clone(),
            since: one.status.clone(),
        })
        .collect();
    services.sort_by(|a, b| a.service.cmp(&b.service));
    Ok(Status {
        name: job.files.name().to_owned(),
        state,
        engine: format!("{} {} at {}", engine.version.product, engine.version.version, engine.address),
        url: port.map(|port| format!("http://localhost:{port}")),
        services,
        projects: job.state()?.projects,
        folder: job.files.folder().display().to_string(),
        kernel: match port {
            Some(port) => link::kernel(job, port).await,
            None => None,
        },
    })
}

/// The port that core publishes now, when it runs; else what the files say.
pub fn port_now(core: &FoundContainer) -> u16 {
    core.ports.first().copied().unwrap_or(prepare::DEFAULT_PORT)
}
