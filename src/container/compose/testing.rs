//! Shared by the tests of this room: a written box, and an override put over it.

use super::load::{File, Loaded, load};
use super::model::ProjectName;
use super::parse::{Context, Folders};
use super::place::LoadError;
use super::rules::{BrokenPromise, Grounds, Sealed, seal};
use super::write;

pub(super) const FOLDER: &str = "/home/ann/.worca/container";

pub(super) fn context() -> Context {
    let environment = [("WORCA_IMAGE", "worca:test"), ("SET", "set"), ("EMPTY", "")];
    Context {
        name: ProjectName::parse("worca").unwrap(),
        folders: Folders { project: FOLDER.to_owned(), home: Some("/home/ann".to_owned()) },
        environment: environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
    }
}

pub(super) fn grounds() -> Grounds {
    Grounds {
        home: Some("/home/ann".to_owned()),
        container_home: FOLDER.to_owned(),
        engine_sockets: vec![
            "/home/ann/.colima/default/docker.sock".to_owned(),
            "/srv/engine/e.sock".to_owned(),
        ],
    }
}

/// The written files with a person's override.
pub(super) fn with_override(text: &str) -> Result<Loaded, LoadError> {
    let compose = write::compose(&ProjectName::parse("worca").unwrap());
    let projects = write::projects(&[write::ProjectMount::new("/home/ann/dev/api").unwrap()]);
    let files = [
        File { name: write::COMPOSE_FILE, text: &compose },
        File { name: write::PROJECTS_FILE, text: &projects },
        File { name: write::OVERRIDE_FILE, text },
    ];
    load(&files, &context())
}

pub(super) fn sealed(text: &str) -> Result<Sealed, BrokenPromise> {
    seal(&with_override(text).unwrap(), &grounds())
}

/// One file alone.
pub(super) fn alone(text: &str) -> Result<Loaded, LoadError> {
    load(&[File { name: "compose.yaml", text }], &context())
}

/// The message and the hint of an override that is refused.
pub(super) fn refusal(text: &str) -> String {
    use crate::failure::Explain;
    let error = with_override(text).unwrap_err();
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
