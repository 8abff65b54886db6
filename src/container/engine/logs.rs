//! What containers print: the last lines, or as they come, each with its service in front when there are several.

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptionsBuilder;
use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::connect::Engine;
use super::error::EngineError;

/// A line that is longer is cut into several.
const LINE_BYTES: usize = 64 * 1024;

/// Which logs, and how much of them.
#[derive(Debug, Clone, Default)]
pub struct LogRequest {
    /// Service and container name.
    pub containers: Vec<(String, String)>,
    /// Go on as lines come.
    pub follow: bool,
    /// Only so many last lines of each.
    pub tail: Option<u32>,
}

impl Engine {
    /// Writes the logs out, line by line. With `follow` it ends when the containers do, or its caller drops it.
    ///
    /// # Errors
    /// When a container is not there, or `out` cannot be written.
    pub async fn logs(
        &self,
        request: &LogRequest,
        out: &mut (dyn AsyncWrite + Unpin + Send),
    ) -> Result<(), EngineError> {
        let tail = request.tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .follow(request.follow)
            .tail(&tail)
            .build();
        let several = request.containers.len() > 1;
        let width = request.containers.iter().map(|(service, _)| service.len()).max().unwrap_or_default();
        let streams = request.containers.iter().enumerate().map(|(index, (_, name))| {
            self.docker.logs(name, Some(options.clone())).map(move |part| (index, part)).boxed()
        });
        let mut all = select_all(streams);
        let mut partial: Vec<Vec<u8>> = vec![Vec::new(); request.containers.len()];
        while let Some((index, part)) = all.next().await {
            let Some((service, name)) = request.containers.get(index) else { continue };
            let part =
                part.map_err(|error| EngineError::of(format!("read the log of container `{name}`"), error))?;
            let prefix = if several { format!("{service:width$} | ") } else { String::new() };
            let Some(rest) = partial.get_mut(index) else { continue };
            rest.extend_from_slice(&text_of(part));
            while let Some(end) = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .or((rest.len() > LINE_BYTES).then_some(LINE_BYTES))
            {
                let line: Vec<u8> = rest.drain(..=end.min(rest.len().saturating_sub(1))).collect();
                write(out, &prefix, &line).await?;
            }
        }
        for (rest, (service, _)) in partial.iter().zip(&request.containers) {
            if !rest.is_empty() {
                let prefix = if several { format!("{service:width$} | ") } else { String::new() };
                write(out, &prefix, rest).await?;
            }
        }
        Ok(())
    }
}

fn text_of(part: LogOutput) -> Vec<u8> {
    part.into_bytes().to_vec()
}

async fn write(
    out: &mut (dyn AsyncWrite + Unpin + Send),
    prefix: &str,
    line: &[u8],
) -> Result<(), EngineError> {
    let mut text = Vec::with_capacity(prefix.len() + line.len() + 1);
    text.extend_from_slice(prefix.as_bytes());
    text.extend_from_slice(line);
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let written = async {
        out.write_all(&text).await?;
        out.flush().await
    };
    written.await.map_err(EngineError::Output)
}
