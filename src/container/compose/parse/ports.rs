//! `ports` and `expose` of a service.

use std::net::IpAddr;

use super::super::model::{Port, Protocol};
use super::super::place::{LoadError, shown};
use super::super::yaml::Value;
use super::fields::Field;

/// Most ports that one range may name.
const WIDEST_RANGE: usize = 100;

pub(super) fn ports(field: &Field<'_>) -> Result<Vec<Port>, LoadError> {
    let mut ports: Vec<Port> = Vec::new();
    for item in field.list()? {
        let read = match &item.node().value {
            Value::Scalar(_) => short(&item)?,
            Value::Mapping(_) | Value::Sequence(_) => long(&item)?,
        };
        for port in read {
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    Ok(ports)
}

/// `[[ip:][published]:]target[/protocol]`, an IPv6 address in brackets, ranges of one width on both sides.
fn short(field: &Field<'_>) -> Result<Vec<Port>, LoadError> {
    let text = field.text()?;
    let (rest, protocol) = match text.rsplit_once('/') {
        Some((rest, protocol)) => (rest, read_protocol(field, protocol)?),
        None => (text.as_str(), Protocol::Tcp),
    };
    let (before, target) = match rest.rsplit_once(':') {
        Some((before, target)) => (Some(before), target),
        None => (None, rest),
    };
    let (ip, published) = match before.map(|before| before.rsplit_once(':').ok_or(before)) {
        None => (None, None),
        Some(Err(published)) => (None, Some(published)),
        Some(Ok((ip, published))) => (Some(ip), Some(published)),
    };
    let host_ip = ip.filter(|ip| !ip.is_empty()).map(|ip| read_ip(field, ip)).transpose()?;
    let targets = range(field, target)?;
    let published = match published.filter(|text| !text.is_empty()) {
        Some(text) => Some(range(field, text)?),
        None => None,
    };
    if let Some(published) = &published
        && published.len() != targets.len()
    {
        return Err(field.error("the two ranges of ports are not of one width"));
    }
    Ok(targets
        .iter()
        .enumerate()
        .map(|(index, target)| {
            let published =
                published.as_ref().and_then(|list| list.get(index).copied()).filter(|port| *port != 0);
            Port { host_ip, published, target: *target, protocol }
        })
        .collect())
}

fn long(field: &Field<'_>) -> Result<Vec<Port>, LoadError> {
    let mut fields = field.fields()?;
    let target = fields.take("target").ok_or_else(|| field.error("`target` is missing"))?;
    let target = port(&target, target.raw()?)?;
    let published =
        fields.take("published").map(|f| port(&f, f.raw()?)).transpose()?.filter(|port| *port != 0);
    let host_ip = fields.take("host_ip").map(|f| read_ip(&f, f.raw()?)).transpose()?;
    let protocol =
        fields.take("protocol").map(|f| read_protocol(&f, f.raw()?)).transpose()?.unwrap_or(Protocol::Tcp);
    if let Some(mode) = fields.take("mode") {
        // Only a swarm tells the two apart.
        if !matches!(mode.raw()?, "ingress" | "host") {
            return Err(mode.error("this takes `ingress` or `host`"));
        }
    }
    fields.finish()?;
    Ok(vec![Port { host_ip, published, target, protocol }])
}

fn read_protocol(field: &Field<'_>, text: &str) -> Result<Protocol, LoadError> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(field.error(format!("`{}` is no protocol", shown(text))).advise("use `tcp` or `udp`")),
    }
}

fn read_ip(field: &Field<'_>, text: &str) -> Result<IpAddr, LoadError> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| {
        field
            .error(format!("`{}` is no address", shown(text)))
            .advise("write an IPv6 address in brackets: `[::1]:80:80`")
    })
}

fn range(field: &Field<'_>, text: &str) -> Result<Vec<u16>, LoadError> {
    let Some((first, last)) = text.split_once('-') else { return Ok(vec![port(field, text)?]) };
    let (first, last) = (port(field, first)?, port(field, last)?);
    if first > last || usize::from(last - first) >= WIDEST_RANGE {
        return Err(field.error(format!("`{}` is no range of at most {WIDEST_RANGE} ports", shown(text))));
    }
    Ok((first..=last).collect())
}

fn port(field: &Field<'_>, text: &str) -> Result<u16, LoadError> {
    text.trim()
        .parse()
        .map_err(|_| field.error(format!("`{}` is no port", shown(text))).advise("a port is 1 to 65535"))
}

/// Ports that are announced, with their protocol.
pub(super) fn expose(field: &Field<'_>) -> Result<Vec<String>, LoadError> {
    let mut ports = Vec::new();
    for item in field.list()? {
        let text = item.text()?;
        let (number, protocol) = text.split_once('/').unwrap_or((&text, "tcp"));
        let protocol = match read_protocol(&item, protocol)? {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        for number in range(&item, number)? {
            let port = format!("{number}/{protocol}");
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    Ok(ports)
}
