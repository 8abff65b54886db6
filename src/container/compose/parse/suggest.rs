//! What to write instead of a key that is not applied: the key that was meant, or the way that there is.

/// Advice for a key at a path, `known` being the keys that are applied there.
pub(super) fn hint(path: &str, key: &str, known: &[&'static str]) -> Option<String> {
    if let Some(advice) = advice(path, key) {
        return Some(advice.to_owned());
    }
    let nearest = known.iter().map(|candidate| (distance(key, candidate), candidate)).min()?;
    let (distance, candidate) = nearest;
    let close = distance <= 2 && distance < candidate.len();
    close.then(|| format!("did you mean `{candidate}`?"))
}

fn advice(path: &str, key: &str) -> Option<&'static str> {
    let service = path.starts_with("services.") && path.matches('.').count() == 2;
    let top = !path.contains('.');
    Some(match key {
        "build" if service => "build the image first and name it with `image`",
        "env_file" if service => {
            "name the variables under `environment`; `.env` beside the files gives them values"
        }
        "network_mode" if service => "put the service on a network with `networks`",
        "pid" | "ipc" | "uts" | "cgroup" if service => "a service has its own; remove the key",
        "links" if service => {
            "services on one network reach each other by name; use `networks` with `aliases`"
        }
        "scale" if service => "each service has one container; write a second service",
        "configs" if service || top => "mount the file with `volumes`, read-only",
        "cpu_shares" | "cpu_quota" | "cpu_period" | "cpuset" | "cpu_count" | "cpu_percent" if service => {
            "limit it with `cpus`"
        }
        "start_interval" => "engines before 25 refuse it; use a shorter `interval`",
        "gpus" | "runtime" if service => "a box has no device of the host",
        "include" if top => "put the services into `compose.override.yaml` itself",
        "mode" | "uid" | "gid" if path.contains(".secrets.") => {
            "a secret keeps the owner and mode of its file"
        }
        _ => return None,
    })
}

/// How many characters have to be changed, added, removed or swapped with a neighbour. Long keys are nothing alike.
fn distance(left: &str, right: &str) -> usize {
    const LONGEST: usize = 40;
    let left: Vec<char> = left.chars().take(LONGEST + 1).collect();
    let right: Vec<char> = right.chars().collect();
    if left.len() > LONGEST {
        return usize::MAX;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (at(&last, j) + usize::from(l != r)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && left.get(i - 1) == Some(r) && right.get(j - 1) == Some(l);
            if swapped {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}
