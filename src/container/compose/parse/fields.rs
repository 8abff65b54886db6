//! Reading a mapping key by key so that none is forgotten: what nobody took is an error at the end.

use super::super::place::{LoadError, Place, shown};
use super::super::yaml::{Kind, Node, Scalar, Value};
use super::{scalars, suggest};

/// The keys of one mapping. [`Fields::finish`] has to be called.
pub(super) struct Fields<'n> {
    node: &'n Node,
    path: String,
    asked: Vec<&'static str>,
}

/// A value, and where it stands.
pub(super) struct Field<'n> {
    node: &'n Node,
    path: String,
    place: &'n Place,
}

impl<'n> Fields<'n> {
    pub(super) fn new(node: &'n Node, path: &str) -> Result<Self, LoadError> {
        if node.entries().is_none() {
            let sentence = format!("`{}` takes a mapping, and this is {}", shown(path), node.noun());
            return Err(LoadError::value(node.place.clone(), sentence));
        }
        Ok(Self { node, path: path.to_owned(), asked: Vec::new() })
    }
    /// The value of a key; `None` when it is absent or empty.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Field<'n>> {
        self.asked.push(key);
        let entry = self.node.entries()?.iter().find(|entry| entry.key == key)?;
        if entry.node.is_null() {
            return None;
        }
        Some(Field { node: &entry.node, path: join(&self.path, key), place: &entry.place })
    }
    /// Whether a key stands there at all, be it empty.
    pub(super) fn has(&self, key: &str) -> bool {
        self.node.get(key).is_some()
    }
    /// Refuses every key that was not asked for.
    pub(super) fn finish(self) -> Result<(), LoadError> {
        for entry in self.node.entries().unwrap_or_default() {
            if !self.asked.contains(&entry.key.as_str()) && !entry.key.starts_with("x-") {
                let path = join(&self.path, &entry.key);
                let error = LoadError::not_applied(entry.place.clone(), &path);
                return Err(match suggest::hint(&path, &entry.key, &self.asked) {
                    Some(hint) => error.advise(hint),
                    None => error.advise("remove it: nothing of a file is dropped in silence"),
                });
            }
        }
        Ok(())
    }
}

impl<'n> Field<'n> {
    pub(super) fn node(&self) -> &'n Node {
        self.node
    }
    pub(super) fn place(&self) -> &'n Place {
        self.place
    }
    /// An error about this value.
    pub(super) fn error(&self, sentence: impl std::fmt::Display) -> LoadError {
        LoadError::value(self.node.place.clone(), format!("`{}`: {sentence}", shown(&self.path)))
    }
    pub(super) fn wants(&self, what: &str) -> LoadError {
        self.error(format!("this takes {what}, not {}", self.node.noun()))
    }
    fn scalar(&self, what: &str) -> Result<&'n Scalar, LoadError> {
        match &self.node.value {
            Value::Scalar(scalar) => Ok(scalar),
            Value::Sequence(_) | Value::Mapping(_) => Err(self.wants(what)),
        }
    }
    /// Text, or a number or boolean that reads the same as text.
    pub(super) fn text(&self) -> Result<String, LoadError> {
        self.scalar("text")?.as_text(&self.node.place)
    }
    /// Text that is not empty.
    pub(super) fn some_text(&self) -> Result<String, LoadError> {
        let text = self.text()?;
        if text.trim().is_empty() { Err(self.error("this is empty")) } else { Ok(text) }
    }
    /// The text as it stands in the file, for values that are numbers with units.
    pub(super) fn raw(&self) -> Result<&'n str, LoadError> {
        Ok(&self.scalar("text")?.text)
    }
    /// A boolean, also as text, which is what a variable gives.
    pub(super) fn boolean(&self) -> Result<bool, LoadError> {
        let scalar = self.scalar("a boolean")?;
        match (scalar.kind, scalar.text.to_ascii_lowercase().as_str()) {
            (Kind::Bool(value), _) => Ok(value),
            (Kind::Text, "true" | "y" | "yes" | "on" | "1") => Ok(true),
            (Kind::Text, "false" | "n" | "no" | "off" | "0") => Ok(false),
            _ => Err(self.error("this takes `true` or `false`")),
        }
    }
    /// A whole number, also as text.
    pub(super) fn whole(&self) -> Result<i64, LoadError> {
        let scalar = self.scalar("a whole number")?;
        match scalar.kind {
            Kind::Int(value) => Ok(value),
            Kind::Text => scalar.text.trim().parse().map_err(|_| self.error("this takes a whole number")),
            Kind::Null | Kind::Bool(_) | Kind::Float | Kind::Date => {
                Err(self.error("this takes a whole number"))
            }
        }
    }
    /// A size in bytes (`512m`).
    pub(super) fn bytes(&self) -> Result<u64, LoadError> {
        scalars::bytes(self.raw()?)
            .ok_or_else(|| self.error("this takes a size").advise("such as `512m` or `2g`"))
    }
    /// A duration in nanoseconds (`1m30s`).
    pub(super) fn duration(&self) -> Result<u64, LoadError> {
        scalars::duration(self.raw()?)
            .ok_or_else(|| self.error("this takes a duration").advise("such as `30s` or `1m30s`"))
    }
    /// CPU time in billionths of a CPU (`1.5`).
    pub(super) fn cpus(&self) -> Result<u64, LoadError> {
        scalars::cpus(self.raw()?)
            .ok_or_else(|| self.error("this takes a number of CPUs").advise("such as `1.5`"))
    }
    /// The entries of a list. Their path has no number: after a merge it would not be the one of the file.
    pub(super) fn list(&self) -> Result<Vec<Field<'n>>, LoadError> {
        match &self.node.value {
            Value::Sequence(items) => Ok(items
                .iter()
                .map(|node| Field { node, path: self.path.clone(), place: &node.place })
                .collect()),
            Value::Scalar(_) | Value::Mapping(_) => Err(self.wants("a list")),
        }
    }
    /// A list of texts.
    pub(super) fn texts(&self) -> Result<Vec<String>, LoadError> {
        self.list()?.iter().map(Field::text).collect()
    }
    /// One text, or a list of them.
    pub(super) fn one_or_more(&self) -> Result<Vec<String>, LoadError> {
        match &self.node.value {
            Value::Scalar(_) => Ok(vec![self.text()?]),
            Value::Sequence(_) | Value::Mapping(_) => self.texts(),
        }
    }
    /// The entries of a mapping.
    pub(super) fn mapping(&self) -> Result<Vec<(&'n str, Field<'n>)>, LoadError> {
        let Some(entries) = self.node.entries() else { return Err(self.wants("a mapping")) };
        Ok(entries
            .iter()
            .map(|entry| {
                let path = join(&self.path, &entry.key);
                (entry.key.as_str(), Field { node: &entry.node, path, place: &entry.place })
            })
            .collect())
    }
    /// The same as keys that have to be taken.
    pub(super) fn fields(&self) -> Result<Fields<'n>, LoadError> {
        Fields::new(self.node, &self.path)
    }
    /// Text pairs: a mapping, or a list of `KEY=value`. `None` where no value stands.
    pub(super) fn pairs(&self) -> Result<Vec<(String, Option<String>)>, LoadError> {
        match &self.node.value {
            Value::Mapping(_) => self
                .mapping()?
                .into_iter()
                .map(|(key, field)| {
                    let value = if field.node.is_null() { None } else { Some(field.text()?) };
                    Ok((key.to_owned(), value))
                })
                .collect(),
            Value::Sequence(_) => Ok(self
                .texts()?
                .into_iter()
                .map(|text| match text.split_once('=') {
                    Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                    None => (text, None),
                })
                .collect()),
            Value::Scalar(_) => Err(self.wants("a mapping or a list of `KEY=value`")),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
