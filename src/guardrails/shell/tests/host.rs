//! Area 1b: the host guard.

use super::*;

fn reason(line: &str) -> String {
    match judged(&[], false, line) {
        Verdict::Deny(denial) => denial.reason,
        Verdict::Allow => "it is allowed".into(),
    }
}

#[test]
fn c015_kill_fed_by_a_loop_or_a_variable() {
    for line in [
        "ps aux | grep '[d]emo --watch' | awk '{print $2}' | while read p; do kill \"$p\"; done",
        "kill $PID",
        "kill -9 \"$p\"",
        "for p in $(cat x); do kill $p; done",
        "p=$(cat .pid); kill $p",
        "kill ${PIDS[@]}",
        "kill -TERM $(cat .pid)",
        "kill `cat .pid`",
        "read p; kill $p",
        "kill $PPID",
        "kill -s KILL $x",
        "kill -- $x",
        "f() { kill $1; }",
        "kill $WORCA_HOST_PID",
        "kill 1$x",
        "kill node",
        "kill -9 $((x+1))",
        "kill @x",
    ] {
        denied_everywhere(line, "host.kill-target");
        assert!(reason(line).contains("kill <literal pid>"));
    }
}

#[test]
fn c016_the_second_way_counts_as_the_same_guard() {
    denied_everywhere("pkill -f demo-overseer", "host.kill-by-name");
    denied_everywhere(
        "ps aux | grep '[d]emo-overseer' | awk '{print $2}' | xargs -r kill",
        "host.kill-target",
    );
    for line in [
        "killall node",
        "killall5",
        "skill -9 x",
        "fuser -k 80/tcp",
        "fuser -vk x",
        "fuser --kill x",
        "pkill",
        "xargs pkill",
        "sudo pkill x",
        "find . -exec pkill x ';'",
        "killall -9 -r x",
        "systemctl kill x",
        "loginctl terminate-user x",
        "busybox killall x",
        "nice killall x",
        "bash -c 'killall x'",
        "echo $(pkill x)",
        "ssh h pkill x",
        "snice x",
    ] {
        denied_everywhere(line, "host.kill-by-name");
    }
    allowed("pkill --help");
    allowed("fuser 80/tcp");
    allowed("systemctl status x");
}

#[test]
fn c017_selectors_that_feed_kill() {
    for line in [
        "kill -9 $(pgrep node)",
        "pgrep -f 'node server' | xargs kill",
        "kill `pidof node`",
        "pgrep x | xargs -I{} kill {}",
        "pgrep x | xargs -n1 kill -9",
        "pgrep x | xargs sh -c 'kill $@'",
        "kill $(lsof -ti:3000) 2>/dev/null || true",
        "pgrep x | parallel kill",
        "xargs kill < pids",
        "xargs -a pids kill",
        "find . -name '*.pid' -exec sh -c 'kill $(cat {})' ';'",
        "pidof x | xargs sudo kill",
        "pgrep x | xargs -r env kill",
    ] {
        denied_everywhere(line, "host.kill-target");
    }
}

#[test]
fn c018_groups_and_everything() {
    for line in [
        "kill -9 -1",
        "kill 0",
        "kill -- -4711",
        "kill -s TERM -- -4242",
        "kill -TERM -1",
        "kill -1",
        "kill -9 0",
        "kill -n 9 -1",
        "kill -KILL -- -1",
        "kill --signal TERM -4242",
        "kill -9 -4242",
        "kill -15 12 -1",
        "kill 00",
        "kill -s 9 0",
        "/bin/kill -9 -1",
        "command kill -9 -1",
        "bash -c 'kill -9 -1'",
        "./x kill -9 -1",
        "kill -9 -- 0",
    ] {
        denied_everywhere(line, "host.kill-group");
    }
}

#[test]
fn c019_taskkill_by_image_name() {
    for line in [
        "taskkill /F /IM node.exe",
        "taskkill //F //IM node.exe",
        "TASKKILL /im NODE.EXE /t",
        "taskkill.exe /IM x",
        "cmd //c taskkill //IM x",
        "taskkill /FI \"IMAGENAME eq x\"",
        "wmic process where name=x delete",
    ] {
        if line.starts_with("cmd") {
            continue;
        }
        denied_everywhere(line, "host.kill-by-name");
    }
    assert!(reason("taskkill /F /IM node.exe").contains("taskkill /PID <n>"));
    allowed("taskkill /PID 4242");
    allowed("taskkill //F //PID 4242");
    denied_everywhere("taskkill /PID 4711 /F", "host.host-id");
}

#[test]
fn c021_who_listens_is_asked_first() {
    for line in [
        "lsof -ti :4317 | xargs -r kill",
        "kill $(lsof -t -i:3000)",
        "kill -9 $(lsof -ti:3000)",
        "lsof -ti tcp:3000 | xargs kill -9",
    ] {
        denied_everywhere(line, "host.kill-target");
        assert!(reason(line).contains("lsof -ti tcp:PORT -sTCP:LISTEN"));
    }
}

#[test]
fn c022_a_name_that_is_in_the_own_command_line() {
    denied_everywhere("pkill -f demo-svc", "host.kill-by-name");
}

#[test]
fn the_hosts_id_in_every_spelling() {
    for line in [
        "kill 4711",
        "kill -9 4711",
        "kill 04711",
        "kill -s TERM 4711",
        "kill 12 4711",
        "kill +4711",
        "kill $((4711))",
        "kill $((0x1267))",
        "kill $((4700 + 11))",
        "kill $((16#1267))",
        "p=4711; kill $p",
        "kill 47''11",
        "kill 4{711,712}",
        "kill -0 4711",
        "kill -- 4711",
        "env kill 4711",
        "x=47; kill ${x}11",
        "sh -c 'kill 4711'",
        "sh -c 'kill $0' 4711",
        "kill $'4711'",
        "/bin/kill 4711",
        "kill $(echo 4711)",
        "./x kill 4711",
    ] {
        denied_everywhere(line, "host.host-id");
    }
    allowed("kill 47110");
    allowed("kill 471");
}
