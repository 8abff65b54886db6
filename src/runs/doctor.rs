//! Whether agents can run on this machine without a box, what holds them here, and what does not. Looks and tries; it
//! starts no agent, changes nothing and is told to nobody.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::lacking;
use crate::agents::claude;
use crate::failure::Explain;
use crate::findings::{self, Check, Finding};
use crate::git::Git;
use crate::guardrails::{Facts, GuardrailSet, KernelSupport, Library, POLICY_FILE, SetName, Tier, compile};
use crate::home::Home;
use crate::spawn;

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Nothing is bad.
    pub good: bool,
    /// What this kernel can hold.
    pub kernel: KernelSupport,
    /// The rows, in order.
    pub checks: Vec<Check>,
}

/// Looks at everything. `claude`: the agent program, a name or a path.
pub async fn doctor(home: Option<&Home>, claude: &OsStr) -> Report {
    let kernel = spawn::kernel_support();
    let library = match home {
        Some(home) => Library::read(&home.guardrails()).unwrap_or_else(|_| Library::embedded()),
        None => Library::embedded(),
    };
    let default = library.resolve(&SetName::default()).ok();
    let mut checks = rows(kernel, default.as_ref());
    for tier in Tier::ALL {
        let set = SetName::parse(tier.as_str()).ok().and_then(|name| library.resolve(&name).ok());
        checks.extend(set.map(|set| of_a_set(&set, kernel)));
    }
    checks.push(user());
    checks.push(git().await);
    checks.push(agent(claude).await);
    let tried = tokio::task::spawn_blocking(move || hook(default.as_ref())).await;
    checks.extend(tried);
    checks.extend(sockets(places_of_sockets()));
    let worca_home = home.cloned();
    let keys = tokio::task::spawn_blocking(move || super::reach::checks(worca_home.as_ref())).await;
    checks.extend(keys.unwrap_or_default());
    Report { good: findings::good(&checks), kernel, checks }
}

fn check(name: &'static str, finding: Finding, sentence: impl Into<String>, remedy: Option<&str>) -> Check {
    Check { name, finding, sentence: sentence.into(), remedy: remedy.map(str::to_owned) }
}

/// What the kernel holds, row by row, and whether the default set needs it.
fn rows(kernel: KernelSupport, default: Option<&GuardrailSet>) -> Vec<Check> {
    let ports = default.is_none_or(|set| set.confine.tcp.is_some());
    let row = |name, held: bool, needed: bool, what: &str, from: &str| {
        if held {
            return check(
                name,
                Finding::Good,
                format!("the kernel holds {what} (Landlock {})", kernel.abi),
                None,
            );
        }
        let finding = if needed { Finding::Bad } else { Finding::Note };
        let seen = if kernel.abi == 0 {
            "has no Landlock".to_owned()
        } else {
            format!("has Landlock {}", kernel.abi)
        };
        let remedy = format!("run in the box on a machine with {from}; here {what} are not held");
        Check {
            name,
            finding,
            sentence: format!("this kernel {seen} and does not hold {what}"),
            remedy: Some(remedy),
        }
    };
    vec![
        row("files", kernel.files, true, "files and folders", "Linux 6.2 or newer"),
        row("ports", kernel.tcp, ports, "TCP ports", "Linux 6.7 or newer"),
        row("signals", kernel.signals, true, "signals to other processes", "Linux 6.12 or newer"),
    ]
}

fn of_a_set(set: &GuardrailSet, kernel: KernelSupport) -> Check {
    let lacks = lacking(set, kernel);
    let name = "set";
    if lacks.is_empty() {
        return check(name, Finding::Good, format!("`{}` is held whole", set.name), None);
    }
    let lacks = lacks.join(", ");
    if set.require_kernel {
        let sentence = format!("`{}` does not run here: it demands {lacks}", set.name);
        return check(name, Finding::Note, sentence, Some("use the box on a newer kernel for it"));
    }
    let sentence = format!("`{}` runs, and here it loses {lacks}", set.name);
    check(
        name,
        Finding::Note,
        sentence,
        Some("its hook and settings hold still, which an agent can get round"),
    )
}

#[cfg(unix)]
fn user() -> Check {
    if rustix::process::geteuid().is_root() {
        let remedy =
            "start `worca serve` as an ordinary user: root reads the environment of others in any domain";
        return check("user", Finding::Note, "agents would run as root", Some(remedy));
    }
    check("user", Finding::Good, "agents run as an ordinary user", None)
}

#[cfg(not(unix))]
fn user() -> Check {
    check("user", Finding::Bad, "agents do not run on this system", Some("use `worca container up`"))
}

async fn git() -> Check {
    match Git::find().await {
        Ok(git) => {
            let (major, minor) = git.version();
            let program = git.program().display().to_string();
            check("git", Finding::Good, format!("git {major}.{minor} (`{program}`)"), None)
        }
        Err(error) => check("git", Finding::Bad, error.to_string(), error.hint().as_deref()),
    }
}

async fn agent(program: &OsStr) -> Check {
    match claude::version(program).await {
        Ok(version) => {
            let sentence = format!("Claude Code {version} (`{}`)", program.to_string_lossy());
            check("agent", Finding::Good, sentence, None)
        }
        Err(error) => check("agent", Finding::Bad, error.to_string(), error.hint().as_deref()),
    }
}

/// Puts a forbidden call through the hook as a start does, with a policy of the default set in a folder of its own.
fn hook(set: Option<&GuardrailSet>) -> Check {
    match set.map(try_hook) {
        Some(Ok(())) => check("hook", Finding::Good, "the hook denies a forbidden call", None),
        Some(Err(why)) => {
            let remedy = "see that this `worca` is whole and may be executed";
            check("hook", Finding::Bad, why, Some(remedy))
        }
        None => check("hook", Finding::Bad, "the default set is broken", Some("run `worca guardrails list`")),
    }
}

fn try_hook(set: &GuardrailSet) -> Result<(), String> {
    let worca =
        std::env::current_exe().map_err(|error| format!("the path of `worca` is unknown: {error}"))?;
    let folder = std::env::temp_dir().join(format!("worca-doctor-{}", crate::ids::SpawnId::random()));
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|error| format!("`{}` cannot be made: {error}", folder.display()))?;
    let compiled = compile(set, &[], &facts(worca, &folder));
    let written = std::fs::write(folder.join(POLICY_FILE), compiled.policy.to_json());
    let tried = match written {
        Ok(()) => spawn::try_hook(&compiled.trial, &folder).map_err(|error| error.to_string()),
        Err(error) => Err(format!("`{}` cannot be written: {error}", folder.display())),
    };
    let _ = std::fs::remove_dir_all(&folder);
    tried
}

/// A start that is none: everything in one folder.
fn facts(worca: PathBuf, folder: &Path) -> Facts {
    let home = folder.join("home");
    Facts {
        worca,
        // The trial reads the policy file, which is closed as a part of Worca's home.
        worca_home: folder.to_owned(),
        folder: folder.to_owned(),
        worktree: folder.join("tree"),
        temporary: home.join("tmp"),
        home,
        common_dir: folder.join("git"),
        worktree_admin: folder.join("git/worktrees/doctor"),
        branch: "worca/doctor/doctor".into(),
        checkout: folder.join("checkout"),
        projects: Vec::new(),
        protected: Vec::new(),
        programs: Vec::new(),
        user_home: None,
        found: Vec::new(),
        service_ports: Vec::new(),
        closed_port: None,
        host: std::process::id(),
    }
}

/// Where a machine has sockets that do more for a program than its user may be aware of.
fn places_of_sockets() -> Vec<(PathBuf, &'static str)> {
    let mut places: Vec<(PathBuf, &str)> = [
        ("/var/run/docker.sock", ENGINE),
        ("/run/docker.sock", ENGINE),
        ("/run/podman/podman.sock", ENGINE),
        ("/run/containerd/containerd.sock", ENGINE),
        ("/run/crio/crio.sock", ENGINE),
        ("/run/snapd.socket", "the package manager"),
        ("/var/lib/incus/unix.socket", ENGINE),
        ("/var/snap/lxd/common/lxd/unix.socket", ENGINE),
        ("/run/libvirt/libvirt-sock", "the virtual machines"),
    ]
    .map(|(path, what)| (path.into(), what))
    .into();
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("XDG_RUNTIME_DIR") {
        places.extend([
            (folder.join("docker.sock"), ENGINE),
            (folder.join("podman/podman.sock"), ENGINE),
            (folder.join("bus"), "your session, which starts programs"),
            (folder.join("systemd/private"), "your session, which starts programs"),
        ]);
    }
    if let Some(home) = std::env::home_dir() {
        places.push((home.join(".docker/run/docker.sock"), ENGINE));
    }
    places.extend(named("SSH_AUTH_SOCK").map(|path| (path, "your SSH keys")));
    let engine = std::env::var("DOCKER_HOST").ok();
    let engine = engine.as_deref().and_then(|host| host.strip_prefix("unix://"));
    places.extend(engine.map(|path| (path.into(), ENGINE)));
    places
}

const ENGINE: &str = "a container engine, and with it this machine";

/// Each socket that this user may connect to. The kernel has no rule for them that is used here.
#[cfg(unix)]
fn sockets(places: Vec<(PathBuf, &'static str)>) -> Vec<Check> {
    use std::os::unix::fs::FileTypeExt as _;
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for (path, what) in places {
        let Ok(real) = path.canonicalize() else { continue };
        let socket = std::fs::metadata(&real).is_ok_and(|data| data.file_type().is_socket());
        let reached = rustix::fs::access(&real, rustix::fs::Access::WRITE_OK).is_ok();
        if socket && reached && seen.insert(real) {
            let sentence = format!("an agent without a box can reach {what}, through `{}`", path.display());
            found.push(check(
                "sockets",
                Finding::Note,
                sentence,
                Some("no kernel rule closes it: use the box"),
            ));
        }
    }
    if found.is_empty() {
        found.push(check(
            "sockets",
            Finding::Good,
            "no socket of an engine or of your session is in reach",
            None,
        ));
    }
    found
}

#[cfg(not(unix))]
fn sockets(_places: Vec<(PathBuf, &'static str)>) -> Vec<Check> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(abi: u32) -> KernelSupport {
        KernelSupport { abi, files: abi >= 3, tcp: abi >= 4, signals: abi >= 6 }
    }

    fn set(name: &str) -> GuardrailSet {
        Library::embedded().resolve(&SetName::parse(name).unwrap()).unwrap()
    }

    #[test]
    fn what_the_default_set_needs_is_bad_when_it_is_missing_and_the_rest_is_a_note() {
        let normal = set("normal");
        let findings =
            |abi| rows(kernel(abi), Some(&normal)).iter().map(|row| row.finding).collect::<Vec<_>>();
        use Finding::{Bad, Good, Note};
        assert_eq!(findings(7), [Good, Good, Good]);
        assert_eq!(findings(4), [Good, Good, Bad]);
        assert_eq!(findings(3), [Good, Note, Bad]);
        assert_eq!(findings(0), [Bad, Note, Bad]);
    }

    #[test]
    fn each_tier_says_what_it_loses_or_that_it_does_not_run() {
        let says = |name: &str, abi| of_a_set(&set(name), kernel(abi)).sentence;
        assert_eq!(says("strict", 7), "`strict` is held whole");
        assert!(says("strict", 4).starts_with("`strict` does not run here: it demands signals"));
        assert!(says("permissive", 4).starts_with("`permissive` runs, and here it loses signals"));
        assert!(says("normal", 0).contains("files and folders (Linux 6.2), signals"));
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_that_can_be_connected_to_is_said_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _socket = std::os::unix::net::UnixListener::bind(at("docker.sock")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(at("docker.sock"), at("link")).unwrap();
        let places = ["docker.sock", "link", "file", "none"].map(|name| (at(name), ENGINE));
        let found = sockets(places.into());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].finding, Finding::Note);
        assert!(found[0].sentence.contains("can reach a container engine"), "{found:?}");
        assert_eq!(sockets(Vec::new())[0].finding, Finding::Good);
    }
}
