//! `worca run`: posts a task to core, follows it to its end, and says what came of it.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use crate::cli::client::{Core, CoreArgs, FollowError, Followed, Follower};
use crate::cli::interrupt::Interrupts;
use crate::cli::progress::{Progress, summary};
use crate::cli::scenario;
use crate::cli::text::{Output, note, print, print_json};
use crate::events::RunStatus;
use crate::failure::{Exit, Explain, Failure};
use crate::ids::RunId;
use crate::runs::Budget;
use crate::server::wire::{CreateRun, RunAnswer};

/// How many bytes a task may have: as many as core takes.
const PROMPT_BYTES: usize = crate::runs::MAX_PROMPT;

/// Run a coding agent on a task, on a branch of its own
///
/// The task comes from --prompt, --file or standard input. The checkout is not touched: the work is on a new
/// branch. Ends with 0 when the run is done, 1 when it failed or was stopped, 3 when it waits for something
/// (`worca resume RUN` goes on), 2 when the command line is wrong and 78 when the configuration is refused, which it is
/// too where a key is missing or a budget is spent. Ctrl-C asks the run to stop and waits for its end; a second Ctrl-C
/// leaves.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  worca run --project ~/dev/api --prompt \"Add a /search endpoint\"\n  \
                        worca run --project ~/dev/api --file task.md --model rehearsal\n  \
                        worca run --project ~/dev/api --file task.md --budget 2 --only-model \"claude-sonnet-*\"")]
pub struct Args {
    /// The repository to work on: a folder in it
    #[arg(long, value_name = "DIR")]
    pub project: PathBuf,
    /// The task
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub prompt: Option<String>,
    /// A file with the task; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The model; `rehearsal` needs no key and no internet, and `rehearsal/./FILE` plays a scenario of your own
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The guardrail set, `normal` without it; `worca guardrails list` shows those that exist
    #[arg(long, value_name = "SET")]
    pub guardrails: Option<String>,
    /// What it may spend over all its starts: dollars (5, 0.25), tokens (200000tokens) or none; without it, what
    /// `worca settings get run-budget` says. When that is spent, the run waits
    #[arg(long, value_name = "AMOUNT", value_parser = Budget::parse)]
    pub budget: Option<Budget>,
    /// Let it use this model alone, by the name that the provider knows; `*` stands for anything. May be given again
    #[arg(long = "only-model", value_name = "PATTERN")]
    pub only_models: Vec<String>,
    /// A short line for people
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Print each event as a line of JSON, and the run at the end
    #[arg(long)]
    pub json: bool,
    /// Do not follow the run: print its id and leave
    #[arg(long)]
    pub detach: bool,
    /// How core is reached.
    #[command(flatten)]
    pub core: CoreArgs,
}

/// There is no task to run.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// Nothing was given.
    #[error("there is no task")]
    None,
    /// The file cannot be read.
    #[error("the task cannot be read from `{from}`")]
    Read {
        /// The file, or standard input.
        from: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is over the limit.
    #[error("the task in `{0}` is longer than {limit} KiB", limit = PROMPT_BYTES / 1024)]
    Long(String),
    /// It is no text.
    #[error("the task in `{0}` is not UTF-8 text")]
    Text(String),
    /// It has no words.
    #[error("the task is empty")]
    Empty,
    /// The project's path cannot be sent.
    #[error("the path `{0}` is not UTF-8 text")]
    Path(String),
    /// The project's path cannot be made absolute.
    #[error("the path `{path}` cannot be made absolute")]
    Absolute {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

impl Explain for PromptError {
    fn code(&self) -> &'static str {
        match self {
            Self::None | Self::Empty => "prompt-empty",
            Self::Read { .. } => "prompt-unreadable",
            Self::Long(_) => "prompt-too-long",
            Self::Text(_) => "prompt-no-text",
            Self::Path(_) | Self::Absolute { .. } => "project-path",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::None | Self::Empty => {
                Some("say what to do with `--prompt TEXT`, `--file FILE` or on standard input".into())
            }
            Self::Long(_) => Some("put the long part into a file of the repository and name it".into()),
            Self::Read { .. } | Self::Text(_) | Self::Path(_) | Self::Absolute { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// A second interrupt came before the run was made.
#[derive(Debug, thiserror::Error)]
#[error("left while the run was being made")]
pub struct LeftWhileMaking;

impl Explain for LeftWhileMaking {
    fn code(&self) -> &'static str {
        "left"
    }
    fn hint(&self) -> Option<String> {
        Some("`worca runs` shows whether it was made, `worca stop RUN` stops it".into())
    }
}

/// Runs.
///
/// # Errors
/// When core refuses the run or is lost. A run that did not end well is no error: its exit code says so.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let (model, scenario) = scenario::of_model(args.model).await?;
    let new = CreateRun {
        project: absolute(&args.project)?,
        prompt: prompt(args.prompt, args.file).await?,
        title: args.title,
        model,
        guardrails: args.guardrails,
        budget: args.budget.map(|budget| budget.to_string()),
        only_models: args.only_models,
        scenario,
    };
    let core = args.core.connect()?;
    let mut interrupts = Interrupts::listen();
    let (run, asked) = create(&core, &new, &mut interrupts).await?;
    if args.detach {
        return leave(&run, args.json);
    }
    let output = Output::standard();
    let id = RunId::parse(&run.line.id).map_err(|_| FollowError::Foreign)?;
    if !args.json {
        print(&format!("{}\n", Progress::new(output).head(&run)))?;
    }
    follow_to_end(&core, &id, core.follow(&id), output, args.json, interrupts, asked).await
}

/// Names the run that goes on by itself.
pub(super) fn leave(run: &RunAnswer, json: bool) -> Result<Exit, Failure> {
    if json {
        print_json(run)?;
    } else {
        print(&format!("{}\n", run.line.id))?;
    }
    Ok(Exit::Done)
}

/// Prints what happens until the run ends or waits, and then what came of it.
///
/// # Errors
/// When core is lost.
pub async fn follow_to_end(
    core: &Core,
    id: &RunId,
    follower: Follower,
    output: Output,
    as_json: bool,
    interrupts: Interrupts,
    asked: bool,
) -> Result<Exit, Failure> {
    let progress = Progress::new(output);
    let run = follow(core, id, follower, &progress, as_json, interrupts, asked).await?;
    let Some(run) = run else {
        note(&format!("left: run {id} goes on stopping; `worca show {id}` shows where it stands"));
        return Ok(Exit::Failed);
    };
    if as_json {
        print_json(&run)?;
    } else {
        print(&summary(&run, output))?;
    }
    Ok(exit(run.line.status))
}

/// What the command ends with when a run stands like this.
pub fn exit(status: RunStatus) -> Exit {
    match status {
        RunStatus::Done => Exit::Done,
        RunStatus::Parked => Exit::Parked,
        _ => Exit::Failed,
    }
}

/// Creates the run. An interrupt meanwhile is kept, `true`: a run half made cannot be stopped. A second one leaves.
async fn create(
    core: &Core,
    new: &CreateRun,
    interrupts: &mut Interrupts,
) -> Result<(RunAnswer, bool), Failure> {
    let mut creating = std::pin::pin!(core.create(new));
    let mut asked = false;
    loop {
        tokio::select! {
            run = creating.as_mut() => return Ok((run?, asked)),
            () = interrupts.next() => {
                if asked {
                    return Err(LeftWhileMaking.into());
                }
                asked = true;
                note("the run is being made and will be stopped then; press Ctrl-C again to leave");
            }
        }
    }
}

async fn ask_to_stop(core: &Core, id: &RunId) {
    note(&format!("stopping run {id}; press Ctrl-C again to leave it alone"));
    if let Err(error) = core.stop(id).await {
        // It may have ended in this moment; the stream tells.
        note(&format!("{error}"));
    }
}

/// Prints what happens until the end; `None` when a second Ctrl-C came.
async fn follow(
    core: &Core,
    id: &RunId,
    mut follower: Follower,
    progress: &Progress,
    as_json: bool,
    mut interrupts: Interrupts,
    mut asked: bool,
) -> Result<Option<RunAnswer>, Failure> {
    if asked {
        ask_to_stop(core, id).await;
    }
    loop {
        let next = tokio::select! {
            next = follower.next() => next?,
            () = interrupts.next() => {
                if asked {
                    return Ok(None);
                }
                asked = true;
                ask_to_stop(core, id).await;
                continue;
            }
        };
        match next {
            Followed::Event(event) if as_json => print_json(&event)?,
            Followed::Event(event) => print(&progress.lines(&event))?,
            Followed::Lost => note("core is away; waiting for it to come back"),
            Followed::End(_) => return Ok(Some(core.run(id).await?)),
        }
    }
}

fn absolute(path: &Path) -> Result<String, PromptError> {
    let shown = path.display().to_string();
    let path =
        std::path::absolute(path).map_err(|source| PromptError::Absolute { path: shown.clone(), source })?;
    path.into_os_string().into_string().map_err(|_| PromptError::Path(shown))
}

async fn prompt(text: Option<String>, file: Option<PathBuf>) -> Result<String, PromptError> {
    let text = match (text, file) {
        (Some(text), _) => text,
        (None, Some(path)) if path.as_os_str() != "-" => {
            let from = path.display().to_string();
            read(from, move || std::fs::File::open(path)).await?
        }
        (None, None) if std::io::stdin().is_terminal() => return Err(PromptError::None),
        (None, _) => read("standard input".into(), || Ok(std::io::stdin().lock())).await?,
    };
    if text.trim().is_empty() { Err(PromptError::Empty) } else { Ok(text) }
}

async fn read<R: std::io::Read>(
    from: String,
    open: impl FnOnce() -> std::io::Result<R> + Send + 'static,
) -> Result<String, PromptError> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        open()?.take(u64::try_from(PROMPT_BYTES + 1).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = reading
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the program is ending")))
        .map_err(|source| PromptError::Read { from: from.clone(), source })?;
    if bytes.len() > PROMPT_BYTES {
        return Err(PromptError::Long(from));
    }
    String::from_utf8(bytes).map_err(|_| PromptError::Text(from))
}
