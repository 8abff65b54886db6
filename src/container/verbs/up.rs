//! `up`: files, plan, apply, wait, and where the UI is. A second one finds nothing to do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Serialize;

use super::link::{Link, link, tell_runs};
use super::prepare::{self, Changes};
use super::{CORE, Job, KEYS, vault};
use crate::container::compose::model::Mount;
use crate::container::compose::rules::{SETTINGS, Sealed};
use crate::container::engine::apply::ApplyError;
use crate::container::engine::credentials::{credentials, helper_time};
use crate::container::engine::found::{Found, Health, State};
use crate::container::engine::plan::{Plan, Step};
use crate::container::engine::pull::ImageInfo;
use crate::container::engine::wanted::{Origin, Wanted};
use crate::container::engine::{Address, Engine, EngineError, plan, wanted};
use crate::container::port;
use crate::container::secrets;
use crate::failure::{Exit, Explain, Failure};

/// How long a container may take to get ready, unless the caller says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A box that is up.
#[derive(Debug, Serialize)]
pub struct Up {
    /// Its name.
    pub name: String,
    /// Where the UI is.
    pub url: String,
    /// The link that signs a browser in, when core gave one.
    pub link: Option<Link>,
    /// Whether anything was done.
    pub changed: bool,
    /// What was done, in words.
    pub steps: Vec<String>,
    /// The folders that are mounted.
    pub projects: Vec<String>,
    /// Service to container id.
    pub containers: BTreeMap<String, String>,
}

/// `up` found something that it must not go on with.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The box lives on another engine.
    #[error("the box `{name}` was brought up on the engine `{before}`, and this is `{now}`")]
    OtherEngine {
        /// The box.
        name: String,
        /// The engine that it is on.
        before: String,
        /// The engine that was found.
        now: String,
    },
    /// The image is for another kind of machine.
    #[error("image `{image}` is made for `{built}`, and this engine runs `{engine}`")]
    Platform {
        /// The image.
        image: String,
        /// Its platform.
        built: String,
        /// The engine's.
        engine: String,
    },
    /// No subnet is left, and these networks of boxes hold some for nothing.
    #[error("the engine has no free subnet left to {what}")]
    NoSubnet {
        /// What was to be made.
        what: String,
        /// Boxes that have networks and no containers.
        dead: Vec<String>,
    },
    /// A mounted folder is not there for the engine.
    #[error("`{0}`, which the compose files mount, does not exist")]
    NoSource(String),
}

impl Explain for UpError {
    fn code(&self) -> &'static str {
        match self {
            Self::OtherEngine { .. } => "engine-other",
            Self::Platform { .. } => "image-platform",
            Self::NoSubnet { .. } => "engine-no-subnet",
            Self::NoSource(_) => "mount-missing",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::OtherEngine { before, now, .. } => {
                format!(
                    "its runs and keys are there: use `--engine {before}`, or make a fresh box here with `--engine {now}`"
                )
            }
            Self::Platform { .. } => {
                "build it on this machine with `scripts/image`, or name one that lists the platform".into()
            }
            Self::NoSubnet { what, dead } => {
                let own: Vec<String> =
                    dead.iter().map(|name| format!("`worca container down --name {name}`")).collect();
                let general = EngineError::NoSubnet { what: what.clone() }.hint().unwrap_or_default();
                if own.is_empty() {
                    general
                } else {
                    format!("boxes without containers hold some: {}; or {general}", own.join(", "))
                }
            }
            Self::NoSource(_) => "make it, or take it out of compose.override.yaml".into(),
        })
    }
    fn exit(&self) -> Exit {
        match self {
            Self::NoSource(_) => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

/// Brings the box up.
///
/// # Errors
/// When anything on the way fails. What was done by then stays, and a further call goes on from there.
pub async fn up(job: &Job<'_>, changes: &Changes, patience: Duration) -> Result<Up, Failure> {
    let _held = tokio::task::block_in_place(|| job.hold())?;
    let engine = job.connect().await?;
    check_engine(job, &engine)?;
    let capacity = if job.files.env().exists() { None } else { engine.capacity().await.ok() };
    vault::check(job, &engine, changes.new_vault).await?;
    let before = tokio::task::block_in_place(|| prepare::Texts::of(&job.files, changes))?;
    let checked = async {
        let prepared =
            tokio::task::block_in_place(|| prepare::prepare(job, changes, Some(&engine), capacity))?;
        let project = tokio::task::block_in_place(|| prepare::load(job, Some(&engine)))?;
        let (found, images) = tokio::join!(engine.look(job.files.name()), images(job, &engine, &project));
        let (found, images) = (found?, images?);
        super::same_home::check(job, &found.containers)?;
        let wanted = wanted(&project, &origin(job, &project, &images))?;
        let plan = plan(&wanted, &found)?;
        tokio::task::block_in_place(|| check_sources(&project))?;
        check_ports(job, &engine, &wanted, &plan, &found)?;
        Ok::<_, Failure>((prepared, project, found, wanted, plan))
    };
    let (prepared, project, found, wanted, plan) = match checked.await {
        Ok(checked) => checked,
        Err(failure) => {
            tokio::task::block_in_place(|| before.put_back())?;
            return Err(failure);
        }
    };
    let core = found.containers.iter().find(|one| one.ours && !one.one_off && one.service == CORE);
    let goes = |step: &Step| matches!(step, Step::RemoveContainer { id, .. } if core.is_some_and(|core| &core.id == id));
    if plan.steps.iter().any(goes) {
        tell_runs(job, &found.containers, true).await;
    }
    if let Err(error) = engine.apply(&wanted, &plan, job.report, patience).await {
        if matches!(error, ApplyError::Engine(EngineError::PortTaken { .. })) {
            tokio::task::block_in_place(|| before.put_back())?;
        }
        return Err(explained(&engine, error).await);
    }
    if !(plan.is_empty() && all_ready(&wanted, &found)) {
        engine.wait_all(&wanted, job.report, patience).await?;
    }
    remember_engine(job, &engine)?;
    let port = prepare::port_of(&project).unwrap_or(prepare::DEFAULT_PORT);
    let link = match link(job, port).await {
        Ok(link) => Some(link),
        Err(failure) => {
            job.report.warn(&format!("core gave no sign-in link: {}", failure.sentence()));
            None
        }
    };
    let containers =
        if plan.is_empty() { found.containers } else { engine.look_at_containers(job.files.name()).await? };
    Ok(Up {
        name: job.files.name().to_owned(),
        url: format!("http://localhost:{port}"),
        link,
        changed: !plan.is_empty(),
        steps: plan.steps.iter().map(step_words).collect(),
        projects: prepared.state.projects,
        containers: containers
            .into_iter()
            .filter(|one| one.ours && !one.one_off)
            .map(|one| (one.service, one.id))
            .collect(),
    })
}

/// Runs and keys live in volumes of one engine; a box that comes up empty elsewhere would look as if they were lost.
fn check_engine(job: &Job<'_>, engine: &Engine) -> Result<(), Failure> {
    let before = job.files.load_state()?.engine;
    let now = engine.address.to_string();
    match before {
        Some(before) if before != now && job.engine.is_none() && !same_socket(&before, &engine.address) => {
            Err(UpError::OtherEngine { name: job.files.name().into(), before, now }.into())
        }
        _ => Ok(()),
    }
}

/// Two names of one socket, such as `/var/run` and `/run`.
fn same_socket(before: &str, now: &Address) -> bool {
    match (Address::parse(before, false), now) {
        (Ok(Address::Unix(before)), Address::Unix(now)) => {
            before.canonicalize().is_ok_and(|before| now.canonicalize().is_ok_and(|now| before == now))
        }
        _ => false,
    }
}

fn remember_engine(job: &Job<'_>, engine: &Engine) -> Result<(), Failure> {
    let mut state = job.files.load_state()?;
    let now = Some(engine.address.to_string());
    if state.engine != now {
        state.engine = now;
        job.files.save_state(&state)?;
    }
    Ok(())
}

/// Every image of the project; one that is not there is pulled, and one that is there is not asked for.
pub(super) async fn images(
    job: &Job<'_>,
    engine: &Engine,
    project: &Sealed,
) -> Result<BTreeMap<String, ImageInfo>, Failure> {
    let mut references: Vec<&str> = project.services.values().map(|service| service.image.as_str()).collect();
    references.sort_unstable();
    references.dedup();
    let work = references.into_iter().map(|reference| async move {
        let info = match engine.image(reference).await? {
            Some(info) => info,
            None => pull(job, engine, reference).await?,
        };
        if !info.platform.eq_ignore_ascii_case(&engine.version.platform) {
            let (built, engine) = (info.platform, engine.version.platform.clone());
            return Err(UpError::Platform { image: reference.to_owned(), built, engine }.into());
        }
        Ok::<_, Failure>((reference.to_owned(), info))
    });
    Ok(try_join_all(work).await?.into_iter().collect())
}

/// Pulls one image with what docker's settings know about its registry.
pub(super) async fn pull(job: &Job<'_>, engine: &Engine, reference: &str) -> Result<ImageInfo, Failure> {
    let config = job.host.surroundings.docker_config.as_deref();
    let shown = credentials(reference, config, None, helper_time()).await;
    engine.pull(reference, shown, job.report).await?;
    let info = engine.image(reference).await?;
    info.ok_or_else(|| {
        let message = "it was pulled and is not there".to_owned();
        EngineError::Refused { what: format!("find image `{reference}`"), status: 404, message }.into()
    })
}

pub(super) fn origin(job: &Job<'_>, project: &Sealed, images: &BTreeMap<String, ImageInfo>) -> Origin {
    let text = |path: &Path| path.display().to_string();
    let files = job.files.compose_files();
    // The overlay is read through `extends`, so Compose does not count it as a file of its own.
    let files = files.iter().filter(|file| !file.ends_with("compose.projects.yaml"));
    let stamps = project.secrets.iter().map(|(key, secret)| {
        let file = Path::new(&secret.file);
        // The key service reads a rotated vault key by itself.
        let stamp = if key == secrets::VAULT_KEY { secrets::place(file) } else { secrets::stamp(file) };
        (key.clone(), stamp)
    });
    // It reads its settings when it starts, so a change of them is a new start.
    let settings = project.services.get(KEYS).into_iter().flat_map(|keys| &keys.mounts);
    let settings = settings.filter_map(|mount| match mount {
        Mount::Bind { source, target, .. } if target == SETTINGS => {
            Some((source.clone(), settings_stamp(source)))
        }
        Mount::Bind { .. } | Mount::Volume { .. } | Mount::Tmpfs { .. } => None,
    });
    Origin {
        working_dir: text(job.files.folder()),
        config_files: files.map(|file| text(file)).collect(),
        images: images.iter().map(|(reference, info)| (reference.clone(), info.id.clone())).collect(),
        healthy_images: images
            .iter()
            .filter(|(_, info)| info.has_health)
            .map(|(reference, _)| reference.clone())
            .collect(),
        stamps: stamps.chain(settings).collect(),
    }
}

fn settings_stamp(folder: &str) -> String {
    ["slots.yaml", "prices.yaml"].map(|file| secrets::stamp(&Path::new(folder).join(file))).join(" ")
}

/// An engine says of a missing source only that some mount is wrong, after it has made half of the container.
fn check_sources(project: &Sealed) -> Result<(), UpError> {
    for mount in project.services.values().flat_map(|service| &service.mounts) {
        if let Mount::Bind { source, create_host_path: false, .. } = mount
            && !Path::new(source).exists()
        {
            return Err(UpError::NoSource(source.clone()));
        }
    }
    Ok(())
}

/// Looks at every port before anything is made. An engine elsewhere has ports that cannot be seen from here.
fn check_ports(
    job: &Job<'_>,
    engine: &Engine,
    wanted: &Wanted,
    plan: &Plan,
    found: &Found,
) -> Result<(), Failure> {
    if plan.is_empty() || matches!(engine.address, Address::Tcp(_)) {
        return Ok(());
    }
    let starting: Vec<&str> = plan.started().collect();
    for container in wanted.containers.iter().filter(|container| starting.contains(&container.name.as_str()))
    {
        let held_by_us = found.containers.iter().filter(|one| one.ours && one.state == State::Running);
        let held_by_us: Vec<u16> = held_by_us.flat_map(|one| one.ports.clone()).collect();
        for (address, number) in container.ports.iter().filter(|(_, number)| !held_by_us.contains(number)) {
            port::check(job.files.name(), *address, *number, &found.containers)?;
        }
    }
    Ok(())
}

fn all_ready(wanted: &Wanted, found: &Found) -> bool {
    wanted.containers.iter().all(|container| {
        let one = found.containers.iter().find(|one| one.ours && one.name == container.name);
        one.is_some_and(|one| {
            one.state == State::Running && (!container.has_health || one.health == Health::Healthy)
        })
    })
}

/// Adds to a used-up address pool which boxes hold networks for nothing.
async fn explained(engine: &Engine, error: ApplyError) -> Failure {
    let ApplyError::Engine(EngineError::NoSubnet { what }) = error else { return error.into() };
    let dead = engine.dead_boxes().await.unwrap_or_default();
    UpError::NoSubnet { what, dead }.into()
}

fn step_words(step: &Step) -> String {
    match step {
        Step::RemoveContainer { name, why, .. } => format!("removed container {name}: {}", why.sentence()),
        Step::RemoveNetwork { name, .. } => format!("removed network {name}"),
        Step::CreateNetwork(name) => format!("created network {name}"),
        Step::CreateVolume(name) => format!("created volume {name}"),
        Step::CreateContainer(name) => format!("created container {name}"),
        Step::Start(name) => format!("started container {name}"),
        Step::Unpause(name) => format!("unpaused container {name}"),
    }
}
