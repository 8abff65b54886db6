//! `pull`: the box's images from their registry, asked for by the person.

use serde::Serialize;

use super::{Job, prepare, up, vault};
use crate::failure::Failure;

/// An image that was fetched.
#[derive(Debug, Serialize)]
pub struct Pulled {
    /// Its reference.
    pub reference: String,
    /// The engine's id of it.
    pub id: String,
}

/// Fetches every image of the box. Its files are read when they are there, and written first when they are not.
///
/// # Errors
/// When there is no engine, no image is known, or a registry does not give it.
pub async fn pull(job: &Job<'_>) -> Result<Vec<Pulled>, Failure> {
    let engine = job.connect().await?;
    if !job.files.exists() {
        let _held = tokio::task::block_in_place(|| job.hold())?;
        vault::check(job, &engine, false).await?;
        let capacity = engine.capacity().await.ok();
        tokio::task::block_in_place(|| {
            prepare::prepare(job, &prepare::Changes::default(), Some(&engine), capacity)
        })?;
    }
    let project = tokio::task::block_in_place(|| prepare::load(job, Some(&engine)))?;
    let mut references: Vec<String> =
        project.services.values().map(|service| service.image.clone()).collect();
    references.sort();
    references.dedup();
    let mut pulled = Vec::new();
    for reference in references {
        if let Some(info) = engine.image(&reference).await?.filter(|info| info.built_here) {
            job.report
                .note(&format!("`{reference}` was built here and is in no registry; it is there and stays"));
            pulled.push(Pulled { reference, id: info.id });
            continue;
        }
        let info = up::pull(job, &engine, &reference).await?;
        pulled.push(Pulled { reference, id: info.id });
    }
    Ok(pulled)
}
