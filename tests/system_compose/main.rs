//! Our reading of Compose files against the real Compose: what both accept, both must understand in the same way.
//!
//! `WORCA_TEST_COMPOSE` names the Compose program (version 2.26 or newer). Without it these tests fail; they never skip.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![expect(clippy::disallowed_methods, reason = "the real Compose is a program of its own")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use worca::container::compose::dotenv;
use worca::container::compose::load::{File, load};
use worca::container::compose::model::{Mount, Project, ProjectName};
use worca::container::compose::parse::{Context, Folders};
use worca::container::compose::write;

mod cases;
mod words;

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
        let (left, right) = (words::ours(service), words::theirs(&their_services[name.as_str()]));
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

/// Two tests, so that they run beside each other: each case starts the real Compose.
#[test]
fn both_read_an_override_in_the_same_way_first_half() {
    assert_overrides_agree(cases::AGREED.split_at(cases::AGREED.len() / 2).0);
}

#[test]
fn both_read_an_override_in_the_same_way_second_half() {
    assert_overrides_agree(cases::AGREED.split_at(cases::AGREED.len() / 2).1);
}

fn assert_overrides_agree(overrides: &[&str]) {
    assert_agreement(overrides.iter().copied(), |folder, text| {
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
    assert_both_refuse(cases::REFUSED_BY_BOTH.iter().copied(), |folder, text| {
        written(folder, &[]);
        std::fs::write(folder.join("compose.override.yaml"), text).unwrap();
    });
}

#[test]
fn both_read_a_dotenv_file_in_the_same_way() {
    assert_agreement(cases::DOTENV.iter().copied(), |folder, text| {
        let values = ["${V-unset}", "${W-unset}"];
        std::fs::write(folder.join("compose.yaml"), with_values(&values)).unwrap();
        std::fs::write(folder.join(".env"), text).unwrap();
    });
}

#[test]
fn both_interpolate_in_the_same_way() {
    let all = with_values(cases::TEMPLATES);
    assert_agreement([all.as_str()], |folder, text| {
        std::fs::write(folder.join("compose.yaml"), text).unwrap();
    });
    assert_both_refuse(cases::BAD_TEMPLATES.iter().copied(), |folder, template| {
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
