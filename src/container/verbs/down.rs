//! `down`: takes the box away by its labels, with or without its files. Volumes stay unless they are asked for by name.

use serde::Serialize;

use super::Job;
use super::link::tell_runs;
use crate::failure::Failure;

/// What was taken away.
#[derive(Debug, Serialize)]
pub struct Down {
    /// The box.
    pub name: String,
    /// What was removed, as `kind name`.
    pub removed: Vec<String>,
}

/// Takes the box down. Asking before volumes go is the caller's duty.
///
/// # Errors
/// When there is no engine, or it refuses; a further call goes on from there.
pub async fn down(job: &Job<'_>, volumes: bool) -> Result<Down, Failure> {
    // A box without files has nobody else at them, and a name that was mistyped leaves no folder.
    let _held = match job.files.folder().exists() {
        true => Some(tokio::task::block_in_place(|| job.hold())?),
        false => None,
    };
    let engine = job.connect().await?;
    let found = engine.look(job.files.name()).await?;
    let containers = found.containers;
    super::same_home::check(job, &containers)?;
    if volumes {
        super::same_home::check_volumes(job, &found.volumes)?;
    }
    tell_runs(job, &containers, !volumes).await;
    let removed = engine.take_down(job.files.name(), volumes, job.report).await?;
    if volumes && job.files.state().exists() {
        // Nothing of the box is on that engine any more, so the next `up` may choose another.
        let mut state = job.files.load_state()?;
        state.engine = None;
        job.files.save_state(&state)?;
    }
    Ok(Down { name: job.files.name().to_owned(), removed })
}
