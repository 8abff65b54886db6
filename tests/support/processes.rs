//! Looks at the machine's processes through `/proc`, and waits for what it wants to see.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::Path;
use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `look` gives something; says what was last seen otherwise.
pub async fn until<T, S: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<T, S>) -> T {
    let since = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if since.elapsed() > PATIENCE => {
                panic!("{what}: not within {PATIENCE:?}, last seen: {seen:?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Processes that are not yet over and have this text in their environment or arguments.
pub fn marked(mark: &str) -> Vec<i32> {
    let bytes = mark.as_bytes();
    let holds = |pid: i32, file: &str| {
        std::fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes))
    };
    let own = std::process::id() as i32;
    pids()
        .into_iter()
        .filter(|pid| *pid != own && alive(*pid) && (holds(*pid, "environ") || holds(*pid, "cmdline")))
        .collect()
}

/// Every process id.
pub fn pids() -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Whether it is there and not a zombie.
pub fn alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The state letter of proc(5).
pub fn state(pid: i32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The parent.
pub fn parent(pid: i32) -> Option<i32> {
    number(pid, 1)
}

/// The session; 0 for one of an outer PID namespace.
pub fn session(pid: i32) -> Option<i32> {
    number(pid, 3)
}

/// A field of proc(5) after the name, the state letter being 0.
fn number(pid: i32, field: usize) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(field)?.parse().ok()
}

/// The number in a file, once a whole line stands in it.
pub fn number_in(path: &Path) -> Result<i32, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.strip_suffix('\n')
        .and_then(|text| text.trim().parse().ok())
        .ok_or(format!("`{text}` in {}", path.display()))
}

/// Whether any process's argv holds the text, this one excepted.
pub fn in_any_argv(text: &str) -> Vec<i32> {
    let bytes = text.as_bytes();
    pids()
        .into_iter()
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|argv| argv.windows(bytes.len()).any(|part| part == bytes))
        })
        .collect()
}
