//! `worca container logs`.

use clap::Args;

use crate::container::engine::logs::LogRequest;
use crate::container::verbs::{CORE, Job, KEYS, NotUp};
use crate::failure::{Exit, Failure};

/// Show what the services print
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container logs --follow --tail 50 core")]
pub(super) struct LogsArgs {
    /// One service alone
    #[arg(value_parser = [CORE, KEYS])]
    service: Option<String>,
    /// Go on as lines come, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only so many last lines of each
    #[arg(long, short = 'n', value_name = "LINES")]
    tail: Option<u32>,
}

pub(super) async fn run(job: &Job<'_>, args: LogsArgs) -> Result<Exit, Failure> {
    let engine = job.connect().await?;
    let all = engine.look_at_containers(job.files.name()).await?;
    let wanted = |service: &str| args.service.as_deref().is_none_or(|one| one == service);
    let ours = all.into_iter().filter(|one| one.ours && !one.one_off && wanted(&one.service));
    let mut containers: Vec<(String, String)> = ours.map(|one| (one.service, one.name)).collect();
    containers.sort();
    if containers.is_empty() {
        return Err(NotUp::Absent(job.files.name().to_owned()).into());
    }
    let request = LogRequest { containers, follow: args.follow, tail: args.tail };
    let mut out = tokio::io::stdout();
    tokio::select! {
        done = engine.logs(&request, &mut out) => match done {
            Err(error) if error.is_unread() => {}
            done => done?,
        },
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Exit::Done)
}
