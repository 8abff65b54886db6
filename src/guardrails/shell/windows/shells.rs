//! Shells that are started with a line of their own: the command prompt, PowerShell, the Linux subsystem.

use super::super::{Scope, Shell};
use super::{Arg, Judged, Piece, UNREADABLE, by_name, denial, in_bash, nested, opaque, path, undecided};

/// Arguments as the line that a program gets which reads its own command line.
fn joined(args: &[Arg], unknown: &str) -> String {
    let texts: Vec<String> = args.iter().map(|arg| arg.with(unknown)).collect();
    if let [one] = texts.as_slice() {
        return one.clone();
    }
    let quoted = |text: &String| {
        if text.contains([' ', '\t']) && !text.contains('"') { format!("\"{text}\"") } else { text.clone() }
    };
    texts.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

pub(super) fn command_prompt(args: &[Arg], part: &str, fed: bool, context: &Scope<'_>, depth: u32) -> Judged {
    for (at, arg) in args.iter().enumerate() {
        let word = arg.with("%unknown%");
        let low = word.to_ascii_lowercase();
        // `/c`, `/s/c`, `//c` of Git Bash, `/cdir`.
        let switch = low.match_indices(['/', '-']).find_map(|(start, _)| {
            let next = low.get(start + 1..start + 2)?;
            matches!(next, "c" | "k" | "r").then_some(start + 2)
        });
        if !low.starts_with(['/', '-']) {
            continue;
        }
        if let Some(end) = switch {
            let mut behind = args.get(at + 1..).unwrap_or_default().to_vec();
            let glued = word.get(end..).unwrap_or_default();
            if !glued.is_empty() {
                behind.insert(0, Arg::known(glued));
            }
            return nested(Shell::Cmd, &joined(&behind, "%unknown%"), context, depth);
        }
    }
    if fed {
        return opaque(part);
    }
    Ok(())
}

/// Parameters of PowerShell's own command line that take a value, by their shortest and longest form.
const VALUED: [(&str, &str); 14] = [
    ("ex", "executionpolicy"),
    ("ep", "ep"),
    ("w", "windowstyle"),
    ("v", "version"),
    ("ps", "psconsolefile"),
    ("o", "outputformat"),
    ("of", "of"),
    ("i", "inputformat"),
    ("if", "if"),
    ("config", "configurationname"),
    ("wo", "workingdirectory"),
    ("wd", "wd"),
    ("settings", "settingsfile"),
    ("custom", "custompipename"),
];

pub(super) fn powershell(
    name: &str,
    args: &[Arg],
    part: &str,
    fed: bool,
    context: &Scope<'_>,
    depth: u32,
) -> Judged {
    let fits = |word: &str, short: &str, long: &str| word.starts_with(short) && long.starts_with(word);
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        let rest = args.get(at..).unwrap_or_default();
        let Some(word) = arg.value() else { return undecided(context, part) };
        let Some(option) = word.strip_prefix(['-', '/', '\u{2013}', '\u{2014}', '\u{2015}']) else {
            let mut all = rest.to_vec();
            all.insert(0, arg.clone());
            // The first plain word is a command for Windows PowerShell, a file for PowerShell 7.
            nested(Shell::PowerShell, &script(&all), context, depth)?;
            return if name == "powershell" { Ok(()) } else { path(arg, context) };
        };
        let typed = option.trim_start_matches('-');
        let (typed, glued) =
            typed.split_once(':').map_or((typed, None), |(option, value)| (option, Some(value)));
        let option = typed.to_lowercase();
        let option = option.as_str();
        let mut behind = rest.to_vec();
        if let Some(value) = glued {
            behind.insert(0, Arg::known(value));
        }
        if fits(option, "c", "command") || fits(option, "commandw", "commandwithargs") || option == "cwa" {
            if behind.first().and_then(Arg::value).as_deref() == Some("-") {
                return opaque(part);
            }
            if behind.first().is_some_and(|arg| arg.pieces.first() == Some(&Piece::Unknown)) {
                undecided(context, part)?;
            }
            return nested(Shell::PowerShell, &script(&behind), context, depth);
        }
        if fits(option, "e", "encodedcommand") || option == "ec" {
            let Some(code) = behind.first().and_then(Arg::value) else { return undecided(context, part) };
            let Some(line) = decoded(&code) else {
                let reason = "holds a command whose code cannot be read; write the command out";
                return Err(denial(UNREADABLE, part, reason));
            };
            return nested(Shell::PowerShell, &line, context, depth);
        }
        if fits(option, "f", "file") {
            let Some(file) = behind.first() else { return Ok(()) };
            if file.value().as_deref() == Some("-") {
                return opaque(part);
            }
            path(file, context)?;
            let tail = behind.get(1..).unwrap_or_default();
            return if tail.is_empty() { Ok(()) } else { in_bash(&behind, context, depth) };
        }
        if glued.is_none() && VALUED.iter().any(|(short, long)| fits(option, short, long)) {
            at += 1;
        }
    }
    if fed { opaque(part) } else { Ok(()) }
}

/// Arguments as the script that PowerShell makes of them: with blanks between.
fn script(args: &[Arg]) -> String {
    let texts: Vec<String> = args.iter().map(|arg| arg.with("$unknown")).collect();
    let text = texts.join(" ");
    let trimmed = text.trim();
    // `-Command "& { … }"` and a block from within PowerShell.
    match trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inside) => inside.to_owned(),
        None => text,
    }
}

/// The text of `-EncodedCommand`: UTF-16, little end first, in base64.
fn decoded(code: &str) -> Option<String> {
    use base64::Engine as _;
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let bytes = engine.decode(code).ok()?;
    let units: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| {
            u16::from_le_bytes([pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)])
        })
        .collect();
    Some(String::from_utf16_lossy(&units).trim_start_matches('\u{feff}').to_owned())
}

pub(super) fn wsl(args: &[Arg], part: &str, fed: bool, context: &Scope<'_>, depth: u32) -> Judged {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let Some(word) = arg.value() else { return undecided(context, part) };
        match word.as_str() {
            "-d" | "--distribution" | "-u" | "--user" | "--cd" | "--shell-type" | "--distribution-id" => {
                at += 2;
            }
            "-e" | "--exec" => return in_bash(args.get(at + 1..).unwrap_or_default(), context, depth),
            "--" => {
                at += 1;
                break;
            }
            "~" | "--system" => at += 1,
            // Ends every process of the subsystem, of whoever it is.
            "--shutdown" | "--terminate" | "-t" => return Err(by_name(part)),
            _ if word.starts_with('-') => at += 1,
            _ => break,
        }
    }
    let rest = args.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return if fed { opaque(part) } else { Ok(()) };
    }
    // A shell of the subsystem reads the words once more.
    let line: Vec<String> = rest.iter().map(|arg| arg.with("$unknown")).collect();
    nested(Shell::Bash, &line.join(" "), context, depth)?;
    in_bash(rest, context, depth)
}
