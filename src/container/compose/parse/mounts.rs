//! `volumes`, `tmpfs` and `secrets` of a service. Of two entries with one target the later one counts, as in Compose.

use std::collections::BTreeMap;

use super::super::model::{Mount, Relabel, SecretGrant};
use super::super::place::{LoadError, shown};
use super::super::yaml::Value;
use super::fields::Field;
use super::paths::{is_absolute, normal};
use super::{Context, scalars};

pub(super) fn volumes(field: &Field<'_>, context: &Context) -> Result<Vec<Mount>, LoadError> {
    let mut mounts: Vec<Mount> = Vec::new();
    for item in field.list()? {
        let mount = match &item.node().value {
            Value::Scalar(_) => short(&item, context)?,
            Value::Mapping(_) | Value::Sequence(_) => long(&item, context)?,
        };
        match mounts.iter_mut().find(|known| known.target() == mount.target()) {
            Some(known) => *known = mount,
            None => mounts.push(mount),
        }
    }
    Ok(mounts)
}

/// `[source:]target[:options]`. A colon after a lone letter belongs to a Windows drive.
fn short(field: &Field<'_>, context: &Context) -> Result<Mount, LoadError> {
    let text = field.some_text()?;
    let parts = split_short(&text);
    let hint = "write it in the long form (`type`, `source`, `target`), which any path fits into";
    if parts.iter().any(|part| part.is_empty()) {
        return Err(field.error("nothing stands between two colons").advise(hint));
    }
    let (source, target, options) = match parts.as_slice() {
        [target] => (None, target, None),
        [source, target] => (Some(source), target, None),
        [source, target, options] => (Some(source), target, Some(options)),
        _ => return Err(field.error("this has too many colons").advise(hint)),
    };
    let target = inside(field, target)?;
    let options = Options::read(field, options.map_or("", String::as_str))?;
    let path = source.filter(|source| is_host_path(source));
    if let Some(path) = path {
        if options.no_copy {
            return Err(field.error("`nocopy` belongs to a named volume"));
        }
        let source = host_path(field, path, context)?;
        let Options { read_only, propagation, relabel, .. } = options;
        return Ok(Mount::Bind { source, target, read_only, create_host_path: true, propagation, relabel });
    }
    if options.propagation.is_some() || options.relabel.is_some() {
        return Err(field
            .error("a bind option stands at a volume")
            .advise("a path of the host begins with `/`, `./` or `~`"));
    }
    let (read_only, no_copy) = (options.read_only, options.no_copy);
    Ok(Mount::Volume { source: source.cloned(), target, read_only, no_copy })
}

fn split_short(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in text.chars() {
        let Some(part) = parts.last_mut() else { break };
        let mut letters = part.chars();
        let drive = c == ':' && letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
        if c == ':' && !drive { parts.push(String::new()) } else { part.push(c) }
    }
    parts
}

fn is_host_path(source: &str) -> bool {
    source.starts_with(['.', '/', '~']) || is_absolute(source) || source.chars().nth(1) == Some(':')
}

#[derive(Default)]
struct Options {
    read_only: bool,
    no_copy: bool,
    propagation: Option<String>,
    relabel: Option<Relabel>,
}

impl Options {
    fn read(field: &Field<'_>, text: &str) -> Result<Self, LoadError> {
        let mut options = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            match option {
                "ro" => options.read_only = true,
                "rw" => options.read_only = false,
                "nocopy" => options.no_copy = true,
                "z" => options.relabel = Some(Relabel::Shared),
                "Z" => options.relabel = Some(Relabel::Private),
                option if is_propagation(option) => options.propagation = Some(option.to_owned()),
                // Only Docker Desktop ever gave these a meaning, and it has none now.
                "cached" | "consistent" | "delegated" => {}
                other => {
                    return Err(
                        field.error(format!("the mount option `{}` is not applied by Worca", shown(other)))
                    );
                }
            }
        }
        Ok(options)
    }
}

fn is_propagation(text: &str) -> bool {
    matches!(text, "private" | "rprivate" | "shared" | "rshared" | "slave" | "rslave")
}

fn long(field: &Field<'_>, context: &Context) -> Result<Mount, LoadError> {
    let mut fields = field.fields()?;
    let kind = fields
        .take("type")
        .ok_or_else(|| field.error("`type` is missing").advise("`bind`, `volume` or `tmpfs`"))?;
    let target = fields.take("target").ok_or_else(|| field.error("`target` is missing"))?;
    let target = inside(&target, &target.text()?)?;
    let source = fields.take("source");
    let read_only = fields.take("read_only").map(|f| f.boolean()).transpose()?.unwrap_or(false);
    if let Some(consistency) = fields.take("consistency") {
        consistency.text()?;
    }
    let mount = match kind.text()?.as_str() {
        "bind" => {
            let source = source.ok_or_else(|| field.error("a bind mount needs a `source`"))?;
            let source = host_path(&source, &source.text()?, context)?;
            let (mut create_host_path, mut propagation, mut relabel) = (true, None, None);
            if let Some(bind) = fields.take("bind") {
                let mut bind = bind.fields()?;
                if let Some(create) = bind.take("create_host_path") {
                    create_host_path = create.boolean()?;
                }
                if let Some(field) = bind.take("propagation") {
                    let text = field.text()?;
                    if !is_propagation(&text) {
                        return Err(field.error(format!("`{}` is no propagation", shown(&text))));
                    }
                    propagation = Some(text);
                }
                if let Some(field) = bind.take("selinux") {
                    relabel = Some(match field.text()?.as_str() {
                        "z" => Relabel::Shared,
                        "Z" => Relabel::Private,
                        _ => return Err(field.error("this takes `z` or `Z`")),
                    });
                }
                bind.finish()?;
            } else {
                // Compose 2.26 makes a missing folder only when a `bind` section or the short form asks for it.
                create_host_path = false;
            }
            Mount::Bind { source, target, read_only, create_host_path, propagation, relabel }
        }
        "volume" => {
            let mut no_copy = false;
            if let Some(volume) = fields.take("volume") {
                let mut volume = volume.fields()?;
                no_copy = volume.take("nocopy").map(|f| f.boolean()).transpose()?.unwrap_or(false);
                volume.finish()?;
            }
            Mount::Volume { source: source.map(|s| s.some_text()).transpose()?, target, read_only, no_copy }
        }
        "tmpfs" => {
            if let Some(source) = source {
                return Err(source.error("a tmpfs has no source"));
            }
            let (mut size, mut mode) = (None, None);
            if let Some(tmpfs) = fields.take("tmpfs") {
                let mut tmpfs = tmpfs.fields()?;
                size = tmpfs.take("size").map(|f| f.bytes()).transpose()?;
                mode = tmpfs.take("mode").map(|f| mode_bits(&f)).transpose()?;
                tmpfs.finish()?;
            }
            Mount::Tmpfs { target, size, mode, read_only }
        }
        other => {
            return Err(kind.error(format!("a mount of type `{}` is not applied by Worca", shown(other))));
        }
    };
    fields.finish()?;
    Ok(mount)
}

/// Permission bits: YAML reads `01777` and `0o1777` as octal; text is octal too.
fn mode_bits(field: &Field<'_>) -> Result<u32, LoadError> {
    let number = match &field.node().value {
        Value::Scalar(scalar) if matches!(scalar.kind, super::super::yaml::Kind::Text) => {
            i64::from_str_radix(scalar.text.trim_start_matches("0o"), 8).ok()
        }
        _ => Some(field.whole()?),
    };
    number
        .and_then(|n| u32::try_from(n).ok())
        .filter(|bits| *bits <= 0o7777)
        .ok_or_else(|| field.error("this takes permission bits").advise("such as `0o1777`"))
}

/// A path inside a container: absolute, and in its normal form so that two spellings are one target.
fn inside(field: &Field<'_>, target: &str) -> Result<String, LoadError> {
    if !target.starts_with('/') {
        return Err(field.error(format!("the target `{}` is not an absolute path", shown(target))));
    }
    Ok(normal(target))
}

fn host_path(field: &Field<'_>, path: &str, context: &Context) -> Result<String, LoadError> {
    if path.is_empty() || path.contains(['\0', '\n', '\r']) {
        return Err(field.error("a path of the host is one line of text"));
    }
    context
        .folders
        .resolve(path)
        .ok_or_else(|| field.error(format!("`{}` needs a home folder, and `HOME` is not set", shown(path))))
}

/// `path` or `path:options`, one or a list.
pub(super) fn tmpfs(field: &Field<'_>) -> Result<BTreeMap<String, String>, LoadError> {
    let mut map = BTreeMap::new();
    for entry in field.one_or_more()? {
        let (path, options) = entry.split_once(':').unwrap_or((&entry, ""));
        if let Some(size) = options.split(',').find_map(|option| option.strip_prefix("size="))
            && !size.ends_with('%')
            && scalars::bytes(size).is_none()
        {
            return Err(field.error(format!("`size={}` is no size", shown(size))));
        }
        map.insert(inside(field, path)?, options.to_owned());
    }
    Ok(map)
}

/// A name, or `source` and `target`. A relative target is one in `/run/secrets`.
pub(super) fn secrets(field: &Field<'_>) -> Result<Vec<SecretGrant>, LoadError> {
    let mut grants: Vec<SecretGrant> = Vec::new();
    for item in field.list()? {
        let (source, target) = match &item.node().value {
            Value::Scalar(_) => (item.some_text()?, None),
            Value::Mapping(_) | Value::Sequence(_) => {
                let mut fields = item.fields()?;
                let source =
                    fields.take("source").ok_or_else(|| item.error("`source` is missing"))?.some_text()?;
                let target = fields.take("target").map(|f| f.some_text()).transpose()?;
                fields.finish()?;
                (source, target)
            }
        };
        let target = target.unwrap_or_else(|| source.clone());
        let target =
            if target.starts_with('/') { normal(&target) } else { normal(&format!("/run/secrets/{target}")) };
        grants.retain(|known| known.target != target);
        grants.push(SecretGrant { source, target });
    }
    Ok(grants)
}
