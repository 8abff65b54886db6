//! `worca container status`: a table, or one JSON document.

use clap::Args;

use super::{print, print_json};
use crate::container::verbs::Job;
use crate::container::verbs::status::status;
use crate::failure::{Exit, Failure};

/// Show what the box is doing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca container status --json")]
pub(super) struct StatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(job: &Job<'_>, args: StatusArgs) -> Result<Exit, Failure> {
    let status = status(job).await?;
    if args.json {
        print_json(&status)?;
        return Ok(Exit::Done);
    }
    print(&format!("box       {} ({})", status.name, status.state))?;
    print(&format!("engine    {}", status.engine))?;
    print(&format!("files     {}", status.folder))?;
    if let Some(url) = &status.url {
        print(&format!("UI        {url}"))?;
    }
    for service in &status.services {
        print(&format!("{:9} {}, {} ({})", service.service, service.state, service.health, service.image))?;
    }
    if let Some(kernel) = &status.kernel {
        print(&format!("kernel    {}", kernel.words()))?;
    }
    for (index, project) in status.projects.iter().enumerate() {
        print(&format!("{:9} {project}", if index == 0 { "projects" } else { "" }))?;
    }
    Ok(Exit::Done)
}
