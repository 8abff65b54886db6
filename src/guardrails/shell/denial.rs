//! What a denial says: what matched, and what to do instead.

use super::super::{Denial, Rule, RuleId};
use super::limits::Trouble;
use super::syntax::PART;

/// The end of judging with a denial.
pub(super) type Judged<T = ()> = Result<T, Box<Denial>>;

/// Rules that hold in every set.
pub(super) const KILL_BY_NAME: &str = "host.kill-by-name";
pub(super) const KILL_TARGET: &str = "host.kill-target";
pub(super) const KILL_GROUP: &str = "host.kill-group";
pub(super) const HOST_ID: &str = "host.host-id";
pub(super) const UNREADABLE: &str = "shell.unreadable";
pub(super) const TOO_DEEP: &str = "shell.too-deep";
pub(super) const TOO_LONG: &str = "shell.too-long";
pub(super) const UNDECIDED: &str = "shell.undecided";

/// What to do where a process is to be ended.
pub(super) const BY_ID: &str = "end a process that you started by its id, written out: `kill <literal pid>`, or by its \
     job: `kill %1`, `kill $!`. Who listens on a port says `lsof -ti tcp:PORT -sTCP:LISTEN`; then `kill` with that number";

/// A denial by a built-in rule.
pub(super) fn built(rule: &'static str, part: &str, reason: impl Into<String>) -> Box<Denial> {
    Box::new(Denial { rule: RuleId::Built(rule), part: Some(shown(part)), reason: reason.into() })
}

/// A denial by a rule of the set.
pub(super) fn by_rule(rule: &Rule, part: &str) -> Box<Denial> {
    let reason = format!(
        "`{}` is not run here: the set denies `{}`, also within other commands. Go on without it and say in your \
         answer that it is left to do",
        shown(part),
        rule.pattern
    );
    Box::new(Denial { rule: RuleId::Set(rule.clone()), part: Some(shown(part)), reason })
}

/// The denial for what could not be judged.
pub(super) fn trouble(trouble: &Trouble, part: &str) -> Box<Denial> {
    match trouble {
        Trouble::Unreadable(at) => built(
            UNREADABLE,
            part,
            format!(
                "could not parse at column {}: check quotes, brackets and the end of each here-document, or write it as several plain commands",
                at + 1
            ),
        ),
        Trouble::TooDeep => built(
            TOO_DEEP,
            part,
            "too many commands within commands to be judged; write it as several plain commands",
        ),
        Trouble::TooLong => built(
            TOO_LONG,
            part,
            "too long or too intricate to be judged; split it, and write long texts with the file tools",
        ),
    }
}

/// As much of it as a denial shows.
pub(super) fn shown(part: &str) -> String {
    let clean = part.trim().replace([super::values::UNKNOWN, super::values::JOB], "…");
    clean.chars().take(PART).collect()
}
