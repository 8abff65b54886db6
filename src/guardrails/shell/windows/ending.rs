//! The programs of Windows that end processes.

use super::super::{Scope, Shell};
use super::{Arg, Judged, by_name, by_target, nested, one_process};

pub(super) fn taskkill(args: &[Arg], part: &str, context: &Scope<'_>) -> Judged {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let word = arg.with("").trim_matches('"').to_lowercase();
        if arg.value().is_none() && !word.contains("im") && !word.contains("fi") {
            return Err(by_target(part));
        }
        let option = word.trim_start_matches(['/', '-', ',', ';', '=']);
        let (option, glued) =
            option.split_once(':').map_or((option, None), |(option, value)| (option, Some(value)));
        match option {
            "im" | "fi" => return Err(by_name(part)),
            "pid" => match glued.map(str::to_owned).or_else(|| args.next().and_then(Arg::value)) {
                Some(id) => one_process(id.trim_matches('"'), part, context)?,
                None => return Err(by_target(part)),
            },
            "s" | "u" | "p" => {
                args.next();
            }
            // Several options in one word: `/f/im`.
            other if other.contains('/') => {
                if other.split('/').any(|one| one.trim() == "im" || one.trim() == "fi") {
                    return Err(by_name(part));
                }
                return Err(by_target(part));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `tskill`, `pskill`: an id, or else a name.
pub(super) fn named_or_id(args: &[Arg], part: &str, context: &Scope<'_>) -> Judged {
    for arg in args {
        let Some(word) = arg.value() else { return Err(by_target(part)) };
        if word.starts_with(['/', '-']) {
            continue;
        }
        if word.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Err(by_name(part));
        }
        one_process(&word, part, context)?;
    }
    Ok(())
}

pub(super) fn wmic(args: &[Arg], part: &str, context: &Scope<'_>, depth: u32) -> Judged {
    let words: Vec<String> = args.iter().map(|arg| arg.with("?").to_lowercase()).collect();
    let text = words.join(" ");
    if text.contains("process") || text.contains("path") {
        if text.contains("delete") || text.contains("terminate") {
            return Err(by_name(part));
        }
        if text.contains("create") {
            for arg in args {
                if let Some(line) = arg.value() {
                    nested(Shell::Cmd, line.trim_matches(['"', '\'']), context, depth)?;
                }
            }
            if let Some(at) = words.iter().position(|word| word == "create") {
                let behind = args.get(at + 1..).unwrap_or_default();
                let line: Vec<String> = behind.iter().map(|arg| arg.with("%unknown%")).collect();
                nested(Shell::Cmd, line.join(" ").trim_matches(['"', '\'']), context, depth)?;
            }
        }
    }
    // `wmic /format:` and the like are harmless; from standard input it takes commands.
    Ok(())
}
