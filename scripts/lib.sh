# Helpers that the scripts of this folder share. Sourced, never run.
# It never writes an address of a mirror or a registry: those come from the machine's own apt, npm and engine settings.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export ROOT

# Progress goes to standard error; standard output is for what a caller reads.
say() { printf '%s\n' "worca: $*" >&2; }

die() {
  printf 'error: %s\n' "$1" >&2
  if [ -n "${2:-}" ]; then printf '\nhint: %s\n' "$2" >&2; fi
  exit "${3:-1}"
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    die "\`$1\` needs root, and there is no sudo" "run this script as root, or install sudo"
  fi
}

need_linux() {
  [ "$(uname -s)" = Linux ] || die "$1 works on Linux only" "${2:-run it on a Debian or Ubuntu machine}"
}

# Packages of Debian or Ubuntu that are missing are named, then installed.
# apt_install WHY PACKAGE...
apt_install() {
  local why=$1 package missing=()
  shift
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  have apt-get || die "\`${missing[*]}\` is missing, and this machine has no apt-get" "install it by hand: $why"
  say "will install with apt: ${missing[*]} ($why)"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300)
  local log
  log=$(mktemp)
  # Package lists may be absent or name files that the mirror no longer has: then fetch them and try again.
  if ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    as_root "${apt[@]}" update >"$log" 2>&1 || true
    if ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
      tail -n 20 "$log" >&2
      rm -f "$log"
      die "apt could not install \`${missing[*]}\`" "the lines above are apt's own; try \`apt-get update\` first"
    fi
  fi
  rm -f "$log"
}

# The mirrors that this machine's apt knows, one a line: the label of the archive, and its address.
apt_mirrors() {
  local found
  # shellcheck disable=SC2016 # apt expands it
  list_mirrors() { apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sort -u; }
  found=$(list_mirrors)
  # The labels are known once the lists were fetched.
  if ! grep -q '^Debian ' <<<"$found"; then
    as_root apt-get -qq update >&2 || say "apt could not refresh its lists; going on with what is there"
    found=$(list_mirrors)
  fi
  printf '%s\n' "$found"
}

# The version of the engine that answers to the `docker` client, or nothing.
engine_version() {
  have docker || return 1
  timeout 20 docker version --format '{{.Server.Version}}' 2>/dev/null
}

image_exists() { docker image inspect --format '{{.Id}}' "$1" >/dev/null 2>&1; }

# The folder that cargo builds into, whether set by environment, by cargo's configuration or not at all.
target_dir() {
  local dir
  dir=$(cd "$ROOT" && cargo metadata --format-version 1 --no-deps --offline 2>/dev/null |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
  printf '%s\n' "${dir:-${CARGO_TARGET_DIR:-$ROOT/target}}"
}

# The version of the package, as Cargo.toml has it.
worca_version() { sed -n 's/^version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml" | head -n 1; }

need_rust() {
  if ! have cargo && [ -x "$HOME/.cargo/bin/cargo" ]; then export PATH="$HOME/.cargo/bin:$PATH"; fi
  have cargo || die "there is no \`cargo\` on this machine" "install Rust first (rustup.rs), then run this again"
  [ "$(uname -s)" != Linux ] || have cc || apt_install "a C compiler and linker, for the build" gcc libc6-dev
}

# One hash for the bytes of the named files and for the words on standard input.
hash_of() {
  { cat; for file in "$@"; do sha256sum <"$file"; done; } | sha256sum | cut -c 1-12
}
