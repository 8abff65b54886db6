//! `config`: the project that the files come to. Secrets stand in it by the names of their files alone.

use super::{Job, NotUp, prepare};
use crate::failure::Failure;

/// The merged, checked project as YAML or JSON.
///
/// # Errors
/// When there are no files, or they cannot be read or applied.
pub fn config(job: &Job<'_>, json: bool) -> Result<String, Failure> {
    if !job.files.exists() {
        return Err(NotUp::Absent(job.files.name().to_owned()).into());
    }
    let project = prepare::load(job, None)?;
    let value = serde_json::to_value(&*project).unwrap_or_default();
    if json {
        return Ok(serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    Ok(serde_saphyr::to_string(&value).unwrap_or_default())
}
