//! Registered projects: one row for one repository, whichever of its worktrees it was reached through.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError};
use crate::clock::Millis;
use crate::ids::ProjectId;

/// A repository, as `runs` has recognised it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProject {
    /// The canonical path of its common git folder: what it is known by.
    pub common_dir: String,
    /// The checkout that it was registered from.
    pub checkout: String,
    /// Its first commit.
    pub first_commit: String,
    /// Where it was cloned from, without credentials.
    pub origin: Option<String>,
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// What it is.
    pub repository: NewProject,
}

fn project(row: &Row<'_>) -> rusqlite::Result<(String, NewProject)> {
    Ok((
        row.get("id")?,
        NewProject {
            common_dir: row.get("common_dir")?,
            checkout: row.get("checkout")?,
            first_commit: row.get("first_commit")?,
            origin: row.get("origin")?,
        },
    ))
}

fn typed((id, repository): (String, NewProject)) -> Result<Project, StoreError> {
    let id = ProjectId::parse(&id).map_err(|_| StoreError::Foreign { what: "a project id", value: id })?;
    Ok(Project { id, repository })
}

impl Store {
    /// The project of this repository: the one that is there, brought up to date, or a new one.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn register_project(&self, new: NewProject) -> Result<Project, StoreError> {
        self.write(move |tx| {
            tx.execute(
                "INSERT INTO projects (id, common_dir, checkout, first_commit, origin, added_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (common_dir) DO UPDATE SET
                     checkout = excluded.checkout, first_commit = excluded.first_commit,
                     origin = excluded.origin",
                params![
                    ProjectId::random().as_str(),
                    new.common_dir,
                    new.checkout,
                    new.first_commit,
                    new.origin,
                    Millis::now().0
                ],
            )?;
            let found = tx.query_row(
                "SELECT * FROM projects WHERE common_dir = ?1",
                params![new.common_dir],
                project,
            )?;
            typed(found)
        })
        .await
    }

    /// All projects.
    ///
    /// # Errors
    /// When the database does not give them.
    pub async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        self.read(move |connection| {
            connection
                .prepare("SELECT * FROM projects ORDER BY added_at, id")?
                .query_map([], project)?
                .map(|row| typed(row?))
                .collect()
        })
        .await
    }

    /// The project with this id.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn project(&self, id: &ProjectId) -> Result<Option<Project>, StoreError> {
        let id = id.clone();
        self.read(move |connection| {
            connection
                .query_row("SELECT * FROM projects WHERE id = ?1", params![id.as_str()], project)
                .optional()?
                .map(typed)
                .transpose()
        })
        .await
    }
}
