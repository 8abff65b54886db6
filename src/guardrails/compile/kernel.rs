//! The kernel's rules: which places an agent and all that it starts may read and write.
//!
//! Written in three layers, each of which wins over the one before where both name one place: what the set leaves
//! open, what is closed, and last the run's own parts, which nothing closes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{Access, Filesystem, GuardrailSet, KERNEL_RULES_VERSION, KernelRules, PathRules, Probe};
use super::{Facts, INSTRUCTIONS_FILE, POLICY_FILE, SECRETS, SETTINGS_FILE};

/// The system's programs, libraries and settings that hold no secret; of `/etc` only what programs ask for to run.
const SYSTEM: [&str; 61] = [
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/opt",
    "/proc",
    "/run/current-system",
    "/run/systemd/resolve",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/etc/alternatives",
    "/etc/apk",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/claude-code",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitattributes",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/issue",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/lsb-release",
    "/etc/machine-id",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The devices that programs write to.
const DEVICES: [&str; 10] = [
    "/dev/fd",
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/stdout",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// Memory that programs of one user share by name. Not in `project`: it is where one run could leave something for
/// another.
const SHARED_MEMORY: &str = "/dev/shm";

/// How many found files, and how many places that rules name, are tried before a start.
const MOST_PROBED: usize = 12;

pub(super) fn build(set: &GuardrailSet, paths: &PathRules, facts: &Facts) -> KernelRules {
    let connect = set.confine.tcp.as_ref().map(|ports| {
        let mut all: Vec<u16> = ports.iter().chain(&facts.service_ports).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    });
    let own = own_parts(facts);
    let by_rule: Vec<PathBuf> = paths
        .places()
        .into_iter()
        .chain(facts.found.iter().cloned())
        .filter(|place| !own.iter().any(|own| place.starts_with(own)))
        .collect();
    let probes = probes(connect.as_deref(), &by_rule, facts);
    KernelRules {
        version: KERNEL_RULES_VERSION,
        places: places(set.confine.filesystem, &own, &by_rule, facts),
        connect,
        required: set.require_kernel,
        probes,
    }
}

fn places(
    filesystem: Filesystem,
    own: &[PathBuf],
    by_rule: &[PathBuf],
    facts: &Facts,
) -> BTreeMap<PathBuf, Access> {
    let mut places = BTreeMap::new();
    let mut all = |some: &mut dyn Iterator<Item = &Path>, access: Access| {
        for place in some {
            places.insert(place.to_owned(), access);
        }
    };
    match filesystem {
        Filesystem::Open => {
            all(&mut ["/", "/tmp"].into_iter().map(Path::new), Access::Write);
            let projects = facts.projects.iter().chain([&facts.checkout, &facts.common_dir]);
            all(&mut projects.map(PathBuf::as_path), Access::Read);
        }
        Filesystem::ProjectWrite => {
            all(&mut [Path::new("/")].into_iter(), Access::Read);
            all(&mut DEVICES.into_iter().chain([SHARED_MEMORY]).map(Path::new), Access::Write);
        }
        Filesystem::Project => {
            all(&mut SYSTEM.into_iter().map(Path::new), Access::Read);
            all(&mut [facts.common_dir.as_path()].into_iter(), Access::Read);
            all(&mut DEVICES.into_iter().map(Path::new), Access::Write);
        }
    }
    // What a person runs tomorrow is not what an agent wrote today, so programs are only read in `open` as well. A
    // folder of them that an agent can write anyway, or that lies among the runs, counts for nothing.
    let runs = facts.worca_home.join("runs");
    let programs = facts.programs.iter().filter(|folder| !folder.starts_with(&runs));
    let programs = programs.filter(|folder| !own.iter().any(|own| folder.starts_with(own)));
    all(&mut programs.map(PathBuf::as_path), Access::Read);
    all(&mut [facts.worca.as_path()].into_iter(), Access::Read);

    let closed = [Path::new(SECRETS), &facts.worca_home].into_iter();
    let closed = closed.chain(facts.protected.iter().chain(by_rule).map(PathBuf::as_path));
    all(&mut closed.into_iter(), Access::Closed);

    let files = [SETTINGS_FILE, POLICY_FILE, INSTRUCTIONS_FILE].map(|name| facts.folder.join(name));
    all(&mut files.iter().map(PathBuf::as_path), Access::Read);
    all(&mut own.iter().map(PathBuf::as_path), Access::Write);
    places
}

/// What of the user's repository and of Worca's home belongs to this run.
fn own_parts(facts: &Facts) -> Vec<PathBuf> {
    let mut own = vec![
        facts.worktree.clone(),
        facts.home.clone(),
        facts.temporary.clone(),
        facts.common_dir.join("objects"),
        facts.worktree_admin.clone(),
    ];
    // A branch of another form has no folder that is this run's alone: then no ref can be written.
    let parts: Vec<&str> = facts.branch.split('/').collect();
    if let ["worca", run, .., _] = parts.as_slice()
        && !parts.iter().any(|part| part.is_empty() || *part == "..")
        && parts.len() >= 3
    {
        for above in ["refs/heads/worca", "logs/refs/heads/worca"] {
            own.push(facts.common_dir.join(above).join(run));
        }
    }
    own
}

/// What must fail: each of these is forbidden in every set, but for the ports and the rules' own places.
fn probes(connect: Option<&[u16]>, by_rule: &[PathBuf], facts: &Facts) -> Vec<Probe> {
    let mut probes: Vec<Probe> = facts.protected.iter().cloned().map(Probe::Read).collect();
    probes.push(Probe::List(facts.worca_home.join("runs")));
    probes.push(Probe::List(facts.folder.join("git")));
    probes.push(Probe::Write(facts.folder.join(POLICY_FILE)));
    probes.push(Probe::Write(facts.common_dir.join("config")));
    probes.push(Probe::Create(facts.common_dir.join("hooks")));
    probes.push(Probe::Create(facts.checkout.clone()));
    // What was found is there to be tried; a place that a rule names may not be.
    let found = by_rule.iter().filter(|place| facts.found.contains(place)).take(MOST_PROBED);
    let named = by_rule.iter().filter(|place| !facts.found.contains(place)).take(MOST_PROBED);
    probes.extend(found.chain(named).cloned().map(Probe::Read));
    probes.push(Probe::Signal(facts.host));
    let port = facts.closed_port.filter(|port| connect.is_some_and(|open| !open.contains(port)));
    probes.extend(port.map(Probe::Connect));
    probes
}
