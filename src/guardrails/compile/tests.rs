use std::path::Path;

use super::super::*;
use super::*;

/// The facts of an ordinary start in a home of an ordinary user.
fn facts() -> Facts {
    let folder = PathBuf::from("/home/dev/.worca/runs/r0123456789");
    let common_dir = PathBuf::from("/home/dev/api/.git");
    Facts {
        worca: "/usr/local/bin/worca".into(),
        worca_home: "/home/dev/.worca".into(),
        worktree: folder.join("tree"),
        home: folder.join("home"),
        temporary: folder.join("home/tmp"),
        folder,
        worktree_admin: common_dir.join("worktrees/r0123456789"),
        common_dir,
        branch: "worca/r0123456789/a-task".into(),
        checkout: "/home/dev/api".into(),
        projects: vec!["/home/dev/web".into()],
        protected: vec!["/home/dev/.worca/core-token".into(), "/run/secrets/core_token".into()],
        programs: vec!["/usr/bin".into(), "/home/dev/.local/bin".into()],
        user_home: Some("/home/dev".into()),
        found: vec!["/home/dev/web/.env".into(), "/home/dev/.worca/runs/r0123456789/tree/.env".into()],
        service_ports: vec![4318],
        closed_port: Some(4317),
        host: 4242,
    }
}

fn rule(kind: RuleKind, pattern: &str) -> Rule {
    Rule { set: SetName::default(), kind, pattern: pattern.into() }
}

fn set(filesystem: Filesystem, rules: &[(RuleKind, &str)]) -> GuardrailSet {
    GuardrailSet {
        name: SetName::default(),
        extends: Vec::new(),
        rules: rules.iter().map(|(kind, pattern)| rule(*kind, pattern)).collect(),
        deny_undecided: false,
        honor_project_rules: true,
        environment: Environment::default(),
        confine: Confine { filesystem, tcp: None },
        require_kernel: false,
    }
}

const NORMAL: [(RuleKind, &str); 8] = [
    (RuleKind::Commands, "git push"),
    (RuleKind::Commands, "npm publish"),
    (RuleKind::Paths, "**/.env*"),
    (RuleKind::Paths, "*.pem"),
    (RuleKind::Paths, "id_rsa"),
    (RuleKind::Paths, "/run/secrets/**"),
    (RuleKind::Paths, "~/.aws/**"),
    (RuleKind::Paths, "~/.ssh"),
];

/// What the kernel would say: of all places that hold the path the longest decides.
fn access(kernel: &KernelRules, path: impl AsRef<Path>) -> Access {
    let path = path.as_ref();
    let holds = kernel.places.iter().filter(|(place, _)| path.starts_with(place));
    holds.max_by_key(|(place, _)| place.components().count()).map_or(Access::Closed, |(_, access)| *access)
}

#[test]
fn invariant_8_of_the_repository_only_the_runs_own_parts_are_writable_in_every_tier() {
    for filesystem in [Filesystem::Open, Filesystem::ProjectWrite, Filesystem::Project] {
        let kernel = compile(&set(filesystem, &NORMAL), &[], &facts()).kernel;
        let git = Path::new("/home/dev/api/.git");
        for own in [
            "objects/ab/cd",
            "refs/heads/worca/r0123456789/a-task",
            "logs/refs/heads/worca/r0123456789/a-task",
            "worktrees/r0123456789/index",
        ] {
            assert_eq!(access(&kernel, git.join(own)), Access::Write, "{filesystem:?} {own}");
        }
        for other in [
            "config",
            "HEAD",
            "hooks/pre-commit",
            "info/attributes",
            "packed-refs",
            "refs/heads/main",
            "refs/heads/worca/r9999999999/x",
            "refs/heads/worca",
            "refs/tags/v1",
            "logs/HEAD",
            "worktrees/r9999999999/index",
            "worktrees",
            "modules/x/config",
        ] {
            assert_eq!(access(&kernel, git.join(other)), Access::Read, "{filesystem:?} {other}");
        }
        for foreign in ["/home/dev/api/src/main.rs", "/home/dev/web/.git/config", "/usr/local/bin/worca"] {
            assert!(access(&kernel, foreign) <= Access::Read, "{filesystem:?} {foreign}");
        }
        assert!(access(&kernel, "/home/dev/.local/bin/claude") == Access::Read);
    }
}

#[test]
fn worcas_home_is_closed_in_every_tier_but_for_the_runs_own() {
    for filesystem in [Filesystem::Open, Filesystem::ProjectWrite, Filesystem::Project] {
        let kernel = compile(&set(filesystem, &[]), &[], &facts()).kernel;
        let home = Path::new("/home/dev/.worca");
        for closed in [
            "",
            "worca.db",
            "core-token",
            "runs",
            "runs/r9999999999/home/x",
            "runs/r0123456789/git/config",
            "runs/r0123456789/diff.patch",
            "container/secrets/control",
            "guardrails/mine.yaml",
        ] {
            assert_eq!(access(&kernel, home.join(closed)), Access::Closed, "{filesystem:?} {closed}");
        }
        for (own, expected) in [
            ("tree/src/main.rs", Access::Write),
            ("home/.claude/x", Access::Write),
            ("settings.json", Access::Read),
            ("policy.json", Access::Read),
            ("project.md", Access::Read),
        ] {
            assert_eq!(access(&kernel, home.join("runs/r0123456789").join(own)), expected, "{own}");
        }
        assert_eq!(access(&kernel, "/run/secrets/core_token"), Access::Closed);
    }
}

#[test]
fn the_tiers_differ_in_what_lies_beyond_the_project() {
    let of = |filesystem| compile(&set(filesystem, &NORMAL), &[], &facts()).kernel;
    let (open, write, project) =
        (of(Filesystem::Open), of(Filesystem::ProjectWrite), of(Filesystem::Project));
    for (path, expected) in [
        ("/home/dev/notes", [Access::Write, Access::Read, Access::Closed]),
        ("/home/dev/web/src/a.ts", [Access::Read, Access::Read, Access::Closed]),
        ("/home/dev/api/src/a.rs", [Access::Read, Access::Read, Access::Closed]),
        ("/tmp/x", [Access::Write, Access::Read, Access::Closed]),
        ("/usr/lib/x.so", [Access::Write, Access::Read, Access::Read]),
        ("/etc/passwd", [Access::Write, Access::Read, Access::Read]),
        ("/etc/shadow", [Access::Write, Access::Read, Access::Closed]),
        ("/dev/null", [Access::Write, Access::Write, Access::Write]),
        ("/dev/shm/x", [Access::Write, Access::Write, Access::Closed]),
        ("/home/dev/.aws/credentials", [Access::Closed; 3]),
        ("/home/dev/.ssh/id_rsa", [Access::Closed; 3]),
        ("/home/dev/web/.env", [Access::Closed; 3]),
    ] {
        assert_eq!([&open, &write, &project].map(|kernel| access(kernel, path)), expected, "{path}");
    }
    // Never the run's own: a hole there would take the creating of files from the folder around it.
    assert_eq!(access(&open, facts().worktree.join(".env")), Access::Write);
}

#[test]
fn a_rule_that_means_everything_leaves_the_runs_own_parts() {
    for pattern in ["/**", "/", "~/**", "/home/**", "/home/dev/api/.git", "/home/dev/.worca/runs/**"] {
        let kernel = compile(&set(Filesystem::Open, &[(RuleKind::Paths, pattern)]), &[], &facts()).kernel;
        assert_eq!(access(&kernel, facts().worktree.join("a")), Access::Write, "{pattern}");
        assert_eq!(access(&kernel, "/home/dev/api/.git/objects/x"), Access::Write, "{pattern}");
        assert!(access(&kernel, "/home/dev/api/.git/config") <= Access::Read, "{pattern}");
    }
}

#[test]
fn a_branch_of_another_form_gets_no_ref() {
    for branch in ["main", "worca", "worca/r0", "worca//x", "worca/../x", "other/r0/x", ""] {
        let mut facts = facts();
        facts.branch = branch.into();
        let kernel = compile(&set(Filesystem::Open, &[]), &[], &facts).kernel;
        for path in ["refs/heads/main", "refs/heads/worca/r0", "refs/heads", "refs/x", "logs/refs/heads/x"] {
            assert_eq!(access(&kernel, facts.common_dir.join(path)), Access::Read, "{branch} {path}");
        }
    }
}

#[test]
fn ports_are_those_of_the_set_and_of_worcas_services() {
    let mut set = set(Filesystem::Project, &[]);
    assert_eq!(compile(&set, &[], &facts()).kernel.connect, None);
    set.confine.tcp = Some(vec![8080, 443, 8080]);
    let kernel = compile(&set, &[], &facts()).kernel;
    assert_eq!(kernel.connect, Some(vec![443, 4318, 8080]));
    assert!(kernel.probes.contains(&Probe::Connect(4317)));
    set.confine.tcp = Some(vec![4317]);
    assert!(!compile(&set, &[], &facts()).kernel.probes.contains(&Probe::Connect(4317)));
}

#[test]
fn the_projects_own_rules_count_only_where_the_set_says_so() {
    let own = [rule(RuleKind::Commands, "terraform apply"), rule(RuleKind::Commands, "git push")];
    let mut set = set(Filesystem::Open, &NORMAL);
    let with = compile(&set, &own, &facts());
    assert_eq!(with.policy.rules.len(), NORMAL.len() + 1);
    assert!(with.settings.to_string().contains("Bash(terraform apply:*)"));
    set.honor_project_rules = false;
    let without = compile(&set, &own, &facts());
    assert_eq!(without.policy.rules.len(), NORMAL.len());
    assert_ne!(with.digest, without.digest);
}
