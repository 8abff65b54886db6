//! What a pattern of a rule may be. A pattern that can match nothing, or that says something else than its writer
//! means, is an error: a rule that does not hold must not look as if it did.

/// What is wrong with a value, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) fix: String,
}

type Checked = Result<(), Wrong>;

/// The longest pattern, in bytes: a policy file with the most rules still fits into its own limit.
const LONGEST: usize = 256;

fn wrong(what: impl Into<String>, fix: impl Into<String>) -> Checked {
    Err(Wrong { what: what.into(), fix: fix.into() })
}

fn shape(text: &str, example: &str) -> Checked {
    if text.trim().is_empty() {
        return wrong(
            "the rule is empty",
            format!("take the line away, or write a rule such as `{example}`"),
        );
    }
    if text.chars().any(char::is_control) {
        return wrong(
            "the rule holds a control character",
            "write it on one line, without control characters",
        );
    }
    if text.trim() != text {
        return wrong("the rule begins or ends with a blank", format!("write `{}`", shown(text.trim())));
    }
    if text.len() > LONGEST {
        return wrong(
            format!("the rule has {} bytes; {LONGEST} is the most", text.len()),
            "write a shorter one",
        );
    }
    Ok(())
}

/// A pattern in a message.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// A command rule: the words of a command, as the program gets them.
pub(super) fn command(text: &str) -> Checked {
    shape(text, "git push")?;
    if let Some(inner) = text.strip_prefix("Bash(") {
        let inner = inner.trim_end_matches(')').trim_end_matches(":*").trim_end_matches(" *");
        return wrong(
            format!("`{}` is a rule of the agent program's settings", shown(text)),
            format!("a command rule is its words alone: `{}`", shown(inner)),
        );
    }
    if text.contains("  ") || text.contains('\t') {
        let single = text.split_whitespace().collect::<Vec<_>>().join(" ");
        return wrong("there is more than one blank between words", format!("write `{}`", shown(&single)));
    }
    if let Some(sign) = text.chars().find(|c| "|;&<>`$(){}".contains(*c)) {
        return wrong(
            format!("`{}` is no single command: `{sign}` stands in it", shown(text)),
            "name one command by its words, such as `git push`; each part of a line is judged by itself",
        );
    }
    if let Some(sign) = text.chars().find(|c| "'\"\\".contains(*c)) {
        return wrong(
            format!("`{sign}` stands in the rule, and no word that a program gets has one"),
            "write the words as the program gets them, without quotes and escapes",
        );
    }
    let first = text.split(' ').next().unwrap_or_default();
    if first.contains('/') {
        let name = first.rsplit('/').find(|part| !part.is_empty()).unwrap_or("git");
        return wrong(
            format!("the program is named with its folder: `{}`", shown(first)),
            format!("name it alone, `{}`: that holds wherever it lies", shown(name)),
        );
    }
    if first.starts_with('-') {
        return wrong(
            "the first word is an option",
            "begin with the program's name, such as `git push --force`",
        );
    }
    if first.trim_matches('*').is_empty() {
        return wrong(
            "the first word, which is the program's name, means every program",
            "name the program; `*` may stand for a part of it, as in `mkfs.*`",
        );
    }
    if let Some(word) = text.split(' ').find(|word| word.starts_with('-') && word.contains('*')) {
        let word = word.trim_end_matches('*').trim_end_matches('=');
        return wrong(
            "an option holds a `*`",
            format!("write the option alone, `{}`: that holds with every value", shown(word)),
        );
    }
    if first.contains('=') {
        return wrong(
            format!("the first word sets a variable: `{}`", shown(first)),
            "leave it away: a rule holds whatever variables are set",
        );
    }
    if ["git", "gh", "cargo", "docker"].contains(&first)
        && let Some(words) = text.strip_suffix(":*")
    {
        return wrong(
            format!("`{}` ends in `:*`, which is the agent program's way to write a prefix", shown(text)),
            format!("write `{}`: a command rule is a prefix already", shown(words)),
        );
    }
    Ok(())
}

/// A tool rule: a name of the agent program's, `*` in it, or `WebFetch(domain:host)`.
pub(super) fn tool(text: &str) -> Checked {
    shape(text, "WebFetch")?;
    let Some((name, inner)) = text.split_once('(') else {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
        if !text.chars().all(fits) || text.starts_with(['-', '.']) {
            return wrong(
                format!("no tool can be called `{}`", shown(text)),
                "write a tool's name, such as `WebFetch` or `mcp__browser__*`",
            );
        }
        return Ok(());
    };
    match name {
        "WebFetch" => {}
        "Bash" | "PowerShell" => {
            return wrong(
                format!("`{}` is about a command", shown(text)),
                "write it under `deny.commands`, as its words: `git push`",
            );
        }
        "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "Grep" | "Glob" => {
            return wrong(
                format!("`{}` is about a path", shown(text)),
                "write it under `deny.paths`; a path there is neither read nor edited",
            );
        }
        _ => {
            return wrong(
                format!("`{}` takes nothing in brackets here", shown(name)),
                "write the tool's name alone; only `WebFetch(domain:HOST)` takes more",
            );
        }
    }
    let host = inner.strip_suffix(')').and_then(|inner| inner.strip_prefix("domain:"));
    let fits = |host: &str| {
        let host = host.strip_prefix("*.").unwrap_or(host);
        !host.is_empty()
            && host.len() <= 253
            && host.split('.').all(|label| {
                !label.is_empty()
                    && label.len() <= 63
                    && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            })
    };
    if !host.is_some_and(fits) {
        return wrong(
            format!("`{}` names no host", shown(text)),
            "write `WebFetch(domain:example.com)` or `WebFetch(domain:*.example.com)`: small letters, no port, no path",
        );
    }
    Ok(())
}

/// A path rule, as in `.gitignore`.
pub(super) fn path(text: &str) -> Checked {
    shape(text, "**/.env*")?;
    if let Some(rest) = text.strip_prefix('!') {
        return wrong(
            "a `!` takes a path out again, and rules only add",
            format!("take the line away; `{}` is open when no rule names it", shown(rest)),
        );
    }
    if text.contains('\\') {
        return wrong("a `\\` stands in the path", "write `/` between folders, on Windows too");
    }
    if text.contains(['{', '}']) {
        return wrong("a `{` or `}` stands in the path", "write one rule for each name");
    }
    if text.contains('$') {
        return wrong("a variable stands in the path", "write `~` for the home folder, or the whole path");
    }
    if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
        return wrong(
            format!("`{}` names another user's home", shown(text)),
            "write `~/…` for the home folder, or the whole path",
        );
    }
    if text.matches('[').count() != text.matches(']').count() {
        return wrong("a `[` has no `]`", "close it, as in `*.[pk]em`");
    }
    let body = text.strip_prefix('/').or_else(|| text.strip_prefix("~/")).unwrap_or(text);
    if body.is_empty() || body == "~" || body.split('/').all(|part| part == "*" || part == "**") {
        return wrong(
            format!("`{}` closes everything, and an agent could not work", shown(text)),
            "name what is to be closed; `confine.filesystem: project` keeps an agent to its project",
        );
    }
    if text.ends_with('/') {
        let folder = text.trim_end_matches('/');
        return wrong(
            "the path ends with `/`",
            format!("write `{}/**` for what is in the folder", shown(folder)),
        );
    }
    if body.split('/').any(str::is_empty) {
        return wrong("two `/` follow each other", "write one");
    }
    if body.split('/').any(|part| part == "." || part == "..") {
        return wrong(
            "a `.` or `..` stands in the path, and a path is judged without them",
            "write where it leads",
        );
    }
    if body.split('/').any(|part| part != "**" && part.contains("**")) {
        return wrong("`**` stands beside other signs", "write `**/` for any depth, `*` within a name");
    }
    Ok(())
}

/// A name that `environment.keep` may hold. What is kept reaches every program of the agent, so names that carry a
/// credential, and those that change what a program loads, are refused: no set can loosen that.
pub(super) fn variable(text: &str) -> Checked {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let fits = text.len() <= 100
        && text.starts_with(letter)
        && text.chars().all(|c| letter(c) || c.is_ascii_digit());
    if !fits {
        return wrong(
            format!("`{}` is no name of a variable", shown(text)),
            "write the name alone: letters, digits and `_`, no value, no `*`",
        );
    }
    let upper = text.to_ascii_uppercase();
    let parts: Vec<&str> = upper.split('_').collect();
    let secret = [
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
    ];
    let carries = parts
        .iter()
        .any(|part| secret.contains(part) || part.ends_with("TOKEN") || part.ends_with("PASSWORD"))
        || parts.iter().any(|part| *part == "KEY" || *part == "KEYS" || part.ends_with("APIKEY"))
        || upper.ends_with("_PASS")
        || upper.ends_with("_AUTH")
        || upper == "DATABASE_URL"
        || upper.starts_with("AWS_");
    if carries {
        return wrong(
            format!("`{text}` carries a credential by its name, and an agent gets none"),
            "leave it away; what an agent must reach with a credential it reaches through the key service",
        );
    }
    let loads = [
        "LD_",
        "DYLD_",
        "ANTHROPIC_",
        "CLAUDE_",
        "CLAUDECODE",
        "WORCA_",
        "GIT_",
        "BASH_FUNC",
        "npm_config_",
        "NPM_CONFIG_",
    ];
    let loads = loads.iter().any(|start| text.starts_with(start) || upper.starts_with(start))
        || [
            "NODE_OPTIONS",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "IFS",
            "PATH",
            "HOME",
            "TMPDIR",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "PYTHONHOME",
            "PERL5OPT",
            "PERL5LIB",
            "RUBYOPT",
            "RUBYLIB",
            "JAVA_TOOL_OPTIONS",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "SUDO_ASKPASS",
            "DOCKER_HOST",
            "DBUS_SESSION_BUS_ADDRESS",
            "PROMPT_COMMAND",
            "RUSTC_WRAPPER",
        ]
        .contains(&upper.as_str());
    if loads {
        return wrong(
            format!(
                "`{text}` changes what a program loads or whom it talks to, and Worca sets it or leaves it away"
            ),
            "leave it away",
        );
    }
    Ok(())
}
