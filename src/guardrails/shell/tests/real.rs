//! The judge against a real bash: what bash runs must be denied, what it does not run must be allowed, and what it
//! can read must be read. `git` is a stub that logs its arguments; nothing else that the lines name does harm.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;

use super::*;

/// Lines in which bash runs `git push`.
const RUNS: &[&str] = &[
    "git push",
    "true; git push",
    "true && git push || true",
    "true & git push",
    "true # x\ngit push",
    "(git push)",
    "{ git push; }",
    "! git push",
    "time git push",
    "if true; then git push; fi",
    "for i in 1; do git push; done",
    "while git push; do break; done",
    "until git push; do :; done",
    "case a in b) ;; (a) git push;; esac",
    "case a in a) git push\nesac",
    "f() { git push; }; f",
    "function f { git push; }; f",
    "coproc git push; wait",
    "echo \"$(git push)\"",
    "echo `git push`",
    "echo \"`echo \\`git push\\``\"",
    "cat <(git push)",
    "cat <<E\n$(git push)\nE",
    "cat <<-E\n\t`git push`\n\tE",
    "cat <<\\E; git push\n$(true)\nE",
    "cat <<A <<'B'; git push\n$(true)\nA\nx\nB",
    "x=$(cat <<E\n)\nE\n); git push",
    "echo $(case a in a) git push;; esac)",
    "echo ${x:-$(git push)}",
    "echo \"${x:-\"$(git push)\"}\"",
    "echo \"${x:-'it s'}\" $(git push)",
    "echo \"${x#'}'}\"; git push",
    "echo $(( $(git push >&2; echo 1) + 1 ))",
    "((git push) ; true)",
    "echo $((git push) ; true)",
    "[[ $(git push) == x ]] || true",
    "[[ a =~ ^(x|a)$ ]] && git push",
    "a=($(git push))",
    "x='a[$(git push)]'; echo $((x))",
    "x='$(git push)'; echo ${x@P}",
    "PS4='$(git push)'; set -x; :",
    "trap 'git push' EXIT",
    "eval 'git pu''sh'",
    "sh -c 'git push'",
    "bash -c '$0 $1' git push",
    "bash -euo pipefail -c 'git push'",
    "bash <<'E'\ngit push\nE",
    "bash <<< 'git push'",
    "x=push; git $x",
    "x='git push'; $x",
    "x=(git push); \"${x[@]}\"",
    "x=zpush; git ${x#z}",
    "g\\\nit pu\\\nsh",
    "g''it 'pu'\"sh\"",
    "$'\\x67it' $'pus\\150'",
    "{git,push}",
    "git${IFS}push",
    "IFS=,; x=git,push; $x",
    "git pu$@sh",
    "git pu${zzz}sh",
    "env -i PATH=\"$PATH\" git push",
    "env -S 'git push'",
    "timeout 5 nice -n 1 nohup git push",
    "command git push",
    "exec git push",
    "xargs git <<< push",
    "find . -maxdepth 0 -exec git push ';'",
    "set -- git push; \"$@\"",
    "mapfile -C 'git push' -c 1 a <<< x",
    "git -C x -c a.b=c --no-pager push",
    "a\\\n() { git push; }; a",
    "echo a >/dev/null 2>&1;git push",
    "cat </dev/null>/dev/null&git push",
    "echo \\\\; git push",
    "echo '\\'; git push",
    "echo \"\\\"\"; git push",
    "echo $'\\''; git push",
    "echo a#b; git push",
    "f() ( git push ); f",
    "select x in a; do git push; break; done <<< 1",
    "for ((i=0;i<1;i++)) { git push; }",
];

/// Lines in which it does not, though the words stand there.
const TEXT: &[&str] = &[
    "echo git push",
    "true # git push",
    "true # $(git push)",
    "echo 'a # b' # ; git push",
    "cat <<'E'\n$(git push)\n`git push`\nE",
    "cat <<E\n\\$(git push) \\`git push\\`\nE",
    "echo '$(git push)' '`git push`'",
    "echo \\$\\(git push\\)",
    "echo \"\\$(git push)\"",
    "git commit -m 'git push; git push'",
    "git log --grep='git push'",
    "cat <<E\ngit push\nE",
    "echo $'it\\'s; git push'",
    "x='git push'; echo \"$x\"",
    "case 'git push' in a) ;; esac",
    "[[ 'git push' == x ]] || true",
    "printf '%s\\n' 'git push' | cat",
];

/// What bash can read.
const SYNTAX: &[&str] = &[
    "exec 3<>/tmp/x {fd}>y 2>&1 &>>z",
    "declare -A m=([a]=1 [b]=\"x y\"); echo \"${m[@]}\" ${#m[@]} ${m[a]/x/y} ${!m[@]}",
    "for ((i=0;i<3;i++)); do (( i % 2 == 0 )) && continue; a[i]=$((i<<2)); done",
    "[[ $a =~ ^[0-9]+(\\.[0-9]+)?$ && ! -f \"$b\" || ( $c < $d ) ]] || exit",
    "coproc X { cat; }",
    "f-g() ( echo ) 2>/dev/null",
    "time -p ! a | b |& c",
    "echo ${a:1:2} ${a: -1} ${a^^} ${a,} ${a//b/c} ${a/#b/c} ${a%%.*} ${a:?no} ${#a} ${a[@]:1} ${@:2} ${!a} ${a@Q}",
    "if a; then b; elif c; then d; else e; fi >x <y",
    "while read -r a b; do :; done < <(ls)",
    "cat <<A >x <<-B; echo y\na\nA\n\tb\n\tB\n",
    "case $x in a|b) ;; c*) x ;& d?) y ;;& [e-g]) z;; *) ;; esac",
    "a=1 b=(2 3) c+=4 d[0]=5 cmd",
    "select x in a b; do break; done",
    "echo $[1+2] $((0x1f)) $((a?b:c)) $(( (1+2)*3 ))",
    "echo a{b,c{d,e}}f {1..3} {a..c} { }",
    "function f() { local a=$1; return 0; }; f",
    "ls -la | grep -v '^d' | awk '{print $9}' | sort -u",
    "! [ -f x ] && echo no",
    "if ! a; then b; fi",
    "{ a; b; } 2>&1 | tee c",
    "echo \"a${b:+ $c}d\" \"$(echo \"x $(y)\")\" '\\' \"\\\\\"",
    "echo a \\\n  b \\\n  c",
    "a && b ||\n c |\n d",
    "until false\ndo\n  x\ndone",
    "echo !x a!b \"c!d\" ~ ~/x a=~ x~",
    "printf '%s' \"${x:-$(a \"b\")}\"",
    "cmd1 2> >(tee err) > >(tee out)",
    "[ \"$a\" = \"b\" -a -n \"$c\" ]",
    "echo ${x-} ${x:-\"a b\"} ${x:-'}'} \"${x%\"y\"}\"",
    "trap 'rm -f \"$t\"' EXIT INT",
    "x=$(<file) y=`<file`",
    "let x=1+2 'y = 3'",
    "echo <<<x <<< \"y z\"",
    "case a in esac",
    "for x; do :; done",
    "for x in; do :; done",
];

fn bash(folder: &Path, arguments: &[&str]) -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test against the real bash")]
    std::process::Command::new("/bin/bash")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", folder.join("bin"))
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// Whether bash runs `git … push` for a line.
fn runs(line: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["bash", "sh", "cat", "env", "timeout", "nice", "nohup", "xargs", "find", "true"] {
        let found =
            ["/usr/bin", "/bin"].iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
        symlink(found.unwrap(), bin.join(name)).unwrap();
    }
    let log = folder.path().join("log");
    let stub = bin.join("git");
    std::fs::write(&stub, format!("#!/bin/bash\necho \"git $*\" >> '{}'\n", log.display())).unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    bash(folder.path(), &["-c", line]);
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().any(|call| {
        let mut words = call
            .split_whitespace()
            .skip(1)
            .skip_while(|word| word.starts_with('-') || matches!(*word, "x" | "a.b=c"));
        words.next() == Some("push")
    })
}

#[test]
fn what_bash_runs_is_denied() {
    let wrong: Vec<&&str> = RUNS.iter().filter(|line| !runs(line)).collect();
    assert!(wrong.is_empty(), "bash does not run git push in: {wrong:#?}");
    for line in RUNS {
        denied(line);
    }
}

#[test]
fn what_bash_does_not_run_is_allowed() {
    let wrong: Vec<&&str> = TEXT.iter().filter(|line| runs(line)).collect();
    assert!(wrong.is_empty(), "bash runs git push in: {wrong:#?}");
    for line in TEXT {
        allowed(line);
    }
}

#[test]
fn what_bash_can_read_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for line in SYNTAX.iter().chain(RUNS).chain(TEXT) {
        assert!(bash(folder.path(), &["-n", "-c", line]), "bash itself cannot read: {line}");
        if let Verdict::Deny(denial) = judged(&[], false, line) {
            assert_ne!(denial.rule.to_string(), "shell.unreadable", "{line}: {denial:?}");
        }
    }
}
