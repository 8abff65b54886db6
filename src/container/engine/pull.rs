//! Images: is it there, and fetching it when it is not. An image that is there is never asked for again.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

use super::connect::Engine;
use super::credentials::{Credentials, registry_of};
use super::error::{EngineError, one_line};
use crate::container::report::Reporter;
use crate::failure::{Exit, Explain};

/// A pull that moves no byte for this long is given up.
const STALL: Duration = Duration::from_secs(120);

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInfo {
    /// The engine's id of it.
    pub id: String,
    /// Its labels.
    pub labels: HashMap<String, String>,
    /// Operating system and machine, such as `linux/amd64`.
    pub platform: String,
    /// It has a health check of its own.
    pub has_health: bool,
    /// It came from no registry.
    pub built_here: bool,
}

/// An image could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The registry counts, and the count is used up.
    #[error("the registry `{registry}` refuses more pulls for now (rate limit) of `{reference}`{}", wait(.after))]
    RateLimit {
        /// The image.
        reference: String,
        /// The registry.
        registry: String,
        /// How long to wait, when it said a sane time.
        after: Option<Duration>,
    },
    /// Nobody can be reached.
    #[error("`{reference}` is not on this machine, and its registry `{registry}` is out of reach: {message}")]
    NoNetwork {
        /// The image.
        reference: String,
        /// The registry.
        registry: String,
        /// The engine's words.
        message: String,
    },
    /// The registry wants credentials, or the image does not exist; registries do not say which.
    #[error("`{reference}` does not exist, or you may not pull it{}", because(.warning))]
    Denied {
        /// The image.
        reference: String,
        /// The registry.
        registry: String,
        /// Why the configured helper gave no credentials.
        warning: Option<String>,
    },
    /// There is no build for the engine's platform.
    #[error("`{reference}` has no build for this engine's platform `{platform}`: {message}")]
    Platform {
        /// The image.
        reference: String,
        /// The engine's platform.
        platform: String,
        /// The engine's words.
        message: String,
    },
    /// No byte came for a while.
    #[error("the pull of `{reference}` stood still for {} s", STALL.as_secs())]
    Stalled {
        /// The image.
        reference: String,
    },
    /// Anything else.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn wait(after: &Option<Duration>) -> String {
    after.map(|time| format!("; it asks to wait {} s", time.as_secs().max(1))).unwrap_or_default()
}

fn because(warning: &Option<String>) -> String {
    warning.as_ref().map(|warning| format!(" ({warning})")).unwrap_or_default()
}

impl Explain for PullError {
    fn code(&self) -> &'static str {
        match self {
            Self::RateLimit { .. } => "pull-rate-limit",
            Self::NoNetwork { .. } => "pull-no-network",
            Self::Denied { .. } => "pull-denied",
            Self::Platform { .. } => "pull-platform",
            Self::Stalled { .. } => "pull-stalled",
            Self::Engine(error) => error.code(),
        }
    }
    fn hint(&self) -> Option<String> {
        let build = "`scripts/image` builds it from a checkout";
        match self {
            Self::RateLimit { registry, .. } => {
                Some(format!("wait, or log in for a higher limit: `docker login {}`", login_name(registry)))
            }
            Self::NoNetwork { .. } => {
                Some(format!("connect to the network, or make the image here: {build}"))
            }
            Self::Denied { registry, .. } => Some(format!(
                "check its name, log in with `docker login {}`, or make it here: {build}",
                login_name(registry)
            )),
            Self::Platform { .. } => {
                Some(format!("take an image that lists the platform, or make it here: {build}"))
            }
            Self::Stalled { .. } => Some("try again; what has arrived is kept".into()),
            Self::Engine(error) => error.hint(),
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// What `docker login` wants: nothing for its own registry.
fn login_name(registry: &str) -> &str {
    if registry.contains("index.docker.io") { "" } else { registry }
}

impl Engine {
    /// Looks whether the image is there. Asks no registry.
    ///
    /// # Errors
    /// When the engine does not say.
    pub async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError> {
        let seen = self.docker.inspect_image(reference).await;
        let seen = match seen.map_err(|error| EngineError::of(format!("look at image `{reference}`"), error))
        {
            Ok(seen) => seen,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let config = seen.config.unwrap_or_default();
        let test = config.healthcheck.and_then(|check| check.test).unwrap_or_default();
        Ok(Some(ImageInfo {
            id: seen.id.unwrap_or_default(),
            labels: config.labels.unwrap_or_default(),
            platform: format!("{}/{}", seen.os.unwrap_or_default(), seen.architecture.unwrap_or_default()),
            has_health: test.first().is_some_and(|first| first != "NONE"),
            built_here: seen.repo_digests.unwrap_or_default().is_empty(),
        }))
    }

    /// Fetches an image from its registry.
    ///
    /// # Errors
    /// When the registry is out of reach, refuses, or has none for this platform.
    pub async fn pull(
        &self,
        reference: &str,
        credentials: Credentials,
        report: &dyn Reporter,
    ) -> Result<(), PullError> {
        if let Some(warning) = &credentials.warning {
            report.warn(warning);
        }
        let what = format!("image {reference}");
        let options = CreateImageOptionsBuilder::default().from_image(&with_tag(reference)).build();
        let mut stream = Box::pin(self.docker.create_image(Some(options), None, credentials.found));
        let mut layers: HashMap<String, (u64, u64)> = HashMap::new();
        report.step(&what, "pulling");
        loop {
            let part = tokio::time::timeout(STALL, stream.next()).await;
            let Some(part) = part.map_err(|_| PullError::Stalled { reference: reference.to_owned() })? else {
                break;
            };
            let part = part.map_err(|error| {
                let error = EngineError::of(format!("pull image `{reference}`"), error);
                sort(reference, &self.version.platform, credentials.warning.clone(), error)
            })?;
            if let (Some(id), Some(detail)) = (part.id, part.progress_detail) {
                let number =
                    |value: Option<i64>| u64::try_from(value.unwrap_or_default()).unwrap_or_default();
                let (current, total) = (number(detail.current), number(detail.total));
                if total > 0 {
                    layers.insert(id, (current, total));
                    report.progress(
                        &what,
                        layers.values().map(|l| l.0).sum(),
                        layers.values().map(|l| l.1).sum(),
                    );
                }
            }
        }
        report.done(&what, "pulled");
        Ok(())
    }
}

/// Without a tag the engine would fetch every one.
fn with_tag(reference: &str) -> String {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    if last.contains([':', '@']) { reference.to_owned() } else { format!("{reference}:latest") }
}

/// Sorts the engine's words, which are a registry's words, which are a network's words.
fn sort(reference: &str, platform: &str, warning: Option<String>, error: EngineError) -> PullError {
    let EngineError::Refused { message, status, .. } = &error else { return error.into() };
    let (reference, registry) = (reference.to_owned(), registry_of(reference).to_owned());
    let text = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if *status == 429 || has(&["toomanyrequests", "too many requests", "rate limit"]) {
        return PullError::RateLimit { reference, registry, after: retry_after(&text) };
    }
    if has(&["no matching manifest", "does not match the specified platform", "no match for platform"]) {
        return PullError::Platform { reference, platform: platform.to_owned(), message: one_line(message) };
    }
    if has(&[
        "no such host",
        "dial tcp",
        "i/o timeout",
        "connection refused",
        "network is unreachable",
        "tls handshake timeout",
        "server misbehaving",
        "connection reset",
        "no route to host",
        "deadline exceeded",
        "temporary failure in name",
    ]) {
        return PullError::NoNetwork { reference, registry, message: one_line(message) };
    }
    if matches!(status, 401 | 403 | 404)
        || has(&[
            "unauthorized",
            "access denied",
            "authentication required",
            "no basic auth",
            "not found",
            "manifest unknown",
            "denied",
        ])
    {
        return PullError::Denied { reference, registry, warning };
    }
    error.into()
}

/// A waiting time such as `retry-after: 30s`; nonsense (a millisecond, a week) is none.
fn retry_after(text: &str) -> Option<Duration> {
    let (_, rest) = text.split_once("retry-after:")?;
    let word = rest.trim().split([' ', ',', ';']).next()?;
    let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
    let seconds = match word.get(digits.len()..)? {
        "" | "s" => digits.parse::<u64>().ok()?,
        "m" => digits.parse::<u64>().ok()?.checked_mul(60)?,
        _ => return None,
    };
    (1..=86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(status: u16, message: &str) -> PullError {
        let error = EngineError::refused("pull image `w:1`".into(), status, message);
        sort("registry.example/w:1", "linux/arm64", Some("the helper is not installed".into()), error)
    }

    #[test]
    fn c077_a_rate_limit_says_how_long_to_wait_when_that_is_sane() {
        let error = sorted(500, "toomanyrequests: You have reached your pull rate limit, retry-after: 30s");
        assert!(error.to_string().ends_with("it asks to wait 30 s"), "{error}");
        assert!(error.hint().unwrap().contains("docker login registry.example"));
        for nonsense in ["retry-after: 1.55ms", "retry-after: 99999999s", "retry-after: soon", ""] {
            let error =
                sorted(500, &format!("received unexpected HTTP status: 429 Too Many Requests {nonsense}"));
            assert!(matches!(error, PullError::RateLimit { after: None, .. }), "{nonsense}: {error}");
        }
    }

    #[test]
    fn c077_no_network_is_told_apart_from_a_refusal() {
        let error = sorted(
            500,
            "Get \"https://registry.example/v2/\": dial tcp: lookup registry.example: no such host",
        );
        assert!(
            matches!(error, PullError::NoNetwork { .. }) && error.hint().unwrap().contains("scripts/image"),
            "{error}"
        );
        let error =
            sorted(404, "pull access denied for w, repository does not exist or may require 'docker login'");
        assert!(matches!(error, PullError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("the helper is not installed"), "c070: {error}");
    }

    #[test]
    fn c076_a_platform_without_a_build_is_told() {
        let error = sorted(500, "no matching manifest for linux/arm64/v8 in the manifest list entries");
        assert!(error.to_string().contains("no build for this engine's platform `linux/arm64`"), "{error}");
    }

    #[test]
    fn a_reference_without_a_tag_means_the_latest_alone() {
        assert_eq!(with_tag("127.0.0.1:5000/w"), "127.0.0.1:5000/w:latest");
        assert_eq!(with_tag("w:1"), "w:1");
        assert_eq!(with_tag("w@sha256:00"), "w@sha256:00");
    }
}
