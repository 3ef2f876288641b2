#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Long bodies between the processes of a local run. They come back unchanged, with and without shared memory. No process
# keeps the memory of one that has ended. Arguments: cadre-local, cadre-agent, cadre-worker, echo.so, echo_call.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4 program=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"
client=''
trap '[[ -z $client ]] || kill "$client" || true; local_stop; rm -rf "$work"' EXIT

# until_is TEXT COMMAND...: waits at most twenty minutes until the command prints this text.
until_is() {
    local want=$1 got='' end=$((SECONDS + 1200))
    shift
    while got=$("$@" 2>/dev/null) || true && [[ $got != "$want" ]]; do
        [[ $SECONDS -lt $end ]] || fail "$*: $got, not $want"
        sleep 0.05
    done
}

pools() { # prints how many pools a process has mapped
    grep -c 'memfd:cadre' "/proc/$1/maps" || true
}

# run OPTION...
run() {
    "$local" --listen "unix:$work/socket" --group e --agent "$agent" "$@" -- "$worker" --module "$module" \
        >"$work/run.err" 2>&1 &
    pid=$!
    until_is "${ranks:-1}" grep -c "ready for calls" "$work/run.err"
    rank=$(pgrep -P "$(pgrep -P "$pid")")
}

calls() {
    "$program" "unix:$work/socket" default e "$@"
}

run
echo "shared:"
calls 0.3 2>"$work/echo.err" || fail "shared"
until_is 1 pools "$rank" # its own
calls 1200 >"$work/echo.out" 2>"$work/echo.err" &
client=$!
until_is 2 pools "$rank" # and the client's
until_is 3 pools "$pid"  # one that proves that it can share, the rank's and the client's
kill -KILL "$(pgrep -P "$client" -f echo_call || echo "$client")"
wait "$client" 2>/dev/null || true
client=''
until_is 1 pools "$rank"
until_is 2 pools "$pid"
calls 0.1 >"$work/echo.out" 2>"$work/echo.err" || fail "after a client has died"
calls 1200 >"$work/echo.out" 2>"$work/echo.err" &
client=$!
until_is 2 pools "$rank"
kill -KILL "$rank"
wait "$client" && fail "the rank was killed, and nobody noticed"
client=''
grep -q UNAVAILABLE "$work/echo.err" || fail "no reason"
until_is "" pgrep -P "$pid"
kill -TERM "$pid" # it stays to say so
wait "$pid" && fail "the run has lost its rank"
pid=''

ranks=4 run --processes 4
echo "split and joined:"
rank=
calls 0.1 2>"$work/echo.err" || fail "split and joined"
kill -TERM "$pid"
wait "$pid" || true

run --no-shared-memory
echo "through the socket:"
calls 0.3 2>"$work/echo.err" || fail "through the socket"
[[ $(pools "$pid") == 0 ]] || fail "memory is shared all the same"
echo ok
