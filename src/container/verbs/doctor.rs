//! `doctor`: one check after another, each with a finding and what to do. It changes nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::{CORE, Job, KEYS, prepare};
use crate::container::boxes;
use crate::container::engine::Engine;
use crate::container::engine::discover::discover;
use crate::container::engine::found::{FoundContainer, Health, State};
use crate::container::port;
use crate::failure::Failure;
use crate::findings::{self, Check, Finding};

/// How long a check inside the box may take.
const LOOK: Duration = Duration::from_secs(10);
/// A clock that differs by more breaks leases and sign-in links.
const CLOCK: u64 = 5;

/// What every check found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether nothing is bad.
    pub good: bool,
    /// The checks, in order.
    pub checks: Vec<Check>,
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn good(&mut self, name: &'static str, sentence: impl Into<String>) {
        self.0.push(Check { name, finding: Finding::Good, sentence: sentence.into(), remedy: None });
    }
    fn note(&mut self, name: &'static str, sentence: impl Into<String>, remedy: Option<String>) {
        self.0.push(Check { name, finding: Finding::Note, sentence: sentence.into(), remedy });
    }
    fn bad(&mut self, name: &'static str, sentence: impl Into<String>, remedy: Option<String>) {
        self.0.push(Check { name, finding: Finding::Bad, sentence: sentence.into(), remedy });
    }
    fn failure(&mut self, name: &'static str, failure: &Failure) {
        self.bad(name, failure.sentence(), failure.hint());
    }
    fn done(mut self, name: &str) -> Report {
        for remedy in self.0.iter_mut().filter_map(|check| check.remedy.as_mut()) {
            *remedy = boxes::named(remedy, name);
        }
        Report { good: findings::good(&self.0), checks: self.0 }
    }
}

/// Checks everything that the box needs.
pub async fn doctor(job: &Job<'_>) -> Report {
    let mut checks = Checks::default();
    identity(job, &mut checks);
    let found = match discover(job.engine.as_deref(), &job.host.surroundings).await {
        Ok(found) => found,
        Err(error) => {
            checks.failure("engine", &error.into());
            return checks.done(job.files.name());
        }
    };
    let engine = found.engine;
    let version = &engine.version;
    checks.good(
        "engine",
        format!("{} {}, API {}, {}", version.product, version.version, version.api, version.platform),
    );
    checks.good("socket", format!("{} ({})", engine.address, found.origin));
    if let Some(notice) = found.notice {
        checks.note("context", notice, Some("`docker context use default` ends this".into()));
    }
    let project = match job
        .files
        .exists()
        .then(|| tokio::task::block_in_place(|| prepare::load(job, Some(&engine))))
    {
        Some(Ok(project)) => {
            checks
                .good("files", format!("the compose files in `{}` are valid", job.files.folder().display()));
            project
        }
        Some(Err(failure)) => {
            checks.failure("files", &failure);
            return checks.done(job.files.name());
        }
        None => {
            checks.bad("files", "the box has no files yet", Some("`worca container up` writes them".into()));
            return checks.done(job.files.name());
        }
    };
    gone(job, &mut checks);
    if let Some(service) = project.services.get(CORE) {
        image(&engine, &service.image, &mut checks).await;
    }
    let containers = match engine.look_at_containers(job.files.name()).await {
        Ok(containers) => containers,
        Err(error) => {
            checks.failure("services", &error.into());
            return checks.done(job.files.name());
        }
    };
    let runs = |one: &&FoundContainer| one.ours && !one.one_off && one.state == State::Running;
    let running: Vec<&FoundContainer> = containers.iter().filter(runs).collect();
    let core = running.iter().find(|one| one.service == CORE).copied();
    let port = prepare::port_of(&project).unwrap_or(prepare::DEFAULT_PORT);
    match core {
        Some(core) if core.ports.contains(&port) => {
            checks.good("port", format!("127.0.0.1:{port} leads to core"));
        }
        _ => match port::check(job.files.name(), std::net::Ipv4Addr::LOCALHOST.into(), port, &containers) {
            Ok(()) => checks.good("port", format!("127.0.0.1:{port} is free")),
            Err(error) => checks.failure("port", &error.into()),
        },
    }
    for service in [CORE, KEYS] {
        health(service, &running, &mut checks);
    }
    if let Some(core) = core {
        clock(&engine, core, &mut checks).await;
        mounts(&engine, core, &mut checks).await;
        landlock(&engine, core, &mut checks).await;
    }
    checks.done(job.files.name())
}

fn identity(job: &Job<'_>, checks: &mut Checks) {
    let environment =
        tokio::task::block_in_place(|| prepare::environment(job.host, &job.files)).unwrap_or_default();
    let known = |key: &str, host: &str| environment.get(key).map_or(host, String::as_str).trim().to_owned();
    let name = known("WORCA_GIT_NAME", &job.host.git.name);
    let email = known("WORCA_GIT_EMAIL", &job.host.git.email);
    if name.is_empty() || email.is_empty() {
        let remedy = "set WORCA_GIT_NAME and WORCA_GIT_EMAIL in the box's `.env`, or `git config --global user.name` and \
                      `user.email` before the first `up`";
        checks.note("git", "whose name commits carry is not known", Some(remedy.into()));
    } else {
        checks.good("git", format!("commits carry {name} <{email}>"));
    }
}

/// Remembered folders that are not there any more: the next `up` refuses to mount them.
fn gone(job: &Job<'_>, checks: &mut Checks) {
    let projects = job.state().map(|state| state.projects).unwrap_or_default();
    for folder in projects.iter().filter(|folder| !std::path::Path::new(folder).is_dir()) {
        let remedy =
            format!("put it back, or go on without it: `worca container up --without-project {folder}`");
        checks.bad("mounts", format!("the project `{folder}` does not exist any more"), Some(remedy));
    }
}

async fn image(engine: &Engine, reference: &str, checks: &mut Checks) {
    match engine.image(reference).await {
        Ok(Some(info)) => {
            let claude =
                info.labels.get("io.worca.claude-code-version").map_or("of unknown version", String::as_str);
            checks.good("image", format!("`{reference}` is there, Claude Code {claude}"));
        }
        Ok(None) => checks.bad(
            "image",
            format!("`{reference}` is not on this machine"),
            Some("`scripts/image` builds it, `worca container pull` fetches it".into()),
        ),
        Err(error) => checks.failure("image", &error.into()),
    }
}

fn health(service: &'static str, running: &[&FoundContainer], checks: &mut Checks) {
    let logs = format!("`worca container logs {service}` shows why; `worca container up` repairs");
    match running.iter().find(|one| one.service == service) {
        Some(one) if one.health == Health::Unhealthy => {
            checks.bad(service, format!("{service} runs and is unhealthy"), Some(logs));
        }
        Some(one) => checks.good(service, format!("{service} runs, health {}", one.health.word())),
        None => checks.bad(
            service,
            format!("{service} does not run"),
            Some("`worca container up` starts it".into()),
        ),
    }
}

async fn clock(engine: &Engine, core: &FoundContainer, checks: &mut Checks) {
    let Some(there) = say(engine, core, &["date", "+%s"]).await.and_then(|text| text.parse::<u64>().ok())
    else {
        return;
    };
    let here = SystemTime::now().duration_since(UNIX_EPOCH).map(|time| time.as_secs()).unwrap_or_default();
    let apart = here.abs_diff(there);
    if apart > CLOCK {
        let remedy =
            "restart the engine's virtual machine, whose clock stands still while the computer sleeps";
        checks.bad("clock", format!("the clock inside differs by {apart} s"), Some(remedy.into()));
    } else {
        checks.good("clock", "the clocks agree");
    }
}

async fn mounts(engine: &Engine, core: &FoundContainer, checks: &mut Checks) {
    let Ok(mounted) = super::run::mounted(engine, &core.name).await else { return };
    if mounted.is_empty() {
        checks.note("mounts", "no project is mounted", Some("`worca container up --project DIR`".into()));
    }
    // Those that are gone were told of.
    for folder in mounted.iter().filter(|folder| std::path::Path::new(folder.as_str()).is_dir()) {
        // Tried by writing: permission bits do not tell what a file share or a user mapping makes of them.
        let script = "cd \"$1\" && f=$(mktemp .worca-doctor-XXXXXX) && rm -f \"$f\" && echo writable";
        let answer = say(engine, core, &["sh", "-c", script, "sh", folder.as_str()]).await;
        if answer.as_deref() == Some("writable") {
            checks.good("mounts", format!("`{}` is writable inside", folder.as_str()));
        } else {
            let remedy =
                "the box runs as WORCA_UID:WORCA_GID of its `.env`: make that the owner of the project";
            checks.bad(
                "mounts",
                format!("`{}` is not writable for the box's user", folder.as_str()),
                Some(remedy.into()),
            );
        }
    }
}

async fn landlock(engine: &Engine, core: &FoundContainer, checks: &mut Checks) {
    let Some(modules) =
        say(engine, core, &["sh", "-c", "uname -r; cat /sys/kernel/security/lsm 2>/dev/null || true"]).await
    else {
        return;
    };
    let mut lines = modules.lines();
    let kernel = lines.next().unwrap_or_default().to_owned();
    let listed = lines.next().map(|list| list.split(',').any(|module| module == "landlock"));
    match listed {
        Some(true) => checks.good("landlock", format!("kernel {kernel} has Landlock")),
        Some(false) => checks.note("landlock", format!("kernel {kernel} has no Landlock"), None),
        None => {
            checks.note("landlock", format!("kernel {kernel} does not say whether it has Landlock"), None);
        }
    }
}

async fn say(engine: &Engine, core: &FoundContainer, argv: &[&str]) -> Option<String> {
    let answer = engine.ask(&core.name, argv, b"", 4096, LOOK).await.ok()?;
    (answer.code == 0).then(|| String::from_utf8_lossy(&answer.out).trim().to_owned())
}
