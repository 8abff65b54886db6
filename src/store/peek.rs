//! A look into the database of a core that may be running or not: reads one thing and lets go, changes nothing.

use std::path::Path;

use rusqlite::params;

use super::open::{OpenStoreError, look_at_header, reader};
use super::runs::NEED_SET;
use crate::ids::RunId;

/// The runs that need a guardrail set still, by the database at `path`; none where there is no database. Blocks.
///
/// # Errors
/// When the database is of a newer program, damaged or out of reach.
pub fn runs_that_need_set(path: &Path, set: &str) -> Result<Vec<RunId>, OpenStoreError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    look_at_header(path)?;
    let failed = |source| OpenStoreError::Open { path: path.to_owned(), source };
    let connection = reader(path)?;
    let mut statement = connection.prepare(NEED_SET).map_err(failed)?;
    let ids = statement.query_map(params![set], |row| row.get::<_, String>(0)).map_err(failed)?;
    let mut runs = Vec::new();
    for id in ids {
        // A foreign id counts as a run as well; which one, this program cannot say.
        runs.extend(RunId::parse(&id.map_err(failed)?));
    }
    Ok(runs)
}
