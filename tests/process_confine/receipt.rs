//! What is tried before an agent starts, and that it does not start where something gets through.

use std::net::TcpListener;

use serde_json::json;
use worca::failure::Explain as _;
use worca::guardrails::{Access, HookTrial, KERNEL_RULES_VERSION, Outcome, Probe};
use worca::spawn::{self, SpawnError, SpawnRequest};

use crate::spawned::{self, finish, output};
use crate::stage::Stage;

const STARTED: &str = "open('started', 'w').write('x')";

/// The error, and that the program was never executed.
async fn refused(stage: &Stage, request: SpawnRequest) -> SpawnError {
    let error = spawn::start(request).await.err().expect("it is refused");
    assert!(!stage.at("worca/runs/r1/tree/started").exists(), "the agent was executed: {error}");
    stage.place.all_gone().await;
    error
}

#[tokio::test]
async fn what_is_forbidden_is_tried_in_the_agents_own_domain_and_the_receipt_tells_each() {
    let stage = Stage::new();
    let (closed, open) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let mut rules = stage.rules();
    rules.connect = Some(vec![port(&open)]);
    rules.probes = vec![
        Probe::Read(stage.at("secret/key")),
        Probe::Read(stage.at("secret/none")),
        Probe::Write(stage.at("repository/.git/config")),
        Probe::Create(stage.at("repository/.git/hooks")),
        Probe::Create(stage.at("none")),
        Probe::List(stage.at("worca/runs/r2")),
        Probe::Signal(std::process::id()),
        Probe::Connect(port(&closed)),
    ];
    let mut agent = spawn::start(stage.request(STARTED, rules.clone(), json!({}))).await.unwrap();
    let receipt = agent.receipt().clone();
    assert!(finish(&mut agent).await.is_success());
    assert!(stage.at("worca/runs/r1/tree/started").exists());
    assert!(receipt.probes.iter().map(|tried| &tried.probe).eq(&rules.probes));
    let outcomes: Vec<Outcome> = receipt.probes.iter().map(|tried| tried.outcome).collect();
    use Outcome::{Absent, Held};
    // A closed folder does not say what is in it.
    assert_eq!(outcomes[..1], [Held]);
    assert_eq!(outcomes[1..], [Absent, Held, Held, Absent, Held, Held, Held]);
    assert_eq!(receipt.hook, None);
    assert_eq!(receipt.kernel, spawn::kernel_support());
    stage.is_untouched();
}

#[tokio::test]
async fn one_probe_that_gets_through_and_the_agent_is_never_executed() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (probe, words) in [
        (
            Probe::Read(stage.at("read/readonly")),
            format!("reading `{}`", stage.at("read/readonly").display()),
        ),
        (Probe::Write(stage.at("half/beside")), format!("writing `{}`", stage.at("half/beside").display())),
        (Probe::Create(stage.at("home")), format!("making a file in `{}`", stage.at("home").display())),
        (Probe::List(stage.at("read")), format!("listing `{}`", stage.at("read").display())),
        (Probe::Connect(port), format!("connecting to port {port}")),
    ] {
        for required in [true, false] {
            let mut rules = stage.rules();
            rules.required = required;
            rules.probes = vec![Probe::Read(stage.at("secret/key")), probe.clone()];
            let error = refused(&stage, stage.request(STARTED, rules, json!({}))).await;
            assert_eq!(
                error.to_string(),
                format!("the limits do not hold: tried from the agent's place, this worked: {words}")
            );
            assert_eq!(error.code(), "limits-open");
        }
    }
    // Trying has left nothing.
    assert_eq!(std::fs::read_dir(stage.at("home")).unwrap().count(), 0);
    assert_eq!(std::fs::read_to_string(stage.at("half/beside")).unwrap(), "x");
}

#[tokio::test]
async fn a_probe_of_a_pipe_or_a_device_neither_waits_nor_opens_it() {
    let stage = Stage::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.at("read/pipe"), rustix::fs::Mode::RWXU).unwrap();
    let mut rules = stage.rules();
    rules.probes = vec![Probe::Read(stage.at("read/pipe")), Probe::Write("/dev/null".into())];
    let mut agent = spawn::start(stage.request(STARTED, rules, json!({}))).await.unwrap();
    assert!(agent.receipt().probes.iter().all(|tried| tried.outcome == Outcome::Absent));
    assert!(finish(&mut agent).await.is_success());
}

const DENIAL: &str = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;

#[tokio::test]
async fn c035_a_hook_that_does_not_deny_is_found_out_before_the_start() {
    let stage = Stage::new();
    for (command, why) in [
        ("true", "its answer was no denial"),
        ("/no/such/hook pre-tool-use", "it ended with exit code 127"),
        ("exit 2", "it ended with exit code 2"),
        ("echo allow", "its answer was no denial"),
        ("kill -9 $$", "it was ended by a signal"),
        // One that the agent's own domain does not let run.
        (&format!("{} ", stage.at("secret/program").display()), "it ended with exit code 126"),
    ] {
        let mut request = stage.request(STARTED, stage.rules(), json!({}));
        request.trial = Some(HookTrial { command: command.into(), call: "{}".into() });
        let error = refused(&stage, request).await;
        assert_eq!(error.to_string(), format!("the hook did not deny a forbidden call: {why}"), "{command}");
        assert_eq!(error.code(), "hook-open");
    }
}

#[tokio::test]
async fn the_hook_is_tried_with_the_agents_environment_folder_and_limits_and_leaves_nothing() {
    let stage = Stage::new();
    let mut request = stage.request("import os; print(os.environ['MARK'])", stage.rules(), json!({}));
    let key = stage.at("secret/key");
    let script = format!(
        "cat > call; pwd > folder; echo \"$MARK $HOME\" > names; cat {} 2> refused; sleep 600 >/dev/null 2>&1 & echo '{DENIAL}'",
        key.display()
    );
    request.trial = Some(HookTrial { command: script, call: "{\"tool_name\":\"Read\"}".into() });
    let mut agent = spawn::start(request).await.unwrap();
    assert_eq!(agent.receipt().hook, Some(true));
    assert_eq!(output(&mut agent).await.trim(), stage.place.mark);
    let exit = finish(&mut agent).await;
    assert_eq!((exit.ended, exit.left), (0, 0), "what the hook had left was gone before");
    let read = |name: &str| std::fs::read_to_string(stage.at("worca/runs/r1/tree").join(name)).unwrap();
    assert_eq!(read("call"), "{\"tool_name\":\"Read\"}");
    assert_eq!(read("folder").trim(), stage.at("worca/runs/r1/tree").to_str().unwrap());
    assert_eq!(read("names").trim(), format!("{} {}", stage.place.mark, stage.place.path("home").display()));
    assert!(read("refused").contains("Permission denied"), "{}", read("refused"));
}

#[tokio::test]
async fn rules_that_cannot_be_put_on_are_a_sentence_and_nothing_starts() {
    let stage = Stage::new();
    let mut odd = stage.rules();
    odd.version = KERNEL_RULES_VERSION + 1;
    let mut relative = stage.rules();
    relative.places.insert("tree".into(), Access::Write);
    let mut many = stage.rules();
    many.probes = vec![Probe::Signal(1); 300];
    for (rules, why) in [
        (odd, "they have the form 2, not 1"),
        (relative, "the place `tree` is not an absolute path"),
        (many, "they have more than 256 probes"),
    ] {
        let error = refused(&stage, stage.request(STARTED, rules, json!({}))).await;
        assert_eq!(error.to_string(), format!("the kernel rules could not be put on the agent: {why}"));
        assert!(error.hint().unwrap().contains("worca doctor"));
    }
}

#[tokio::test]
async fn a_program_that_the_rules_do_not_let_run_is_a_sentence() {
    let stage = Stage::new();
    let mut request = stage.request(STARTED, stage.rules(), json!({}));
    request.program = stage.at("secret/program").into();
    let error = refused(&stage, request).await;
    let program = stage.at("secret/program");
    assert_eq!(
        error.to_string(),
        format!(
            "the shim refused: `{}` could not be executed: Permission denied (os error 13)",
            program.display()
        )
    );
}

#[tokio::test]
async fn rules_that_open_nothing_but_the_systems_folders_run_an_agent() {
    let stage = Stage::new();
    let mut rules = spawned::open();
    rules.places = ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/proc"]
        .map(|path| (path.into(), Access::Read))
        .into();
    rules.places.insert(stage.at("worca/runs/r1/tree"), Access::Write);
    rules.required = true;
    let mut request = stage.request("", rules, json!({}));
    (request.program, request.arguments) =
        ("/bin/sh".into(), vec!["-c".into(), "cat && echo x > started".into()]);
    let mut agent = spawn::start(request).await.unwrap();
    let exit = finish(&mut agent).await;
    assert!(exit.is_success(), "{exit:?} {}", agent.stderr_tail());
    assert!(stage.at("worca/runs/r1/tree/started").exists());
}
