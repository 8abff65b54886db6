//! `worca show`: one run, its diff or its events.

use crate::cli::client::{Core, CoreArgs, Followed};
use crate::cli::progress::{Progress, receipt, summary};
use crate::cli::text::{Output, note, one_line, plain, print, print_bytes, print_json};
use crate::failure::{Exit, Failure};
use crate::ids::RunId;
use crate::server::wire::backup_diff;

/// Show a run: where it stands, what came of it, and what held its agent
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  worca show r7k2m9q4xw1\n  worca show r7k2m9q4xw1 --diff | git apply --stat"
)]
pub struct Args {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: RunId,
    /// Print JSON
    #[arg(long, conflicts_with = "diff")]
    pub json: bool,
    /// Print the diff of its work
    #[arg(long, conflicts_with = "events")]
    pub diff: bool,
    /// Print its events, and follow it while it lives
    #[arg(long)]
    pub events: bool,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// Shows.
///
/// # Errors
/// When there is no such run, or core does not answer.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let core = args.core.connect()?;
    let output = Output::standard();
    if args.diff {
        return diff(&core, &args.run, output).await;
    }
    let run = core.run(&args.run).await?;
    if args.events {
        return events(&core, &args.run, output, args.json).await;
    }
    if args.json {
        print_json(&run)?;
        return Ok(Exit::Done);
    }
    print(&format!("{}\n", Progress::new(output).head(&run)))?;
    print(&summary(&run, output))?;
    print(&receipt(&run, output))?;
    if let Some(answer) = &run.answer {
        print(&format!("\n{}\n", plain(answer.trim())))?;
    }
    Ok(Exit::Done)
}

/// To a terminal as text; to a file or a pipe byte for byte, so that it can be applied.
async fn diff(core: &Core, id: &RunId, output: Output) -> Result<Exit, Failure> {
    let mut pieces = core.diff(id).await?;
    let mut rest = Vec::new();
    let mut empty = true;
    while let Some(piece) = pieces.next().await? {
        empty &= piece.is_empty();
        if !output.terminal {
            print_bytes(&piece)?;
            continue;
        }
        // Whole lines only: a sequence must not hide in the gap between two pieces.
        rest.extend_from_slice(&piece);
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
            let later = rest.split_off(end + 1);
            print(&plain(&String::from_utf8_lossy(&rest)))?;
            rest = later;
        }
    }
    print(&plain(&String::from_utf8_lossy(&rest)))?;
    if empty {
        let run = core.run(id).await?;
        let kept = run.backup.as_deref().map(|backup| backup_diff(&run.base_commit, backup));
        let kept = kept.map(|read| format!("; a backup holds its work: `{}`", one_line(&read)));
        note(&format!("the diff is empty{}", kept.unwrap_or_default()));
    }
    Ok(Exit::Done)
}

async fn events(core: &Core, id: &RunId, output: Output, as_json: bool) -> Result<Exit, Failure> {
    let progress = Progress::new(output);
    let mut follower = core.follow(id);
    loop {
        match follower.next().await? {
            Followed::Event(event) if as_json => print_json(&event)?,
            Followed::Event(event) => print(&progress.lines(&event))?,
            Followed::Lost => note("core is away; waiting for it to come back"),
            Followed::End(_) => return Ok(Exit::Done),
        }
    }
}
