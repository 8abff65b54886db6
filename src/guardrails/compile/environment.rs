//! What of core's environment an agent keeps, and what it is given.

use super::super::Environment;
use super::Facts;

/// Names that are harmless on their face and that builds go by: where tools are and which edition. Never what is
/// loaded into a program, a credential, an address with one in it, or a cache that is written (an agent has caches of
/// its own, below its home).
const HARMLESS: [&str; 27] = [
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "CARGO_TERM_COLOR",
    "CI",
    "COLORTERM",
    "CURL_CA_BUNDLE",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_ROOT",
    "FORCE_COLOR",
    "GOROOT",
    "JAVA_HOME",
    "LANGUAGE",
    "LOGNAME",
    "MAVEN_HOME",
    "NODE_EXTRA_CA_CERTS",
    "NO_COLOR",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "USER",
];

/// The names that are kept, sorted, each once.
pub(super) fn keep(environment: &Environment) -> Vec<String> {
    let harmless = if environment.scrub { &[][..] } else { &HARMLESS[..] };
    let mut names: Vec<String> = harmless.iter().map(|name| (*name).to_owned()).collect();
    names.extend(environment.keep.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// What every agent is given by its guardrails.
pub(super) fn given(facts: &Facts) -> Vec<(String, String)> {
    vec![("WORCA_HOST_PID".into(), facts.host.to_string())]
}
