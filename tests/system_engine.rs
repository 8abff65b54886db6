//! The engine room against the real engine: plans are applied, repaired and taken away, strangers are left alone,
//! programs inside are run, fed and signalled. One suite for each engine that `WORCA_TEST_ENGINES` names.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "tests drive docker and the binary as a person would")]

mod support;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use support::{TestBox, eventually, required, run, run_with};
use worca::container::boxes::BoxFiles;
use worca::container::compose::load::{File, load};
use worca::container::compose::model::{Project, ProjectName};
use worca::container::compose::parse::{Context, Folders};
use worca::container::engine::exec::{Command, Input, Output};
use worca::container::engine::plan::{Plan, Step, Why};
use worca::container::engine::wanted::{Origin, Wanted};
use worca::container::engine::{Engine, Surroundings, discover, plan, wanted};
use worca::container::report::Silent;
use worca::container::verbs::login::{Person, login};
use worca::container::verbs::{GitIdentity, Host, Job};
use worca::failure::Explain;
use worca::home::Home;
use worca::secret::Secret;

/// How long a container may take to get ready here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A project of one test, taken away at the end by its label.
struct Rig {
    name: String,
    engine: Engine,
    folder: tempfile::TempDir,
}

impl Rig {
    async fn new() -> Self {
        let engines = required("WORCA_TEST_ENGINES");
        assert!(
            engines.split(',').any(|name| name == "docker"),
            "this suite needs docker in WORCA_TEST_ENGINES"
        );
        let found = discover(None, &Surroundings::of_process()).await;
        let engine = found
            .unwrap_or_else(|error| panic!("docker is to be tested and does not answer: {error}"))
            .engine;
        let folder = tempfile::Builder::new().prefix("worca-engine-").tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        Self { name, engine, folder }
    }

    /// What a compose text wants; `IMAGE` in it is the image of the tests, which only sleeps unless it is told more.
    async fn want(&self, text: &str) -> Wanted {
        let image = required("WORCA_TEST_IMAGE");
        let id = self.engine.image(&image).await.unwrap().expect("the image of the tests is there").id;
        let project = self.project(&text.replace("IMAGE", &image));
        wanted(&project, &Origin { images: BTreeMap::from([(image, id)]), ..Origin::default() }).unwrap()
    }

    fn project(&self, text: &str) -> Project {
        let context = Context {
            name: ProjectName::parse(&self.name).unwrap(),
            folders: Folders { project: self.folder.path().to_str().unwrap().into(), home: None },
            environment: BTreeMap::new(),
        };
        load(&[File { name: "compose.yaml", text }], &context).unwrap().project
    }

    async fn plan(&self, wanted: &Wanted) -> Plan {
        plan(wanted, &self.engine.look(&self.name).await.unwrap()).unwrap()
    }

    async fn up(&self, wanted: &Wanted) {
        let plan = self.plan(wanted).await;
        self.engine.apply(wanted, &plan, &Silent, PATIENCE).await.unwrap();
        self.engine.wait_all(wanted, &Silent, PATIENCE).await.unwrap();
    }

    fn container(&self, service: &str) -> String {
        format!("{}-{service}-1", self.name)
    }

    /// The id of a container, which changes when it is made anew.
    fn id(&self, service: &str) -> String {
        run("docker", ["inspect", "--format", "{{.Id}} {{.State.StartedAt}}", &self.container(service)]).ok()
    }

    /// What docker lists with this project's label, of `ps --all`, `network ls` or `volume ls`.
    fn listed(&self, list: &[&str]) -> Vec<String> {
        let label = format!("label=com.docker.compose.project={}", self.name);
        let out = run("docker", list.iter().copied().chain(["--quiet", "--filter", &label])).ok();
        out.lines().map(str::to_owned).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for (list, remove) in [
            (&["ps", "--all"][..], &["rm", "--force", "--volumes"][..]),
            (&["network", "ls"], &["network", "rm"]),
            (&["volume", "ls"], &["volume", "rm", "--force"]),
        ] {
            let found = self.listed(list);
            if !found.is_empty() {
                run("docker", remove.iter().map(|word| (*word).to_owned()).chain(found));
            }
        }
    }
}

/// Two services that sleep; the second waits for the first, and both stand on two networks.
const TWO: &str = "\
services:
  first:
    image: IMAGE
    entrypoint: [sleep, '1000']
    init: true
    networks: [work, out]
    healthcheck: { test: [CMD, 'true'], interval: 30s }
  second:
    image: IMAGE
    entrypoint: [sleep, '1000']
    init: true
    networks: [work, out]
    healthcheck: { disable: true }
    environment: { GREETING: hello }
    volumes: ['data:/data']
    depends_on: { first: { condition: service_healthy } }
networks:
  work: { internal: true }
  out: {}
volumes:
  data: {}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_applied_and_a_second_one_finds_nothing_to_do() {
    let rig = Rig::new().await;
    let wanted = rig.want(TWO).await;
    let started = std::time::Instant::now();
    rig.up(&wanted).await;
    // The engine tries a health check for the first time after its interval, which nobody has to wait for.
    assert!(started.elapsed() < Duration::from_secs(29), "{:?}", started.elapsed());
    assert_eq!(rig.plan(&wanted).await, Plan::default());
    let before = (rig.id("first"), rig.id("second"));
    rig.up(&wanted).await;
    assert_eq!((rig.id("first"), rig.id("second")), before);
    let networks = run(
        "docker",
        ["inspect", "--format", "{{json .NetworkSettings.Networks}}", &rig.container("second")],
    )
    .ok();
    assert!(
        networks.contains(&format!("{}_work", rig.name)) && networks.contains(&format!("{}_out", rig.name)),
        "{networks}"
    );
    let resolves = run("docker", ["exec", &rig.container("second"), "getent", "hosts", "first"]);
    assert_eq!(resolves.code, 0, "a service finds another by its name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_service_is_made_anew_and_the_other_one_is_not_touched() {
    let rig = Rig::new().await;
    rig.up(&rig.want(TWO).await).await;
    let before = (rig.id("first"), rig.id("second"));
    let changed = rig.want(&TWO.replace("hello", "welcome")).await;
    rig.up(&changed).await;
    assert_eq!(rig.id("first"), before.0);
    assert_ne!(rig.id("second"), before.1);
    assert_eq!(
        run("docker", ["exec", &rig.container("second"), "printenv", "GREETING"]).ok().trim(),
        "welcome"
    );
    // A service that nobody wants any more goes; its neighbour stays.
    let (head, rest) = TWO.split_once("  second:").unwrap();
    let (_, tail) = rest.split_once("networks:\n  work").unwrap();
    let one = rig.want(&format!("{head}networks:\n  work{tail}")).await;
    rig.up(&one).await;
    assert_eq!(rig.id("first"), before.0);
    assert_eq!(rig.listed(&["ps", "--all"]).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn c075_a_start_that_failed_half_way_is_repaired_by_the_next_one() {
    let rig = Rig::new().await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let text = TWO
        .replace("    environment: {", &format!("    ports: ['127.0.0.1:{port}:80']\n    environment: {{"));
    let wanted = rig.want(&text).await;
    let plan = rig.plan(&wanted).await;
    let error = rig.engine.apply(&wanted, &plan, &Silent, PATIENCE).await.unwrap_err();
    assert_eq!(error.code(), "port-taken");
    assert!(
        error.to_string().contains(&rig.container("second")) && error.to_string().contains(&port.to_string()),
        "{error}"
    );
    drop(holder);
    let repair = rig.plan(&wanted).await;
    let half = |step: &Step| matches!(step, Step::RemoveContainer { why: Why::HalfMade, name, .. } if *name == rig.container("second"));
    assert!(repair.steps.iter().any(half), "{repair:?}");
    rig.up(&wanted).await;
    assert_eq!(rig.plan(&wanted).await, Plan::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ends_is_named_with_its_last_lines() {
    let rig = Rig::new().await;
    let text = TWO.replace("[sleep, '1000']\n    init: true\n    networks: [work, out]\n    healthcheck: { disable", "[sh, -c, 'echo starting; echo boom >&2; exit 3']\n    networks: [work, out]\n    healthcheck: { disable");
    let wanted = rig.want(&text).await;
    let plan = rig.plan(&wanted).await;
    rig.engine.apply(&wanted, &plan, &Silent, PATIENCE).await.unwrap();
    // It has no health check, so for as long as it runs it counts as ready.
    eventually("the container has ended", || {
        let state =
            run("docker", ["inspect", "--format", "{{.State.Status}}", &rig.container("second")]).ok();
        if state.trim() == "exited" { Ok(()) } else { Err(state) }
    });
    let text = rig.engine.wait_all(&wanted, &Silent, PATIENCE).await.unwrap_err().to_string();
    assert!(text.contains(&format!("container `{}` ended with 3", rig.container("second"))), "{text}");
    assert!(text.contains("| starting") && text.contains("| boom"), "{text}");
    rig.up(&rig.want(TWO).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c023_down_takes_only_what_carries_both_labels_and_signals_no_process() {
    let rig = Rig::new().await;
    let stranger = Rig::new().await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = required("WORCA_TEST_IMAGE");
    // Another compose project's container and network, and one with only half of our labels.
    let label = format!("com.docker.compose.project={}", stranger.name);
    run("docker", ["network", "create", "--label", &label, &format!("{}_work", stranger.name)]).ok();
    let name = stranger.container("core");
    run(
        "docker",
        [
            "run",
            "--detach",
            "--init",
            "--name",
            &name,
            "--label",
            &label,
            "--label",
            &format!("io.worca.box={}", rig.name),
            "--entrypoint",
            "sleep",
            &image,
            "1000",
        ],
    )
    .ok();
    rig.up(&rig.want(TWO).await).await;
    let removed = rig.engine.take_down(&rig.name, true, &Silent).await.unwrap();
    assert_eq!(removed.len(), 5, "{removed:?}");
    assert!(
        rig.listed(&["ps", "--all"]).is_empty()
            && rig.listed(&["network", "ls"]).is_empty()
            && rig.listed(&["volume", "ls"]).is_empty()
    );
    assert_eq!(stranger.listed(&["ps", "--all"]).len(), 1);
    assert_eq!(stranger.listed(&["network", "ls"]).len(), 1);
    assert_eq!(run("docker", ["inspect", "--format", "{{.State.Running}}", &name]).ok().trim(), "true");
    std::net::TcpStream::connect(holder.local_addr().unwrap()).unwrap();
    assert!(
        rig.engine.take_down(&rig.name, true, &Silent).await.unwrap().is_empty(),
        "twice is the same as once"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn down_keeps_the_volumes() {
    let rig = Rig::new().await;
    let wanted = rig.want(TWO).await;
    rig.up(&wanted).await;
    run("docker", ["exec", "--user", "0", &rig.container("second"), "sh", "-c", "echo kept >/data/file"])
        .ok();
    rig.engine.take_down(&rig.name, false, &Silent).await.unwrap();
    assert_eq!(rig.listed(&["volume", "ls"]).len(), 1);
    rig.up(&wanted).await;
    assert_eq!(run("docker", ["exec", &rig.container("second"), "cat", "/data/file"]).ok().trim(), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn c071_odd_paths_are_mounted_with_the_right_content_inside() {
    let rig = Rig::new().await;
    let mut mounts = String::new();
    let mut paths = Vec::new();
    for name in ["a:b", "sp ace/ü", "quote'\"x", "ro:z", "dollar$HOME", "-v"] {
        let path = rig.folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("name"), name).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let quoted = path.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
        mounts.push_str(&format!("      - {{ type: bind, source: \"{quoted}\", target: \"{quoted}\" }}\n"));
        paths.push((path, name));
    }
    let text = format!(
        "services:\n  one:\n    image: IMAGE\n    entrypoint: [sleep, '1000']\n    init: true\n    healthcheck: {{ disable: true }}\n    volumes:\n{mounts}"
    );
    let wanted = rig.want(&text).await;
    rig.up(&wanted).await;
    for (path, name) in paths {
        let inside = run("docker", ["exec", &rig.container("one"), "cat", &format!("{path}/name")]).ok();
        assert_eq!(inside, name);
    }
    assert_eq!(rig.plan(&wanted).await, Plan::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn c074_forty_ups_and_downs_leave_no_network() {
    let rig = Rig::new().await;
    let wanted = rig.want("services:\n  one:\n    image: IMAGE\n    entrypoint: [sleep, '1000']\n    stop_signal: SIGKILL\n    healthcheck: { disable: true }\n    networks: [work]\nnetworks:\n  work: { internal: true }\n").await;
    for _ in 0..40 {
        let plan = rig.plan(&wanted).await;
        rig.engine.apply(&wanted, &plan, &Silent, PATIENCE).await.unwrap();
        assert_eq!(rig.listed(&["network", "ls"]).len(), 1);
        rig.engine.take_down(&rig.name, false, &Silent).await.unwrap();
    }
    assert!(rig.listed(&["network", "ls"]).is_empty() && rig.listed(&["ps", "--all"]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_inside_is_fed_heard_and_its_exit_code_comes_back() {
    let rig = Rig::new().await;
    rig.up(&rig.want(TWO).await).await;
    let inside = rig.container("first");
    let input = vec![b'x'; 3_000_000];
    let answer = rig
        .engine
        .ask(&inside, &["sh", "-c", "wc -c; echo bad >&2; exit 42"], &input, 1000, PATIENCE)
        .await
        .unwrap();
    assert_eq!(answer.code, 42);
    assert_eq!((answer.out.as_slice(), answer.err.as_slice()), (&b"3000000\n"[..], &b"bad\n"[..]));
    let much =
        rig.engine.ask(&inside, &["head", "-c", "5000000", "/dev/zero"], b"", 1000, PATIENCE).await.unwrap();
    assert_eq!(
        (much.code, much.out.len()),
        (0, 1000),
        "what is over the limit is let go, and the program goes on"
    );
    let gone = rig.engine.ask("no-such-container", &["true"], b"", 10, PATIENCE).await;
    assert!(gone.is_err_and(|error| error.is_missing()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_the_program_inside_and_its_children_and_nothing_else() {
    let rig = Rig::new().await;
    rig.up(&rig.want(TWO).await).await;
    let command = Command {
        container: rig.container("first"),
        argv: ["sh", "-c", "sleep 777 & echo ready; wait"].map(str::to_owned).to_vec(),
        ..Command::default()
    };
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let (mut out, mut far) = tokio::io::duplex(64);
    let mut err = tokio::io::sink();
    let work = rig.engine.exec(&command, receive, Output { out: &mut out, err: &mut err });
    let tell = async {
        let mut text = [0; 6];
        tokio::io::AsyncReadExt::read_exact(&mut far, &mut text).await.unwrap();
        send.send(Input::Signal("TERM")).await.unwrap();
    };
    let (code, ()) = tokio::join!(work, tell);
    assert_eq!(code.unwrap(), 143);
    eventually("the child has ended", || {
        let left = run("docker", ["exec", &rig.container("first"), "ps", "ax"]).ok();
        (!left.contains("sleep 777")).then_some(()).ok_or(left)
    });
    assert_eq!(
        run("docker", ["inspect", "--format", "{{.State.Running}}", &rig.container("first")]).ok().trim(),
        "true"
    );
}

#[test]
fn c075_a_taken_port_is_found_before_anything_is_made_and_says_who_has_it() {
    let test = TestBox::new();
    let holder = TcpListener::bind(("127.0.0.1", test.port)).unwrap();
    let said = test.container(&["up"]).refused(1);
    assert!(said.contains(&format!("port {} is taken by process", test.port)), "{said}");
    assert!(said.contains(&format!("(pid {})", std::process::id())) && said.contains("--port"), "{said}");
    let label = format!("label=com.docker.compose.project={}", test.name);
    for list in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
        assert_eq!(
            run("docker", list.iter().copied().chain(["--quiet", "--filter", &label])).ok(),
            "",
            "{list:?}"
        );
    }
    drop(holder);
    test.up();
}

#[test]
fn c077_an_image_that_is_nowhere_is_a_sentence_and_one_that_is_here_asks_no_registry() {
    let mut test = TestBox::new();
    let id = run("docker", ["image", "inspect", "--format", "{{.Id}}", &test.image]).ok();
    test.image = "registry.invalid/team/worca:1".into();
    let said = test.container(&["up"]).refused(1);
    assert!(said.contains("registry.invalid") && said.contains("scripts/image"), "{said}");
    // By its id there is no registry that could be asked.
    test.image = id.trim().to_owned();
    test.up();
}

#[test]
fn c067_no_secret_is_in_what_the_engine_shows_or_in_a_file_that_others_read() {
    let test = TestBox::new();
    test.up();
    test.container_with(
        &["login", "--api-key"],
        "sk-ant-api03-canary-0123456789012345678901234567890123456789\n",
    )
    .ok();
    let secrets = test.files().join("secrets");
    let mut words = vec!["canary-0123456789".to_owned()];
    for entry in std::fs::read_dir(&secrets).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(
            std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap()) & 0o777,
            0o600,
            "{path:?}"
        );
        words.push(std::fs::read_to_string(path).unwrap().trim().to_owned());
    }
    assert_eq!(words.len(), 4);
    let mut shown = test.container(&["config"]).ok();
    for service in ["core", "keys"] {
        shown.push_str(&test.inspect(service).to_string());
        shown.push_str(&run("docker", ["logs", &test.container_id(service)]).out);
    }
    for name in ["compose.yaml", "compose.projects.yaml", ".env", "state.yaml"] {
        shown.push_str(&std::fs::read_to_string(test.files().join(name)).unwrap());
    }
    for word in words {
        assert!(!shown.contains(&word), "`{word}` is shown");
    }
    assert!(shown.contains("core_token"), "the names of secrets are shown");
}

/// A stand-in for the token set-up, whose far end (a provider's sign-in) is not on this machine: it draws as the real
/// one does, reads a code, and gives a token for the right one.
const SET_UP: &str = r#"#!/bin/sh
[ "$1" = setup-token ] || exit 9
printf '\033[2GBrowser\033[10Gdid not open\r\n\r\nhttps://sign-in.example/authorize?size=%s\r\n\r\n\033[2GPaste\033[8Gcode\033[13Ghere\r\n' "$(stty size | tr ' ' x)"
stty -echo
read -r code
if [ "$code" = right ]; then printf '\r\nsk-ant-oat01-%s\r\n' "$(printf 'x%.0s' $(seq 95))"; else printf '\r\n\342\234\230 OAuth error: Invalid code\r\n'; fi
sleep 1000
"#;

/// The box of a test with that set-up in its image.
fn with_set_up() -> TestBox {
    let mut test = TestBox::new();
    let context = test.home.path().join("image");
    std::fs::create_dir_all(&context).unwrap();
    std::fs::write(context.join("claude"), SET_UP).unwrap();
    std::fs::set_permissions(context.join("claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    std::fs::write(
        context.join("Dockerfile"),
        format!("FROM {}\nCOPY claude /usr/local/bin/claude\n", test.image),
    )
    .unwrap();
    let tag = format!("{}:set-up", test.name);
    run("docker", ["build", "--quiet", "--tag", &tag, context.to_str().unwrap()]).ok();
    test.image = tag;
    test
}

/// Somebody who answers with a prepared code, and tells what was seen in between.
struct Prepared<'a> {
    code: Option<&'static str>,
    shown: Option<String>,
    meanwhile: &'a (dyn Fn() + Sync),
}

impl Person for Prepared<'_> {
    fn show_address(&mut self, url: &str) {
        self.shown = Some(url.to_owned());
    }
    async fn ask_code(&mut self) -> Option<Secret> {
        (self.meanwhile)();
        match self.code {
            Some(code) => Some(Secret::new(code.to_owned())),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c107_a_sign_in_saves_its_token_and_leaves_nothing_however_it_ends() {
    let test = with_set_up();
    test.up();
    let home = Home::at(test.home.path().join(".worca"));
    let host = Host::of_process(home.clone(), GitIdentity::default());
    let files = BoxFiles::open(&home, &test.name).unwrap();
    let job = Job { host: &host, files: files.clone(), engine: None, report: &Silent };
    let left = || {
        let label = format!("label=io.worca.box={}", test.name);
        let names = run("docker", ["ps", "--all", "--format", "{{.Names}}", "--filter", &label]).ok();
        assert_eq!(names.lines().filter(|name| name.ends_with("-login")).count(), 0, "{names}");
        assert!(!files.login_url().exists());
    };

    // While one waits, its container has no mount, its address is in a private file, and a second login is refused.
    let during = || {
        let found = run("docker", ["inspect", &format!("{}-login", test.name)]).ok();
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found[0]["Mounts"], serde_json::json!([]));
        assert_eq!(found[0]["HostConfig"]["ReadonlyRootfs"], true);
        assert_eq!(found[0]["HostConfig"]["CapDrop"], serde_json::json!(["ALL"]));
        let url = std::fs::read_to_string(files.login_url()).unwrap();
        assert_eq!(url, "https://sign-in.example/authorize?size=60x500\n");
        assert!(files.lock("login").is_err_and(|error| error.code() == "box-busy"));
    };
    let mut wrong = Prepared { code: Some("wrong"), shown: None, meanwhile: &during };
    let error = login(&job, "local", &mut wrong, std::future::pending()).await.unwrap_err();
    assert_eq!(error.sentence(), "Claude Code's token set-up says: OAuth error: Invalid code");
    left();

    let asked = tokio::sync::Notify::new();
    let interrupt = || asked.notify_one();
    let mut nobody = Prepared { code: None, shown: None, meanwhile: &interrupt };
    let error = login(&job, "local", &mut nobody, asked.notified()).await.unwrap_err();
    assert_eq!(error.code(), "login-given-up");
    left();

    let mut right = Prepared { code: Some("right"), shown: None, meanwhile: &|| {} };
    login(&job, "local", &mut right, std::future::pending()).await.unwrap();
    assert_eq!(right.shown.as_deref(), Some("https://sign-in.example/authorize?size=60x500"));
    left();
    let listed = test.container(&["login", "--list", "--json"]).ok();
    assert!(
        listed.contains("anthropic")
            && listed.contains("subscription")
            && !listed.contains("sk-ant-oat01-xxx"),
        "{listed}"
    );

    let piped = test.container_with(&["login"], "right\n").refused(2);
    assert!(piped.contains("needs a terminal") && piped.contains("--api-key"), "{piped}");
    test.container(&["down", "--volumes", "--yes"]).ok();
    run("docker", ["image", "rm", "--force", &test.image]).ok();
}

#[test]
fn down_works_by_labels_when_the_files_are_gone() {
    let test = TestBox::new();
    test.up();
    std::fs::remove_dir_all(test.files()).unwrap();
    test.container(&["down", "--volumes", "--yes"]).ok();
    let label = format!("label=com.docker.compose.project={}", test.name);
    for list in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
        assert_eq!(
            run("docker", list.iter().copied().chain(["--quiet", "--filter", &label])).ok(),
            "",
            "{list:?}"
        );
    }
}

#[test]
fn bad_input_to_the_group_is_a_sentence_with_a_hint_and_the_documented_exit_code() {
    let test = TestBox::new();
    let home = test.home.path().to_str().unwrap().to_owned();
    for (args, code, part) in [
        (&["up", "--project", "/"][..], 78, "whole file system"),
        (&["up", "--project", &home], 78, "home folder"),
        (&["up", "--project", "/no/such/folder"], 78, "does not exist"),
        (&["up", "--without-project", "/no/such/folder"], 2, "is not mounted"),
        (&["up", "--image", "$(x)"], 2, "not an image reference"),
        (&["up", "--port", "0"], 2, "--port"),
        (&["up", "--engine", "unix:///no/such.sock"], 1, "not there"),
        (&["up", "--engine", "ssh://host.invalid"], 2, "ssh"),
        (&["run", "--", "--project", ".", "--prompt", "x"], 1, "is not up"),
        (&["shell"], 1, "is not up"),
        (&["logs"], 1, "is not up"),
        (&["open", "--print"], 1, "is not up"),
        (&["login", "--list"], 1, "is not up"),
        (&["config"], 1, "is not up"),
        (&["down", "--volumes"], 2, "--yes"),
    ] {
        let said = test.container(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
        assert!(!said.err.contains("panicked"), "{args:?}: {}", said.err);
    }
    let said = run_with(test.worca().args(["container", "--name", "Not A Name", "status"]), "");
    assert!(said.refused(2).contains("no name for a box"));
    let project = test.project.to_str().unwrap().to_owned();
    test.up();
    let said = test.container(&["run", "--", "--project", &home, "--prompt", "x"]).refused(78);
    assert!(said.contains("worca container up") && said.contains(&project), "{said}");
}

#[test]
fn what_the_real_compose_brought_up_from_our_files_is_ours() {
    let test = TestBox::new();
    test.up();
    test.container(&["down"]).ok();
    let mut compose = std::process::Command::new(required("WORCA_TEST_COMPOSE"));
    compose.args(["up", "--detach", "--wait"]).current_dir(test.files()).env("HOME", test.home.path());
    run_with(&mut compose, "").ok();
    let status: serde_json::Value =
        serde_json::from_str(&test.container(&["status", "--json"]).ok()).unwrap();
    assert_eq!(status["state"], "up", "{status:#}");
    test.up();
    test.container(&["down", "--volumes", "--yes"]).ok();
    let label = format!("label=com.docker.compose.project={}", test.name);
    for list in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
        assert_eq!(
            run("docker", list.iter().copied().chain(["--quiet", "--filter", &label])).ok(),
            "",
            "{list:?}"
        );
    }
}
