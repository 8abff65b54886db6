//! One service, key by key.

use std::collections::BTreeSet;

use super::super::model::{HostAsks, Service, ServiceName};
use super::super::place::{LoadError, shown};
use super::super::yaml::Value;
use super::fields::{Field, Fields};
use super::{Context, health, links, mounts, ports, words};

/// A service with what only matters while a project is put together.
pub(super) struct Read {
    pub(super) service: Service,
    pub(super) profiles: Vec<String>,
    pub(super) optional: BTreeSet<ServiceName>,
}

pub(super) fn read(field: &Field<'_>, context: &Context) -> Result<Read, LoadError> {
    let mut f = field.fields()?;
    let mut s = Service::default();
    let profiles = f.take("profiles").map(|f| f.texts()).transpose()?.unwrap_or_default();
    s.image = match f.take("image") {
        Some(image) => image.some_text()?,
        None if f.has("build") => {
            return Err(f.finish().err().unwrap_or_else(|| field.error("`image` is missing")));
        }
        None => return Err(field.error("`image` is missing")),
    };
    s.command = f.take("command").map(|f| command(&f)).transpose()?;
    s.entrypoint = f.take("entrypoint").map(|f| command(&f)).transpose()?;
    s.user = text(&mut f, "user")?;
    s.working_dir = text(&mut f, "working_dir")?;
    s.hostname = text(&mut f, "hostname")?;
    s.container_name = text(&mut f, "container_name")?;
    s.platform = text(&mut f, "platform")?;
    s.userns_mode = text(&mut f, "userns_mode")?;
    s.stop_signal = text(&mut f, "stop_signal")?;
    if let Some(pairs) = f.take("environment") {
        for (key, value) in pairs.pairs()? {
            if key.is_empty() || key.contains(['=', '\0']) {
                return Err(pairs.error(format!("`{}` is no name of a variable", shown(&key))));
            }
            let value = value.or_else(|| context.environment.get(&key).cloned());
            s.environment.insert(key, value);
        }
    }
    for (key, into) in [("labels", &mut s.labels), ("sysctls", &mut s.sysctls)] {
        let Some(field) = f.take(key) else { continue };
        for (name, value) in field.pairs()? {
            if name.starts_with("com.docker.compose.") || name.starts_with("worca.") {
                return Err(field.error(format!("the label `{}` is Worca's to set", shown(&name))));
            }
            into.insert(name, value.unwrap_or_default());
        }
    }
    s.networks = f.take("networks").map(|f| links::networks(&f)).transpose()?.unwrap_or_default();
    s.mounts = f.take("volumes").map(|f| mounts::volumes(&f, context)).transpose()?.unwrap_or_default();
    s.tmpfs = f.take("tmpfs").map(|f| mounts::tmpfs(&f)).transpose()?.unwrap_or_default();
    s.secrets = f.take("secrets").map(|f| mounts::secrets(&f)).transpose()?.unwrap_or_default();
    s.ports = f.take("ports").map(|f| ports::ports(&f)).transpose()?.unwrap_or_default();
    s.expose = f.take("expose").map(|f| ports::expose(&f)).transpose()?.unwrap_or_default();
    s.extra_hosts = f.take("extra_hosts").map(|f| links::extra_hosts(&f)).transpose()?.unwrap_or_default();
    let optional = depends_on(&mut f, &mut s)?;
    limits(&mut f, &mut s)?;
    s.cap_add = capabilities(&mut f, "cap_add")?;
    s.cap_drop = capabilities(&mut f, "cap_drop")?;
    s.security_opt = distinct(list(&mut f, "security_opt")?);
    s.group_add = distinct(list(&mut f, "group_add")?);
    for (key, into) in [("dns", &mut s.dns), ("dns_search", &mut s.dns_search), ("dns_opt", &mut s.dns_opt)] {
        *into = distinct(f.take(key).map(|f| f.one_or_more()).transpose()?.unwrap_or_default());
    }
    s.read_only = flag(&mut f, "read_only")?;
    s.tty = flag(&mut f, "tty")?;
    s.stdin_open = flag(&mut f, "stdin_open")?;
    s.init = f.take("init").map(|f| f.boolean()).transpose()?;
    s.restart = f.take("restart").map(|f| health::restart(&f)).transpose()?.unwrap_or_default();
    s.healthcheck = f.take("healthcheck").map(|f| health::check(&f)).transpose()?;
    s.logging = f.take("logging").map(|f| links::logging(&f)).transpose()?;
    s.stop_grace_period = f.take("stop_grace_period").map(|f| f.duration()).transpose()?;
    s.host = host_asks(&mut f)?;
    f.finish()?;
    Ok(Read { service: s, profiles, optional })
}

fn text(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<String>, LoadError> {
    // An empty value, as an unset variable leaves it, counts as absent.
    Ok(fields.take(key).map(|f| f.text()).transpose()?.filter(|text| !text.is_empty()))
}

fn flag(fields: &mut Fields<'_>, key: &'static str) -> Result<bool, LoadError> {
    Ok(fields.take(key).map(|f| f.boolean()).transpose()?.unwrap_or(false))
}

fn list(fields: &mut Fields<'_>, key: &'static str) -> Result<Vec<String>, LoadError> {
    Ok(fields.take(key).map(|f| f.texts()).transpose()?.unwrap_or_default())
}

fn distinct(texts: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}

fn command(field: &Field<'_>) -> Result<Vec<String>, LoadError> {
    if matches!(field.node().value, Value::Scalar(_)) {
        let line = field.text()?;
        return words::split(&line)
            .ok_or_else(|| field.error("a quote or a backslash stays open in this command"));
    }
    field.texts()
}

fn capabilities(fields: &mut Fields<'_>, key: &'static str) -> Result<Vec<String>, LoadError> {
    let upper = |text: String| {
        let text = text.to_ascii_uppercase();
        text.strip_prefix("CAP_").map_or(text.clone(), str::to_owned)
    };
    Ok(distinct(list(fields, key)?.into_iter().map(upper).collect()))
}

fn depends_on(fields: &mut Fields<'_>, service: &mut Service) -> Result<BTreeSet<ServiceName>, LoadError> {
    let mut optional = BTreeSet::new();
    if let Some(field) = fields.take("depends_on") {
        for (name, (dependency, required)) in links::depends_on(&field)? {
            if !required {
                optional.insert(name.clone());
            }
            service.depends_on.insert(name, dependency);
        }
    }
    Ok(optional)
}

/// Limits have two spellings, and `deploy.resources` is the other one: both may stand there if they agree.
fn limits(f: &mut Fields<'_>, s: &mut Service) -> Result<(), LoadError> {
    s.mem_limit = f.take("mem_limit").map(|f| f.bytes()).transpose()?;
    s.mem_reservation = f.take("mem_reservation").map(|f| f.bytes()).transpose()?;
    s.nano_cpus = f.take("cpus").map(|f| f.cpus()).transpose()?;
    s.pids_limit = f.take("pids_limit").map(|f| f.whole()).transpose()?;
    s.shm_size = f.take("shm_size").map(|f| f.bytes()).transpose()?;
    s.ulimits = f.take("ulimits").map(|f| links::ulimits(&f)).transpose()?.unwrap_or_default();
    if let Some(field) = f.take("memswap_limit") {
        let bytes = if field.raw()? == "-1" { Some(-1) } else { i64::try_from(field.bytes()?).ok() };
        s.memswap_limit = Some(bytes.ok_or_else(|| field.error("this is too much"))?);
    }
    let Some(deploy) = f.take("deploy") else { return Ok(()) };
    let mut deploy = deploy.fields()?;
    if let Some(resources) = deploy.take("resources") {
        let mut resources = resources.fields()?;
        if let Some(limits) = resources.take("limits") {
            let mut limits = limits.fields()?;
            agree(&mut s.mem_limit, limits.take("memory"), "mem_limit", Field::bytes)?;
            agree(&mut s.nano_cpus, limits.take("cpus"), "cpus", Field::cpus)?;
            agree(&mut s.pids_limit, limits.take("pids"), "pids_limit", Field::whole)?;
            limits.finish()?;
        }
        if let Some(reservations) = resources.take("reservations") {
            let mut reservations = reservations.fields()?;
            agree(&mut s.mem_reservation, reservations.take("memory"), "mem_reservation", Field::bytes)?;
            reservations.finish()?;
        }
        resources.finish()?;
    }
    deploy.finish()
}

fn agree<'n, T: PartialEq + Copy>(
    known: &mut Option<T>,
    field: Option<Field<'n>>,
    other: &str,
    read: impl Fn(&Field<'n>) -> Result<T, LoadError>,
) -> Result<(), LoadError> {
    let Some(field) = field else { return Ok(()) };
    let value = read(&field)?;
    match known {
        Some(before) if *before != value => Err(field
            .error(format!("`{other}` of the same service says something else"))
            .advise(format!("change `{other}`, and leave `deploy` out"))),
        _ => {
            *known = Some(value);
            Ok(())
        }
    }
}

/// Read so that the rules can refuse them by name; what else these keys can say is not applied.
fn host_asks(f: &mut Fields<'_>) -> Result<HostAsks, LoadError> {
    let mut asks = HostAsks { privileged: flag(f, "privileged")?, ..HostAsks::default() };
    for (key, asked) in [
        ("network_mode", &mut asks.network),
        ("pid", &mut asks.processes),
        ("ipc", &mut asks.ipc),
        ("uts", &mut asks.uts),
        ("cgroup", &mut asks.cgroup),
    ] {
        let Some(field) = f.take(key) else { continue };
        match field.text()?.as_str() {
            "host" => *asked = true,
            "private" if key == "cgroup" || key == "ipc" => {}
            other => {
                let sentence = format!("`{}` is not applied by Worca", shown(other));
                return Err(field.error(sentence).advise("remove the key"));
            }
        }
    }
    if let Some(devices) = f.take("devices") {
        asks.devices = devices.texts()?;
    }
    Ok(asks)
}
