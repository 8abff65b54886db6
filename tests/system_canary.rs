//! One key goes in by `worca container login`, and is then looked for everywhere that it must not be: only the
//! key service's volume has it, sealed. Beside it, a pass: it opens its slot while its agent lives, and nothing
//! after.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "tests drive the binary, docker and git as a person would")]

mod support;

use std::path::Path;
use std::process::Command;

use support::{TestBox, eventually, run, run_with};

/// A key of the right form that nobody has. Made anew each time, so that no file of the checkout holds it.
fn canary() -> String {
    let mut bytes = [0u8; 48];
    getrandom::fill(&mut bytes).unwrap();
    let body: String = bytes
        .iter()
        .map(|byte| char::from(b"abcdefghjkmnpqrstuvwxyz23456789_"[usize::from(byte & 31)]))
        .collect();
    format!("sk-ant-api03-{body}")
}

/// A provider that shows whatever came to it, in an error's body and in its headers.
const ECHO: &str = r#"
require('http').createServer((request, answer) => {
  request.resume().on('end', () => {
    const came = Object.values(request.headers).join(" ");
    answer.writeHead(400, { 'content-type': 'application/json', 'x-echo': came });
    answer.end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'echo of ' + came } }));
  });
}).listen(9000);
"#;

/// What an agent does who looks for a key: its environment, everybody's, all files, and the key service on every path,
/// with its pass and without. What it finds it commits.
const LOOT: &str = r#"
env > LOOT-env
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > LOOT-proc 2>/dev/null
timeout 60 grep -rla -m1 sk-ant-api03 /worca /home /run /tmp /etc /keys /var 2>/dev/null > LOOT-names
xargs -r -d '\n' cat < LOOT-names > LOOT-files 2>/dev/null
cat > look.mjs <<'END'
const pass = process.env.ANTHROPIC_AUTH_TOKEN ?? '';
for (const path of ['/', '/health', '/keys', '/vault', '/vault.db', '/control/status', '/control/usage', '/control/caps',
  '/control/passes', '/control/ready', '/anthropic', '/anthropic/v1/models', '/anthropic/v1/messages', '/rehearsal/v1/models',
  '/openai/v1/models', '/../keys/vault.db', '/anthropic/../control/status'])
  for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
    for (const headers of [{}, { authorization: 'Bearer ' + pass }, { 'x-api-key': pass }]) {
      const body = ['POST', 'PUT'].includes(method) ? '{"model":"claude-x","messages":[]}' : undefined;
      try {
        const answer = await fetch('http://keys:4318' + path, { method, headers, body });
        console.log(method, path, answer.status, JSON.stringify([...answer.headers]), await answer.text());
      } catch (error) { console.log(method, path, String(error)); }
    }
END
timeout 120 node look.mjs > LOOT-keys 2>&1
"#;

#[test]
fn c067_a_saved_key_is_nowhere_but_sealed_in_the_key_services_volume() {
    let test = TestBox::new();
    std::fs::write(test.project.join("loot.sh"), LOOT).unwrap();
    support::git(&test.project, &["add", "loot.sh"]).ok();
    support::git(&test.project, &["commit", "--quiet", "-m", "loot"]).ok();
    test.container(&["init", "--project", test.project.to_str().unwrap()]).ok();
    // A provider of our own, which the key service reaches and nobody else has to.
    let provider = serde_json::json!({ "services": {
        "keys": { "environment": {
            "WORCA_ANTHROPIC_ORIGIN": "http://provider:9000", "WORCA_DANGEROUSLY_PLAIN_ORIGIN": "true",
        } },
        "provider": {
            "image": test.image, "entrypoint": ["node", "-e", ECHO.replace('$', "$$")], "networks": ["out"],
            "healthcheck": { "disable": true },
        },
    } });
    std::fs::write(test.files().join("compose.override.yaml"), provider.to_string()).unwrap();
    test.up();

    // Three people's keys, and then another vault key under all of them.
    let keys = [canary(), canary(), canary()];
    for (person, key) in ["local", "ada", "bo"].into_iter().zip(&keys) {
        test.container_with(&["login", "--api-key", "--person", person], &format!("{key}\n")).ok();
    }
    test.container(&["rotate"]).ok();
    // Each is there, and can be told by its last four characters alone.
    let listed = test.container(&["login", "--list"]).ok();
    for key in &keys {
        assert!(listed.contains(key.get(key.len() - 4..).unwrap()), "{listed}");
    }
    let looked = Looked { keys: keys.to_vec() };

    // The provider echoes the key in its error, and the run tells of the error.
    let project = test.project.to_str().unwrap();
    let echoed =
        test.container(&["run", "--", "--project", project, "--model", "claude-x", "--prompt", "Hello"]);
    assert_eq!(echoed.code, 1, "{}{}", echoed.out, echoed.err);
    assert!(echoed.out.contains("echo of") && echoed.out.contains("****"), "{}{}", echoed.out, echoed.err);
    looked.at("what the failed run says", format!("{}{}", echoed.out, echoed.err).as_bytes());

    // An agent looks for keys, and everything that it found is on its branch.
    let scenario = test.project.join("loot.yaml");
    let turns = serde_json::json!({ "version": 1, "about": "Looks for keys", "turns": [
        { "text": "I look around.", "tool": { "name": "Bash", "input": { "command": "bash loot.sh", "timeout": 300_000 } } },
        { "text": "That was all." },
    ] });
    std::fs::write(&scenario, turns.to_string()).unwrap();
    let model = format!("rehearsal/{}", scenario.display());
    let said = test
        .container(&["run", "--", "--project", project, "--model", &model, "--prompt", "Look", "--json"])
        .ok();
    let run_of: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let branch = run_of["branch"].as_str().unwrap_or_else(|| panic!("{said}"));
    for (file, wanted) in [
        ("LOOT-env", "ANTHROPIC_BASE_URL"),
        ("LOOT-proc", "claude"),
        ("LOOT-keys", "POST /control/passes 401"),
    ] {
        let loot = support::git(&test.project, &["show", &format!("{branch}:{file}")]).ok();
        assert!(loot.contains(wanted), "{file}: {loot}");
        looked.at(file, loot.as_bytes());
    }
    looked.at(
        "LOOT-files",
        support::git(&test.project, &["show", &format!("{branch}:LOOT-files")]).ok().as_bytes(),
    );

    // An agent is at work while we look.
    let id = test.slow_run();
    for service in ["core", "keys", "provider"] {
        looked.at(&format!("docker inspect {service}"), test.inspect(service).to_string().as_bytes());
        let logs = run("docker", ["logs", &test.container_id(service)]);
        looked.at(&format!("logs of {service}"), format!("{}{}", logs.out, logs.err).as_bytes());
    }
    assert!(test.inspect("core").to_string().contains("WORCA_KEYS_URL"), "inspect shows no environment");
    let mut files = 0;
    walk(&test.home.path().join(".worca"), &mut |path, bytes| {
        files += 1;
        looked.at(&path.display().to_string(), bytes);
    });
    assert!(files >= 6, "only {files} files were looked at");
    looked.at("docker compose config", test.container(&["config"]).ok().as_bytes());

    // Every process of the machine, and so every one in the box: what it was started with.
    let mut seen_core = false;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        for name in ["cmdline", "environ"] {
            let Ok(bytes) = std::fs::read(entry.path().join(name)) else { continue };
            seen_core |= name == "environ" && contains(&bytes, b"WORCA_CORE_TOKEN_FILE=");
            looked.at(&format!("{}/{name}", entry.path().display()), &bytes);
        }
    }
    assert!(seen_core, "the environment of core was not among those that were looked at (run as root)");

    // Everything that was written: databases, logs, transcripts, homes of agents, worktrees.
    looked.inside(&test, &[("core", "/worca"), ("core", "/tmp"), ("core", "/home/worca"), ("keys", "/keys")]);
    // The search finds what is there.
    let control = test.inside("core", "grep -rlaF 'rehearsal/slow' /worca");
    assert!(control.out.contains("worca.db"), "{}", control.out);
    let image = run("docker", ["history", "--no-trunc", "--format", "{{.CreatedBy}}", &test.image]).ok();
    looked.at("the image's history", image.as_bytes());
    looked.at("the run's events", test.api(&format!("/api/runs/{id}")).to_string().as_bytes());

    // The key service crashes: no dump is written, and everything is there afterwards.
    run("docker", ["kill", "--signal", "ABRT", &test.container_id("keys")]).ok();
    eventually("the key service is up again", || {
        let said = test.container(&["up"]);
        let listed = test.container(&["login", "--list"]);
        let all = said.code == 0 && listed.out.matches("anthropic").count() == 3;
        if all { Ok(()) } else { Err(format!("{} {} {}", said.err, listed.out, listed.err)) }
    });
    let dumps = test.inside("keys", "find / -xdev -name 'core*' -size +64k; find /keys /tmp -type f").ok();
    assert!(
        !dumps.contains("core.") && !dumps.contains("/core\n") && dumps.contains("/keys/vault.db"),
        "{dumps}"
    );
    looked.inside(&test, &[("keys", "/keys"), ("keys", "/tmp")]);
}

struct Looked {
    keys: Vec<String>,
}

impl Looked {
    #[track_caller]
    fn at(&self, what: &str, bytes: &[u8]) {
        for key in &self.keys {
            assert!(!contains(bytes, key.as_bytes()), "a key stands in {what}");
        }
    }
    #[track_caller]
    fn inside(&self, test: &TestBox, places: &[(&str, &str)]) {
        for (service, place) in places {
            let mut grep = Command::new("docker");
            grep.args([
                "exec",
                "--interactive",
                &test.container_id(service),
                "grep",
                "-rlaF",
                "-f",
                "-",
                place,
            ]);
            let found = run_with(&mut grep, &format!("{}\n", self.keys.join("\n")));
            assert_eq!((found.code, found.out.as_str()), (1, ""), "in {place} of {service}: {}", found.err);
        }
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn walk(folder: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, look);
        } else if let Ok(bytes) = std::fs::read(&path) {
            look(&path, &bytes);
        }
    }
}

/// Asks the key service from inside core with a pass that comes by standard input; gives status and body.
const ASK: &str = r#"
let pass = require('fs').readFileSync(0, 'utf8').trim();
let at = process.argv[1];
fetch('http://keys:4318' + at, { headers: { authorization: 'Bearer ' + pass } })
  .then(async answer => console.log(answer.status, await answer.text()));
"#;

fn ask(test: &TestBox, service: &str, path: &str, pass: &str) -> String {
    let mut node = Command::new("docker");
    node.args(["exec", "--interactive", &test.container_id(service), "node", "-e", ASK, path]);
    run_with(&mut node, pass).ok().trim().to_owned()
}

#[test]
fn a_pass_opens_its_slot_while_its_agent_lives_and_nothing_after() {
    let test = TestBox::new();
    test.up();
    let id = test.slow_run();
    let environ = test.inside("core", "cat /proc/$(pgrep -o -x claude)/environ | tr '\\0' '\\n'").ok();
    let value = |name: &str| {
        environ.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap_or_default().to_owned()
    };
    let pass = value("ANTHROPIC_AUTH_TOKEN");
    assert!(pass.starts_with("wp_"), "names: {}", names(&environ));
    assert_eq!(value("ANTHROPIC_BASE_URL"), "http://keys:4318/rehearsal");
    assert!(
        !environ.contains("ANTHROPIC_API_KEY") && !environ.contains("WORCA_CONTROL_FILE"),
        "{}",
        names(&environ)
    );

    let alive = ask(&test, "core", "/rehearsal/v1/models", &pass);
    assert!(!alive.starts_with("403"), "{alive}");
    // Another slot, the control part, no pass, a made-up pass: the same refusal each time.
    let foreign = ask(&test, "core", "/anthropic/v1/models", &pass);
    let none = ask(&test, "core", "/rehearsal/v1/models", "");
    let made_up = ask(&test, "core", "/rehearsal/v1/models", &format!("wp_{}", "A".repeat(43)));
    assert!(foreign.starts_with("403"), "{foreign}");
    assert_eq!((&none, &made_up), (&foreign, &foreign));
    assert!(ask(&test, "core", "/control/status", &pass).starts_with("401"));

    test.inside("core", &format!("worca stop {id}")).ok();
    eventually("the run has ended", || {
        let found = test.api(&format!("/api/runs/{id}"));
        (found["status"] == "stopped").then_some(()).ok_or(found.to_string())
    });
    assert_eq!(ask(&test, "core", "/rehearsal/v1/models", &pass), foreign, "after the agent's end");
}

fn names(environ: &str) -> String {
    environ.lines().filter_map(|line| line.split('=').next()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_without_a_credential_is_refused_before_anything_is_made() {
    let test = TestBox::new();
    test.up();
    let project = test.project.to_str().unwrap();
    let said = test.container(&["run", "--", "--project", project, "--prompt", "x"]).refused(78);
    assert!(said.contains("anthropic") && said.contains("worca container login"), "{said}");
    assert_eq!(support::git(&test.project, &["branch", "--list", "worca/*"]).ok(), "");
    assert_eq!(test.api("/api/runs")["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn core_does_not_start_with_a_model_key_in_reach_and_names_the_place_alone() {
    let test = TestBox::new();
    let key = canary();
    for (place, line) in
        [("environment", format!("ANTHROPIC_API_KEY={key}")), ("shape", format!("SOME_SETTING={key}"))]
    {
        let mut core = Command::new("docker");
        core.args(["run", "--rm", "--env-file", "/dev/stdin", &test.image, "serve"]);
        let said = run_with(&mut core, &line).refused(78);
        let name = line.split('=').next().unwrap();
        assert!(said.contains(name), "{place}: {said}");
        assert!(!said.contains(&key), "{place}: the value is shown");
    }
    let signed_in = "mkdir -p ~/.claude && echo '{}' > ~/.claude/.credentials.json && exec worca serve";
    let said = run("docker", ["run", "--rm", "--entrypoint", "sh", &test.image, "-c", signed_in]).refused(78);
    assert!(said.contains(".credentials.json"), "{said}");
}

#[test]
fn what_is_mounted_into_the_box_is_looked_at_and_a_run_is_refused_for_a_key_that_came_up_later() {
    let test = TestBox::new();
    let key = canary();
    let at = |name: &str, text: &str| {
        let path = test.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let json = format!("{{\"refresh_token\": \"{key}\"}}");
    let folder = |path: String| std::path::Path::new(&path).parent().unwrap().display().to_string();
    for (mount, target, place) in [
        (at("mounts/a", "whatever"), "/run/secrets/openai_api_key", "`/run/secrets/openai_api_key`"),
        (at("mounts/b", &key), "/run/secrets/x", "`/run/secrets/x`, line 1"),
        (at("mounts/adc.json", &json), "/credentials/adc.json", "`/credentials/adc.json`, line 1"),
        (folder(at("mounts/codex/auth.json", "{}")), "/home/worca/.codex", "`/home/worca/.codex/auth.json`"),
        (
            folder(at("mounts/aws/credentials", "[a]\naws_session_token=x\n")),
            "/srv/my keys",
            "`/srv/my keys/credentials`, line 2",
        ),
    ] {
        let mount = format!("{mount}:{target}:ro");
        let words = ["run", "--rm", "--env", "WORCA_PROJECTS=[]", "--volume", &mount, &test.image, "serve"];
        let said = run("docker", words).refused(78);
        assert!(said.contains(place), "{place}: {said}");
        assert!(!said.contains(&key), "the value is shown");
    }

    // An ordinary box beside it starts, and what comes up later refuses each run until it is gone.
    test.up();
    let project = test.project.to_str().unwrap();
    let ask = ["run", "--", "--project", project, "--model", "rehearsal", "--prompt", "x"];
    let plant = format!("umask 077; mkdir -p ~/.codex; echo '{key}' > ~/.codex/auth.json");
    test.inside("core", &plant).ok();
    let said = test.container(&ask).refused(78);
    assert!(said.contains("`/home/worca/.codex/auth.json`") && !said.contains(&key), "{said}");
    assert_eq!(support::git(&test.project, &["branch", "--list", "worca/*"]).ok(), "");
    test.inside("core", "rm ~/.codex/auth.json").ok();
    test.container(&ask).ok();
}
