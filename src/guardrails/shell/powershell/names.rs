//! PowerShell's own names: aliases, the cmdlets that matter here, and how parameters are shortened.

use std::collections::BTreeMap;

/// Aliases of Windows PowerShell and PowerShell 7, of the cmdlets that this judge knows.
const ALIASES: [(&str, &str); 62] = [
    ("kill", "stop-process"),
    ("spps", "stop-process"),
    ("gps", "get-process"),
    ("ps", "get-process"),
    ("iex", "invoke-expression"),
    ("icm", "invoke-command"),
    ("saps", "start-process"),
    ("start", "start-process"),
    ("sajb", "start-job"),
    ("foreach", "foreach-object"),
    ("%", "foreach-object"),
    ("where", "where-object"),
    ("?", "where-object"),
    ("sal", "set-alias"),
    ("nal", "new-alias"),
    ("gcim", "get-ciminstance"),
    ("icim", "invoke-cimmethod"),
    ("rcim", "remove-ciminstance"),
    ("gwmi", "get-wmiobject"),
    ("iwmi", "invoke-wmimethod"),
    ("rwmi", "remove-wmiobject"),
    ("curl", "invoke-webrequest"),
    ("wget", "invoke-webrequest"),
    ("iwr", "invoke-webrequest"),
    ("irm", "invoke-restmethod"),
    ("echo", "write-output"),
    ("write", "write-output"),
    ("sls", "select-string"),
    ("gc", "get-content"),
    ("cat", "get-content"),
    ("type", "get-content"),
    ("sc", "set-content"),
    ("ac", "add-content"),
    ("si", "set-item"),
    ("ni", "new-item"),
    ("sv", "set-variable"),
    ("set", "set-variable"),
    ("nv", "new-variable"),
    ("gci", "get-childitem"),
    ("ls", "get-childitem"),
    ("dir", "get-childitem"),
    ("cp", "copy-item"),
    ("copy", "copy-item"),
    ("cpi", "copy-item"),
    ("mv", "move-item"),
    ("move", "move-item"),
    ("mi", "move-item"),
    ("rm", "remove-item"),
    ("del", "remove-item"),
    ("erase", "remove-item"),
    ("rd", "remove-item"),
    ("ri", "remove-item"),
    ("rmdir", "remove-item"),
    ("md", "new-item"),
    ("cd", "set-location"),
    ("sl", "set-location"),
    ("chdir", "set-location"),
    ("gi", "get-item"),
    ("ii", "invoke-item"),
    ("tee", "tee-object"),
    ("gcm", "get-command"),
    ("gal", "get-alias"),
];

/// Cmdlets that show or compare their arguments and touch no file by them.
const TEXT: [&str; 20] = [
    "write-output",
    "write-host",
    "write-error",
    "write-warning",
    "write-verbose",
    "write-debug",
    "write-information",
    "write-progress",
    "read-host",
    "select-object",
    "sort-object",
    "group-object",
    "measure-object",
    "where-object",
    "compare-object",
    "format-table",
    "format-list",
    "out-string",
    "out-host",
    "get-process",
];

/// Parameters whose value is text and no path, of cmdlets that take paths as well.
const TEXTUAL: [&str; 8] =
    ["-value", "-pattern", "-filter", "-include", "-exclude", "-encoding", "-message", "-itemtype"];

/// What a name stands for: an alias of this line, or one of PowerShell's.
pub(super) fn cmdlet(name: &str, own: &BTreeMap<String, String>) -> String {
    let mut name = name.to_owned();
    for _ in 0..8 {
        let meant = own.get(&name).map(String::as_str);
        let meant =
            meant.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, meant)| *meant));
        match meant {
            Some(meant) if meant != name => name = meant.to_owned(),
            _ => break,
        }
    }
    name
}

/// The names under which rules on commands may know a cmdlet beside its own.
pub(super) fn known_as(cmdlet: &str) -> Vec<&'static str> {
    let cmdlet = match cmdlet {
        // Each fetches what an address names, as the first does.
        "invoke-restmethod" | "start-bitstransfer" => "invoke-webrequest",
        other => other,
    };
    ALIASES
        .iter()
        .filter(|(alias, meant)| *meant == cmdlet && alias.len() > 1)
        .map(|(alias, _)| *alias)
        .collect()
}

pub(super) fn is_text(cmdlet: &str) -> bool {
    TEXT.contains(&cmdlet)
}

/// Whether the value behind a parameter is text.
pub(super) fn takes_text(parameter: &str) -> bool {
    let parameter = parameter.to_lowercase();
    parameter.len() > 2 && TEXTUAL.iter().any(|whole| whole.starts_with(&parameter))
}

/// Whether a name is a cmdlet's: verb, dash, noun.
pub(super) fn is_cmdlet(name: &str) -> bool {
    const VERBS: [&str; 36] = [
        "add",
        "clear",
        "compare",
        "convert",
        "convertfrom",
        "convertto",
        "copy",
        "export",
        "find",
        "format",
        "get",
        "import",
        "install",
        "invoke",
        "join",
        "measure",
        "move",
        "new",
        "out",
        "pop",
        "push",
        "read",
        "remove",
        "rename",
        "resolve",
        "select",
        "set",
        "sort",
        "split",
        "start",
        "stop",
        "test",
        "update",
        "wait",
        "where",
        "write",
    ];
    name.split_once('-').is_some_and(|(verb, noun)| {
        VERBS.contains(&verb) && !noun.is_empty() && noun.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether `word` (with its dash, in small letters) is short for `-whole`, and at least `-shortest`.
pub(super) fn short_for(word: &str, shortest: &str, whole: &str) -> bool {
    word.strip_prefix('-').is_some_and(|word| word.starts_with(shortest) && whole.starts_with(word))
}

/// Whether a parameter that every cmdlet has takes a value.
pub(super) fn is_common(word: &str) -> bool {
    const SHORT: [&str; 9] = ["-ea", "-ev", "-wa", "-wv", "-infa", "-iv", "-ov", "-ob", "-pv"];
    const WHOLE: [&str; 9] = [
        "erroraction",
        "errorvariable",
        "warningaction",
        "warningvariable",
        "informationaction",
        "informationvariable",
        "outvariable",
        "outbuffer",
        "pipelinevariable",
    ];
    SHORT.contains(&word)
        || WHOLE.iter().any(|whole| {
            short_for(word, "err", whole)
                || short_for(word, "warn", whole)
                || short_for(word, "inform", whole)
                || short_for(word, "out", whole)
                || short_for(word, "pip", whole)
        })
}
