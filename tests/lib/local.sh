# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of local runs: a work folder, a run in it, and the end of the run, whatever happens. Before sourcing this file,
# set local, agent and worker to the paths of the programs; for cli_says, also set cli to the path of kubectl-cadre.

: "${local:?}" "${agent:?}" "${worker:?}"
work=$(mktemp -d)
pid=
touch "$work/out" "$work/err"

fail() {
    echo "not ok - $*"
    tail -n 50 "$work"/*out "$work"/*err
    exit 1
}

local_stop() {
    [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
    [[ -z $pid ]] || wait "$pid" || true
    pid=
    rm -f "$work/socket"
}
trap 'local_stop; rm -rf "$work"' EXIT
set -E # a command that fails in a function ends the test, too
trap 'fail "${BASH_SOURCE[0]##*/}:$LINENO: exit code $?: $BASH_COMMAND"' ERR

# until_true COMMAND...: the command succeeds within ten minutes, which only a run that hangs needs.
until_true() {
    for _ in $(seq 6000); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    fail "never: $*"
}

# asleep PID...: nothing wakes them up for five seconds. Only time can show that, because there is no state to wait for.
asleep() {
    local before
    before=$(wakeups "$@")
    sleep 5
    [[ $(wakeups "$@") == "$before" ]]
}

wakeups() {
    local pid
    for pid in "$@"; do
        cat /proc/"$pid"/task/*/status
    done | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}

# local_start ARGUMENT...: starts cadre-local with these arguments at $work/socket, and ends the run before. Its output is in
# $work/out and $work/err.
local_start() {
    local_stop
    PATH=$(dirname "$worker"):$PATH "$local" --listen "unix:$work/socket" --agent "$agent" "$@" >"$work/out" 2>"$work/err" &
    pid=$!
    until_true test -S "$work/socket"
}

# cli_says ROW TEXT ARGUMENT...: the output of kubectl-cadre, on stdout or stderr, is or contains TEXT.
cli_says() {
    local row=$1 want=$2 got
    shift 2
    got=$("${cli:?}" "$@" --server "unix:$work/socket" --token x 2>&1) || true
    [[ $got == *"$want"* ]] || fail "$row: $got, not $want"
    echo "ok - $row: $got"
}
