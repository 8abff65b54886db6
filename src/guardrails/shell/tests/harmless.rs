//! Area 1c: what must not be refused.

use super::*;

#[test]
fn c024_a_message_is_text() {
    allowed("git commit -m 'docs: say why pkill -f; rm -rf / are refused'");
    allowed("git log --grep='killall'");
    allowed("git commit -am \"kill -9 -1 and git push\"");
    allowed("git commit --message='pkill'");
    allowed("git tag -a v1 -m 'git push'");
    allowed("git commit -m \"$(cat <<'EOF'\nfix: `pkill` and $(git push) are text\n\nEOF\n)\"");
    allowed("git commit -F - <<'EOF'\npkill\nEOF");
}

#[test]
fn c025_an_argument_of_another_program_is_text() {
    allowed("gh pr create --title \"Refuse taskkill /IM spellings\" --body-file b.md");
    allowed("grep -rn 'kill -9 -1' docs/");
    allowed("echo 'run pkill later' >> TODO");
    allowed("grep pkill x");
    allowed("rg 'git push' src");
    allowed("which pkill");
    allowed("man kill");
    allowed("command -v killall");
    allowed("type pkill");
    allowed("apt-get install -y git psmisc");
    allowed("ls kill; cat src/kill");
    allowed("./notify.sh 'git push is off'");
    allowed("cargo test kill");
    allowed("docker kill web");
    allowed("docker compose kill");
    allowed("npm run kill");
    allowed("tmux kill-session -t x");
    denied("gh pr create --title \"$(pkill -x demo-svc)\"");
}

#[test]
fn c026_a_quoted_here_document_is_text() {
    allowed("cat > notes.md <<'EOF'\n`pkill -f x` is refused.\nkill -9 -1 too.\nEOF");
    allowed("cat <<\\EOF\n$(pkill x)\nEOF");
    allowed("cat <<\"EOF\"\n$(pkill x)\nEOF\n");
    allowed("cat <<-'EOF'\n\t`pkill x`\n\tEOF\n");
    allowed("cat <<EOF\npkill x; kill -9 -1; \\`pkill\\` \\$(pkill)\nEOF");
    allowed("tee a <<'A' b <<'B'\n`pkill`\nA\n$(pkill)\nB\n");
    let denial = denied("cat > notes.md <<EOF\n`pkill -f x` is refused.\nkill -9 -1 too.\nEOF");
    assert_eq!(denial.part.as_deref(), Some("pkill -f x"));
}

#[test]
fn c027_a_branch_name_is_no_flag() {
    let force = ["git push --force", "git push -f", "git push --force-with-lease", "git push +*"];
    let verdict = |line: &str| judged(&force, false, line);
    for line in [
        "git push origin task/9-log-fields",
        "git push origin HEAD:feat/a-flag",
        "git push",
        "git push -u origin x",
        "git push --follow-tags",
        "git fetch -f",
        "git push origin a-f",
    ] {
        assert_eq!(verdict(line), Verdict::Allow, "{line}");
    }
    for line in [
        "git push -f",
        "git push --force-with-lease",
        "git push origin +main",
        "git push -uf origin x",
        "git push --force",
        "git push --force-with-lease=main:abc",
        "git push origin main --force",
        "git push -u -f",
        "git push --forc origin",
        "git -C x push -qf",
        "git push origin a +b:c",
    ] {
        assert_ne!(verdict(line), Verdict::Allow, "{line}");
    }
}

#[test]
fn c028_a_part_of_a_path_is_no_flag() {
    allowed("rm db/pre-release-records/a.sql");
    allowed("rm -- -rf");
    allowed("rm -rf ./target /tmp/x");
    for line in [
        "rm -rf /",
        "rm -fr /",
        "rm -r -f /",
        "rm --recursive --force /",
        "rm -rf //",
        "rm -rf /.",
        "rm -rf /*",
        "rm -rfv /",
        "rm -Rf /",
        "rm -rf -- /",
        "rm -rf a /",
        "rm / -rf",
        "rm -rf /../",
        "sudo rm -rf --no-preserve-root /",
        "rm -rf \"/\"",
        "cd /; rm -rf ${x:-/}",
    ] {
        denied_by(line, "rm -rf /");
    }
}

#[test]
fn c029_options_of_a_shell() {
    for line in [
        "bash -lc 'ls src'",
        "bash -euxo pipefail -c 'ls'",
        "bash -c ls",
        "sh -ec 'ls; pwd'",
        "bash -x script.sh",
        "bash --noprofile --norc -c 'ls'",
        "bash --login -c ls",
        "zsh -lic ls",
        "bash -O extglob -c ls",
        "bash --version",
        "bash -n script.sh",
    ] {
        allowed(line);
    }
    assert!(denied("bash --rcfile x -ic 'ls'").reason.contains("--rcfile"));
}

#[test]
fn c030_backslash_newline_is_read() {
    allowed("curl -sS \\\n  -o /dev/null \\\n  http://127.0.0.1:8080/health");
    let denial = denied("echo 'abc");
    assert_eq!(denial.rule.to_string(), "shell.unreadable");
    assert!(denial.reason.contains("could not parse at column 6"), "{}", denial.reason);
    assert!(!denial.reason.contains("not allowed"));
}

#[test]
fn c031_a_server_of_ones_own_can_be_stopped() {
    for line in [
        "kill 4242",
        "npm run dev & echo $! > .pid",
        "sleep 60 & kill $!",
        "kill %1",
        "kill -9 %1",
        "kill \"$!\"",
        "kill -0 4242",
        "kill -l",
        "kill -TERM 4242 4243",
        "kill -s INT 4242",
        "kill %npm",
        "node s.js & PID=$!; sleep 1; curl -s x; kill $PID",
        "x & p=$!; trap 'kill $p' EXIT; y",
        "kill -9 4242 || true",
        "kill %+",
        "kill -15 $! 2>/dev/null",
        "(sleep 5 & kill $!)",
        "wait $!",
        "kill -l 9",
    ] {
        allowed(line);
    }
}

#[test]
fn c032_harmless_uses_of_flagged_tools() {
    for line in [
        "printf 'a b' | xargs echo",
        "xargs --help",
        "sleep 1 & wait",
        "ls | xargs",
        "git ls-files | xargs grep -n kill",
        "find . -name '*.rs' | xargs wc -l",
        "git diff --name-only | xargs -r npx prettier --check",
        "ls | xargs -I{} cp {} /tmp",
        "find . -type f -exec grep -l kill {} +",
        "timeout 5 npm test",
        "env FOO=1 npm test",
        "sudo apt-get update",
        "pgrep -fl node",
        "ps aux | grep node",
        "lsof -ti tcp:3000 -sTCP:LISTEN",
        "trap - EXIT",
        "time make",
        "nohup npm start > x 2>&1 &",
    ] {
        allowed(line);
    }
}
