//! The one-time sign-in link, asked of core with the token that only this host's user can read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Job;
use crate::container::secrets;
use crate::failure::Failure;
use crate::http::Client;

/// Core is on this machine: it answers at once or not at all.
const LINK_TIME: Duration = Duration::from_secs(5);

/// A link that signs one browser in, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Link {
    /// The address. A credential until it is used: shown to the user, never logged.
    pub url: String,
    /// Until it is worth nothing.
    pub expires_in_seconds: u64,
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
