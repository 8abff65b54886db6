//! How an agent was started, in words that hold no secret: names of variables and never their values, long and
//! secret arguments shortened, the address without credentials. The prompt is no argument and stands nowhere here.

use std::ffi::OsStr;
use std::fmt::Write as _;

use super::start::Start;
use crate::guardrails::{Outcome, Probe, Receipt};
use crate::secret::Secret;
use crate::spawn::{SpawnError, SpawnRequest};

/// Longer arguments are cut, in characters.
const LONGEST: usize = 120;
/// What stands in a secret's place.
const SCRUBBED: &str = "[secret]";
/// How keys and tokens begin that people use beside agents.
const PREFIXES: [&str; 14] = [
    "sk-",
    "wp_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "eyJ",
    "AIza",
];
/// Words in the name of what is a secret.
const NAMES: [&str; 6] = ["key", "token", "secret", "password", "passwd", "authorization"];

/// One start, before it is made.
pub(super) struct Diagnostics {
    lines: Vec<(&'static str, String)>,
}

impl Diagnostics {
    pub(super) fn of(request: &SpawnRequest, start: &Start<'_>, base_url: &str) -> Self {
        let secrets = std::slice::from_ref(&start.minted.pass);
        let arguments: Vec<String> =
            request.arguments.iter().map(|argument| shortened(argument, secrets)).collect();
        let model = start.run.model.as_deref().unwrap_or("the program's own choice");
        let names = request.environment_names();
        Self {
            lines: vec![
                ("program", shortened(&request.program, secrets)),
                ("version", start.spawn.program.clone()),
                ("arguments", arguments.join(" ")),
                ("folder", request.directory.display().to_string()),
                ("variables", names.join(" ")),
                ("standard input", format!("{} bytes", request.stdin.len())),
                (
                    "routing",
                    format!("slot {} at {}, model {model}", start.slot, without_credentials(base_url)),
                ),
                ("policy", format!("set {}, digest {}", start.spawn.guardrails, start.spawn.policy_digest)),
            ],
        }
    }

    /// All of it, a line each, with what came of the start.
    pub(super) fn text(&self, started: Result<&Receipt, &SpawnError>) -> String {
        let mut text = String::from("spawn diagnostics");
        for (name, value) in &self.lines {
            let _ = write!(text, "\n{name}: {value}");
        }
        let _ = match started {
            Ok(receipt) => write!(text, "\nreceipt: {}", receipt_words(receipt)),
            Err(error) => write!(text, "\nnot started: {error}"),
        };
        text
    }
}

/// A receipt in one line.
fn receipt_words(receipt: &Receipt) -> String {
    let count = |outcome| receipt.probes.iter().filter(|tried| tried.outcome == outcome).count();
    let hook = match receipt.hook {
        Some(true) => "the hook denied a forbidden call",
        Some(false) => "the hook let a forbidden call through",
        None => "the hook was not tried",
    };
    let mut text = format!(
        "Landlock ABI {}; {} of {} probes held, {} absent; {hook}",
        receipt.kernel.abi,
        count(Outcome::Held),
        receipt.probes.len(),
        count(Outcome::Absent)
    );
    for tried in receipt.probes.iter().filter(|tried| tried.outcome == Outcome::Open) {
        let (what, target) = probe_words(&tried.probe);
        let _ = write!(text, "; not held: {what} {target}");
    }
    text
}

/// A probe in words: what is tried, and on what.
pub fn probe_words(probe: &Probe) -> (&'static str, String) {
    match probe {
        Probe::Read(path) => ("read", path.display().to_string()),
        Probe::Write(path) => ("write", path.display().to_string()),
        Probe::Create(path) => ("make a file in", path.display().to_string()),
        Probe::List(path) => ("list", path.display().to_string()),
        Probe::Signal(pid) => ("signal", format!("process {pid}")),
        Probe::Connect(port) => ("connect to", format!("port {port}")),
    }
}

fn shortened(argument: &OsStr, secrets: &[Secret]) -> String {
    let text: String =
        argument.to_string_lossy().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = match text.split_once('=') {
        _ if is_secret(&text, secrets) => SCRUBBED.to_owned(),
        Some((name, value)) if is_secret(value, secrets) || names_a_secret(name) => {
            format!("{name}={SCRUBBED}")
        }
        _ => text,
    };
    let length = text.chars().count();
    if length <= LONGEST {
        return text;
    }
    format!("{}… ({length} characters)", text.chars().take(LONGEST).collect::<String>())
}

fn is_secret(text: &str, secrets: &[Secret]) -> bool {
    secrets.iter().any(|secret| text.contains(secret.expose()))
        || PREFIXES.iter().any(|prefix| text.len() >= prefix.len() + 12 && text.starts_with(prefix))
        || text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "))
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|word| name.contains(word))
}

/// An address without a user, a password and a query.
fn without_credentials(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else { return "an address that is none".into() };
    let bare = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    // An address that can hold no user keeps none either.
    if bare.is_err() && (!url.username().is_empty() || url.password().is_some()) {
        return "an address that cannot be shown".into();
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_and_long_arguments_are_shortened_and_ordinary_ones_are_not() {
        let pass = [Secret::new("wp_canary-of-the-pass-0123456789".into())];
        let show = |text: &str| shortened(OsStr::new(text), &pass);
        for plain in
            ["-p", "--output-format", "--setting-sources=", "stream-json", "sk-short", "/worca/runs/r/s.json"]
        {
            assert_eq!(show(plain), plain);
        }
        for secret in [
            "wp_canary-of-the-pass-0123456789",
            "x-wp_canary-of-the-pass-0123456789-y",
            "sk-ant-api03-canary-0123456789",
            "Bearer canary-0123",
            "--api-key=canary",
            "ANTHROPIC_AUTH_TOKEN=canary",
            "--header=sk-ant-canary-0123456789",
        ] {
            let shown = show(secret);
            assert!(shown.contains(SCRUBBED) && !shown.contains("canary"), "{secret}: {shown}");
        }
        let long = show(&"x".repeat(5_000));
        assert!(long.chars().count() < 160 && long.ends_with("(5000 characters)"), "{long}");
        assert_eq!(show("a\nb\u{1b}[2J"), "a b [2J");
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        assert_eq!(
            without_credentials("http://a:b@127.0.0.1:4318/anthropic?key=c#d"),
            "http://127.0.0.1:4318/anthropic"
        );
        assert_eq!(without_credentials("http://127.0.0.1:4318/rehearsal"), "http://127.0.0.1:4318/rehearsal");
        assert_eq!(without_credentials("canary"), "an address that is none");
    }
}
