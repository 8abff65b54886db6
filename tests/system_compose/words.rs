//! One service of ours and one of the real Compose's in the same words, so that the two can be compared key by key.

use serde_json::{Map, Value, json};
use worca::container::compose::model::{Condition, HealthTest, Mount, Protocol, Relabel, Restart, Service};

/// One service of ours in the words of `docker compose config --format json`.
pub(super) fn ours(service: &Service) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        let empty = match &value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !empty {
            out.insert(key.to_owned(), value);
        }
    };
    put("image", json!(service.image));
    put("command", json!(service.command));
    put("entrypoint", json!(service.entrypoint));
    put("user", json!(service.user));
    put("working_dir", json!(service.working_dir));
    put("hostname", json!(service.hostname));
    put("environment", json!(service.environment));
    put("labels", json!(service.labels));
    put("read_only", json!(service.read_only));
    put("tty", json!(service.tty));
    put("stdin_open", json!(service.stdin_open));
    put("init", json!(service.init));
    put("cap_add", sorted(&service.cap_add));
    put("cap_drop", sorted(&service.cap_drop));
    put("security_opt", sorted(&service.security_opt));
    put("group_add", sorted(&service.group_add));
    put("dns", sorted(&service.dns));
    put("dns_search", sorted(&service.dns_search));
    put("platform", json!(service.platform));
    put("stop_signal", json!(service.stop_signal));
    put("mem_limit", json!(service.mem_limit.map(|n| n.to_string())));
    put("memswap_limit", json!(service.memswap_limit.map(|n| n.to_string())));
    put("mem_reservation", json!(service.mem_reservation.map(|n| n.to_string())));
    put("shm_size", json!(service.shm_size.map(|n| n.to_string())));
    put("pids_limit", json!(service.pids_limit));
    put("cpus", json!(service.nano_cpus.map(|n| n as f64 / 1e9)));
    put("stop_grace_period", json!(service.stop_grace_period));
    put("sysctls", json!(service.sysctls));
    put(
        "restart",
        match service.restart {
            Restart::No => Value::Null,
            Restart::Always => json!("always"),
            Restart::UnlessStopped => json!("unless-stopped"),
            Restart::OnFailure(None) => json!("on-failure"),
            Restart::OnFailure(Some(count)) => json!(format!("on-failure:{count}")),
        },
    );
    let hosts: Vec<String> = service
        .extra_hosts
        .iter()
        .flat_map(|(host, addresses)| addresses.iter().map(move |address| format!("{host}={address}")))
        .collect();
    put("extra_hosts", sorted(&hosts));
    let tmpfs: Vec<String> = service
        .tmpfs
        .iter()
        .map(|(path, options)| if options.is_empty() { path.clone() } else { format!("{path}:{options}") })
        .collect();
    put("tmpfs", sorted(&tmpfs));
    put(
        "expose",
        sorted(
            &service.expose.iter().map(|port| port.trim_end_matches("/tcp").to_owned()).collect::<Vec<_>>(),
        ),
    );
    let ulimits: Map<String, Value> = service
        .ulimits
        .iter()
        .map(|(name, limit)| (name.clone(), json!({ "soft": limit.soft, "hard": limit.hard })))
        .collect();
    put("ulimits", Value::Object(ulimits));
    let networks: Map<String, Value> = service
        .networks
        .iter()
        .map(|(name, link)| {
            let mut map = Map::new();
            if !link.aliases.is_empty() {
                map.insert("aliases".into(), json!(link.aliases));
            }
            if let Some(address) = &link.ipv4_address {
                map.insert("ipv4_address".into(), json!(address));
            }
            (name.clone(), if map.is_empty() { Value::Null } else { Value::Object(map) })
        })
        .collect();
    put("networks", Value::Object(networks));
    let depends: Map<String, Value> = service
        .depends_on
        .iter()
        .map(|(name, dependency)| {
            let condition = match dependency.condition {
                Condition::Started => "service_started",
                Condition::Healthy => "service_healthy",
                Condition::Completed => "service_completed_successfully",
            };
            (name.to_string(), json!({ "condition": condition, "restart": dependency.restart }))
        })
        .collect();
    put("depends_on", Value::Object(depends));
    put("healthcheck", health(service));
    put(
        "secrets",
        json!(by(
            &service
                .secrets
                .iter()
                .map(|s| json!({ "source": s.source, "target": s.target }))
                .collect::<Vec<_>>(),
            "target"
        )),
    );
    put("volumes", json!(by(&service.mounts.iter().map(mount).collect::<Vec<_>>(), "target")));
    let ports: Vec<Value> = service
        .ports
        .iter()
        .map(|port| {
            json!({
                "host_ip": port.host_ip.map(|ip| ip.to_string()),
                "published": port.published.map(|port| port.to_string()),
                "target": port.target,
                "protocol": match port.protocol { Protocol::Tcp => "tcp", Protocol::Udp => "udp" },
            })
        })
        .collect();
    put("ports", json!(by(&ports, "published")));
    put(
        "logging",
        match &service.logging {
            None => Value::Null,
            Some(logging) => json!({ "driver": logging.driver, "options": logging.options }),
        },
    );
    Value::Object(out)
}

fn health(service: &Service) -> Value {
    let Some(check) = &service.healthcheck else { return Value::Null };
    let test = match &check.test {
        HealthTest::FromImage => Value::Null,
        HealthTest::Disabled => json!(["NONE"]),
        HealthTest::Command(words) => json!([&["CMD".to_owned()], words.as_slice()].concat()),
        HealthTest::Shell(line) => json!(["CMD-SHELL", line]),
    };
    json!({
        "test": test, "interval": check.interval, "timeout": check.timeout,
        "start_period": check.start_period, "retries": check.retries,
    })
}

fn mount(mount: &Mount) -> Value {
    match mount {
        Mount::Bind { source, target, read_only, create_host_path, propagation, relabel } => json!({
            "type": "bind", "source": source, "target": target, "read_only": read_only,
            "create_host_path": create_host_path, "propagation": propagation,
            "selinux": relabel.map(|r| match r { Relabel::Shared => "z", Relabel::Private => "Z" }),
        }),
        Mount::Volume { source, target, read_only, no_copy } => json!({
            "type": "volume", "source": source, "target": target, "read_only": read_only, "nocopy": no_copy,
        }),
        Mount::Tmpfs { target, size, mode, read_only } => json!({
            "type": "tmpfs", "target": target, "read_only": read_only,
            "size": size.map(|n| n.to_string()), "mode": mode,
        }),
    }
}

fn sorted(texts: &[String]) -> Value {
    let mut texts = texts.to_vec();
    texts.sort();
    json!(texts)
}

fn by(values: &[Value], key: &str) -> Vec<Value> {
    let mut values = values.to_vec();
    values.sort_by_key(|value| format!("{} {value}", value[key]));
    values
}

/// The real Compose's service in the same words.
pub(super) fn theirs(service: &Value) -> Value {
    let mut map = undoubled(service).as_object().unwrap().clone();
    map.retain(|_, value| !value.is_null());
    for key in [
        "cap_add",
        "cap_drop",
        "security_opt",
        "group_add",
        "dns",
        "dns_search",
        "extra_hosts",
        "tmpfs",
        "expose",
    ] {
        if let Some(list) = map.get_mut(key) {
            let texts: Vec<String> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                .collect();
            *list = sorted(&texts);
        }
    }
    for key in ["ulimits"] {
        if let Some(Value::Object(all)) = map.get_mut(key) {
            for limit in all.values_mut() {
                if limit.is_number() {
                    *limit = json!({ "soft": limit, "hard": limit });
                }
            }
        }
    }
    if let Some(Value::Object(all)) = map.get_mut("depends_on") {
        for dependency in all.values_mut() {
            *dependency = json!({ "condition": dependency["condition"], "restart": dependency["restart"] == json!(true) });
        }
    }
    map.retain(|key, value| !(key == "restart" && *value == json!("no")));
    if let Some(deploy) = map.remove("deploy") {
        let limits = &deploy["resources"]["limits"];
        for (theirs, key) in [("memory", "mem_limit"), ("cpus", "cpus"), ("pids", "pids_limit")] {
            if !limits[theirs].is_null() {
                map.insert(key.to_owned(), limits[theirs].clone());
            }
        }
    }
    if let Some(period) = map.get_mut("stop_grace_period") {
        *period = nanoseconds(period);
    }
    if let Some(cpus) = map.get_mut("cpus") {
        *cpus = json!(cpus.as_f64().unwrap());
    }
    if let Some(check) = map.get_mut("healthcheck") {
        let mut test = check["test"].clone();
        if check["disable"] == json!(true) {
            test = json!(["NONE"]);
        }
        *check = json!({
            "test": test, "interval": nanoseconds(&check["interval"]), "timeout": nanoseconds(&check["timeout"]),
            "start_period": nanoseconds(&check["start_period"]), "retries": check["retries"],
        });
    }
    if let Some(Value::Array(volumes)) = map.get_mut("volumes") {
        let read: Vec<Value> = volumes
            .iter()
            .map(|v| {
                let read_only = v["read_only"] == json!(true);
                match v["type"].as_str().unwrap() {
                    "bind" => json!({
                        "type": "bind", "source": v["source"], "target": v["target"], "read_only": read_only,
                        "create_host_path": v["bind"]["create_host_path"] == json!(true),
                        "propagation": v["bind"]["propagation"], "selinux": v["bind"]["selinux"],
                    }),
                    "volume" => json!({
                        "type": "volume", "source": v["source"], "target": v["target"], "read_only": read_only,
                        "nocopy": v["volume"]["nocopy"] == json!(true),
                    }),
                    _ => json!({
                        "type": "tmpfs", "target": v["target"], "read_only": read_only,
                        "size": v["tmpfs"]["size"], "mode": v["tmpfs"]["mode"],
                    }),
                }
            })
            .collect();
        *volumes = by(&read, "target");
    }
    if let Some(Value::Array(ports)) = map.get_mut("ports") {
        let read: Vec<Value> = ports
            .iter()
            .map(|p| {
                json!({
                    "host_ip": p["host_ip"], "published": p["published"], "target": p["target"],
                    "protocol": p["protocol"],
                })
            })
            .collect();
        *ports = by(&read, "published");
    }
    if let Some(Value::Array(secrets)) = map.get_mut("secrets") {
        let read: Vec<Value> = secrets
            .iter()
            .map(|s| {
                let target = s["target"].as_str().or(s["source"].as_str()).unwrap();
                let target = if target.starts_with('/') {
                    target.to_owned()
                } else {
                    format!("/run/secrets/{target}")
                };
                json!({ "source": s["source"], "target": target })
            })
            .collect();
        *secrets = by(&read, "target");
    }
    if let Some(logging) = map.get_mut("logging") {
        let options = if logging["options"].is_null() { json!({}) } else { logging["options"].clone() };
        *logging = json!({ "driver": logging["driver"], "options": options });
    }
    map.retain(|_, value| {
        !(value.is_null() || *value == json!(false) || *value == json!([]) || *value == json!({}))
    });
    Value::Object(map)
}

fn undoubled(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace("$$", "$")),
        Value::Array(items) => items.iter().map(undoubled).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), undoubled(v))).collect()),
        other => other.clone(),
    }
}

/// A Go duration (`1m0.5s`) in nanoseconds.
fn nanoseconds(value: &Value) -> Value {
    let Some(text) = value.as_str() else { return Value::Null };
    let (mut total, mut number, mut unit) = (0.0, String::new(), String::new());
    let flush = |number: &mut String, unit: &mut String, total: &mut f64| {
        let factor = match unit.as_str() {
            "h" => 3600e9,
            "m" => 60e9,
            "s" => 1e9,
            "ms" => 1e6,
            "µs" => 1e3,
            _ => 1.0,
        };
        *total += number.parse::<f64>().unwrap() * factor;
        number.clear();
        unit.clear();
    };
    for c in text.chars() {
        if c.is_ascii_digit() || c == '.' {
            if !unit.is_empty() {
                flush(&mut number, &mut unit, &mut total);
            }
            number.push(c);
        } else {
            unit.push(c);
        }
    }
    flush(&mut number, &mut unit, &mut total);
    json!(total as u64)
}
