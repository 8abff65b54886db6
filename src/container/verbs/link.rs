//! The one-time sign-in link, asked of core with the token that only this host's user can read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::status::Kernel;
use super::{CORE, Job};
use crate::container::engine::found::{FoundContainer, State};
use crate::container::secrets;
use crate::failure::Failure;
use crate::http::Client;

/// Core is on this machine: it answers at once or not at all.
const LINK_TIME: Duration = Duration::from_secs(5);

/// The same for a question whose answer is only worth a note.
const STATUS_TIME: Duration = Duration::from_secs(2);

/// A link that signs one browser in, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Link {
    /// The address. A credential until it is used: shown to the user, never logged.
    pub url: String,
    /// Until it is worth nothing.
    pub expires_in_seconds: u64,
}

/// Says how many runs are at work before core ends under them. Best effort: a core that does not answer has none to tell.
pub async fn tell_runs(job: &Job<'_>, containers: &[FoundContainer], kept: bool) {
    #[derive(Deserialize)]
    struct Status {
        alive_runs: u64,
    }
    let core = containers
        .iter()
        .find(|one| one.ours && !one.one_off && one.service == CORE && one.state == State::Running);
    let Some(port) = core.and_then(|core| core.ports.first().copied()) else { return };
    let Ok(token) = secrets::read(&job.files, secrets::CORE_TOKEN) else { return };
    let Ok(client) = Client::new(&format!("http://127.0.0.1:{port}")) else { return };
    let client = client.with_bearer(token).with_time_limit(STATUS_TIME);
    if let Ok(Status { alive_runs: count @ 1.. }) = client.get("/api/status").await {
        let runs = if count == 1 { "1 run is".into() } else { format!("{count} runs are") };
        let work = if kept { "the work so far is kept" } else { "the work goes with the volumes" };
        job.report.warn(&format!("{runs} interrupted; {work}"));
    }
}

/// What core says of the kernel under it. Best effort: a core that does not answer says nothing.
pub async fn kernel(job: &Job<'_>, port: u16) -> Option<Kernel> {
    #[derive(Deserialize)]
    struct Status {
        kernel: Kernel,
    }
    let token = secrets::read(&job.files, secrets::CORE_TOKEN).ok()?;
    let client = Client::new(&format!("http://127.0.0.1:{port}")).ok()?;
    let status: Status =
        client.with_bearer(token).with_time_limit(STATUS_TIME).get("/api/status").await.ok()?;
    Some(status.kernel)
}

/// Asks core, which listens on `port` of the loopback, for a fresh link.
///
/// # Errors
/// When core does not answer, or refuses.
pub async fn link(job: &Job<'_>, port: u16) -> Result<Link, Failure> {
    let token = secrets::read(&job.files, secrets::CORE_TOKEN)?;
    let client =
        Client::new(&format!("http://127.0.0.1:{port}"))?.with_bearer(token).with_time_limit(LINK_TIME);
    Ok(client.post("/api/links", &serde_json::json!({})).await?)
}
