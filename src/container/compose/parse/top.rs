//! The top-level `networks`, `volumes` and `secrets`.

use std::collections::BTreeMap;

use super::super::model::{AddressPool, Network, Secret, Volume};
use super::super::place::LoadError;
use super::Context;
use super::fields::{Field, Fields};

pub(super) fn networks(
    field: Option<Field<'_>>,
    context: &Context,
) -> Result<BTreeMap<String, Network>, LoadError> {
    each(field, |key, fields| {
        let Some(mut fields) = fields else {
            return Ok(Network { name: own_name(context, key), ..Network::default() });
        };
        let (name, external) = name_of(&mut fields, key, context)?;
        let network = Network {
            name,
            external,
            internal: flag(&mut fields, "internal")?,
            attachable: flag(&mut fields, "attachable")?,
            enable_ipv6: flag(&mut fields, "enable_ipv6")?,
            driver: fields.take("driver").map(|f| f.some_text()).transpose()?,
            driver_opts: texts(fields.take("driver_opts"))?,
            labels: texts(fields.take("labels"))?,
            pools: fields.take("ipam").map(|f| pools(&f)).transpose()?.unwrap_or_default(),
        };
        fields.finish()?;
        Ok(network)
    })
}

fn pools(field: &Field<'_>) -> Result<Vec<AddressPool>, LoadError> {
    let mut fields = field.fields()?;
    if let Some(driver) = fields.take("driver")
        && driver.text()? != "default"
    {
        return Err(driver.error("only the `default` driver is applied by Worca"));
    }
    let mut pools = Vec::new();
    if let Some(config) = fields.take("config") {
        for item in config.list()? {
            let mut fields = item.fields()?;
            let mut text = |key| fields.take(key).map(|f| f.some_text()).transpose();
            let pool = AddressPool {
                subnet: text("subnet")?,
                ip_range: text("ip_range")?,
                gateway: text("gateway")?,
            };
            fields.finish()?;
            pools.push(pool);
        }
    }
    fields.finish()?;
    Ok(pools)
}

pub(super) fn volumes(
    field: Option<Field<'_>>,
    context: &Context,
) -> Result<BTreeMap<String, Volume>, LoadError> {
    each(field, |key, fields| {
        let Some(mut fields) = fields else {
            return Ok(Volume { name: own_name(context, key), ..Volume::default() });
        };
        let (name, external) = name_of(&mut fields, key, context)?;
        let volume = Volume {
            name,
            external,
            driver: fields.take("driver").map(|f| f.some_text()).transpose()?,
            driver_opts: texts(fields.take("driver_opts"))?,
            labels: texts(fields.take("labels"))?,
        };
        fields.finish()?;
        Ok(volume)
    })
}

pub(super) fn secrets(
    field: Option<Field<'_>>,
    context: &Context,
) -> Result<BTreeMap<String, Secret>, LoadError> {
    let mut all = BTreeMap::new();
    let Some(field) = field else { return Ok(all) };
    for (key, field) in field.mapping()? {
        if key.starts_with("x-") {
            continue;
        }
        let mut fields = field.fields()?;
        let file = fields.take("file").ok_or_else(|| {
            field.error("this secret has no `file`").advise("a secret of a box is a file on the host")
        })?;
        let path = file.some_text()?;
        fields.finish()?;
        let file = context.folders.resolve(&path).ok_or_else(|| file.error("`~` needs a home folder"))?;
        all.insert(key.to_owned(), Secret { file });
    }
    Ok(all)
}

fn each<T>(
    field: Option<Field<'_>>,
    read: impl Fn(&str, Option<Fields<'_>>) -> Result<T, LoadError>,
) -> Result<BTreeMap<String, T>, LoadError> {
    let mut all = BTreeMap::new();
    let Some(field) = field else { return Ok(all) };
    for (key, field) in field.mapping()? {
        if !key.starts_with("x-") {
            let fields = if field.node().is_null() { None } else { Some(field.fields()?) };
            all.insert(key.to_owned(), read(key, fields)?);
        }
    }
    Ok(all)
}

fn own_name(context: &Context, key: &str) -> String {
    format!("{}_{key}", context.name)
}

/// The name at the engine, and whether it exists already.
fn name_of(fields: &mut Fields<'_>, key: &str, context: &Context) -> Result<(String, bool), LoadError> {
    let external = flag(fields, "external")?;
    let given = fields.take("name").map(|f| f.some_text()).transpose()?;
    let fallback = || if external { key.to_owned() } else { own_name(context, key) };
    Ok((given.unwrap_or_else(fallback), external))
}

fn flag(fields: &mut Fields<'_>, key: &'static str) -> Result<bool, LoadError> {
    Ok(fields.take(key).map(|f| f.boolean()).transpose()?.unwrap_or(false))
}

fn texts(field: Option<Field<'_>>) -> Result<BTreeMap<String, String>, LoadError> {
    let Some(field) = field else { return Ok(BTreeMap::new()) };
    Ok(field.pairs()?.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect())
}
