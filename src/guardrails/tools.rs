//! Rules on tools by name, and on the host that a fetch names.

use url::Url;

use super::{Denial, Rule, RuleId, RuleKind};
use super::{glob, project};

/// One tool under its names of several versions.
const SAME: [&[&str]; 1] = [&["Agent", "Task"]];

/// Claude Code's own tools whose fields are judged by name. Others are judged by every field that they have.
const KNOWN: [&str; 22] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "SendMessage",
    "Skill",
    "Task",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Whether the tool is one whose fields we know.
pub(super) fn is_known(tool: &str) -> bool {
    KNOWN.contains(&tool)
}

/// Whether a rule's name means this tool. Letters of both cases are one: no two tools differ only by that today, and
/// it must not be a way around tomorrow.
pub(super) fn name_fits(pattern: &str, tool: &str) -> bool {
    let fits = |tool: &str| glob::fits(pattern, tool, true);
    // A whole server: `mcp__browser` is all of its tools.
    let server = pattern.strip_prefix("mcp__").is_some_and(|server| !server.contains("__"))
        && tool.strip_prefix(pattern).is_some_and(|rest| rest.starts_with("__"));
    let same = SAME.iter().filter(|names| names.contains(&tool)).flat_map(|names| names.iter());
    server || fits(tool) || same.into_iter().any(|name| fits(name))
}

/// Whether the rule denies every use of a tool.
pub(super) fn denies_whole(rule: &Rule, tool: &str) -> bool {
    rule.kind == RuleKind::Tools && !rule.pattern.contains('(') && name_fits(&rule.pattern, tool)
}

/// The path pattern of a repository's rule `Edit(…)`, in our form.
pub(super) fn edited(rule: &Rule) -> Option<String> {
    let inner = rule.pattern.strip_prefix("Edit(")?.strip_suffix(')')?;
    (rule.kind == RuleKind::Tools).then(|| project::path(inner)).flatten()
}

/// The verdict on an address by the rules `WebFetch(domain:…)`.
///
/// # Errors
/// When there are such rules and the address has no host that can be known.
pub(super) fn address(rules: &[Rule], address: &str) -> Result<Option<Denial>, String> {
    let mut domains = rules.iter().filter_map(|rule| Some((rule, domain(rule)?))).peekable();
    if domains.peek().is_none() {
        return Ok(None);
    }
    let unknown = "an address whose host cannot be known; name it whole, as in `https://host/path`";
    let host = Url::parse(address.trim()).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.ok_or(unknown)?;
    let host = host.strip_suffix('.').unwrap_or(&host).to_ascii_lowercase();
    let rule = domains.find(|(_, domain)| host_fits(domain, &host)).map(|(rule, _)| rule);
    Ok(rule.map(|rule| Denial {
        rule: RuleId::Set(rule.clone()),
        part: None,
        reason: format!(
            "`{}` may not be fetched from; do without it, or say in your answer what a person has to look up",
            host.chars().take(200).collect::<String>()
        ),
    }))
}

/// The domain of a rule `WebFetch(domain:…)`.
fn domain(rule: &Rule) -> Option<&str> {
    let (tool, rest) = rule.pattern.split_once('(')?;
    let whole = rule.kind == RuleKind::Tools && tool.eq_ignore_ascii_case("WebFetch");
    whole.then(|| rest.strip_suffix(')')?.trim().strip_prefix("domain:")).flatten().map(str::trim)
}

/// Whether a host is the one of a rule; `*.example.com` is all below it, and not itself.
fn host_fits(domain: &str, host: &str) -> bool {
    if domain == "*" {
        return true;
    }
    match domain.strip_prefix("*.") {
        Some(above) => host.strip_suffix(&ascii(above)).is_some_and(|rest| rest.ends_with('.')),
        None => ascii(domain) == host,
    }
}

/// A rule's host as an address has it: lower case, without a last dot, in ASCII. One that is no host is left as it is.
fn ascii(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    url::Host::parse(host).map_or_else(|_| host.to_ascii_lowercase(), |host| host.to_string())
}
