//! The credentials that docker's own settings hold for a registry. Never shown, never stored, never in argv.
//!
//! A helper that is missing, fails or hangs is a warning: a public image needs none of it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use bollard::auth::DockerCredentials;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How long a helper may take: it may have to wake a key ring, and must not hold a pull for ever.
const HELPER_TIME: Duration = Duration::from_secs(10);
/// A helper's answer and docker's settings are small.
const ANSWER_BYTES: u64 = 1024 * 1024;
/// The name under which docker files the credentials of its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// What was found for a registry.
#[derive(Default)]
pub struct Credentials {
    /// What to show to the registry; nothing for an anonymous pull.
    pub(super) found: Option<DockerCredentials>,
    /// Why a helper that is configured gave nothing.
    pub warning: Option<String>,
}

/// The registry of an image reference, as docker files it: the first part when it looks like a host.
pub(super) fn registry_of(reference: &str) -> &str {
    match reference.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => DOCKER_HUB,
    }
}

/// Looks into `config.json` below `config`, and asks the helper that it names. `path` is where helpers are looked for.
pub async fn credentials(
    reference: &str,
    config: Option<&Path>,
    path: Option<OsString>,
    time: Duration,
) -> Credentials {
    let registry = registry_of(reference);
    let Some(file) = config.map(|config| config.join("config.json")) else { return Credentials::default() };
    let settings = match read_settings(&file).await {
        Ok(Some(settings)) => settings,
        Ok(None) => return Credentials::default(),
        Err(why) => {
            return Credentials {
                found: None,
                warning: Some(format!("`{}` is not used: {why}", file.display())),
            };
        }
    };
    let text = |value: Option<&serde_json::Value>| {
        value.and_then(|v| v.as_str()).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    let helper = text(settings.pointer("/credHelpers").and_then(|all| all.get(registry)))
        .or_else(|| text(settings.get("credsStore")));
    if let Some(helper) = helper {
        match ask(&helper, registry, path, time).await {
            Ok(Some(found)) => return Credentials { found: Some(found), warning: None },
            Ok(None) => {}
            Err(why) => {
                let warning = format!(
                    "docker's credential helper `docker-credential-{helper}` {why}; pulling without credentials"
                );
                return Credentials { found: written(&settings, registry), warning: Some(warning) };
            }
        }
    }
    Credentials { found: written(&settings, registry), warning: None }
}

/// The time that a helper gets.
pub fn helper_time() -> Duration {
    HELPER_TIME
}

async fn read_settings(file: &Path) -> Result<Option<serde_json::Value>, String> {
    let opened = match tokio::fs::File::open(file).await {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = Vec::new();
    opened.take(ANSWER_BYTES).read_to_end(&mut text).await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map(Some).map_err(|error| format!("it is not JSON (line {})", error.line()))
}

/// The credentials that stand in the file itself, as base64 of `user:password`.
fn written(settings: &serde_json::Value, registry: &str) -> Option<DockerCredentials> {
    let auths = settings.get("auths")?;
    let entry = auths.get(registry).or_else(|| auths.get(format!("https://{registry}")))?;
    let text = |key: &str| entry.get(key).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    let serveraddress = Some(registry.to_owned());
    if let Some(token) = text("identitytoken") {
        return Some(DockerCredentials {
            identitytoken: Some(token.into()),
            serveraddress,
            ..DockerCredentials::default()
        });
    }
    let pair = base64::engine::general_purpose::STANDARD.decode(text("auth")?).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some(DockerCredentials {
        username: Some(user.to_owned()),
        password: Some(password.trim_end_matches('\0').to_owned()),
        serveraddress,
        ..DockerCredentials::default()
    })
}

/// Speaks the helpers' protocol: the registry on standard input, JSON on standard output.
async fn ask(
    helper: &str,
    registry: &str,
    path: Option<OsString>,
    time: Duration,
) -> Result<Option<DockerCredentials>, String> {
    if !helper.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err("has a name that is none".into());
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "docker's credential helpers are programs; the name is checked above"
    )]
    let mut command = tokio::process::Command::new(format!("docker-credential-{helper}"));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is not installed".to_owned(),
        _ => format!("cannot be started ({error})"),
    })?;
    let talk = async {
        if let Some(mut input) = child.stdin.take() {
            // A helper that ends without reading breaks the pipe; its exit code says more.
            let _ = input.write_all(format!("{registry}\n").as_bytes()).await;
        }
        let mut answer = Vec::new();
        if let Some(output) = child.stdout.take() {
            output.take(ANSWER_BYTES).read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
        }
        let status = child.wait().await.map_err(|error| error.to_string())?;
        Ok::<_, String>((status.success(), answer))
    };
    let (done, answer) = tokio::time::timeout(time, talk)
        .await
        .map_err(|_| format!("did not answer within {} s", time.as_secs_f32()))??;
    let answer = zeroize::Zeroizing::new(answer);
    if !done {
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        let nothing = text.contains("credentials not found") || text.contains("no stored credential");
        return if nothing { Ok(None) } else { Err("failed".into()) };
    }
    let value: serde_json::Value =
        serde_json::from_slice(&answer).map_err(|_| "gave an answer that is not JSON".to_owned())?;
    let text = |key: &str| value.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    let (user, secret) = (text("Username"), text("Secret"));
    if secret.is_empty() {
        return Ok(None);
    }
    let serveraddress = Some(registry.to_owned());
    // The protocol's way to say that the secret is an identity token.
    if user == "<token>" {
        return Ok(Some(DockerCredentials {
            identitytoken: Some(secret),
            serveraddress,
            ..DockerCredentials::default()
        }));
    }
    Ok(Some(DockerCredentials {
        username: Some(user),
        password: Some(secret),
        serveraddress,
        ..DockerCredentials::default()
    }))
}

#[cfg(all(test, unix))]
mod tests;
