//! Our reading of Compose files against the real Compose: what both accept, both must understand in the same way.
//!
//! `WORCA_TEST_COMPOSE` names the Compose program (version 2.26 or newer). Without it these tests fail; they never skip.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![expect(clippy::disallowed_methods, reason = "the real Compose is a program of its own")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use worca::container::compose::dotenv;
use worca::container::compose::load::{File, load};
use worca::container::compose::model::{
    Condition, HealthTest, Mount, Project, ProjectName, Protocol, Relabel, Restart, Service,
};
use worca::container::compose::parse::{Context, Folders};
use worca::container::compose::write;

mod overrides;

fn compose_program() -> String {
    std::env::var("WORCA_TEST_COMPOSE").expect(
        "WORCA_TEST_COMPOSE must name the real Compose program (scripts/test sets it), and it is not set",
    )
}

/// What the real Compose makes of the files in a folder, or its complaint.
fn real(folder: &Path) -> Result<Value, String> {
    let output = Command::new(compose_program())
        .args(["config", "--format", "json"])
        .current_dir(folder)
        .env_clear()
        .env("HOME", "/home/ann")
        .env("SET", "set")
        .env("EMPTY", "")
        .output()
        .expect("the program named by WORCA_TEST_COMPOSE starts");
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).expect("Compose prints JSON"))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// What we make of the same.
fn ours(folder: &Path) -> Result<Project, String> {
    let texts: Vec<(&str, String)> = ["compose.yaml", "compose.projects.yaml", "compose.override.yaml"]
        .into_iter()
        .filter_map(|name| std::fs::read_to_string(folder.join(name)).ok().map(|text| (name, text)))
        .collect();
    let files: Vec<File<'_>> = texts.iter().map(|(name, text)| File { name, text }).collect();
    let mut environment: BTreeMap<String, String> = [("HOME", "/home/ann"), ("SET", "set"), ("EMPTY", "")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let env = std::fs::read_to_string(folder.join(".env")).unwrap_or_default();
    let set = dotenv::parse(".env", &env, &environment).map_err(|error| error.to_string())?;
    environment.extend(set);
    let context = Context {
        name: ProjectName::parse("worca").unwrap(),
        folders: Folders { project: folder.to_str().unwrap().to_owned(), home: Some("/home/ann".to_owned()) },
        environment,
    };
    load(&files, &context).map(|loaded| loaded.project).map_err(|error| error.to_string())
}

fn written(folder: &Path, projects: &[&str]) {
    let name = ProjectName::parse("worca").unwrap();
    let mounts: Vec<_> = projects.iter().map(|path| write::ProjectMount::new(path).unwrap()).collect();
    let initial = write::Initial {
        image: "worca:test".to_owned(),
        port: 4317,
        user: 1000,
        group: 1000,
        git_name: "Zoë \"Z\" O'Neil $HOME \\ #1".to_owned(),
        git_email: "zoe@example.test".to_owned(),
        memory: "4g".to_owned(),
        cpus: 2,
        processes: 2048,
    };
    std::fs::write(folder.join("compose.yaml"), write::compose(&name)).unwrap();
    std::fs::write(folder.join("compose.projects.yaml"), write::projects(&mounts)).unwrap();
    std::fs::write(folder.join(".env"), write::env(&initial)).unwrap();
}

/// One service of ours in the words of `docker compose config --format json`.
fn in_compose_words(service: &Service) -> Value {
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
fn normalised(service: &Value) -> Value {
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

/// Where the two read a folder differently: its services, networks and volumes.
fn differences(folder: &Path) -> Vec<String> {
    let theirs = match real(folder) {
        Ok(theirs) => theirs,
        Err(error) => return vec![format!("the real Compose refuses this: {error}")],
    };
    let ours = match ours(folder) {
        Ok(ours) => ours,
        Err(error) => return vec![format!("we refuse this: {error}")],
    };
    let mut found = Vec::new();
    let mut compare = |what: String, ours: &Value, theirs: &Value| {
        if ours != theirs {
            found.push(format!("{what}\n    ours:   {ours}\n    theirs: {theirs}"));
        }
    };
    let names: Vec<String> = ours.services.keys().map(ToString::to_string).collect();
    let their_services = theirs["services"].as_object().unwrap();
    let mut their_names: Vec<String> = their_services.keys().cloned().collect();
    their_names.sort();
    compare("services".to_owned(), &json!(names), &json!(their_names));
    for (name, service) in ours.services.iter().filter(|(name, _)| their_services.contains_key(name.as_str()))
    {
        let (left, right) = (in_compose_words(service), normalised(&their_services[name.as_str()]));
        let keys: BTreeSet<&String> =
            left.as_object().unwrap().keys().chain(right.as_object().unwrap().keys()).collect();
        for key in keys {
            compare(format!("`{key}` of `{name}`"), &left[key], &right[key]);
        }
    }
    for (key, network) in &ours.networks {
        let their = &theirs["networks"][key];
        let facts = json!([network.name, network.internal, network.labels]);
        let their_labels = if their["labels"].is_null() { json!({}) } else { their["labels"].clone() };
        compare(
            format!("network `{key}`"),
            &facts,
            &json!([their["name"], their["internal"] == json!(true), their_labels]),
        );
    }
    for (key, volume) in &ours.volumes {
        compare(format!("volume `{key}`"), &json!(volume.name), &theirs["volumes"][key]["name"]);
    }
    found
}

fn assert_agreement<'t>(cases: impl IntoIterator<Item = &'t str>, write: impl Fn(&Path, &str)) {
    let mut report = String::new();
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), case);
        for difference in differences(folder.path()) {
            report.push_str(&format!("--- {case}\n  {difference}\n"));
        }
    }
    assert!(report.is_empty(), "ours and the real Compose differ:\n{report}");
}

#[test]
fn compose_accepts_the_written_files_and_agrees() {
    assert_agreement(["the written files"], |folder, _| written(folder, &[]));
}

#[test]
fn c071_compose_mounts_odd_paths_at_themselves() {
    let odd = [
        "/tmp/a:b",
        "/tmp/sp ace/ü",
        "/tmp/quote'\"x",
        "/tmp/$HOME/${SET}/$$",
        "/tmp/back\\slash",
        "/tmp/#hash: [x]",
        "/tmp/tab\tbell\u{7}",
        "/tmp/\u{2028}\u{a0}\u{85}",
        "/tmp/日本/🦀",
    ];
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &odd);
    assert_eq!(differences(folder.path()), Vec::<String>::new());
    let project = ours(folder.path()).unwrap();
    let core = &project.services["core"];
    let mounted: Vec<&str> = core
        .mounts
        .iter()
        .filter_map(|mount| match mount {
            Mount::Bind { source, target, .. } if source == target => Some(source.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(mounted, odd);
    let listed: Vec<String> =
        serde_json::from_str(core.environment["WORCA_PROJECTS"].as_deref().unwrap()).unwrap();
    assert_eq!(listed, odd);
}

#[test]
fn both_read_an_override_in_the_same_way() {
    assert_agreement(overrides::AGREED.iter().copied(), |folder, text| {
        written(folder, &["/home/ann/dev/api"]);
        std::fs::write(folder.join("compose.override.yaml"), text).unwrap();
    });
}

fn assert_both_refuse<'t>(cases: impl IntoIterator<Item = &'t str>, write: impl Fn(&Path, &str)) {
    let mut report = String::new();
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), case);
        if real(folder.path()).is_ok() {
            report.push_str(&format!("--- the real Compose accepts:\n{case}\n"));
        }
        if ours(folder.path()).is_ok() {
            report.push_str(&format!("--- we accept:\n{case}\n"));
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn what_compose_refuses_is_refused_here_too() {
    assert_both_refuse(overrides::REFUSED_BY_BOTH.iter().copied(), |folder, text| {
        written(folder, &[]);
        std::fs::write(folder.join("compose.override.yaml"), text).unwrap();
    });
}

#[test]
fn both_read_a_dotenv_file_in_the_same_way() {
    assert_agreement(overrides::DOTENV.iter().copied(), |folder, text| {
        let values = ["${V-unset}", "${W-unset}"];
        std::fs::write(folder.join("compose.yaml"), with_values(&values)).unwrap();
        std::fs::write(folder.join(".env"), text).unwrap();
    });
}

#[test]
fn both_interpolate_in_the_same_way() {
    let all = with_values(overrides::TEMPLATES);
    assert_agreement([all.as_str()], |folder, text| {
        std::fs::write(folder.join("compose.yaml"), text).unwrap()
    });
    assert_both_refuse(overrides::BAD_TEMPLATES.iter().copied(), |folder, template| {
        std::fs::write(folder.join("compose.yaml"), with_values(&[template])).unwrap();
    });
}

/// A service with the variables `V0`, `V1`, … set to these values.
fn with_values(values: &[&str]) -> String {
    let mut text = "name: worca\nservices:\n  a:\n    image: x\n    environment:\n".to_owned();
    for (index, value) in values.iter().enumerate() {
        text.push_str(&format!("      V{index}: {}\n", serde_json::to_string(value).unwrap()));
    }
    text
}
