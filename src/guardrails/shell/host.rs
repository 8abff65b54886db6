//! The host guard: in every set, nothing ends processes by name, by group, or by an id that the line does not spell.

use super::denial::{BY_ID, HOST_ID, Judged, KILL_BY_NAME, KILL_GROUP, KILL_TARGET, built};
use super::edit;
use super::expand::Arg;
use super::judge::Judge;
use super::values::{JOB, UNKNOWN};

/// Programs that end processes by their name.
pub(super) const BY_NAME: [&str; 6] = ["pkill", "killall", "killall5", "skill", "snice", "xkill"];
/// The same on Windows, in any case.
pub(super) const WINDOWS: [&str; 4] = ["taskkill", "stop-process", "spps", "tskill"];

/// What a kill is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    /// It is the command.
    Yes,
    /// It stands among the arguments of a program that may run it.
    Perhaps,
}

impl Judge<'_> {
    /// Judges a command that the host guard knows.
    pub(super) fn host_guard(&mut self, name: &str, args: &[Arg], sure: Sure) -> Judged {
        let asks = |words: &[&str]| args.iter().any(|arg| words.contains(&arg.text.as_str()));
        if BY_NAME.contains(&name) {
            let informs = args.len() == 1 && asks(&["--help", "-h", "--version", "-V", "-l", "--list"]);
            if informs || (sure == Sure::Perhaps && args.is_empty()) {
                return Ok(());
            }
            return Err(self.by_name(name));
        }
        match name {
            "kill" => self.kill(args, sure),
            "fuser" if args.iter().any(|arg| flag(&arg.text, 'k') || arg.text == "--kill") => {
                Err(self.by_name("fuser -k"))
            }
            "systemctl" | "loginctl" if args.iter().any(|arg| killing(&arg.text)) => Err(built(
                KILL_BY_NAME,
                &self.part,
                format!("`{name}` with `kill` ends every process of a unit or session; {BY_ID}"),
            )),
            _ => self.windows_guard(&name.to_ascii_lowercase(), args),
        }
    }

    fn by_name(&self, name: &str) -> Box<super::super::Denial> {
        let reason = format!(
            "`{name}` ends processes by what they are called or hold, which can be the host's own or another run's; {BY_ID}"
        );
        built(KILL_BY_NAME, &self.part, reason)
    }

    fn windows_guard(&mut self, name: &str, args: &[Arg]) -> Judged {
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let lower: Vec<String> = args.iter().map(|arg| arg.text.to_ascii_lowercase()).collect();
        match name {
            "taskkill" => {
                let switches: Vec<&str> = lower
                    .iter()
                    .filter(|text| text.starts_with(['/', '-']))
                    .map(|text| text.trim_start_matches(['/', '-']))
                    .collect();
                if switches.iter().any(|switch| matches!(*switch, "im" | "fi") || switch.starts_with("im:")) {
                    let reason = "`taskkill` by image name or filter ends every process of that name, the host's too; use `taskkill /PID <n>` with the number of a process that you started";
                    return Err(built(KILL_BY_NAME, &self.part, reason));
                }
                let numbers =
                    args.iter().filter(|arg| !arg.text.starts_with(['/', '-']) || arg.text.starts_with("-1"));
                for arg in numbers {
                    self.target(&arg.text, "taskkill /PID <n>")?;
                }
                Ok(())
            }
            "stop-process" | "spps" => {
                let reason = "in this shell there is no `Stop-Process`; use `kill <literal pid>`";
                Err(built(KILL_BY_NAME, &self.part, reason))
            }
            "tskill" => Err(self.by_name("tskill")),
            "wmic"
                if lower.iter().any(|text| text == "process")
                    && lower.iter().any(|text| matches!(text.as_str(), "delete" | "terminate")) =>
            {
                Err(self.by_name("wmic process … delete"))
            }
            _ => Ok(()),
        }
    }

    /// `kill`: its signal, then its targets.
    fn kill(&mut self, args: &[Arg], sure: Sure) -> Judged {
        let mut targets: Vec<&Arg> = Vec::new();
        let mut options = true;
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            match text {
                _ if !options => targets.push(arg),
                "--" => options = false,
                "-l" | "-L" | "--list" | "--table" | "--help" | "--version" => return Ok(()),
                "-s" | "-n" | "--signal" | "-q" | "--queue" => {
                    rest.next();
                }
                "-a" | "--all" | "-p" | "--pid" | "--verbose" => {}
                _ if text.starts_with("--") => {}
                // A signal comes first, and once. What looks like one after it is a group.
                _ if text.starts_with('-')
                    && text.len() > 1
                    && targets.is_empty()
                    && !self.signalled(args, arg) => {}
                _ if text.starts_with('-') && text.len() > 1 => targets.push(arg),
                _ => targets.push(arg),
            }
        }
        // A lone `-1` is a target for some shells and a signal for others.
        if targets.is_empty()
            && sure == Sure::Yes
            && args.iter().any(|arg| edit::number(&arg.text).is_some_and(|n| n < 0))
        {
            return Err(self.group("a group"));
        }
        for target in targets {
            if sure == Sure::Perhaps && target.is_known() && !looks_like_target(&target.text) {
                continue;
            }
            self.target(&target.text, "kill <literal pid>")?;
        }
        Ok(())
    }

    /// Whether a signal was given before this argument.
    fn signalled(&self, args: &[Arg], this: &Arg) -> bool {
        args.iter().take_while(|arg| !std::ptr::eq(*arg, this)).any(|arg| {
            let text = arg.text.as_str();
            matches!(text, "-s" | "-n" | "--signal")
                || text.starts_with("--signal=")
                || (text.starts_with('-') && text.len() > 1)
        })
    }

    fn group(&self, what: &str) -> Box<super::super::Denial> {
        let reason = format!(
            "`kill` on {what} (0, -1, -PGID) reaches more than what you started, the host too; {BY_ID}"
        );
        built(KILL_GROUP, &self.part, reason)
    }

    /// One target of a kill.
    fn target(&mut self, text: &str, instead: &str) -> Judged {
        let job = text.strip_prefix('%').is_some_and(|job| !job.contains(UNKNOWN)) || text == JOB.to_string();
        if job {
            return Ok(());
        }
        if text.starts_with('-') || text == "0" || text.trim_start_matches(['0', '+']).is_empty() {
            return Err(self.group("a group or everything"));
        }
        let digits = text.strip_prefix('+').unwrap_or(text);
        if !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()) {
            let id = digits.trim_start_matches('0').parse::<u32>().ok();
            return match (id, self.context.host) {
                (Some(id), Some(host)) if id == host => {
                    let reason = format!("{id} is Worca itself, which runs you; {BY_ID}");
                    Err(built(HOST_ID, &self.part, reason))
                }
                _ => Ok(()),
            };
        }
        let reason = format!(
            "the target of this kill is not a number that stands in the line, so it can be any process, the host too (a pipe, a variable, a substitution, a name); use `{instead}`. {BY_ID}"
        );
        Err(built(KILL_TARGET, &self.part, reason))
    }

    /// `kill` that gets its targets from elsewhere.
    pub(super) fn fed_kill(&self) -> Box<super::super::Denial> {
        let reason = format!(
            "`kill` is given its targets by another command, so it can be any process, the host too; {BY_ID}"
        );
        built(KILL_TARGET, &self.part, reason)
    }
}

/// A short option, alone or bundled.
fn flag(text: &str, letter: char) -> bool {
    text.starts_with('-')
        && !text.starts_with("--")
        && text.contains(letter)
        && !text.chars().skip(1).all(|c| c.is_ascii_uppercase())
}

fn killing(text: &str) -> bool {
    matches!(
        text,
        "kill" | "kill-session" | "kill-user" | "terminate-session" | "terminate-user" | "terminate-seat"
    )
}

/// Whether a word can be meant as a target at all.
fn looks_like_target(text: &str) -> bool {
    text.starts_with(['-', '+', '%']) || text.starts_with(|first: char| first.is_ascii_digit())
}
