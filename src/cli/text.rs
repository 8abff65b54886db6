//! Text for a terminal. What an agent wrote may hold sequences that move the cursor, set the title or fill the
//! clipboard: none of them reaches the terminal.

use std::io::{IsTerminal as _, Write as _};

use console::{Style, style};

pub use crate::amount::{dollars, grouped};
use crate::clock::Millis;
use crate::events::RunStatus;
use crate::failure::Explain;
use crate::findings::{Check, Finding};

/// The text without terminal sequences, other control characters and characters that turn the order of writing
/// around. Line breaks and tabs stay.
pub fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.peek() {
                // Control sequence: parameters, then one final byte (ECMA-48, section 5.4).
                Some('[') => {
                    chars.next();
                    skip_control_sequence(&mut chars);
                }
                // Strings up to their terminator: OSC, DCS, SOS, PM, APC.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    chars.next();
                    skip_string(&mut chars);
                }
                // Two or three characters: intermediates, then a final one.
                Some(' '..='~') => {
                    while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
                    chars.next_if(|c| matches!(c, '0'..='~'));
                }
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\n' | '\t' => clean.push(c),
            _ if is_unsafe(c) => {}
            _ => clean.push(c),
        }
    }
    clean
}

fn skip_control_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// A string that never ends, or is broken by a line end, is given up there: the rest of the text is shown.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if(|c| *c == '\\');
                return;
            }
            _ => {}
        }
    }
}

/// Control characters, and those that reorder or hide what stands beside them (Unicode bidirectional controls,
/// zero-width no-break space, line separators, tags).
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line: line breaks and runs of space become one space.
pub fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// JSON that is safe on a terminal too: what [`plain`] would drop is escaped, so that it is still the same JSON.
pub fn json<T: serde::Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

/// Standard output does not take the text.
#[derive(Debug, thiserror::Error)]
#[error("standard output cannot be written")]
pub struct PrintError(#[source] std::io::Error);

impl Explain for PrintError {
    fn code(&self) -> &'static str {
        "output"
    }
}

/// Writes to standard output. A reader that has gone away (`| head`) is no failure.
///
/// # Errors
/// When it cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<(), PrintError> {
    print_bytes(text.as_bytes())
}

/// The same for bytes.
///
/// # Errors
/// The same.
pub fn print_bytes(bytes: &[u8]) -> Result<(), PrintError> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(PrintError(error)),
        _ => Ok(()),
    }
}

/// What a doctor found, a line each and one for what to do. Words carry the meaning, colour repeats it.
pub fn checks(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match check.finding {
            Finding::Good => style("ok  ").green(),
            Finding::Note => style("note").cyan(),
            Finding::Bad => style("BAD ").red().bold(),
        };
        text += &format!("{mark} {:10} {}\n", check.name, check.sentence);
        if let Some(remedy) = &check.remedy {
            text += &format!("                → {remedy}\n");
        }
    }
    text
}

/// Says something beside the data, on standard error. If nobody can hear it, it is not said.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a value as one line of [`json`].
///
/// # Errors
/// When standard output cannot be written.
pub fn print_json<T: serde::Serialize>(value: &T) -> Result<(), PrintError> {
    let text = json(value).map_err(|error| PrintError(error.into()))?;
    print(&format!("{text}\n"))
}

/// How standard output is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Whether it is a terminal.
    pub terminal: bool,
    /// Whether it takes colour.
    pub colour: bool,
    /// Its width in columns, when it is a terminal.
    pub width: Option<usize>,
}

impl Output {
    /// Standard output as it is.
    pub fn standard() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width =
            terminal.then(|| usize::from(console::Term::stdout().size().1)).filter(|width| *width > 0);
        Self { terminal, colour: terminal && !set("NO_COLOR") && !dumb, width }
    }
    /// A text in a style, where there is colour.
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { style.force_styling(true).apply_to(text).to_string() } else { text.to_owned() }
    }
    /// The word of a status. Its colour only repeats what the word says.
    pub fn status(&self, status: RunStatus) -> String {
        let style = match status {
            RunStatus::Done => Style::new().green(),
            RunStatus::Failed => Style::new().red(),
            RunStatus::Stopped | RunStatus::Interrupted | RunStatus::Parked => Style::new().yellow(),
            RunStatus::Preparing | RunStatus::Running | RunStatus::Finishing => Style::new().cyan(),
        };
        self.paint(style, status.as_str())
    }
}

/// A length of time for people: `4.2 s`, `3 min 5 s`, `2 h 4 min`.
pub fn duration(milliseconds: i64) -> String {
    let milliseconds = milliseconds.max(0);
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// How long ago, in one unit: `now`, `5 min`, `3 h`, `12 d`.
pub fn age(at: Millis, now: Millis) -> String {
    let minutes = (now.0 - at.0).max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min"),
        60..2880 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests;
