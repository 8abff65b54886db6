//! Several Compose files into one tree, by Compose's rules. A later file wins; nothing is dropped unless `!reset` says so.
//!
//! Mappings merge, lists append, everything else is replaced. The exceptions are [`rule`]'s. That two entries of a list
//! mean one thing (a port, a mount's target) is settled where they are parsed: the later one wins there too.

use std::collections::HashMap;

use super::place::{LoadError, shown};
use super::yaml::{Entry, Node, Scalar, Tag, Value};

#[cfg(test)]
mod tests;

/// How two values of one key become one.
enum Rule {
    /// By what they are.
    Plain,
    /// The later one.
    Replace,
    /// `KEY=value` lists or mappings: one mapping.
    Pairs,
    /// A list of names, or a mapping of them: one mapping.
    Names,
    /// One text, or a list of them: one list.
    Texts,
    /// Mappings merge, anything else is replaced.
    MappingOrReplace,
    /// The options of two log drivers do not mix.
    Logging,
}

fn rule(path: &[&str]) -> Rule {
    match path {
        ["services", _, "command" | "entrypoint"] | ["services", _, "healthcheck", "test"] => Rule::Replace,
        ["services", _, "environment" | "labels" | "sysctls"] | ["networks" | "volumes", _, "labels"] => {
            Rule::Pairs
        }
        ["services", _, "networks" | "depends_on"] => Rule::Names,
        ["services", _, "dns" | "dns_search" | "dns_opt" | "tmpfs" | "extra_hosts"] => Rule::Texts,
        ["services", _, "ulimits", _] => Rule::MappingOrReplace,
        ["services", _, "logging"] => Rule::Logging,
        _ => Rule::Plain,
    }
}

/// Puts a later file over an earlier one.
///
/// # Errors
/// When a value cannot be put over what it meets, such as text over a mapping.
pub fn merge(base: Node, over: Node) -> Result<Node, LoadError> {
    let merged = merge_at(base, over, &mut Vec::new())?;
    Ok(merged.unwrap_or(Node { value: Value::Mapping(Vec::new()), ..empty() }))
}

/// One file as it counts alone: what it resets is gone, and no tag is left.
///
/// # Errors
/// When an entry of a list is reset.
pub fn alone(file: Node) -> Result<Node, LoadError> {
    let base = Node { value: Value::Mapping(Vec::new()), tag: None, place: file.place.clone() };
    merge(base, file)
}

/// One service over the service that it extends, by the same rules.
///
/// # Errors
/// As [`merge`].
pub fn merge_service(base: Node, over: Node) -> Result<Node, LoadError> {
    let place = over.place.clone();
    let empty = Node { value: Value::Mapping(Vec::new()), tag: None, place };
    let name = || vec!["services".to_owned(), "*".to_owned()];
    Ok(merge_at(base, over, &mut name())?.unwrap_or(empty))
}

fn empty() -> Node {
    let place = super::place::Place { file: "".into(), line: 1, column: 1 };
    Node { place, tag: None, value: Value::Mapping(Vec::new()) }
}

/// `None`: the value is reset.
fn merge_at(base: Node, over: Node, path: &mut Vec<String>) -> Result<Option<Node>, LoadError> {
    match over.tag {
        Some(Tag::Reset) => return Ok(None),
        Some(Tag::Override) => return settle(Node { tag: None, ..over }, path),
        None => {}
    }
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let rule = rule(&words);
    if base.is_null() || matches!(rule, Rule::Replace) {
        return settle(over, path);
    }
    if over.is_null() {
        // Compose: nothing over something leaves it as it is, where it does not simply replace it.
        return Ok(Some(base));
    }
    match rule {
        Rule::Replace => settle(over, path),
        Rule::Plain => plain(base, over, path),
        Rule::Pairs => plain(pairs(base, path)?, pairs(over, path)?, path),
        Rule::Names => plain(names(base, path)?, names(over, path)?, path),
        Rule::Texts => plain(texts(base), texts(over), path),
        Rule::MappingOrReplace if base.entries().is_some() && over.entries().is_some() => {
            plain(base, over, path)
        }
        Rule::MappingOrReplace => settle(over, path),
        Rule::Logging => {
            let driver = |node: &Node| node.get("driver").filter(|d| !d.is_null()).map(|d| d.value.clone());
            match (driver(&base), driver(&over)) {
                (Some(before), Some(after)) if before != after => settle(over, path),
                _ => plain(base, over, path),
            }
        }
    }
}

fn plain(base: Node, over: Node, path: &mut Vec<String>) -> Result<Option<Node>, LoadError> {
    let (is, becomes) = (base.noun(), over.noun());
    let place = over.place.clone();
    let value = match (base.value, over.value) {
        (Value::Mapping(base), Value::Mapping(over)) => Value::Mapping(merge_entries(base, over, path)?),
        (Value::Sequence(mut base), Value::Sequence(over)) => {
            for item in over {
                base.push(settle_item(item, path)?);
            }
            Value::Sequence(base)
        }
        (Value::Scalar(_), value) => return settle(Node { place, tag: None, value }, path),
        (_, _) => {
            let sentence =
                format!("`{}` is {is} in an earlier file, and here it is {becomes}", shown(&path.join(".")));
            return Err(LoadError::value(place, sentence)
                .advise("write it in the same form, or put `!override` before it to replace all of it"));
        }
    };
    Ok(Some(Node { place, tag: None, value }))
}

fn merge_entries(
    base: Vec<Entry>,
    over: Vec<Entry>,
    path: &mut Vec<String>,
) -> Result<Vec<Entry>, LoadError> {
    let positions: HashMap<String, usize> =
        base.iter().enumerate().map(|(position, entry)| (entry.key.clone(), position)).collect();
    // A place in the order stays with its key, also when the value is taken out to be merged, or reset.
    let mut merged: Vec<Option<Entry>> = base.into_iter().map(Some).collect();
    for entry in over {
        path.push(entry.key.clone());
        match positions.get(&entry.key).and_then(|position| merged.get_mut(*position)) {
            Some(slot) => {
                *slot = match slot.take() {
                    Some(before) => merge_at(before.node, entry.node, path)?,
                    None => settle(entry.node, path)?,
                }
                .map(|node| Entry { key: entry.key, place: entry.place, node });
            }
            None => {
                let node = settle(entry.node, path)?;
                merged.push(node.map(|node| Entry { key: entry.key, place: entry.place, node }));
            }
        }
        path.pop();
    }
    Ok(merged.into_iter().flatten().collect())
}

/// A value that meets nothing: its own resets are done and its tags taken off.
fn settle(node: Node, path: &mut Vec<String>) -> Result<Option<Node>, LoadError> {
    if node.tag == Some(Tag::Reset) {
        return Ok(None);
    }
    let value = match node.value {
        Value::Mapping(entries) => Value::Mapping(merge_entries(Vec::new(), entries, path)?),
        Value::Sequence(items) => {
            Value::Sequence(items.into_iter().map(|item| settle_item(item, path)).collect::<Result<_, _>>()?)
        }
        scalar @ Value::Scalar(_) => scalar,
    };
    Ok(Some(Node { place: node.place, tag: None, value }))
}

fn settle_item(item: Node, path: &mut Vec<String>) -> Result<Node, LoadError> {
    let place = item.place.clone();
    if item.tag.is_some() {
        return Err(LoadError::value(
            place,
            "`!reset` and `!override` stand before the value of a key, not in a list",
        ));
    }
    settle(item, path)?.ok_or_else(|| LoadError::value(place, "an entry of a list cannot be reset"))
}

/// `[A=1, B]` as `{A: "1", B: null}`.
fn pairs(node: Node, path: &[String]) -> Result<Node, LoadError> {
    let Value::Sequence(items) = node.value else { return Ok(node) };
    let mut entries: Vec<Entry> = Vec::new();
    for item in items {
        let Value::Scalar(scalar) = &item.value else {
            let sentence =
                format!("an entry of `{}` is {}, not `KEY=value`", shown(&path.join(".")), item.noun());
            return Err(LoadError::value(item.place, sentence));
        };
        let text = scalar.as_text(&item.place)?;
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.to_owned(), Scalar::text(value)),
            None => (text, Scalar::plain("")),
        };
        entries.retain(|known| known.key != key);
        let node = Node { place: item.place.clone(), tag: None, value: Value::Scalar(value) };
        entries.push(Entry { key, place: item.place, node });
    }
    Ok(Node { value: Value::Mapping(entries), ..node_without_value(node.place, node.tag) })
}

/// `[a, b]` as `{a: null, b: null}`; a dependency in a list is one that has to be started.
fn names(node: Node, path: &[String]) -> Result<Node, LoadError> {
    let Value::Sequence(items) = node.value else { return Ok(node) };
    let mut entries: Vec<Entry> = Vec::new();
    for item in items {
        let Value::Scalar(Scalar { text, .. }) = &item.value else {
            let sentence = format!("an entry of `{}` is {}, not a name", shown(&path.join(".")), item.noun());
            return Err(LoadError::value(item.place, sentence));
        };
        if !entries.iter().any(|known| known.key == *text) {
            let node = Node { place: item.place.clone(), tag: None, value: link_value(path, &item.place) };
            entries.push(Entry { key: text.clone(), place: item.place.clone(), node });
        }
    }
    Ok(Node { value: Value::Mapping(entries), ..node_without_value(node.place, node.tag) })
}

fn link_value(path: &[String], place: &super::place::Place) -> Value {
    if path.last().is_none_or(|key| key != "depends_on") {
        return Value::Scalar(Scalar::plain(""));
    }
    let started = Value::Scalar(Scalar::text("service_started"));
    let node = Node { place: place.clone(), tag: None, value: started };
    Value::Mapping(vec![Entry { key: "condition".to_owned(), place: place.clone(), node }])
}

/// One text as a list of one; `{a: b}` (hosts) as `[a=b]`.
fn texts(node: Node) -> Node {
    match node.value {
        Value::Scalar(scalar) => {
            let item = Node { place: node.place.clone(), tag: None, value: Value::Scalar(scalar) };
            Node { value: Value::Sequence(vec![item]), ..node_without_value(node.place, node.tag) }
        }
        Value::Mapping(entries) => {
            let mut items = Vec::new();
            for entry in entries {
                let values = match entry.node.value {
                    Value::Sequence(values) => values,
                    value => vec![Node { place: entry.place.clone(), tag: None, value }],
                };
                for value in values {
                    if let Value::Scalar(scalar) = value.value {
                        let text = Scalar::text(format!("{}={}", entry.key, scalar.text));
                        items.push(Node {
                            place: entry.place.clone(),
                            tag: None,
                            value: Value::Scalar(text),
                        });
                    }
                }
            }
            Node { value: Value::Sequence(items), ..node_without_value(node.place, node.tag) }
        }
        value => Node { value, ..node_without_value(node.place, node.tag) },
    }
}

fn node_without_value(place: super::place::Place, tag: Option<Tag>) -> Node {
    Node { place, tag, value: Value::Sequence(Vec::new()) }
}
