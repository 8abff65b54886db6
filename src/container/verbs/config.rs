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
    let value = without_nothing(serde_json::to_value(&*project).unwrap_or_default());
    if json {
        return Ok(serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    Ok(serde_saphyr::to_string(&value).unwrap_or_default())
}

/// Without keys that say nothing, so that what is there can be seen.
fn without_nothing(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    match value {
        Value::Object(entries) => {
            let kept = entries.into_iter().filter(|(_, value)| says(value));
            Value::Object(kept.map(|(key, value)| (key, without_nothing(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nothing).collect()),
        plain => plain,
    }
}
