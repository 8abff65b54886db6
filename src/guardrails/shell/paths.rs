//! The paths that a command names. Text arguments are none.

use super::super::RuleId;
use super::command::Call;
use super::denial::{Judged, shown};
use super::expand::Arg;
use super::judge::Judge;
use super::limits::PATH;
use super::values::{JOB, UNKNOWN};

/// Options of any program whose value names what is left out, or is text.
const NOT_PATHS: [&str; 16] = [
    "--exclude",
    "--exclude-dir",
    "--ignore",
    "--ignore-path-pattern",
    "--glob",
    "--iglob",
    "--include",
    "--grep",
    "--message",
    "--author",
    "--format",
    "--pretty",
    "--title",
    "--body",
    "--filter",
    "--invert-match",
];

impl Judge<'_> {
    /// Judges the paths among a command's arguments.
    pub(super) fn paths(&mut self, call: &Call<'_>) -> Judged {
        self.spend(call.args.len())?;
        let args = call.args;
        match call.name {
            "echo" | "printf" | "expr" | "basename" | "dirname" | "which" | "man" | "seq" | "logger"
            | "gh" | "true" | "ps" | "pgrep" | "pidof" => Ok(()),
            "ls" | "stat" | "du" | "tree" | "readlink" | "realpath" | "eza" | "exa" | "dir" => {
                args.iter().try_for_each(|arg| self.looked_at(&arg.text))
            }
            "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" | "jq" | "yq" => {
                self.after_pattern(args, "eAmBCgt")
            }
            _ => self.all_paths(args),
        }
    }

    pub(super) fn all_paths(&mut self, args: &[Arg]) -> Judged {
        let mut before = "";
        for arg in args {
            if !NOT_PATHS.contains(&before) {
                self.argument(&arg.text)?;
            }
            before = arg.text.as_str();
        }
        Ok(())
    }

    /// `grep PATTERN FILE…`: the first argument is a pattern, unless an option gave one.
    fn after_pattern(&mut self, args: &[Arg], values: &str) -> Judged {
        let mut pattern = true;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let text = arg.text.as_str();
            if let Some(file) = text.strip_prefix("--file=") {
                pattern = false;
                self.path(file)?;
            } else if matches!(text, "-f" | "--file") {
                pattern = false;
                if let Some(file) = args.next() {
                    self.path(&file.text)?;
                }
            } else if text.starts_with("--") {
                pattern &= !text.starts_with("--regexp") && text != "--files";
                if NOT_PATHS.contains(&text)
                    || matches!(
                        text,
                        "--regexp" | "--type" | "--context" | "--max-count" | "--arg" | "--argjson"
                    )
                {
                    args.next();
                }
            } else if text.starts_with('-') && text.len() > 1 {
                pattern &= !text.contains('e');
                if text.chars().last().is_some_and(|last| values.contains(last))
                    && !text.ends_with(|c: char| c.is_ascii_digit())
                    && text.len() == 2
                {
                    args.next();
                }
            } else if pattern {
                pattern = false;
            } else {
                self.path(text)?;
            }
        }
        Ok(())
    }

    /// One argument: a path, `option=path`, `@path`, `host:path`.
    fn argument(&mut self, text: &str) -> Judged {
        if text.starts_with('-') {
            let Some((option, value)) = text.split_once('=') else { return Ok(()) };
            return if NOT_PATHS.contains(&option) { Ok(()) } else { self.path(value) };
        }
        self.path(text)?;
        if text.len() > 4096 || text.contains("://") && !text.starts_with("file://") {
            return Ok(());
        }
        if let Some(file) = text.strip_prefix("file://") {
            return self.path(file);
        }
        for (_, path) in [
            text.split_once('='),
            text.split_once(':'),
            text.split_once('@').filter(|(key, _)| key.is_empty() || key.ends_with('=')),
        ]
        .into_iter()
        .flatten()
        {
            self.path(path.trim_start_matches('@'))?;
        }
        Ok(())
    }

    /// A path that is read or written.
    pub(super) fn path(&mut self, text: &str) -> Judged {
        match self.path_denial(text)? {
            Some(denial) => Err(denial),
            None => Ok(()),
        }
    }

    /// A path whose name or existence is asked for: only Worca's own state is closed to that.
    pub(super) fn looked_at(&mut self, text: &str) -> Judged {
        match self.path_denial(text)? {
            Some(denial) if matches!(denial.rule, RuleId::Built(_)) => Err(denial),
            _ => Ok(()),
        }
    }

    fn path_denial(&mut self, text: &str) -> Judged<Option<Box<super::super::Denial>>> {
        if text.is_empty() || text.contains(['\n', '\0']) || text.len() > 4096 {
            return Ok(None);
        }
        // Of a path that begins with what is not known its end is looked at.
        let known = match text.rfind([UNKNOWN, JOB]) {
            None => text,
            Some(at) => match text.get(at..).and_then(|rest| rest.split_once('/')) {
                Some((_, rest)) if !rest.is_empty() => rest,
                _ => return Ok(None),
            },
        };
        if self.open_paths.contains(known) {
            return Ok(None);
        }
        // The links of a path are looked up, which takes its time.
        self.spend(PATH)?;
        let found = (self.context.path)(known);
        if found.is_none() {
            self.open_paths.insert(known.to_owned());
        }
        Ok(found.map(|mut denial| {
            if denial.part.is_none() {
                denial.part = Some(shown(&self.part));
            }
            Box::new(denial)
        }))
    }
}
