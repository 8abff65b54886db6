use super::super::model::{Mount, Port, Protocol};
use super::super::testing::{alone, refusal, sealed, with_override};

#[test]
fn the_written_files_are_a_sealed_box() {
    let project = sealed("").unwrap().into_project();
    insta::assert_json_snapshot!(project);
    let order: Vec<&str> = project.start_order().iter().map(|name| name.as_str()).collect();
    assert_eq!(order, ["keys", "core"]);
}

#[test]
fn the_overlay_counts_once_although_it_is_extended_and_merged() {
    let project = with_override("").unwrap().project;
    let binds =
        project.services["core"].mounts.iter().filter(|mount| matches!(mount, Mount::Bind { .. })).count();
    assert_eq!(binds, 1);
}

#[test]
fn a_person_adds_a_database_that_core_waits_for() {
    let project = sealed(
        "services:\n  core:\n    depends_on:\n      db: {condition: service_healthy}\n    environment:\n      DATABASE_URL: postgres://db/x\n  db:\n    image: postgres:16\n    environment: [POSTGRES_PASSWORD=x]\n    networks: [work]\n    volumes: [db:/var/lib/postgresql/data]\n    healthcheck:\n      test: pg_isready -U postgres\n      interval: 1s\nvolumes:\n  db:\n",
    )
    .unwrap()
    .into_project();
    insta::assert_json_snapshot!(project.services["db"]);
    assert!(project.services["core"].depends_on.contains_key("db"));
    assert!(project.services["core"].depends_on.contains_key("keys"));
    assert_eq!(project.volumes["db"].name, "worca_db");
}

#[test]
fn a_person_tunes_core() {
    let project = sealed(
        "services:\n  core:\n    environment:\n      - RUST_LOG=debug\n    volumes: ['/srv/cache:/cache:ro']\n    ports: ['127.0.0.1:8080:8080']\n    extra_hosts: ['db.test:10.0.0.5', 'host.docker.internal:host-gateway']\n    labels: {team: payments}\n    mem_limit: 8g\n",
    )
    .unwrap()
    .into_project();
    let core = &project.services["core"];
    assert_eq!(core.environment["RUST_LOG"].as_deref(), Some("debug"));
    assert_eq!(core.environment["WORCA_HOME"].as_deref(), Some("/worca"));
    assert_eq!(core.mem_limit, Some(8 << 30));
    assert_eq!(core.labels["team"], "payments");
    assert_eq!(core.extra_hosts["host.docker.internal"], ["host-gateway"]);
    let published: Vec<_> =
        core.ports.iter().map(|Port { published, protocol, .. }| (*published, *protocol)).collect();
    assert_eq!(published, [(Some(4317), Protocol::Tcp), (Some(8080), Protocol::Tcp)]);
    assert!(
        core.mounts
            .iter()
            .any(|m| matches!(m, Mount::Bind { source, read_only: true, .. } if source == "/srv/cache"))
    );
}

#[test]
fn a_key_that_is_not_applied_is_named_with_file_line_and_path() {
    for (text, message) in [
        (
            "services:\n  core:\n    image: x\n    enviroment:\n      A: b\n",
            "compose.override.yaml:4: `services.core.enviroment` is not applied by Worca\nhint: did you mean `environment`?",
        ),
        (
            "services:\n  db:\n    build: .\n",
            "compose.override.yaml:3: `services.db.build` is not applied by Worca\nhint: build the image first and name it with `image`",
        ),
        (
            "service:\n  db: {image: x}\n",
            "compose.override.yaml:1: `service` is not applied by Worca\nhint: did you mean `services`?",
        ),
        (
            "services:\n  core:\n    env_file: .env.dev\n",
            "compose.override.yaml:3: `services.core.env_file` is not applied by Worca\nhint: name the variables under `environment`; `.env` beside the files gives them values",
        ),
        (
            "services:\n  core:\n    healthcheck:\n      start_interval: 1s\n",
            "compose.override.yaml:4: `services.core.healthcheck.start_interval` is not applied by Worca\nhint: engines before 25 refuse it; use a shorter `interval`",
        ),
        (
            "services:\n  core:\n    volumes:\n      - {type: bind, source: /srv, target: /srv, readonly: true}\n",
            "compose.override.yaml:4: `services.core.volumes.readonly` is not applied by Worca\nhint: did you mean `read_only`?",
        ),
    ] {
        assert_eq!(refusal(text), message);
    }
}

#[test]
fn extends_that_go_in_a_circle_end() {
    let text = "services:\n  a: {extends: b, image: x}\n  b: {extends: a, image: x}\n";
    assert!(alone(text).unwrap_err().to_string().contains("circle"));
    let text = "services:\n  a: {extends: {file: other.yaml, service: a}, image: x}\n";
    assert!(alone(text).unwrap_err().to_string().contains("`other.yaml`, which is not one of"));
}

#[test]
fn one_file_alone_is_enough() {
    let project = alone("services:\n  web:\n    image: nginx\n").unwrap().project;
    assert_eq!(project.networks["default"].name, "worca_default");
}
