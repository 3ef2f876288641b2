#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program cadre-local with real worker processes: calls over HTTP, exit codes. Arguments: cadre-local, cadre-agent,
# cadre-worker, accumulator.so.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4
work=$(mktemp -d)
pid=
cleanup() {
    [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
    [[ -z $pid ]] || wait "$pid" || true
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "not ok - $*"
    cat "$work/err"
    exit 1
}

# exit_code CODE TEXT ARGUMENT...: the program ends with this code and says this.
exit_code() {
    local want=$1 text=$2 got=0
    shift 2
    "$local" "$@" >"$work/err" 2>&1 || got=$?
    [[ $got == "$want" ]] || fail "$*: exit code $got, not $want"
    grep -qF -- "$text" "$work/err" || fail "$*: does not say: $text"
}

call() {
    curl -sS -m 30 --unix-socket "$work/socket" -H 'Authorization: Bearer x' \
        "http://x/v1/namespaces/lab/workergroups/acc" -d "$1"
}

: >"$work/err"
"$local" --listen "unix:$work/socket" --namespace lab --group acc --processes 4 --agent "$agent" -- \
    "$worker" --module "$module" 2>"$work/err" &
pid=$!
for _ in $(seq 300); do
    [[ ! -S $work/socket ]] || break
    sleep 0.1
done
answer=$(call '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"add","perRank":[1,1,1,1]}}')
[[ $answer == '{"jsonrpc":"2.0","id":1,"result":[1,2,3,4]}' ]] || fail "per rank: $answer"
answer=$(call '{"jsonrpc":"2.0","id":2,"method":"group.call","params":{"method":"add","args":[10]}}')
[[ $answer == '{"jsonrpc":"2.0","id":2,"result":[11,12,13,14]}' ]] || fail "for all: $answer"
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
pid=
[[ $code == 0 ]] || fail "told to stop: exit code $code"

socket=(--listen "unix:$work/socket" --agent "$agent")
exit_code 7 "exit code 7" "${socket[@]}" --processes 2 -- sh -c 'exit 7'
exit_code 0 "taking calls" "${socket[@]}" -- true
exit_code 127 "cannot run $work/none" --listen "unix:$work/socket" --agent "$work/none" -- true
exit_code 69 "cannot listen" --listen "unix:$work/no/socket" -- true
exit_code 64 "must be 127.0.0.1:PORT" --listen 0.0.0.0:1 -- true
exit_code 64 "must be a number" --processes 0 -- true
exit_code 64 "comes after --" --processes 2
echo "ok"
