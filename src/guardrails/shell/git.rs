//! git: its global options, its configuration given in the line, and its subcommands that run commands.

use super::command::Call;
use super::denial::{self, Judged};
use super::expand::Arg;
use super::judge::{Judge, Stdin};
use super::matching::Match;
use super::values::UNKNOWN;

/// Global options whose value is the next argument.
const VALUES: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
    "--attr-source",
];

/// Judges `git …`.
pub(super) fn judge(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let mut args = call.args;
    while let Some((arg, rest)) = args.split_first().filter(|(arg, _)| arg.text.starts_with('-')) {
        judge.spend(1)?;
        let text = arg.text.as_str();
        if text == "-c" || text == "--config-env" {
            if let Some(setting) = rest.first() {
                judge.git_setting(&setting.text)?;
            }
        } else if let Some(setting) = text
            .strip_prefix("--config-env=")
            .or_else(|| text.strip_prefix("-c").filter(|_| !text.starts_with("--")))
        {
            judge.git_setting(setting)?;
        }
        if let Some((_, value)) =
            text.split_once('=').filter(|(option, _)| matches!(*option, "--git-dir" | "--work-tree"))
        {
            judge.path(value)?;
        }
        let takes = VALUES.contains(&text) && text != "--exec-path";
        args = rest.get(usize::from(takes)..).unwrap_or_default();
    }
    against_rules(judge, args, call)?;
    let Some((sub, rest)) = args.split_first() else { return Ok(()) };
    runs(judge, sub.text.as_str(), rest, call)?;
    paths(judge, sub.text.as_str(), rest)
}

/// The rules on git, against what follows the global options.
fn against_rules(judge: &mut Judge<'_>, args: &[Arg], call: &Call<'_>) -> Judged {
    let mut all: Match = Match::No;
    for rule in judge.rules.iter().filter(|rule| rule.is_about("git")) {
        match rule.against(args, judge.budget).map_err(|trouble| judge.trouble(&trouble))? {
            Match::Yes => return Err(denial::by_rule(rule.rule, &judge.part)),
            other => all = all.max(other),
        }
    }
    if all == Match::Maybe {
        let mut words = vec![Arg::new("git")];
        words.extend(args.iter().cloned());
        let part = judge.part.clone();
        judge.undecided(&words, call.notes, &part, "an argument of git that decides is made at run time")?;
    }
    Ok(())
}

/// Subcommands that run commands of the line.
fn runs(judge: &mut Judge<'_>, sub: &str, args: &[Arg], call: &Call<'_>) -> Judged {
    let position = |word: &str| args.iter().position(|arg| arg.text == word);
    match sub {
        "config" => {
            let plain: Vec<&str> = args
                .iter()
                .map(|arg| arg.text.as_str())
                .filter(|text| !text.starts_with('-') && *text != "set")
                .collect();
            if let [key, value, ..] = plain.as_slice() {
                judge.git_setting(&format!("{key}={value}"))?;
            }
        }
        "submodule" => {
            if let Some(at) = position("foreach") {
                let words: Vec<&str> = args
                    .iter()
                    .skip(at + 1)
                    .map(|arg| arg.text.as_str())
                    .skip_while(|text| text.starts_with('-'))
                    .collect();
                let line = words.join(" ");
                judge.deeper(|judge| judge.source(&line, &Stdin::Plain))?;
            }
        }
        "bisect" => {
            if let Some(at) = position("run") {
                judge.inner_command(args.get(at + 1..).unwrap_or_default(), call.notes, call.stdin)?;
            }
        }
        _ => {}
    }
    let line_options: &[&str] = match sub {
        "rebase" => &["-x", "--exec"],
        "difftool" | "mergetool" => &["-x", "--extcmd"],
        "fetch" | "pull" | "clone" | "ls-remote" | "fetch-pack" | "archive" => {
            &["--upload-pack", "-u", "--exec", "--receive-pack"]
        }
        "push" | "send-pack" => &["--receive-pack", "--exec"],
        "filter-branch" => &[
            "--env-filter",
            "--tree-filter",
            "--index-filter",
            "--parent-filter",
            "--msg-filter",
            "--commit-filter",
            "--tag-name-filter",
            "--setup",
        ],
        "grep" => &["-O", "--open-files-in-pager"],
        "send-email" => &["--to-cmd", "--cc-cmd", "--sendmail-cmd"],
        "log" | "diff" | "show" => &["--ext-diff-command"],
        _ => &[],
    };
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        if matches!(text, "-c" | "--config")
            && sub == "clone"
            && let Some(setting) = args.get(at + 1)
        {
            judge.git_setting(&setting.text)?;
        }
        if let Some(setting) = text.strip_prefix("--config=").filter(|_| sub == "clone") {
            judge.git_setting(setting)?;
        }
        if let Some(transport) = text.strip_prefix("ext::") {
            judge.deeper(|judge| judge.source(transport, &Stdin::Plain))?;
        }
        for option in line_options {
            let value = if text == *option {
                args.get(at + 1).map(|next| next.text.as_str())
            } else if option.starts_with("--") {
                text.strip_prefix(option).and_then(|rest| rest.strip_prefix('='))
            } else {
                text.strip_prefix(option).filter(|_| !text.starts_with("--"))
            };
            if let Some(value) = value {
                judge.deeper(|judge| judge.source(value, &Stdin::Plain))?;
            }
        }
    }
    Ok(())
}

/// The paths that git is given; messages and patterns are text.
fn paths(judge: &mut Judge<'_>, sub: &str, args: &[Arg]) -> Judged {
    if matches!(
        sub,
        "config"
            | "check-ignore"
            | "branch"
            | "tag"
            | "remote"
            | "push"
            | "fetch"
            | "rev-parse"
            | "ls-files"
            | "status"
            | "notes"
    ) {
        return Ok(());
    }
    let mut kept: Vec<Arg> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        let message = matches!(
            text,
            "--message"
                | "--grep"
                | "--author"
                | "--date"
                | "--format"
                | "--pretty"
                | "-S"
                | "-G"
                | "--reuse-message"
        ) || (!text.starts_with("--")
            && text.starts_with('-')
            && matches!(sub, "commit" | "merge" | "stash" | "cherry-pick" | "revert")
            && text.ends_with('m'));
        if message {
            args.next();
        } else if sub == "grep" && !text.starts_with('-') && kept.is_empty() {
            kept.push(Arg::new("-"));
        } else if !(text.starts_with("-m") || text.starts_with("--message=")) {
            kept.push(arg.clone());
        }
    }
    judge.all_paths(&kept)
}

impl Judge<'_> {
    /// `key=value` of git's configuration, where the value is a command.
    pub(super) fn git_setting(&mut self, setting: &str) -> Judged {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        let key = key.trim().to_ascii_lowercase();
        let (section, name) =
            (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
        if section == "alias" {
            return match value.strip_prefix('!') {
                Some(line) => self.deeper(|judge| judge.source(line, &Stdin::Plain)),
                None => {
                    let words: Vec<Arg> =
                        std::iter::once("git").chain(value.split_whitespace()).map(Arg::new).collect();
                    self.inner_command(&words, super::expand::Notes::default(), &Stdin::Plain)
                }
            };
        }
        let runs = match section {
            "core" => matches!(
                name,
                "pager"
                    | "sshcommand"
                    | "editor"
                    | "fsmonitor"
                    | "askpass"
                    | "gitproxy"
                    | "hookspath"
                    | "alternaterefscommand"
            ),
            "pager" | "hook" => true,
            "sequence" => name == "editor",
            "diff" => matches!(name, "external" | "textconv" | "command" | "guitool"),
            "difftool" | "mergetool" | "browser" | "man" => matches!(name, "cmd" | "path"),
            "merge" => name == "driver",
            "filter" => matches!(name, "clean" | "smudge" | "process"),
            "credential" => name == "helper",
            "gpg" => name == "program" || name == "defaultkeycommand",
            "interactive" => name == "difffilter",
            "trailer" => matches!(name, "command" | "cmd"),
            "uploadpack" => name == "packobjectshook",
            "remote" => matches!(name, "uploadpack" | "receivepack" | "vcs"),
            "sendemail" => name.ends_with("cmd"),
            "submodule" => name == "update" && value.starts_with('!'),
            _ => false,
        };
        if name == "hookspath" {
            return self.path(value);
        }
        if !runs || matches!(value, "true" | "false" | "") {
            return Ok(());
        }
        if value.contains(UNKNOWN) {
            let part = self.part.clone();
            return self.undecided(
                &[Arg::new(value)],
                super::expand::Notes { from_line: true, made: false },
                &part,
                "a setting of git that runs a command is made at run time",
            );
        }
        let line = value.strip_prefix('!').unwrap_or(value);
        self.deeper(|judge| judge.source(line, &Stdin::Plain))
    }

    /// Settings of git that come by the environment.
    pub(super) fn git_environment(&mut self, name: &str, text: &str) -> Judged {
        if name == "GIT_CONFIG_PARAMETERS" {
            for setting in text.split('\'').filter(|piece| piece.contains('=') || piece.contains('.')) {
                self.git_setting(setting)?;
            }
            return Ok(());
        }
        let number = name.strip_prefix("GIT_CONFIG_VALUE_").or_else(|| name.strip_prefix("GIT_CONFIG_KEY_"));
        let Some(number) = number else { return Ok(()) };
        let of = |values: &super::values::Values, kind: &str| {
            values
                .get(&format!("GIT_CONFIG_{kind}_{number}"))
                .map(|variable| variable.values.clone())
                .unwrap_or_default()
        };
        let (keys, values) = (of(&self.values, "KEY"), of(&self.values, "VALUE"));
        for key in &keys {
            for value in &values {
                self.git_setting(&format!("{key}={value}"))?;
            }
        }
        Ok(())
    }
}
