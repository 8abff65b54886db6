"""Measures the hook beside its peers: whole processes, in turn, without a shell between. Called by scripts/bench."""

import json
import os
import statistics
import sys
import tempfile
import time


def once(argv, call):
    """One whole process: milliseconds from before it is started until it is reaped, and those of its processor time;
    its peak memory in MB; its exit code; its output."""
    source = tempfile.TemporaryFile()
    source.write(call)
    source.seek(0)
    out = tempfile.TemporaryFile()
    actions = [(os.POSIX_SPAWN_DUP2, source.fileno(), 0), (os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
    actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    took = (time.perf_counter_ns() - begin) / 1e6
    out.seek(0)
    busy = (usage.ru_utime + usage.ru_stime) * 1e3
    return took, busy, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), out.read()


def line(name, *numbers):
    print(f"{name:48}" + "".join(f"{number:>14}" for number in numbers))


def hook(worca, node, here, rounds):
    call = {"session_id": "s", "cwd": "/tmp", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    text = lambda command: json.dumps({**call, "tool_input": {"command": command}}).encode()
    allowed = text("cd crates/api && cargo test --lib 2>&1 | tail -n 20")
    denied = text("cargo build && git -C . push origin HEAD")
    with tempfile.TemporaryDirectory() as folder:
        policy = os.path.join(folder, "policy.json")
        rules = [
            {"set": "normal", "kind": "commands", "pattern": pattern}
            for pattern in ["git push", "npm publish", "cargo publish", "twine upload", "gem push", "gh release create", "gh pr create"]
        ] + [{"set": "normal", "kind": "paths", "pattern": pattern} for pattern in ["**/.env*", "**/*.pem", "**/*.key", "**/id_rsa"]]
        with open(policy, "w") as file:
            json.dump({"version": 2, "set": "normal", "closed": ["/run/secrets"], "open": [], "rules": rules,
                       "deny_undecided": False, "host": 4000000, "homes": ["/tmp"]}, file)
        peers = {
            "true": (["/usr/bin/true"], allowed),
            "the hook, a line that may run": ([worca, "hook", "pre-tool-use", "--policy", policy], allowed),
            "the hook, a line that is denied": ([worca, "hook", "pre-tool-use", "--policy", policy], denied),
            "the same check as a Node script": ([node, os.path.join(here, "bench-guard.mjs"), policy], allowed),
        }
        answers = {name: once(*peer) for name, peer in peers.items()}
        assert answers["the hook, a line that may run"][3:] == (0, b""), answers
        assert b'"deny"' in answers["the hook, a line that is denied"][4], answers
        times = {name: [] for name in peers}
        for _ in range(rounds):
            for name, peer in peers.items():
                times[name].append(once(*peer)[0])
    median = {name: statistics.median(taken) for name, taken in times.items()}
    line(f"whole processes, {rounds} rounds in turn", "median ms", "least ms")
    for name, taken in times.items():
        line(name, f"{median[name]:.2f}", f"{min(taken):.2f}")
    ours = median["the hook, a line that may run"]
    line("hook / true", f"{ours / median['true']:.2f}")
    line("Node script / hook", f"{median['the same check as a Node script'] / ours:.1f}")


def worst(worca):
    """The judge's worst inputs: 64 KiB of each."""
    size = 64 * 1024
    fill = lambda unit: (unit * (size // len(unit.encode()) + 1))[:size]
    nest = lambda left, right: left * (size // (len(left) + len(right))) + right * (size // (len(left) + len(right)))
    inputs = {
        "open brackets": fill("("),
        "nested brackets": nest("(", ")"),
        "nested substitutions": nest("$(", ")"),
        "nested back quotes": fill("`\\"),
        "quotes": fill("'\""),
        "backslashes": fill("\\"),
        "short commands": fill("a;"),
        "denied words as text": fill("echo 'git push'; "),
        "braces": fill("{a,b}"),
        "nested braces": nest("{a,", "}"),
        "nested eval": "eval " * (size // 5),
        "sh -c in sh -c": fill("sh -c '"),
        "env in env": fill("env "),
        "heredocs": fill("cat <<A\n"),
        "functions": fill("f(){ f; };"),
        "case": fill("case x in x) "),
        "arrays": fill("a[$(("),
        "globs": fill("*?[a-z]"),
        "pipes": fill("a|"),
        "xargs": fill("xargs "),
        "find": "find . " + fill("-exec "),
        "letters": fill("a"),
        "wide letters": fill("é→𝕏"),
        "control letters": fill("\x01\x7f"),
        "blank": fill(" \n\t"),
    }
    print()
    line("64 KiB of it to `guardrails check --stdin`", "ms", "processor ms", "peak MB", "exit")
    slowest = busiest = largest = 0
    for name, text in inputs.items():
        took, busy, peak, code, _ = min((once([worca, "guardrails", "check", "--set", "strict", "--stdin"], text.encode()) for _ in range(3)))
        line(name, f"{took:.1f}", f"{busy:.1f}", f"{peak:.1f}", code)
        slowest, busiest, largest = max(slowest, took), max(busiest, busy), max(largest, peak)
    line("worst", f"{slowest:.1f}", f"{busiest:.1f}", f"{largest:.1f}")


def spawns(path, tier):
    """What benches/spawn.rs printed."""
    pairs = [tuple(map(int, row.split())) for row in open(path) if row.strip()]
    ours, theirs = (statistics.median(side) / 1e6 for side in zip(*pairs))
    line(f"a start under {tier}, {len(pairs)} rounds in turn", f"{ours:.2f}", f"{theirs:.2f}", f"{ours - theirs:.2f}")


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "hook":
        hook(words[0], words[1], os.path.dirname(os.path.abspath(__file__)), int(words[2]))
        worst(words[0])
    else:
        spawns(*words)
