# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Paths, messages and locks that every other part of devcluster uses.

CACHE_DIR="${XDG_CACHE_HOME:-$HOME/.cache}/cadre"
STARTED_AT=$SECONDS

say() { printf 'devcluster: %s\n' "$*" >&2; }
say_timed() { say "$* ($((SECONDS - STARTED_AT)) s)"; }
die() {
    printf 'devcluster: error: %s\n' "$*" >&2
    exit 1
}

# Only root may create network namespaces and cgroups. With sudo, the same command continues as root, with the same cache.
become_root() {
    [[ $EUID -eq 0 ]] && return 0
    command -v sudo >/dev/null || die "this needs root (namespaces, cgroups) and there is no sudo: run it as root"
    exec sudo --preserve-env=KUBECONFIG,CADRE_CLUSTER,CADRE_USE,GOPROXY,GOSUMDB,GOFLAGS \
        env "HOME=$HOME" "XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache}" "PATH=$PATH:/usr/sbin:/sbin" "$@"
}

plural() { [[ $1 -eq 1 ]] && echo "$1 $2" || echo "$1 $2s"; } # COUNT NOUN

# lock_take FD FILE: takes an exclusive lock, and prints a line if it has to wait. Long-lived children must not inherit the
# descriptor (they close 8 and 9), or the lock would outlive the command that took it. The holder of the lock may remove the
# file. A process that gets the lock of a removed file then takes the lock of the new file.
lock_take() {
    local fd=$1 file=$2
    mkdir -p "${file%/*}"
    while true; do
        eval "exec $fd>\"\$file\""
        if ! flock --nonblock "$fd"; then
            say "waiting for another devcluster command (${file##*/})"
            # A busy machine needs an hour to build Kubernetes.
            flock --timeout 5400 "$fd" || die "another devcluster command has held $file for 90 minutes"
        fi
        [[ ! /proc/self/fd/$fd -ef $file ]] || return 0
    done
}

# wait_until SECONDS WHAT [--alive PROCESS]... CMD...: repeats CMD until it succeeds, and gives up early if a PROCESS has
# ended. SECONDS are enough for a quiet machine. The limit is longer, because others may keep the machine busy. CMD must
# be short: when this script is killed, nothing of it runs on for longer than one CMD.
wait_until() {
    local limit=$((120 + 5 * $1)) what=$2 end alive=() process
    shift 2
    while [[ $1 == --alive ]]; do
        alive+=("$2")
        shift 2
    done
    end=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        for process in "${alive[@]}"; do process_must_live "$process"; done
        [[ $SECONDS -lt $end ]] || die "$what did not come within $limit s; logs: ${STATE:-}/logs"
        sleep 0.2
    done
}

require_count() { # OPTION VALUE MAX
    [[ $2 =~ ^[0-9]{1,5}$ && $((10#$2)) -le $3 ]] || die "$1 takes a number from 0 to $3, not \"$2\""
}

# need_value ARGC OPTION: the option's value has to follow it.
need_value() { [[ $1 -ge 2 ]] || die "$2 needs a value (devcluster --help)"; }
