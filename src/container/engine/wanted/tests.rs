use super::*;
use crate::container::compose::model::{Mount, ProjectName, Secret, SecretGrant, ServiceName};

fn project(service: Service) -> Project {
    Project {
        name: ProjectName::parse("worca").unwrap(),
        services: BTreeMap::from([(ServiceName::parse("core").unwrap(), service)]),
        networks: BTreeMap::new(),
        volumes: BTreeMap::new(),
        secrets: BTreeMap::from([("token".into(), Secret { file: "/home/ann/se:cret".into() })]),
    }
}

fn bind(path: &str) -> Mount {
    Mount::Bind {
        source: path.into(),
        target: path.into(),
        read_only: false,
        create_host_path: false,
        propagation: None,
        relabel: None,
    }
}

#[test]
fn c071_every_bind_is_a_structured_mount_and_no_path_is_split() {
    let paths = ["/tmp/a:b", "/tmp/sp ace/ü", "/tmp/quote'\"x", "/tmp/ro:/tmp/z"];
    let service = Service {
        mounts: paths.iter().map(|path| bind(path)).collect(),
        secrets: vec![SecretGrant { source: "token".into(), target: "/run/secrets/token".into() }],
        ..Service::default()
    };
    let wanted = wanted(&project(service), &Origin::default()).unwrap();
    let host = wanted.containers[0].body.host_config.clone().unwrap();
    assert_eq!(host.binds, None);
    let mounts = host.mounts.unwrap();
    let pairs: Vec<(String, String)> =
        mounts.into_iter().map(|m| (m.source.unwrap(), m.target.unwrap())).collect();
    let mut expected: Vec<(String, String)> =
        paths.iter().map(|p| ((*p).to_owned(), (*p).to_owned())).collect();
    expected.push(("/home/ann/se:cret".into(), "/run/secrets/token".into()));
    assert_eq!(pairs, expected);
}

#[test]
fn c071_a_path_with_a_line_break_is_refused_with_the_path_quoted() {
    let error = wanted(
        &project(Service { mounts: vec![bind("/tmp/two\nlines")], ..Service::default() }),
        &Origin::default(),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "service `core` mounts the path \"/tmp/two\\nlines\", which holds a line break"
    );
}

#[test]
fn a_container_carries_composes_labels_and_ours() {
    let origin = Origin {
        working_dir: "/home/ann/.worca/container".into(),
        config_files: vec!["/a/compose.yaml".into(), "/a/compose.override.yaml".into()],
        ..Origin::default()
    };
    let wanted = wanted(&project(Service::default()), &origin).unwrap();
    let one = &wanted.containers[0];
    let given = one.body.labels.clone().unwrap();
    for (key, value) in [
        (labels::BOX, "worca"),
        (labels::PROJECT, "worca"),
        (labels::SERVICE, "core"),
        (labels::NUMBER, "1"),
        (labels::ONE_OFF, "False"),
        (labels::CONFIG_HASH, one.hash.as_str()),
        (labels::CONFIG_FILES, "/a/compose.yaml,/a/compose.override.yaml"),
        (labels::WORKING_DIR, "/home/ann/.worca/container"),
    ] {
        assert_eq!(given.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(labels::are_ours(&given, "worca") && !labels::are_ours(&given, "other"));
}

#[test]
fn c067_a_changed_secret_changes_the_digest_and_its_value_is_nowhere() {
    let service = Service {
        secrets: vec![SecretGrant { source: "token".into(), target: "/run/secrets/token".into() }],
        ..Service::default()
    };
    let with = |stamp: &str| {
        let origin =
            Origin { stamps: BTreeMap::from([("token".into(), stamp.to_owned())]), ..Origin::default() };
        wanted(&project(service.clone()), &origin).unwrap().containers.remove(0)
    };
    let (a, b) = (with("1-2-3"), with("1-2-4"));
    assert_ne!(a.hash, b.hash);
    assert!(!serde_json::to_string(&a.body).unwrap().contains("1-2-3"));
}

#[test]
fn the_digest_does_not_depend_on_the_order_of_keys() {
    let one: Value = serde_json::from_str(r#"{"a": [1, {"x": 1, "y": 2}], "b": "\""}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b": "\"", "a": [1, {"y": 2, "x": 1}]}"#).unwrap();
    assert_eq!(digest(&one), digest(&other));
    let third: Value = serde_json::from_str(r#"{"b": "\"", "a": [{"y": 2, "x": 1}, 1]}"#).unwrap();
    assert_ne!(digest(&one), digest(&third));
}
