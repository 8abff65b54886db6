use super::super::testing::{grounds, sealed, with_override};
use super::*;

fn broken(text: &str) -> BrokenPromise {
    match sealed(text) {
        Err(broken) => broken,
        Ok(_) => panic!("this is sealed:\n{text}"),
    }
}

fn core(lines: &str) -> String {
    format!("services:\n  core:\n    {lines}\n")
}

fn keys(lines: &str) -> String {
    format!("services:\n  keys:\n    {lines}\n")
}

fn other(lines: &str) -> String {
    format!("services:\n  db:\n    image: postgres\n    {lines}\n")
}

#[test]
fn every_promise_that_an_override_would_break_is_refused_by_name() {
    use Promise::*;
    for (promise, text) in [
        (NoPrivileges, core("privileged: true")),
        (NoPrivileges, other("privileged: true")),
        (NoPrivileges, other("devices: ['/dev/kmsg:/dev/kmsg']")),
        (OwnNamespaces, other("network_mode: host")),
        (OwnNamespaces, core("pid: host")),
        (OwnNamespaces, core("ipc: host")),
        (OwnNamespaces, core("uts: host")),
        (OwnNamespaces, core("cgroup: host")),
        (OwnNamespaces, other("userns_mode: host")),
        (NoCapabilities, core("cap_add: [NET_RAW]")),
        (NoCapabilities, keys("cap_add: [chown]")),
        (NoCapabilities, other("cap_add: [SYS_ADMIN]")),
        (NoCapabilities, other("cap_add: [ALL]")),
        (NoCapabilities, core("cap_drop: !reset []")),
        (NoCapabilities, keys("cap_drop: !override [NET_RAW]")),
        (NoNewPrivileges, core("security_opt: !reset []")),
        (NoNewPrivileges, core("security_opt: !override ['no-new-privileges:false']")),
        (NoNewPrivileges, core("security_opt: ['no-new-privileges=false']")),
        (NoNewPrivileges, core("security_opt: ['seccomp:unconfined']")),
        (NoNewPrivileges, core("security_opt: ['seccomp:/tmp/open.json']")),
        (NoNewPrivileges, other("security_opt: ['apparmor=unconfined']")),
        (ReadOnlyRoot, core("read_only: false")),
        (ReadOnlyRoot, keys("read_only: !reset null")),
        (Limits, core("mem_limit: 0")),
        (Limits, core("mem_limit: !reset null")),
        (Limits, core("pids_limit: -1")),
        (Limits, keys("cpus: 0")),
        (KeysUnpublished, keys("ports: ['127.0.0.1:4318:4318']")),
        (LoopbackOnly, core("ports: ['8080:80']")),
        (LoopbackOnly, core("ports: ['0.0.0.0:8080:80']")),
        (LoopbackOnly, core("ports: ['[::]:8080:80']")),
        (LoopbackOnly, core("ports: !override ['4317:4317']")),
        (KeysApart, core("secrets: [vault_key]")),
        (KeysApart, other("secrets: [control]")),
        (KeysApart, other("secrets: [core_token]")),
        (KeysApart, other("secrets: [mine]\nsecrets: {mine: {file: ./secrets/vault_key}}")),
        (KeysApart, core("volumes: ['vault:/vault']")),
        (KeysApart, other("volumes: ['mine:/x']\nvolumes: {mine: {name: worca_vault}}")),
        (KeysApart, keys("volumes: ['/srv/x:/x']")),
        (KeysApart, keys("volumes: ['/srv/x:/etc/worca/keys:ro']")),
        (NoHome, keys("volumes: ['./keys:/etc/worca/keys']")),
        (NoHome, keys("volumes: ['./keys:/x:ro']")),
        (NoHome, keys("volumes: ['./keys/more:/etc/worca/keys:ro']")),
        (NoHome, keys("volumes: ['./secrets:/etc/worca/keys:ro']")),
        (NoHome, core("volumes: ['./keys:/etc/worca/keys:ro']")),
        (NoHome, other("volumes: ['./keys:/x:ro']")),
        (NoModelKey, core("environment: {ANTHROPIC_API_KEY: x}")),
        (NoModelKey, other("environment: {ANY: sk-ant-api03-x}")),
        (NoModelKey, core("environment: [CLAUDE_CODE_OAUTH_TOKEN]")),
        (WorkInternal, "networks: {work: {internal: false}}\n".to_owned()),
        (Complete, "services: {keys: !reset null, core: {depends_on: !reset null}}\n".to_owned()),
    ] {
        let broken = broken(&text);
        assert_eq!(broken.promise, promise, "{broken}\n{text}");
        assert!(broken.hint().is_some());
    }
}

#[test]
fn a_broken_promise_names_the_place_the_service_and_the_rule() {
    let broken = broken(&core("cap_add: [SYS_PTRACE]"));
    assert_eq!(
        broken.to_string(),
        "compose.override.yaml:3: `core` asks for the capability `SYS_PTRACE` (rule `box.no-capabilities`)"
    );
    assert_eq!(broken.code(), "box.no-capabilities");
    assert_eq!(broken.exit(), Exit::Refused);
}

#[test]
fn an_engine_socket_is_refused_wherever_it_hides() {
    for path in [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/var/run/../run/docker.sock",
        "/run/./docker.sock",
        "/run",
        "/var/run",
        "/run/user/1000",
        "/run/user/1000/podman/podman.sock",
        "/run/podman",
        "/run/containerd/containerd.sock",
        "/srv/proxy/docker.sock",
        "/srv/engine/e.sock",
        "/srv/engine",
        "/home/ann/.colima/default",
        "/home/ann/.colima/default/docker.sock",
        "~/.docker/run/docker.sock",
        "~/.docker/run",
        "~/.colima",
        "~/.config/colima/work",
        "~/.orbstack",
    ] {
        for service in ["core", "db"] {
            let image = if service == "db" { "image: x, " } else { "" };
            let text = format!("services:\n  {service}: {{{image}volumes: ['{path}:/mounted']}}\n");
            assert_eq!(broken(&text).promise, Promise::NoEngineSocket, "{path}");
        }
    }
    for text in [
        other("volumes: [{type: bind, source: '\\\\.\\pipe\\docker_engine', target: /x}]"),
        other("volumes: ['/srv/renamed:/var/run/docker.sock']"),
        other("secrets: [sock]\nsecrets: {sock: {file: /var/run/docker.sock}}"),
    ] {
        assert_eq!(broken(&text).promise, Promise::NoEngineSocket, "{text}");
    }
}

#[test]
fn the_home_folder_and_the_boxs_own_files_are_refused() {
    for path in [
        "/",
        "/home",
        "/home/ann",
        "/home/ann/",
        "/home/ann/dev/..",
        "~",
        "/home/ann/.worca",
        ".",
        "./secrets",
        "/home/ann/.worca/container/secrets/core_token",
    ] {
        let text = other(&format!("volumes: ['{path}:/mounted']"));
        assert_eq!(broken(&text).promise, Promise::NoHome, "{path}");
    }
    let bound = other(
        "volumes: ['mine:/x']\nvolumes: {mine: {driver: local, driver_opts: {type: none, o: bind, device: /}}}",
    );
    assert_eq!(broken(&bound).promise, Promise::NoHome);
}

#[test]
fn what_a_person_may_change_stays_allowed() {
    for text in [
        core(
            "volumes: ['/home/ann/dev:/home/ann/dev', '/home/annette:/x', '/srv/runner:/y', '/home/ann/dev/docker.sock.md:/z']",
        ),
        core("ports: ['127.0.0.1:8080:80', '[::1]:8080:80', '127.5.5.5::90']"),
        core("mem_limit: 16g\n    cpus: 8\n    pids_limit: 9999"),
        core("cap_drop: [ALL]"),
        core("userns_mode: keep-id"),
        core("environment: {OPENAI_BASE_URL: http://x, NOTE: my sk-ant- note}"),
        keys("mem_limit: 128m"),
        other(
            "ports: ['5432:5432']\n    cap_add: [NET_BIND_SERVICE]\n    security_opt: ['no-new-privileges:true', 'label:type:x']",
        ),
        other("volumes: ['./seed:/seed:ro', 'mine:/var']\nvolumes: {mine: {}}"),
        other("environment: {POSTGRES_PASSWORD: x}\n    user: root"),
    ] {
        if let Err(broken) = sealed(&text) {
            panic!("{broken}\n{text}");
        }
    }
}

#[test]
fn a_sealed_project_asks_nothing_of_the_host() {
    let sealed = seal(&with_override("").unwrap(), &grounds()).unwrap();
    assert!(sealed.services.values().all(|service| service.host.is_default()));
}

#[test]
fn windows_paths_are_told_apart_without_case() {
    assert!(Paths::contains(r"C:\Users", r"c:\users\Ann\dev"));
    assert!(Paths::contains(r"C:\", r"c:\users"));
    assert!(!Paths::contains(r"C:\Users\An", r"C:\Users\Ann"));
    assert!(!Paths::contains("/home/an", "/home/ann"));
    assert!(Paths::contains("/home/ann", "/home/ann"));
    assert!(names_engine_socket(r"\\.\pipe\docker_engine", &[]));
}

#[test]
fn a_link_cannot_hide_what_it_leads_to() {
    let resolve = |path: &str| match path {
        "/srv/innocent" => Some("/run/docker.sock".to_owned()),
        "/srv/house" => Some("/home/ann".to_owned()),
        "/srv/key" => Some(format!("{}/secrets/vault_key", super::super::testing::FOLDER)),
        _ => None,
    };
    for (text, promise) in [
        (other("volumes: ['/srv/innocent:/x']"), Some(Promise::NoEngineSocket)),
        (other("volumes: ['/srv/house:/x']"), Some(Promise::NoHome)),
        (other("secrets: [mine]\nsecrets: {mine: {file: /srv/key}}"), Some(Promise::KeysApart)),
        (other("volumes: ['/srv/plain:/x']"), None),
    ] {
        let result = seal_resolved(&with_override(&text).unwrap(), &grounds(), resolve);
        assert_eq!(result.err().map(|broken| broken.promise), promise, "{text}");
    }
}
