//! A container that lives for one conversation on a terminal and is gone afterwards, however the conversation ends.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::connect::Engine;
use super::error::EngineError;
use super::labels;

/// How long the removal at the end may take.
const REMOVE: Duration = Duration::from_secs(30);
/// The most memory of such a container, in bytes.
const MEMORY: i64 = 1 << 30;
/// The most processes of it.
const PROCESSES: i64 = 256;

/// What the container is made of. It mounts nothing.
#[derive(Debug, Clone)]
pub struct OneShot {
    /// The box that it belongs to.
    pub project: String,
    /// What it does, in one word; it is named after it, so there is one at a time.
    pub task: String,
    /// The image.
    pub image: String,
    /// The program and its arguments. Never a secret.
    pub argv: Vec<String>,
    /// Variables as `NAME=value`. Never a secret.
    pub environment: Vec<String>,
    /// User and group, as `uid:gid`.
    pub user: String,
    /// The network, by its name at the engine.
    pub network: String,
    /// Folders of memory, by path, with their mount options.
    pub tmpfs: HashMap<String, String>,
}

/// The terminal of the container.
pub struct Dialog {
    from:
        std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    to: std::pin::Pin<Box<dyn AsyncWrite + Send>>,
}

impl Dialog {
    /// What it draws next; `None` when it has ended.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn hear(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        match self.from.next().await {
            Some(Ok(part)) => Ok(Some(part.into_bytes().to_vec())),
            Some(Err(error)) => Err(EngineError::of("listen to the container", error)),
            None => Ok(None),
        }
    }
    /// Types.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn say(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let said = async {
            self.to.write_all(bytes).await?;
            self.to.flush().await
        };
        said.await.map_err(|error| EngineError::Broken {
            what: "speak to the container".into(),
            source: Box::new(error),
        })
    }
}

impl Engine {
    /// Makes and starts the container, hands its terminal to `talk`, and removes it when `talk` or `stop` ends. `None`
    /// when `stop` came first.
    ///
    /// # Errors
    /// What `talk` reports; or when the container cannot be made, started or removed.
    pub async fn converse<T, E: From<EngineError>>(
        &self,
        spec: &OneShot,
        stop: impl Future<Output = ()>,
        talk: impl AsyncFnOnce(Dialog) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let name = format!("{}-{}", spec.project, spec.task);
        // One that a killed caller left behind; the caller's lock says that it is nobody's.
        self.clear(&spec.project, &name).await?;
        let work = async {
            let dialog = self.open(spec, &name).await?;
            talk(dialog).await
        };
        tokio::pin!(work);
        let ended = tokio::select! {
            ended = &mut work => ended.map(Some),
            () = stop => Ok(None),
        };
        let cleared = tokio::time::timeout(REMOVE, self.clear(&spec.project, &name)).await;
        let value = ended?;
        cleared.map_err(|_| EngineError::TooSlow {
            what: format!("remove container `{name}`"),
            seconds: REMOVE.as_secs(),
        })??;
        Ok(value)
    }

    async fn open(&self, spec: &OneShot, name: &str) -> Result<Dialog, EngineError> {
        let of = |what: &str| {
            let what = format!("{what} container `{name}`");
            move |error| EngineError::of(what, error)
        };
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        self.docker.create_container(Some(options), body(spec)).await.map_err(of("create"))?;
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let attached = self.docker.attach_container(name, Some(options)).await;
        let AttachContainerResults { output, input } = attached.map_err(of("attach to"))?;
        self.docker.start_container(name, None).await.map_err(of("start"))?;
        Ok(Dialog { from: output, to: input })
    }

    async fn clear(&self, project: &str, name: &str) -> Result<(), EngineError> {
        let all = self.look_at_containers(project).await?;
        for one in all.iter().filter(|one| one.ours && one.name == name) {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            let removed = self.docker.remove_container(&one.id, Some(options)).await;
            match removed.map_err(|error| EngineError::of(format!("remove container `{name}`"), error)) {
                Err(error) if !error.is_missing() && !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn body(spec: &OneShot) -> ContainerCreateBody {
    let own = [
        (labels::BOX, spec.project.as_str()),
        (labels::PROJECT, &spec.project),
        (labels::SERVICE, &spec.task),
        (labels::NUMBER, "1"),
        (labels::ONE_OFF, "True"),
        (labels::VERSION, labels::COMPOSE_VERSION),
    ];
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: Some(spec.argv.clone()),
        cmd: Some(Vec::new()),
        env: Some(spec.environment.clone()),
        user: Some(spec.user.clone()),
        healthcheck: Some(bollard::models::HealthConfig {
            test: Some(vec!["NONE".into()]),
            ..bollard::models::HealthConfig::default()
        }),
        tty: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        labels: Some(own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
        host_config: Some(HostConfig {
            network_mode: Some(spec.network.clone()),
            readonly_rootfs: Some(true),
            cap_drop: Some(vec!["ALL".into()]),
            security_opt: Some(vec!["no-new-privileges:true".into()]),
            memory: Some(MEMORY),
            pids_limit: Some(PROCESSES),
            tmpfs: Some(spec.tmpfs.clone()),
            init: Some(true),
            // What it prints is a token: it must not end up in the engine's log files.
            log_config: Some(bollard::models::HostConfigLogConfig { typ: Some("none".into()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}
