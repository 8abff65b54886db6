//! What a set stops, by kind of action: by the hook, by the agent program's own permissions, by the kernel that is
//! here; and what it does not stop. docs/guardrails.md says the same for every set.

use super::{Filesystem, GuardrailSet, KernelSupport, RuleKind};

/// One kind of action, and what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    /// What an agent does.
    pub action: &'static str,
    /// What the hook stops of it.
    pub hook: String,
    /// What the agent program's own permissions stop of it, also where the hook does not answer.
    pub program: String,
    /// What the kernel stops of it, whatever program tries.
    pub kernel: String,
    /// What nothing here stops.
    pub open: String,
}

/// Explains a set. `kernel`: what the kernel offers where the run would be.
pub fn explain(set: &GuardrailSet, kernel: KernelSupport) -> Vec<Explained> {
    let count = |kind: RuleKind| set.rules.iter().filter(|rule| rule.kind == kind).count();
    let rules = |kind: RuleKind, one: &str| match count(kind) {
        0 => format!("no {one} rule"),
        1 => format!("1 {one} rule"),
        count => format!("{count} {one} rules"),
    };
    let held = |offered: bool, needs: &str, what: String| {
        if offered { what } else { format!("nothing: this kernel lacks {needs}") }
    };
    let files = |what: String| held(kernel.files, "Landlock for files (Linux 6.2)", what);
    let writes = match set.confine.filesystem {
        Filesystem::Open => {
            "writes to Worca's own state, to every project but the run's worktree, and to folders of programs"
        }
        Filesystem::ProjectWrite | Filesystem::Project => {
            "every write outside the worktree, the run's own folders and its own parts of `.git`"
        }
    };
    let reads = match set.confine.filesystem {
        Filesystem::Open | Filesystem::ProjectWrite => {
            "reads of Worca's own state, and of files that a path rule names"
        }
        Filesystem::Project => {
            "reads of all but the worktree, the repository's `.git`, own folders and system programs"
        }
    };
    let undecided = if set.deny_undecided {
        "a line of which cannot be known what it runs"
    } else {
        "a line of which cannot be known what it runs, where a denied word stands in it"
    };
    let or_nothing =
        |parts: &[&str]| match parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>() {
            none if none.is_empty() => "nothing".to_owned(),
            some => some.join("; "),
        };
    let by_kind = |kind: RuleKind, words: &'static str| if count(kind) == 0 { "" } else { words };
    vec![
        Explained {
            action: "a shell line",
            hook: or_nothing(&[
                &if count(RuleKind::Commands) == 0 {
                    String::new()
                } else {
                    format!("{}, in every form that a shell runs", rules(RuleKind::Commands, "command"))
                },
                by_kind(RuleKind::Paths, "a path of a rule that the line names"),
                "the host guard",
                undecided,
                "a line that cannot be read, or that is too long or too deep",
            ]),
            program: or_nothing(&[by_kind(RuleKind::Commands, "lines that begin with the words of a command rule")]),
            kernel: "nothing of the line itself; what it does is held as below".into(),
            open: "what a program does by itself: a script, a build file, a compiled program".into(),
        },
        Explained {
            action: "a file tool (Read, Edit, Write, Grep, Glob)",
            hook: or_nothing(&[
                &if count(RuleKind::Paths) == 0 {
                    String::new()
                } else {
                    format!("{}, as typed and where links lead", rules(RuleKind::Paths, "path"))
                },
                "Worca's own state",
            ]),
            program: or_nothing(&[
                by_kind(RuleKind::Paths, "the same rules, as typed; in a search also what lies below"),
                "Worca's own state",
            ]),
            kernel: "as for any program, below".into(),
            open: "a secret in a file that no rule names".into(),
        },
        Explained {
            action: "reading a file, any program",
            hook: "nothing but what a shell line or a file tool names".into(),
            program: "nothing but what a file tool or a simple shell line names".into(),
            kernel: files(reads.into()),
            open: match set.confine.filesystem {
                Filesystem::Project => "a file made after the start that only a `**/` rule names; names and sizes (`stat`)",
                _ => "what you can read and no rule names; a file made after the start that only a `**/` rule names; \
                      names and sizes (`stat`)",
            }
            .into(),
        },
        Explained {
            action: "writing a file, any program",
            hook: "nothing but what a shell line or a file tool names".into(),
            program: "nothing but what a file tool names".into(),
            kernel: files(writes.into()),
            open: "modes, owners and times (`chmod`, `chown`, `touch`), which Landlock does not hold; \
                   anything in the worktree, also what you run later: build files, tests, hooks kept on the branch"
                .into(),
        },
        Explained {
            action: "ending a process",
            hook: "kills by name, of groups, fed by a pipe, and of the host's id".into(),
            program: "nothing".into(),
            kernel: held(
                kernel.signals,
                "Landlock for signals (Linux 6.12)",
                "signals to every process but those that the agent started; reading, tracing and limiting others".into(),
            ),
            open: if kernel.signals { "its own processes" } else { "a literal id of another process of this user" }
                .into(),
        },
        Explained {
            action: "a TCP connection",
            hook: or_nothing(&[by_kind(RuleKind::Commands, "programs that a command rule names")]),
            program: or_nothing(&[by_kind(RuleKind::Commands, "the same, for simple lines")]),
            kernel: match &set.confine.tcp {
                None => "nothing: the set limits no port".into(),
                Some(ports) => {
                    let beside = if ports.is_empty() {
                        String::new()
                    } else {
                        let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                        format!(", {}", ports.join(", "))
                    };
                    let what = format!("every port but those of Worca's own services{beside}");
                    held(kernel.tcp, "Landlock for TCP (Linux 6.7)", what)
                }
            },
            open: match &set.confine.tcp {
                None => "any address",
                Some(_) => "any address on a port that is open; listening on a port",
            }
            .into(),
        },
        Explained {
            action: "UDP, DNS, raw sockets",
            hook: "nothing".into(),
            program: "nothing".into(),
            kernel: "nothing: Landlock does not know them".into(),
            open: "all of it; in the box the network `work` alone, without `out`, holds it".into(),
        },
        Explained {
            action: "a Unix socket",
            hook: "nothing".into(),
            program: "nothing".into(),
            kernel: held(
                kernel.signals,
                "Landlock for abstract sockets (Linux 6.12)",
                "abstract sockets of other programs".into(),
            ),
            open: "a socket that is a file, where this user may connect to it (an engine, an SSH agent, a desktop); \
                   the box has none"
                .into(),
        },
        Explained {
            action: "a terminal of yours",
            hook: "nothing".into(),
            program: "nothing".into(),
            kernel: "nothing where `/dev/pts` is open to it, which programs need for terminals of their own".into(),
            open: "reading and writing a terminal of the same user: of your shell, or of one in the box".into(),
        },
        Explained {
            action: "WebFetch, WebSearch",
            hook: or_nothing(&[by_kind(RuleKind::Tools, "tools and hosts that a tool rule names")]),
            program: or_nothing(&[by_kind(RuleKind::Tools, "the same")]),
            kernel: "the connection, as above; the model's provider searches by itself".into(),
            open: "an address that no rule names".into(),
        },
        Explained {
            action: "a tool of an MCP server",
            hook: or_nothing(&[
                by_kind(RuleKind::Tools, "tools that a tool rule names"),
                "fields that look like a path, an address or a command line, as for the tools above",
            ]),
            program: "a tool that nobody allowed".into(),
            kernel: "a server that the agent program starts: as any program".into(),
            open: "what a server does elsewhere".into(),
        },
        Explained {
            action: "core's environment",
            hook: "nothing".into(),
            program: "nothing".into(),
            kernel: files("`/proc/*/environ` of processes outside".into()),
            open: if set.environment.scrub {
                "the names that every program needs, and those of `keep`"
            } else {
                "names that carry no credential, and those of `keep`"
            }
            .into(),
        },
        Explained {
            action: "core's API, other runs",
            hook: "paths of Worca's own state".into(),
            program: "paths of Worca's own state".into(),
            kernel: files("the tokens and every other run's folder".into()),
            open: "core's port can be reached where ports are not limited; it answers nobody without the token".into(),
        },
    ]
}
