//! From the texts of some Compose files to one project: read, interpolate, extend, merge, parse. Files are handed in.

use super::interpolate;
use super::merge;
use super::model::Project;
use super::parse::{self, Context, Places};
use super::place::{LoadError, Place, Warning};
use super::yaml;

mod extend;
#[cfg(test)]
mod tests;

/// One Compose file.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its name, as messages show it and as `extends` names it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A project that says what its files say. It may still ask for what a box does not give: see [`super::rules::seal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The project.
    pub project: Project,
    /// Where its services and their keys stand, in the last file that names them.
    pub places: Places,
    /// What Compose would only warn about.
    pub warnings: Vec<Warning>,
}

/// Reads files, the later over the earlier.
///
/// # Errors
/// At the first thing that is not YAML, not known, not applied or has no meaning, with its file and line.
pub fn load(files: &[File<'_>], context: &Context) -> Result<Loaded, LoadError> {
    let mut warnings = Vec::new();
    let mut trees = Vec::new();
    for file in files {
        let mut tree = yaml::parse(file.name, file.text)?;
        interpolate::tree(&mut tree, &context.environment, &mut warnings)?;
        trees.push((file.name, tree));
    }
    let extended = extend::all(&trees)?;
    let start = Place { file: files.first().map_or("", |file| file.name).into(), line: 1, column: 1 };
    let mut merged = yaml::Node { place: start, tag: None, value: yaml::Value::Mapping(Vec::new()) };
    for tree in extended {
        merged = merge::merge(merged, tree)?;
    }
    let (project, places) = parse::project(&merged, context)?;
    Ok(Loaded { project, places, warnings })
}
