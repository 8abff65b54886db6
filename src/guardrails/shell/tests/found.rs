//! Ways round the judge that were found by running lines in a real bash, each with its kin.

use super::*;

/// Denied under rules like those of Normal, whatever the rule.
#[track_caller]
fn all_denied(lines: &[&str]) {
    for line in lines {
        denied(line);
    }
}

#[test]
fn what_is_unset_can_be_nothing() {
    all_denied(&[
        "git pu$@sh",
        "git pu${zzz}sh",
        "git pu$*sh",
        "git \"pu$zzz\"sh",
        "git pu`true`sh",
        "git pu$(:)sh",
        "git $zzz push",
        "p$zzz'kill' x",
        "sh -c \"git pu$zzz\"sh",
        "${zzz}git push",
        "git ${zzz}push",
    ]);
}

#[test]
fn input_that_is_said_elsewhere() {
    all_denied(&[
        "f() { bash; }; f <<< 'git push'",
        "f() { sh; }; echo git push | f",
        "exec <<< 'git push'; bash",
        "exec < <(echo git push); bash",
        "BASH_ENV=<(echo git push) bash -c :",
        "env 'BASH_FUNC_ls%%=() { git push; }' bash -c ls",
    ]);
}

#[test]
fn text_that_is_expanded_once_more_or_later() {
    all_denied(&[
        "declare -a 'a=( $(git push) )'",
        "compgen -W '$(git push)'",
        "shopt -s expand_aliases\nalias g='git '\nalias p=push\ng p",
        "BASH_ALIASES[g]='git push'; shopt -s expand_aliases\ng",
        "xargs sh -c 'git $0' <<< push",
        "xargs bash -c 'git $1' _ <<< push",
        "trap '$x' EXIT; x='git push'",
        "f() { $x; }; x='git push'; f",
        "for i in 1 2; do $x; x='git push'; done",
    ]);
}

#[test]
fn text_that_reaches_an_eval_by_a_way_that_is_not_followed() {
    all_denied(&[
        "read x <<< 'gi${zz}t push'; eval \"$x\"",
        "printf -v x %s 'g\"\"it push'; eval \"$x\"",
        "mapfile -t x <<'W'\ng''it push\nW\neval \"${x[0]}\"",
        "set -- 'g\\it push'; eval \"$1\"",
        "f() { eval \"$1\"; }; f 'g\\it push'",
        "declare -n r=x; x='g\\it push'; eval \"$r\"",
        "x='g\\it push'; y=x; eval \"${!y}\"",
    ]);
}

#[test]
fn patterns_that_a_file_name_fits() {
    all_denied(&[
        "touch push; git pus?",
        "git pus*",
        "git p*h",
        "git [p]ush",
        "shopt -s extglob\ngit @(push)",
        "shopt -s extglob\n@(pkill) x",
        "mkdir push; find push -maxdepth 0 -exec git {} \\;",
    ]);
    allowed("git add *");
    allowed("git add src/*.rs");
}

#[test]
fn programs_that_run_text_of_the_line() {
    all_denied(&[
        "echo \"import os; os.system('git push')\" | python3",
        "python3 <(echo \"import os; os.system('git push')\")",
        "python3 -m timeit \"import os; os.system('git push')\"",
        "echo 'system(\"git push\")' | ruby",
        "awk -v c='git push' 'BEGIN{system(c)}'",
        "awk '{system($0)}' <<< 'git push'",
        "echo 'git push' | awk '{system($0)}'",
        "awk '{print | \"sh\"}' <<< 'git push'",
        "awk -f <(echo 'BEGIN{system(\"git push\")}')",
        "sed 's/.*/git push/e' <<< x",
        "sed e <<< 'git push'",
        "sed -e 's/x/git push/' -e e",
        "sed 's/x/git push/;e' y",
        "sed --expression='s/.*/git push/e' x",
        "ed -s <<< '!git push'",
        "echo '!git push' | ed -s",
        "vim -es -c ':!git push' -c q",
        "ex -s <<< '!git push'",
        "tar cf x --checkpoint=1 --checkpoint-action=exec='git push' y",
        "tar --use-compress-program='git push' -cf x y",
        "tar -I 'git push' -cf x y",
        "tar --to-command='git push' -xf x",
        "split --filter='git push' x",
        "make -f - <<< $'x:\\n\\tgit push'",
        "make -f <(echo 'x:; git push')",
        "make --eval 'x:; git push' x",
        "gdb -batch -ex '!git push'",
        "gdb -batch -ex 'shell git push'",
        "cargo +nightly publish",
        "cargo +nightly -q publish",
        "yarn workspaces foreach npm publish",
        "yarn workspaces foreach -A exec npm publish",
        "rsync -e 'git push' a b:c",
        "sort --compress-program='git push' x",
    ]);
    allowed("make -j4 test");
    allowed("tar -czf x.tgz src");
    allowed("echo 'print(1)' | python3");
    allowed("python3 -m pytest -q");
    allowed("python3 -m http.server 8000");
    allowed("rsync -av -e ssh a b:c");
    allowed("vim -c q x");
}

#[test]
fn the_jobs_of_this_shell_may_be_ended() {
    allowed("trap 'kill $(jobs -p)' EXIT; npm start & sleep 1");
    allowed("kill $(jobs -p)");
    allowed("kill -9 `jobs -rp`");
}
