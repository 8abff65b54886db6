use proptest::prelude::*;

use super::super::model::{
    HealthTest, Mount, Port, Protocol, Relabel, Restart, Service, ServiceName, Ulimit,
};
use super::super::testing::alone;
use super::*;

/// A service `a` with these lines.
fn service(lines: &str) -> Service {
    match alone(&format!("services:\n  a:\n    image: x\n{}", indented(lines))) {
        Ok(mut loaded) => loaded.project.services.remove("a").unwrap(),
        Err(error) => panic!("{error}\n{lines}"),
    }
}

fn refused(lines: &str) -> String {
    alone(&format!("services:\n  a:\n    image: x\n{}", indented(lines))).expect_err(lines).to_string()
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}

fn port(host_ip: Option<&str>, published: Option<u16>, target: u16, protocol: Protocol) -> Port {
    Port { host_ip: host_ip.map(|ip| ip.parse().unwrap()), published, target, protocol }
}

#[test]
fn sizes_are_by_1024_and_have_units() {
    for (text, value) in [
        ("0", Some(0)),
        ("1024", Some(1024)),
        ("1b", Some(1)),
        ("64m", Some(64 << 20)),
        ("64M", Some(64 << 20)),
        ("1.5g", Some(3 << 29)),
        ("2 GiB", Some(2 << 30)),
        ("1tb", Some(1 << 40)),
        ("", None),
        ("m", None),
        ("-1", None),
        ("1x", None),
        ("1e3", None),
        ("1.2.3", None),
        ("99999999999p", None),
        ("inf", None),
    ] {
        assert_eq!(scalars::bytes(text), value, "{text}");
    }
}

#[test]
fn durations_need_units() {
    for (text, value) in [
        ("0", Some(0)),
        ("5s", Some(5_000_000_000)),
        ("1m30s", Some(90_000_000_000)),
        ("1.5s", Some(1_500_000_000)),
        ("200ms", Some(200_000_000)),
        ("1h", Some(3_600_000_000_000)),
        ("5", None),
        ("", None),
        ("s", None),
        ("-5s", None),
        ("5 s", None),
        ("5y", None),
        ("99999999h", None),
    ] {
        assert_eq!(scalars::duration(text), value, "{text}");
    }
    assert_eq!(scalars::cpus("1.5"), Some(1_500_000_000));
    assert_eq!(scalars::cpus("-1"), None);
    assert_eq!(scalars::cpus("NaN"), None);
}

#[test]
fn a_command_line_is_split_into_words() {
    for (line, words) in [
        ("a b  c", Some(vec!["a", "b", "c"])),
        ("a 'b c' \"d e\"", Some(vec!["a", "b c", "d e"])),
        ("a\\ b ''", Some(vec!["a b", ""])),
        ("x\"y\"'z'", Some(vec!["xyz"])),
        ("\"a\\\"b\"", Some(vec!["a\"b"])),
        ("", Some(vec![])),
        ("a 'b", None),
        ("a \"b", None),
        ("a\\", None),
    ] {
        assert_eq!(words::split(line), words.map(|w| w.into_iter().map(str::to_owned).collect()), "{line}");
    }
}

#[test]
fn ports_in_every_form() {
    use Protocol::{Tcp, Udp};
    for (text, expected) in [
        ("80", vec![port(None, None, 80, Tcp)]),
        ("'80/udp'", vec![port(None, None, 80, Udp)]),
        ("'8080:80'", vec![port(None, Some(8080), 80, Tcp)]),
        ("'127.0.0.1:4317:4317/tcp'", vec![port(Some("127.0.0.1"), Some(4317), 4317, Tcp)]),
        ("'127.0.0.1::80'", vec![port(Some("127.0.0.1"), None, 80, Tcp)]),
        ("'[::1]:8080:80'", vec![port(Some("::1"), Some(8080), 80, Tcp)]),
        ("'1-2:3-4'", vec![port(None, Some(1), 3, Tcp), port(None, Some(2), 4, Tcp)]),
        ("{target: 80, published: 8080, host_ip: '::1'}", vec![port(Some("::1"), Some(8080), 80, Tcp)]),
    ] {
        assert_eq!(service(&format!("ports: [{text}]")).ports, expected, "{text}");
    }
    for text in [
        "x",
        "'65536'",
        "'1:2:3'",
        "'localhost:1:2'",
        "'1-3:1-2'",
        "'1-9999:1-9999'",
        "'80/sctp'",
        "'2-1'",
        "{published: 1}",
    ] {
        assert!(
            refused(&format!("ports: [{text}]")).starts_with("compose.yaml:4: `services.a.ports`"),
            "{text}"
        );
    }
}

#[test]
fn short_mounts_split_as_compose_splits_them() {
    let mounts = |text: &str| service(&format!("volumes: ['{text}']")).mounts;
    let bind = |source: &str, target: &str, read_only| Mount::Bind {
        source: source.to_owned(),
        target: target.to_owned(),
        read_only,
        create_host_path: true,
        propagation: None,
        relabel: None,
    };
    assert_eq!(mounts("/a b/ü:/x"), [bind("/a b/ü", "/x", false)]);
    assert_eq!(mounts("./rel:/x:ro"), [bind("/home/ann/.worca/container/rel", "/x", true)]);
    assert_eq!(mounts("../../up:/x"), [bind("/home/ann/up", "/x", false)]);
    assert_eq!(mounts("~/there:/x"), [bind("/home/ann/there", "/x", false)]);
    assert_eq!(mounts(r"C:\Users\Ann Lee:/x:ro"), [bind(r"C:\Users\Ann Lee", "/x", true)]);
    assert_eq!(mounts("c:/y:/x"), [bind("c:/y", "/x", false)]);
    let anonymous = Mount::Volume { source: None, target: "/only".into(), read_only: false, no_copy: false };
    assert_eq!(mounts("/only"), [anonymous]);
    let relabelled = &mounts("/a:/x:ro,z,rslave")[0];
    assert!(
        matches!(relabelled, Mount::Bind { relabel: Some(Relabel::Shared), propagation: Some(p), .. } if p == "rslave")
    );
    for text in
        ["/tmp/a:b:/tmp/a:b", "a::b", ":/x", "/a:/b:bogus", "/a:relative", "~ann/x:/x", "/a:/b:nocopy"]
    {
        let message = refused(&format!("volumes: ['{text}']"));
        assert!(message.starts_with("compose.yaml:4: `services.a.volumes`"), "{text}: {message}");
    }
}

#[test]
fn a_target_is_mounted_once_and_the_later_one_counts() {
    let mounts = service("volumes: ['/a:/x', '/b:/y', '/c:/x/']").mounts;
    let targets: Vec<&str> = mounts.iter().map(Mount::target).collect();
    assert_eq!(targets, ["/x", "/y"]);
    assert!(matches!(&mounts[0], Mount::Bind { source, .. } if source == "/c"));
    assert!(refused("volumes: ['/a:/x']\ntmpfs: /x").contains("`/x` is mounted by `volumes` and by `tmpfs`"));
}

#[test]
fn long_mounts_carry_what_the_short_form_cannot() {
    let mounts = service("volumes:\n  - {type: bind, source: '/tmp/a:b', target: '/tmp/a:b', read_only: true}\n  - {type: tmpfs, target: /t, tmpfs: {size: 1m, mode: 0o1777}}").mounts;
    assert!(
        matches!(&mounts[0], Mount::Bind { source, target, read_only: true, .. } if source == "/tmp/a:b" && target == source)
    );
    assert!(matches!(mounts[1], Mount::Tmpfs { size: Some(1_048_576), mode: Some(0o1777), .. }));
    for text in [
        "{type: bind, target: /x}",
        "{source: /a, target: /x}",
        "{type: npipe, source: a, target: /x}",
        "{type: tmpfs, source: a, target: /x}",
        "{type: bind, source: /a, target: x}",
        "{type: tmpfs, target: /x, tmpfs: {mode: 99999}}",
    ] {
        refused(&format!("volumes: [{text}]"));
    }
}

#[test]
fn health_checks_and_restarts() {
    let check = |text: &str| service(&format!("healthcheck: {text}")).healthcheck.unwrap();
    assert_eq!(check("{test: curl -f x}").test, HealthTest::Shell("curl -f x".into()));
    assert_eq!(check("{test: [CMD, a, b]}").test, HealthTest::Command(vec!["a".into(), "b".into()]));
    assert_eq!(check("{test: [NONE]}").test, HealthTest::Disabled);
    assert_eq!(check("{disable: true}").test, HealthTest::Disabled);
    assert_eq!(check("{interval: 5s}").test, HealthTest::FromImage);
    for text in [
        "{test: [a, b]}",
        "{test: [CMD]}",
        "{test: [CMD-SHELL, a, b]}",
        "{interval: 5}",
        "{retries: -1}",
        "{test: x, disable: true}",
    ] {
        refused(&format!("healthcheck: {text}"));
    }
    assert_eq!(service("restart: on-failure:3").restart, Restart::OnFailure(Some(3)));
    assert_eq!(service("restart: 'no'").restart, Restart::No);
    assert_eq!(service("restart: no").restart, Restart::No);
    assert!(refused("restart: sometimes").contains("`sometimes` is no restart policy"));
}

#[test]
fn values_of_a_wrong_kind_are_refused_with_their_path() {
    for (lines, message) in [
        ("read_only: maybe", "compose.yaml:4: `services.a.read_only`: this takes `true` or `false`"),
        ("mem_limit: lots", "compose.yaml:4: `services.a.mem_limit`: this takes a size"),
        (
            "environment: {A: {b: c}}",
            "compose.yaml:4: `services.a.environment.A`: this takes text, not a mapping",
        ),
        (
            "environment: {A: 0x1f}",
            "compose.yaml:4: `0x1f` without quotes is a number, and Compose would rewrite it",
        ),
        ("environment: [=x]", "compose.yaml:4: `services.a.environment`: `` is no name of a variable"),
        ("command: {a: b}", "compose.yaml:4: `services.a.command`: this takes a list, not a mapping"),
        ("labels: [[a]]", "compose.yaml:4: `services.a.labels`: this takes text, not a list"),
        (
            "labels: {com.docker.compose.project: x}",
            "compose.yaml:4: `services.a.labels`: the label `com.docker.compose.project` is Worca's to set",
        ),
        (
            "network_mode: bridge",
            "compose.yaml:4: `services.a.network_mode`: `bridge` is not applied by Worca",
        ),
        ("deploy: {replicas: 2}", "compose.yaml:4: `services.a.deploy.replicas` is not applied by Worca"),
        (
            "mem_limit: 1g\ndeploy: {resources: {limits: {memory: 2g}}}",
            "compose.yaml:5: `services.a.deploy.resources.limits.memory`: `mem_limit` of the same service says something else",
        ),
    ] {
        assert_eq!(refused(lines), message);
    }
}

#[test]
fn names_that_lead_nowhere_are_refused() {
    for (text, part) in [
        ("services:\n  a: {image: x, networks: [n]}\n", "names the network `n`, and there is none"),
        ("services:\n  a: {image: x, volumes: ['vol:/v']}\n", "names the volume `vol`, and there is none"),
        ("services:\n  a: {image: x, secrets: [s]}\n", "names the secret `s`, and there is none"),
        ("services:\n  a: {image: x, depends_on: [b]}\n", "names the service `b`, and there is none"),
        (
            "services:\n  a: {image: x, depends_on: [b]}\n  b: {image: x, profiles: [p]}\n",
            "its profile is not active",
        ),
        (
            "services:\n  a: {image: x, depends_on: [b]}\n  b: {image: x, depends_on: [a]}\n",
            "wait for each other in a circle",
        ),
        ("services:\n  a: {}\n", "`services.a`: `image` is missing"),
        ("services:\n  'a b': {image: x}\n", "`a b` is no name for a service"),
        (
            "name: other\nservices:\n  a: {image: x}\n",
            "the project is `worca` here, and this names it `other`",
        ),
        ("services: {}\n", "there is no service"),
        (
            "secrets:\n  s: {environment: X}\nservices:\n  a: {image: x, secrets: [s]}\n",
            "this secret has no `file`",
        ),
    ] {
        let error = alone(text).unwrap_err().to_string();
        assert!(error.contains(part) && error.starts_with("compose.yaml:"), "{error}");
    }
}

#[test]
fn a_dependency_that_need_not_exist_is_left_out() {
    let text = "services:\n  a: {image: x, depends_on: {b: {condition: service_healthy, required: false}}}\n";
    assert!(alone(text).unwrap().project.services["a"].depends_on.is_empty());
}

#[test]
fn what_no_service_uses_is_not_made() {
    let text =
        "services:\n  a: {image: x, networks: [n]}\nnetworks: {n: {}, unused: {}}\nvolumes: {unused: {}}\n";
    let project = alone(text).unwrap().project;
    assert_eq!(project.networks.keys().collect::<Vec<_>>(), ["n"]);
    assert!(project.volumes.is_empty());
}

#[test]
fn a_variable_without_a_value_comes_from_the_environment() {
    let environment = service("environment: [SET, NOPE]").environment;
    assert_eq!(environment["SET"].as_deref(), Some("set"));
    assert_eq!(environment["NOPE"], None);
}

#[test]
fn other_keys_are_read() {
    let a = service(
        "ulimits: {nofile: 10, nproc: {soft: 1, hard: 2}}\ndns: 1.1.1.1\nexpose: [80, '81/udp']\nmemswap_limit: -1\nstop_grace_period: 1m\ncap_drop: [cap_net_raw, NET_RAW]\ntmpfs: /t:size=1m",
    );
    assert_eq!(a.ulimits["nproc"], Ulimit { soft: 1, hard: 2 });
    assert_eq!(
        (a.dns, a.expose),
        (vec!["1.1.1.1".to_owned()], vec!["80/tcp".to_owned(), "81/udp".to_owned()])
    );
    assert_eq!((a.memswap_limit, a.stop_grace_period), (Some(-1), Some(60_000_000_000)));
    assert_eq!(a.cap_drop, ["NET_RAW"]);
    assert_eq!(a.tmpfs["/t"], "size=1m");
}

#[test]
fn near_misses_are_suggested() {
    let known = ["environment", "ports", "image", "dns"];
    let hint = |key: &str| suggest::hint(&format!("services.a.{key}"), key, &known);
    assert_eq!(hint("enviroment").as_deref(), Some("did you mean `environment`?"));
    assert_eq!(hint("port").as_deref(), Some("did you mean `ports`?"));
    assert_eq!(hint("imgae").as_deref(), Some("did you mean `image`?"));
    assert_eq!(hint("x"), None);
    assert_eq!(hint("zzz"), None);
    assert_eq!(hint(&"e".repeat(10_000)), None);
}

#[test]
fn paths_have_one_spelling() {
    for (path, normal) in [
        ("/a/./b//c/../d/", "/a/b/d"),
        ("/", "/"),
        ("/..", "/"),
        (r"C:\a\..\b/c", r"C:\b\c"),
        (r"C:\", r"C:\"),
        (r"\\server\share\..\x", r"\\server\x"),
    ] {
        assert_eq!(normal_path(path), normal, "{path}");
    }
}

#[test]
fn the_start_order_puts_each_after_what_it_needs() {
    let text =
        "services:\n  a: {image: x, depends_on: [c]}\n  b: {image: x}\n  c: {image: x, depends_on: [b]}\n";
    let project = alone(text).unwrap().project;
    assert_eq!(
        project.start_order().into_iter().map(ServiceName::as_str).collect::<Vec<_>>(),
        ["b", "c", "a"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_value_at_any_key_panics(
        key in prop::sample::select(vec![
            "image", "command", "entrypoint", "environment", "labels", "networks", "volumes", "tmpfs", "ports", "expose", "secrets",
            "cap_add", "security_opt", "pids_limit", "mem_limit", "memswap_limit", "cpus", "restart", "healthcheck", "depends_on",
            "extra_hosts", "ulimits", "sysctls", "deploy", "logging", "stop_grace_period", "extends", "network_mode", "profiles", "x-y",
        ]),
        value in prop::sample::select(vec![
            "", "~", "x", "-1", "0", "1.5", "true", "''", "[]", "{}", "[x]", "[[x]]", "{x: y}", "{x: }", "{x: [y]}", "[{x: y}]", "é:é:é", "'1:2:3'",
            "[':']", "['/:/:/']", "{target: 1}", "[{target: /x, type: bind}]", "{test: []}", "{file: x, service: y}", "!reset []", "!override [x]",
            "999999999999999999999", "1e999", ".inf", "2024-01-01", "[~]", "{a: {b: {c: d}}}", "{nofile: {soft: 1}}", "host", "[1-99999]", "'[::1'", "$X",
        ]),
        over in prop::sample::select(vec!["", "[x]", "{x: y}", "x", "!reset []", "!override {a: b}", "~"]),
    ) {
        use super::super::load::{File, load};
        let first = format!("services:\n  a:\n    image: x\n    {key}: {value}\n");
        let first = if key == "image" { first.replacen("    image: x\n", "", 1) } else { first };
        let second = format!("services:\n  a:\n    {key}: {over}\n");
        let files = [File { name: "a", text: &first }, File { name: "b", text: &second }];
        let _ = load(&files, &super::super::testing::context());
    }
}
