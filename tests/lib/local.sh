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

# For calls on a busy machine: only one that hangs takes so long.
patient=(--timeout 20m)

# until_true COMMAND...: the command succeeds within twenty minutes. On a busy machine, a state may come late.
until_true() {
    local end=$((SECONDS + 1200))
    while ! "$@" >/dev/null 2>&1; do
        [[ $SECONDS -lt $end ]] || fail "never: $*"
        sleep 0.1
    done
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
    : >"$work/err"
    PATH=$(dirname "$worker"):$PATH "$local" --listen "unix:$work/socket" --agent "$agent" "$@" >"$work/out" 2>"$work/err" &
    pid=$!
    until_true serves_or_ended
    serves || fail "the run has ended: $*"
}

serves() { # the socket alone may not take connections yet
    grep -qF "cadre-local: taking calls at unix:$work/socket," "$work/err"
}

serves_or_ended() {
    serves || ! kill -0 "$pid"
}

# cli_says ROW TEXT ARGUMENT...: the output of kubectl-cadre, on stdout or stderr, is or contains TEXT.
cli_says() {
    local row=$1 want=$2 got
    shift 2
    got=$("${cli:?}" "$1" "${patient[@]}" "${@:2}" --server "unix:$work/socket" --token x 2>&1) || true
    [[ $got == *"$want"* ]] || fail "$row: $got, not $want"
    echo "ok - $row: $got"
}
