//! Where core has to look: its environment, homes, mounts. Found out once at start; what is there changes, so each look
//! is a new one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::file::{self, Seen};

/// The most bytes that are read of the list of users or of mounts.
const MOST_OF_A_LIST: u64 = 4 * 1024 * 1024;
/// The most homes.
const MOST_HOMES: usize = 1_000;

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Core's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The home that core was started with, and folders that stand for it.
    pub homes: Vec<PathBuf>,
    /// The homes of all users whom this machine knows.
    pub other_homes: Vec<PathBuf>,
    /// Mounted projects.
    pub projects: Vec<PathBuf>,
    /// What else is mounted into the box.
    pub mounts: Vec<PathBuf>,
    /// Folders of mounted secrets.
    pub secrets: Vec<PathBuf>,
    /// The model catalogue: files, and folders of them.
    pub catalogue: Vec<PathBuf>,
    /// Whether files of the system are looked at.
    pub system: bool,
    /// Worca's own secrets, which no agent can read.
    pub ours: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process. `worca_home`: Worca's home; `projects`: the mounted projects, in a box; `ours`: the core
    /// token, the control secret.
    pub fn of_this_process(
        worca_home: Option<&Path>,
        projects: Option<&[PathBuf]>,
        ours: &[PathBuf],
    ) -> Self {
        let mut around = Self {
            environment: std::env::vars_os().collect(),
            projects: projects.unwrap_or_default().to_vec(),
            system: true,
            ours: ours
                .iter()
                .flat_map(|path| [Some(path.clone()), path.canonicalize().ok()])
                .flatten()
                .collect(),
            ..Self::default()
        };
        around.homes = std::env::home_dir().into_iter().chain(around.path("GEMINI_CLI_HOME")).collect();
        around.other_homes = around.homes_of_users();
        around.secrets = ["/run/secrets", "/var/run/secrets"].map(PathBuf::from).to_vec();
        around.secrets.extend(around.path("CREDENTIALS_DIRECTORY"));
        dedup_real(&mut around.secrets);
        around.catalogue = around.catalogue_of(worca_home);
        if projects.is_some() {
            // What is mounted into a project belongs to it.
            let inside = |place: &PathBuf| around.projects.iter().any(|project| place.starts_with(project));
            let (inside, mounts) = around.mounted(worca_home).into_iter().partition(inside);
            around.mounts = mounts;
            around.projects.extend::<Vec<_>>(inside);
        }
        around
    }

    /// The path that a variable of core's names.
    pub(super) fn path(&self, variable: &str) -> Option<PathBuf> {
        let (_, value) = self.environment.iter().find(|(name, _)| name == variable)?;
        if value.is_empty() {
            return None;
        }
        std::path::absolute(value).ok()
    }

    /// Whether this is one of Worca's own secrets.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        self.ours.iter().any(|own| own == path)
            || path.canonicalize().is_ok_and(|real| self.ours.contains(&real))
    }

    fn homes_of_users(&self) -> Vec<PathBuf> {
        let Seen::Bytes(users) = file::read(Path::new("/etc/passwd"), MOST_OF_A_LIST) else {
            return Vec::new();
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own: BTreeSet<PathBuf> = self.homes.iter().map(|home| real(home)).collect();
        let homes: BTreeSet<PathBuf> = homes_in(&String::from_utf8_lossy(&users)).into_iter().collect();
        homes
            .into_iter()
            .filter(|home| home.is_dir() && !own.contains(&real(home)))
            .take(MOST_HOMES)
            .collect()
    }

    fn catalogue_of(&self, worca_home: Option<&Path>) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = self.path("WORCA_SLOTS_FILE").into_iter().collect();
        places.extend(["/etc/worca", "/etc/worca/keys"].map(PathBuf::from));
        if let Some(home) = worca_home {
            places.extend(["", "models", "keys", "guardrails"].map(|folder| home.join(folder)));
        }
        places
    }

    fn mounted(&self, worca_home: Option<&Path>) -> Vec<PathBuf> {
        let Seen::Bytes(list) = file::read(Path::new("/proc/self/mountinfo"), MOST_OF_A_LIST) else {
            return Vec::new();
        };
        let own = |place: &Path| {
            self.projects.iter().any(|project| project == place)
                || self.homes.iter().any(|home| home == place)
                || worca_home.is_some_and(|home| home == place)
                || self.is_ours(place)
        };
        mounts_in(&list).into_iter().filter(|place| !own(place)).collect()
    }
}

/// The same folder under two names is looked at once.
fn dedup_real(folders: &mut Vec<PathBuf>) {
    let mut seen = BTreeSet::new();
    folders.retain(|folder| folder.canonicalize().is_ok_and(|real| seen.insert(real)));
}

/// The homes in a list of users (passwd(5)).
pub(super) fn homes_in(users: &str) -> Vec<PathBuf> {
    let homes = users.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    homes.filter(|home| home.is_absolute()).collect()
}

/// The mount points in `/proc/self/mountinfo` (proc_pid_mountinfo(5)) that somebody mounted: not the root, not what
/// the kernel and the engine bring.
pub(super) fn mounts_in(list: &[u8]) -> Vec<PathBuf> {
    const BROUGHT: [&str; 5] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/tmp", "/"];
    const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
    let points = list.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let mut points: Vec<PathBuf> = points.map(unescape).collect();
    points.retain(|point| {
        point.is_absolute()
            && !BROUGHT.iter().any(|brought| point == Path::new(brought))
            && !KERNEL.iter().any(|kernel| point.starts_with(kernel))
    });
    points.sort();
    points.dedup();
    points
}

/// A blank is `\040` there.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let digits =
            more.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = more.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    path_of(bytes)
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
