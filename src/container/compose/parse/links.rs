//! What ties a service to other things: networks, services, host names, limits by name, its log.

use std::collections::BTreeMap;

use super::super::model::{Condition, Dependency, Logging, NetworkLink, ServiceName, Ulimit};
use super::super::place::{LoadError, shown};
use super::super::yaml::Value;
use super::fields::Field;

/// Dependencies, each with whether it must exist at all.
pub(super) fn depends_on(field: &Field<'_>) -> Result<BTreeMap<ServiceName, (Dependency, bool)>, LoadError> {
    let name = |field: &Field<'_>, text: &str| {
        ServiceName::parse(text).map_err(|error| field.error(error.to_string()))
    };
    let started = Dependency { condition: Condition::Started, restart: false };
    let mut all = BTreeMap::new();
    if matches!(field.node().value, Value::Sequence(_)) {
        for text in field.texts()? {
            all.insert(name(field, &text)?, (started, true));
        }
        return Ok(all);
    }
    for (key, field) in field.mapping()? {
        let mut fields = field.fields()?;
        let condition = match fields.take("condition") {
            None => Condition::Started,
            Some(field) => match field.text()?.as_str() {
                "service_started" => Condition::Started,
                "service_healthy" => Condition::Healthy,
                "service_completed_successfully" => Condition::Completed,
                other => {
                    return Err(field.error(format!("`{}` is no condition", shown(other))).advise(
                        "use `service_started`, `service_healthy` or `service_completed_successfully`",
                    ));
                }
            },
        };
        let restart = fields.take("restart").map(|f| f.boolean()).transpose()?.unwrap_or(false);
        let required = fields.take("required").map(|f| f.boolean()).transpose()?.unwrap_or(true);
        fields.finish()?;
        all.insert(name(&field, key)?, (Dependency { condition, restart }, required));
    }
    Ok(all)
}

pub(super) fn networks(field: &Field<'_>) -> Result<BTreeMap<String, NetworkLink>, LoadError> {
    if matches!(field.node().value, Value::Sequence(_)) {
        return Ok(field.texts()?.into_iter().map(|name| (name, NetworkLink::default())).collect());
    }
    let mut links = BTreeMap::new();
    for (key, field) in field.mapping()? {
        let mut link = NetworkLink::default();
        if !field.node().is_null() {
            let mut fields = field.fields()?;
            link.aliases = fields.take("aliases").map(|f| f.texts()).transpose()?.unwrap_or_default();
            link.ipv4_address = fields.take("ipv4_address").map(|f| f.some_text()).transpose()?;
            link.ipv6_address = fields.take("ipv6_address").map(|f| f.some_text()).transpose()?;
            fields.finish()?;
        }
        links.insert(key.to_owned(), link);
    }
    Ok(links)
}

/// `host:address`, `host=address`, or a mapping of hosts to one or more addresses.
pub(super) fn extra_hosts(field: &Field<'_>) -> Result<BTreeMap<String, Vec<String>>, LoadError> {
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |field: &Field<'_>, host: &str, address: &str| {
        let address = address.trim().trim_start_matches('[').trim_end_matches(']');
        if host.trim().is_empty()
            || (address != "host-gateway" && address.parse::<std::net::IpAddr>().is_err())
        {
            return Err(field
                .error("this takes a host name and an address")
                .advise("such as `database.test:10.0.0.5`"));
        }
        let known = hosts.entry(host.trim().to_owned()).or_default();
        if !known.iter().any(|a| a == address) {
            known.push(address.to_owned());
        }
        Ok(())
    };
    if matches!(field.node().value, Value::Mapping(_)) {
        for (host, field) in field.mapping()? {
            for address in field.one_or_more()? {
                add(&field, host, &address)?;
            }
        }
        return Ok(hosts);
    }
    for item in field.list()? {
        let text = item.text()?;
        let (host, address) = text.split_once('=').or_else(|| text.split_once(':')).unwrap_or((&text, ""));
        add(&item, host, address)?;
    }
    Ok(hosts)
}

pub(super) fn ulimits(field: &Field<'_>) -> Result<BTreeMap<String, Ulimit>, LoadError> {
    let mut all = BTreeMap::new();
    for (key, field) in field.mapping()? {
        let limit = if matches!(field.node().value, Value::Scalar(_)) {
            let both = field.whole()?;
            Ulimit { soft: both, hard: both }
        } else {
            let mut fields = field.fields()?;
            let soft = fields.take("soft").ok_or_else(|| field.error("`soft` is missing"))?.whole()?;
            let hard = fields.take("hard").ok_or_else(|| field.error("`hard` is missing"))?.whole()?;
            fields.finish()?;
            Ulimit { soft, hard }
        };
        all.insert(key.to_owned(), limit);
    }
    Ok(all)
}

pub(super) fn logging(field: &Field<'_>) -> Result<Logging, LoadError> {
    let mut fields = field.fields()?;
    let driver = fields.take("driver").map(|f| f.some_text()).transpose()?;
    let mut options = BTreeMap::new();
    if let Some(field) = fields.take("options") {
        for (key, value) in field.pairs()? {
            options.insert(key, value.unwrap_or_default());
        }
    }
    fields.finish()?;
    Ok(Logging { driver, options })
}
