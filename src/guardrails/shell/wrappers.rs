//! Programs that run another program, which stands among their arguments.

use super::command::{Call, program};
use super::denial::{Judged, UNDECIDED, built};
use super::expand::Arg;
use super::judge::{Judge, Stdin};
use super::values::UNKNOWN;

/// Shells of POSIX kind.
pub(super) const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash", "posh", "hush"];
/// Shells of Windows.
pub(super) const WINDOWS_SHELLS: [&str; 3] = ["powershell", "pwsh", "cmd"];

/// How a wrapper's own arguments look.
struct Wrapper {
    name: &'static str,
    /// Short options that take a value.
    values: &'static str,
    /// Long options that take one as a word of its own.
    longs: &'static [&'static str],
    /// Arguments before the command.
    skip: usize,
    /// `NAME=value` before the command.
    assigns: bool,
    /// An option whose value is a command line.
    script: &'static [&'static str],
    /// The command is one text, however many words it has.
    joined: bool,
}

const PLAIN: Wrapper =
    Wrapper { name: "", values: "", longs: &[], skip: 0, assigns: false, script: &[], joined: false };

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "env",
        values: "uC",
        longs: &["--unset", "--chdir"],
        assigns: true,
        script: &["-S", "--split-string"],
        ..PLAIN
    },
    Wrapper { name: "timeout", values: "sk", longs: &["--signal", "--kill-after"], skip: 1, ..PLAIN },
    Wrapper { name: "gtimeout", values: "sk", longs: &["--signal", "--kill-after"], skip: 1, ..PLAIN },
    Wrapper { name: "nice", values: "n", longs: &["--adjustment"], ..PLAIN },
    Wrapper { name: "nohup", ..PLAIN },
    Wrapper { name: "setsid", ..PLAIN },
    Wrapper { name: "stdbuf", values: "ioe", longs: &["--input", "--output", "--error"], ..PLAIN },
    Wrapper { name: "unbuffer", ..PLAIN },
    Wrapper { name: "ionice", values: "cnpPu", longs: &["--class", "--classdata"], ..PLAIN },
    Wrapper {
        name: "chrt",
        values: "TPD",
        longs: &["--sched-runtime", "--sched-period", "--sched-deadline"],
        skip: 1,
        ..PLAIN
    },
    Wrapper { name: "taskset", skip: 1, ..PLAIN },
    Wrapper { name: "numactl", values: "CNmipP", ..PLAIN },
    Wrapper { name: "cpulimit", values: "lpPe", ..PLAIN },
    Wrapper { name: "prlimit", values: "p", ..PLAIN },
    Wrapper { name: "setpriv", ..PLAIN },
    Wrapper { name: "setarch", skip: 0, ..PLAIN },
    Wrapper {
        name: "sudo",
        values: "ugphCTRDUrt",
        longs: &["--user", "--group", "--prompt", "--host", "--chdir", "--chroot"],
        assigns: true,
        ..PLAIN
    },
    Wrapper { name: "doas", values: "uC", assigns: true, ..PLAIN },
    Wrapper { name: "pkexec", longs: &["--user"], ..PLAIN },
    Wrapper { name: "gosu", skip: 1, ..PLAIN },
    Wrapper { name: "su-exec", skip: 1, ..PLAIN },
    Wrapper {
        name: "su",
        values: "gGswT",
        longs: &["--group", "--shell"],
        skip: 1,
        script: &["-c", "--command", "--session-command"],
        ..PLAIN
    },
    Wrapper {
        name: "runuser",
        values: "ugGsw",
        longs: &["--user", "--group", "--shell"],
        script: &["-c", "--command", "--session-command"],
        ..PLAIN
    },
    Wrapper { name: "time", values: "fo", longs: &["--format", "--output"], ..PLAIN },
    Wrapper { name: "strace", values: "eopsuEabIOPSX", longs: &["--trace", "--output"], ..PLAIN },
    Wrapper { name: "ltrace", values: "eopsuanlFDAxw", longs: &["--output"], ..PLAIN },
    Wrapper { name: "valgrind", ..PLAIN },
    Wrapper {
        name: "flock",
        values: "wE",
        longs: &["--timeout", "--wait", "--conflict-exit-code"],
        skip: 1,
        script: &["-c", "--command"],
        ..PLAIN
    },
    Wrapper {
        name: "unshare",
        values: "SGRw",
        longs: &["--setuid", "--setgid", "--root", "--wd", "--propagation"],
        ..PLAIN
    },
    Wrapper { name: "nsenter", values: "tSG", longs: &["--target", "--setuid", "--setgid"], ..PLAIN },
    Wrapper { name: "chroot", longs: &["--userspec", "--groups"], skip: 1, ..PLAIN },
    Wrapper { name: "proot", values: "rbwqk", ..PLAIN },
    Wrapper { name: "fakeroot", values: "lsiob", ..PLAIN },
    Wrapper { name: "firejail", ..PLAIN },
    Wrapper { name: "entr", script: &["-s"], ..PLAIN },
    Wrapper { name: "ssh-agent", values: "atEOP", ..PLAIN },
    Wrapper { name: "dbus-run-session", longs: &["--config-file", "--dbus-daemon"], ..PLAIN },
    Wrapper { name: "xvfb-run", values: "efnpsw", longs: &["--server-args", "--server-num"], ..PLAIN },
    Wrapper { name: "catchsegv", ..PLAIN },
    Wrapper { name: "watch", values: "nq", longs: &["--interval", "--equexit"], joined: true, ..PLAIN },
    Wrapper {
        name: "script",
        values: "EmoOIBT",
        longs: &["--echo", "--log-out", "--log-in", "--log-io"],
        script: &["-c", "--command"],
        ..PLAIN
    },
    Wrapper {
        name: "systemd-run",
        values: "pEuMHGCD",
        longs: &[
            "--unit",
            "--property",
            "--slice",
            "--setenv",
            "--uid",
            "--gid",
            "--working-directory",
            "--description",
        ],
        ..PLAIN
    },
    Wrapper { name: "systemd-inhibit", longs: &["--what", "--who", "--why", "--mode"], ..PLAIN },
    Wrapper { name: "busybox", ..PLAIN },
    Wrapper { name: "toybox", ..PLAIN },
    Wrapper { name: "command", ..PLAIN },
    Wrapper { name: "builtin", ..PLAIN },
    Wrapper { name: "exec", values: "a", ..PLAIN },
    Wrapper { name: "noglob", ..PLAIN },
    Wrapper { name: "nocorrect", ..PLAIN },
    Wrapper { name: "coproc", ..PLAIN },
    Wrapper { name: "!", ..PLAIN },
];

/// Whether this program runs what stands in its arguments.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name) || is_loader(name) || name == "parallel"
}

/// The dynamic loader, which runs the program that it is given.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
        || name == "ld.so"
        || (name.starts_with("ld-") && name.contains(".so"))
}

/// Judges a wrapper's command. `true`: it was one.
pub(super) fn judge(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged<bool> {
    if SHELLS.contains(&call.name) {
        return super::shells::shell(judge, call).map(|()| true);
    }
    if WINDOWS_SHELLS.contains(&call.name.to_ascii_lowercase().as_str()) {
        return super::shells::windows(judge, call).map(|()| true);
    }
    match call.name {
        "xargs" | "gxargs" => return xargs(judge, call).map(|()| true),
        "find" | "gfind" | "fd" | "fdfind" => return find(judge, call).map(|()| true),
        "parallel" => return parallel(judge, call).map(|()| true),
        _ => {}
    }
    if is_loader(call.name) {
        let loader = Wrapper {
            longs: &["--library-path", "--preload", "--argv0", "--audit", "--inhibit-rpath"],
            ..PLAIN
        };
        return wrapped(judge, call, &loader).map(|()| true);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == call.name) else { return Ok(false) };
    if call.name == "command"
        && call.args.first().is_some_and(|arg| matches!(arg.text.as_str(), "-v" | "-V" | "-pv" | "-pV"))
    {
        return Ok(true);
    }
    wrapped(judge, call, wrapper)?;
    Ok(true)
}

fn wrapped(judge: &mut Judge<'_>, call: &Call<'_>, wrapper: &Wrapper) -> Judged {
    let mut skip = wrapper.skip;
    let mut args = call.args;
    let mut ended = false;
    // A login shell's `su - user` and the like.
    while let Some((arg, rest)) = args.split_first() {
        judge.spend(1)?;
        let text = arg.text.as_str();
        if !ended && text == "--" {
            ended = true;
            args = rest;
            continue;
        }
        if !ended && text.starts_with('-') {
            if let Some(script) = script_of(text, rest, wrapper.script) {
                let more = rest.get(usize::from(script.1)..).unwrap_or_default();
                script_and(judge, script.0, if wrapper.name == "env" { more } else { &[] }, call)?;
            }
            let takes = takes_value(text, wrapper);
            args = rest.get(usize::from(takes)..).unwrap_or_default();
            continue;
        }
        if wrapper.assigns
            && let Some((name, value)) = text.split_once('=')
        {
            judge.values.set(name, value.to_owned());
            judge.set_value(name, value)?;
            args = rest;
            continue;
        }
        if skip > 0 {
            skip -= 1;
            args = rest;
            // After what the wrapper wants for itself its options may go on (`su user -c …`, `flock file -c …`).
            ended = false;
            continue;
        }
        break;
    }
    if wrapper.joined {
        let line = args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ");
        return judge.deeper(|judge| judge.source(&line, &Stdin::Plain));
    }
    judge.inner_command(args, call.notes, call.stdin)
}

/// The command line that an option carries: glued to it, after `=`, or as the next argument (then `true`).
fn script_of<'t>(text: &'t str, rest: &'t [Arg], options: &[&str]) -> Option<(&'t str, bool)> {
    for option in options {
        if text == *option || (!option.starts_with("--") && bundled(text, option)) {
            return rest.first().map(|next| (next.text.as_str(), true));
        }
        if let Some(value) = text.strip_prefix(option) {
            if option.starts_with("--") {
                return value.strip_prefix('=').map(|value| (value, false));
            }
            return Some((value, false));
        }
    }
    None
}

/// `-qc` for `-c`.
fn bundled(text: &str, option: &str) -> bool {
    !text.starts_with("--")
        && text.len() > 2
        && text.strip_prefix('-').is_some_and(|letters| {
            option.strip_prefix('-').is_some_and(|letter| letters.ends_with(letter))
                && letters.chars().all(|c| c.is_ascii_alphabetic())
        })
}

fn script_and(judge: &mut Judge<'_>, script: &str, more: &[Arg], call: &Call<'_>) -> Judged {
    let mut line = script.to_owned();
    for arg in more {
        line.push(' ');
        line.push_str(&arg.text);
    }
    judge.deeper(|judge| judge.source(&line, call.stdin))
}

/// Whether this option's value is the next argument.
fn takes_value(text: &str, wrapper: &Wrapper) -> bool {
    if text.starts_with("--") {
        return wrapper.longs.contains(&text) || wrapper.script.contains(&text);
    }
    // The first letter that takes a value takes the rest of the word, or the next word when there is none.
    let letters = text.strip_prefix('-').unwrap_or(text);
    for (at, letter) in letters.char_indices() {
        let is_script = wrapper
            .script
            .iter()
            .any(|option| option.strip_prefix('-').is_some_and(|name| name.chars().eq([letter])));
        if wrapper.values.contains(letter) || is_script {
            return at + letter.len_utf8() == letters.len();
        }
    }
    false
}

/// `xargs`: its command gets more arguments at run time.
fn xargs(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let options = Wrapper {
        values: "adEILnPs",
        longs: &[
            "--arg-file",
            "--delimiter",
            "--max-lines",
            "--max-args",
            "--max-procs",
            "--max-chars",
            "--replace",
            "--process-slot-var",
        ],
        ..PLAIN
    };
    let mut args = call.args;
    let mut replace: Option<String> = None;
    while let Some((arg, rest)) = args.split_first().filter(|(arg, _)| arg.text.starts_with('-')) {
        let text = arg.text.as_str();
        let takes = takes_value(text, &options);
        if text == "-I" || text == "--replace" {
            replace = rest.first().map(|next| next.text.clone());
        } else if let Some(glued) = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace=")) {
            replace = Some(glued.to_owned());
        } else if let Some(glued) = text.strip_prefix("-i") {
            replace = Some(if glued.is_empty() { "{}".into() } else { glued.to_owned() });
        }
        args = rest.get(usize::from(takes)..).unwrap_or_default();
        if text == "--" {
            break;
        }
    }
    let replace = replace.filter(|mark| !mark.is_empty());
    let mut inner: Vec<Arg> = args.to_vec();
    match &replace {
        Some(mark) => {
            for arg in &mut inner {
                arg.made = arg.text == *mark;
                arg.text = arg.text.replace(mark.as_str(), &UNKNOWN.to_string());
            }
        }
        None if !inner.is_empty() => inner.push(Arg::handed()),
        None => {}
    }
    handed(judge, &inner, call)
}

/// A command whose last or marked arguments come from data.
fn handed(judge: &mut Judge<'_>, inner: &[Arg], call: &Call<'_>) -> Judged {
    let Some(name) = inner.first().map(|arg| program(&arg.text)) else { return Ok(()) };
    if name == "kill" {
        return Err(judge.fed_kill());
    }
    let mut notes = call.notes;
    notes.from_line = true;
    judge.inner_command(inner, notes, &Stdin::Plain)
}

/// `find`: only what `-exec` and its kin run.
fn find(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let is_fd = call.name.starts_with("fd");
    let mut args = call.args.iter().enumerate();
    while let Some((at, arg)) = args.next() {
        judge.spend(1)?;
        let runs = matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")
            || (is_fd && matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        if !runs {
            continue;
        }
        let rest = call.args.get(at + 1..).unwrap_or_default();
        let end = rest.iter().position(|arg| arg.text == ";" || (arg.text == "+")).unwrap_or(rest.len());
        let found = rest.get(..end).unwrap_or_default();
        let unknown = UNKNOWN.to_string();
        let starts = call.args.iter().take_while(|arg| !arg.text.starts_with(['-', '(', '!'])).take(4);
        // What is found is a start itself, or something below it.
        for name in starts.map(|arg| arg.text.as_str()).chain([unknown.as_str()]) {
            let inner: Vec<Arg> =
                found.iter().map(|arg| Arg { text: arg.text.replace("{}", name), ..arg.clone() }).collect();
            judge.inner_command(&inner, call.notes, &Stdin::Plain)?;
        }
        for _ in 0..end {
            args.next();
        }
    }
    let starts = call.args.iter().take_while(|arg| !arg.text.starts_with(['-', '(', '!']));
    for arg in starts {
        judge.looked_at(&arg.text)?;
    }
    Ok(())
}

/// `parallel`: a command that gets arguments, or, without one, arguments that are commands.
fn parallel(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let options = Wrapper {
        values: "jIaCdENnPSLsX",
        longs: &[
            "--jobs",
            "--arg-file",
            "--colsep",
            "--delay",
            "--timeout",
            "--joblog",
            "--results",
            "--sshlogin",
            "--workdir",
            "--tagstring",
        ],
        ..PLAIN
    };
    let mut args = call.args;
    while let Some((arg, rest)) = args.split_first().filter(|(arg, _)| arg.text.starts_with('-')) {
        let takes = takes_value(&arg.text, &options);
        args = rest.get(usize::from(takes)..).unwrap_or_default();
    }
    let end = args.iter().position(|arg| arg.text.starts_with(":::")).unwrap_or(args.len());
    let command = args.get(..end).unwrap_or_default();
    let given = args.get(end..).unwrap_or_default();
    if command.is_empty() {
        if given.is_empty() {
            return Err(built(
                UNDECIDED,
                &judge.part,
                "`parallel` without a command runs the lines that it reads, which are not in the line; write them out",
            ));
        }
        for arg in given.iter().filter(|arg| !arg.text.starts_with(":::")) {
            judge.deeper(|judge| judge.source(&arg.text, &Stdin::Plain))?;
        }
        return Ok(());
    }
    let line = command
        .iter()
        .map(|arg| arg.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
        .replace("{}", &UNKNOWN.to_string());
    if given.is_empty() {
        let inner: Vec<Arg> = command.iter().cloned().chain([Arg::handed()]).collect();
        return handed(judge, &inner, call);
    }
    for arg in given.iter().filter(|arg| !arg.text.starts_with(":::")) {
        let one = if line.contains(UNKNOWN) {
            line.replace(UNKNOWN, &arg.text)
        } else {
            format!("{line} {}", arg.text)
        };
        judge.deeper(|judge| judge.source(&one, &Stdin::Plain))?;
    }
    Ok(())
}
