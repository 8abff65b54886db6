//! `extends` of a service: another service of the same file, or of a file that was handed in too.

use super::super::merge;
use super::super::place::{LoadError, Place, shown};
use super::super::yaml::{Entry, Node, Value};

/// Longest chain of services that extend each other.
const LONGEST_CHAIN: usize = 8;

type Tree<'t> = (&'t str, Node);

/// The same trees with every `extends` worked in.
pub(super) fn all(trees: &[Tree<'_>]) -> Result<Vec<Node>, LoadError> {
    trees.iter().map(|(name, tree)| file(trees, name, tree)).collect()
}

fn file(trees: &[Tree<'_>], name: &str, tree: &Node) -> Result<Node, LoadError> {
    let mut tree = tree.clone();
    let Value::Mapping(entries) = &mut tree.value else { return Ok(tree) };
    for entry in entries.iter_mut().filter(|entry| entry.key == "services") {
        let Value::Mapping(services) = &mut entry.node.value else { continue };
        for service in services {
            if service.node.get("extends").is_some() {
                service.node = extended(trees, name, &service.node, 0)?;
            }
        }
    }
    Ok(tree)
}

fn extended(trees: &[Tree<'_>], own_file: &str, service: &Node, depth: usize) -> Result<Node, LoadError> {
    let Some(extends) = service.get("extends") else { return Ok(service.clone()) };
    if depth >= LONGEST_CHAIN {
        let sentence = format!("services extend each other in a circle, or {LONGEST_CHAIN} deep");
        return Err(LoadError::value(extends.place.clone(), sentence));
    }
    let (file, name) = target(extends)?;
    let file = file.unwrap_or_else(|| own_file.to_owned());
    let Some((file, tree)) = trees.iter().find(|(name, _)| *name == file) else {
        let sentence =
            format!("`extends` names the file `{}`, which is not one of this project's", shown(&file));
        return Err(LoadError::value(extends.place.clone(), sentence));
    };
    let Some(base) = tree.get("services").and_then(|services| services.get(&name)) else {
        let sentence = format!("`extends` names the service `{}`, and `{file}` has none", shown(&name));
        return Err(LoadError::value(extends.place.clone(), sentence));
    };
    let base = extended(trees, file, base, depth + 1)?;
    merge::merge_service(base, without_extends(service))
}

fn target(extends: &Node) -> Result<(Option<String>, String), LoadError> {
    let wrong = |place: &Place| {
        LoadError::value(place.clone(), "`extends` takes the name of a service, or `file` and `service`")
    };
    let text = |node: &Node| match &node.value {
        Value::Scalar(scalar) if !scalar.text.is_empty() => Ok(scalar.text.clone()),
        _ => Err(wrong(&node.place)),
    };
    let Some(entries) = extends.entries() else { return Ok((None, text(extends)?)) };
    if let Some(other) = entries.iter().find(|entry| entry.key != "file" && entry.key != "service") {
        return Err(wrong(&other.place));
    }
    let name = text(extends.get("service").ok_or_else(|| wrong(&extends.place))?)?;
    let file = extends.get("file").map(text).transpose()?;
    Ok((file.map(|file| file.trim_start_matches("./").to_owned()), name))
}

fn without_extends(service: &Node) -> Node {
    let mut service = service.clone();
    if let Value::Mapping(entries) = &mut service.value {
        entries.retain(|entry: &Entry| entry.key != "extends");
    }
    service
}
