//! Programs whose arguments are text or files, not commands.

use super::expand::Arg;

/// What a program does with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// It runs none of them.
    Nothing,
    /// It runs those from here on.
    After(usize),
    /// Each of them may be a command line (`tmux`, `ssh`).
    Lines,
    /// Not known: it may run any.
    Unknown,
}

const TEXT: &[&str] = &[
    "echo", "printf", "cat", "tac", "ls", "dir", "ll", "la", "eza", "exa", "tree", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "sort",
    "uniq", "cut", "tr", "wc", "head", "tail", "less", "more", "bat", "batcat", "cmp", "diff", "comm", "join", "paste", "fold", "fmt", "pr",
    "nl", "rev", "column", "tee", "cp", "mv", "rm", "rmdir", "mkdir", "mkfifo", "mknod", "ln", "touch", "chmod", "chown", "chgrp", "stat",
    "file", "du", "df", "readlink", "realpath", "basename", "dirname", "mktemp", "which", "whereis", "whatis", "apropos", "man", "info",
    "type", "hash", "id", "whoami", "who", "w", "uname", "hostname", "date", "cal", "uptime", "free", "ps", "pgrep", "pidof", "pstree", "top",
    "htop", "lsof", "ss", "netstat", "ip", "ifconfig", "ping", "dig", "nslookup", "host", "curl", "wget", "http", "https", "jq", "yq", "xq",
    "gh", "glab", "hub", "apt", "apt-get", "apt-cache", "aptitude", "dpkg", "dpkg-query", "yum", "dnf", "zypper", "pacman", "apk", "brew", "port", "rpm",
    "snap", "flatpak", "choco", "winget", "scoop", "pip", "pip3", "pipx", "gem", "cpan", "cpanm", "luarocks", "composer", "nuget",
    "rustup", "rustc", "rustfmt", "cargo-clippy", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "ar", "nm", "objdump", "readelf",
    "strings", "size", "strip", "ldd", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "b2sum", "shasum", "base64", "base32", "xxd",
    "od", "hexdump", "gzip", "gunzip", "zcat", "bzip2", "xz", "zstd", "zip", "unzip", "tar", "cpio", "7z", "unrar", "seq", "yes", "sleep",
    "true", "false", "test", "[", "expr", "bc", "dc", "factor", "shuf", "split", "csplit", "truncate", "dd", "sync", "tput", "stty", "tty",
    "clear", "reset", "env-print", "printenv", "locale", "iconv", "dos2unix", "unix2dos", "patch", "install", "mdbook", "pandoc", "convert",
    "ffmpeg", "ffprobe", "sqlite3", "psql", "mysql", "redis-cli", "mongosh", "eslint", "prettier", "tsc", "jest", "vitest", "mocha", "pytest", "ruff",
    "black", "isort", "flake8", "mypy", "pylint", "shellcheck", "shfmt", "hadolint", "yamllint", "markdownlint", "cspell", "codespell",
    "typos", "tokei", "cloc", "scc", "ctags", "touch", "kubectl", "helm", "terraform", "aws", "gcloud", "az", "pbcopy", "pbpaste", "open",
    "xdg-open", "code", "subl", "nano", "logger", "wall", "write", "mail", "sendmail", "notify-send", "say", "figlet", "cowsay", "fold", "pkg-config", "cmake-format",
    "stylua", "gofmt", "goimports", "golangci-lint", "buf", "protoc", "issues", "pushd", "popd", "cd", "docker-compose-version", "ssh-keygen", "openssl", "gpg", "lsb_release", "getent", "nproc", "lscpu", "lsblk", "mount", "umount", "swift-format", "sum", "tsort", "look", "dircolors", "kill-port",
];

/// Programs that run command lines given as arguments.
const LINES: &[&str] = &[
    "tmux", "screen", "ssh", "mosh", "at", "batch", "nix-shell", "expect", "wsl", "zellij", "foreman", "concurrently", "run-p", "run-s",
    "npm-run-all", "nodemon", "watchexec", "hyperfine", "gdb", "lldb", "vim", "vi", "nvim", "ex", "ed", "emacs", "osascript", "sshpass", "rsh", "pdsh",
    "ansible", "salt", "doppler", "chronic", "retry", "wezterm", "kitty", "xterm", "gnome-terminal", "konsole", "alacritty", "dotenv", "cron", "crontab", "start-stop-daemon", "pm2", "supervisorctl", "runit", "runsv", "reflex", "air", "entr", "fswatch", "chokidar", "onchange", "inotifywait", "git-sh", "repo", "mr",
];

/// Programs that run a command after one of these words.
const AFTER: &[(&str, &[&str])] = &[
    ("docker", &["exec", "run"]),
    ("podman", &["exec", "run"]),
    ("nerdctl", &["exec", "run"]),
    ("docker-compose", &["exec", "run"]),
    ("kubectl", &["exec", "run", "debug"]),
    ("npm", &["exec", "x", "run", "run-script", "start", "test"]),
    ("pnpm", &["exec", "dlx", "run"]),
    ("yarn", &["exec", "dlx", "run", "node"]),
    ("bun", &["x", "run"]),
    ("cargo", &["watch"]),
    ("go", &["generate"]),
    ("poetry", &["run"]),
    ("uv", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("bundle", &["exec"]),
    ("nix", &["develop", "shell", "run"]),
    ("direnv", &["exec"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rustup", &["run"]),
    ("aws-vault", &["exec"]),
    ("op", &["run"]),
    ("flatpak", &["run"]),
    ("snap", &["run"]),
    ("jj", &["util"]),
    ("systemctl", &[]),
    ("loginctl", &[]),
    ("service", &[]),
    ("launchctl", &[]),
];

/// What this program does with these arguments.
pub(super) fn runs(name: &str, args: &[Arg]) -> Runs {
    if let Some((_, words)) = AFTER.iter().find(|(program, _)| *program == name) {
        let at = args.iter().position(|arg| words.contains(&arg.text.as_str()));
        return at.map_or(Runs::Nothing, |at| Runs::After(at + 1));
    }
    if TEXT.contains(&name) {
        Runs::Nothing
    } else if LINES.contains(&name) {
        Runs::Lines
    } else {
        Runs::Unknown
    }
}
