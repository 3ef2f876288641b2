#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tasks with real worker processes and no cluster: rows S0-2, S0-3, S3-3, S3-6 and S3-7 of the notebooks. Arguments: the
# source tree, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, tasks.so, submit.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 module=$6 submit=$7
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

# start SECONDS SLOTS
start() {
    sed "s/seconds: 2, slots: 1/seconds: $1, slots: $2/" "$source/examples/tasks.yaml" >"$work/tasks.yaml"
    local_start -f "$work/tasks.yaml" --map "/modules=$(dirname "$module")"
    for rank in 0 1 2 3; do # so that what follows is the time of tasks
        "$cli" call "${patient[@]}" tasks add '[0, 0]' --rank "$rank" --server "unix:$work/socket" --token x >/dev/null
    done
}

# has ROW PATTERN: checks that the client has printed such a line.
has() {
    grep -qE "^$2\$" "$work/submit.out" || fail "$1: no line like $2"
    echo "ok - $1: $(grep -m1 -E "^$2\$" "$work/submit.out")"
}

start 0.5 1
"$submit" "unix:$work/socket" default tasks >"$work/submit.out" 2>&1 || fail "submit"
[[ $(head -n1 "$work/submit.out") == "submitted after "* ]] || fail "S0-3: submitting waits for results"
has "S0-2 four slots: not before a third wave" \
    'example_task\([0-9]\) is done after (1\.[5-9]|[2-9]\..|[1-9][0-9]+\..) s'
has "S0-2 the results" 'all: \[0, 1, 4, 9, 16, 25, 36, 49, 64, 81\]'
has "S3-3" 'add\(1, 2\): \[3\]'
has "S3-6 in the end the user's error" 'flaky\(\): FAILED: rank [0-3]: it never works'
flaky_has_run() { # TIMES
    [[ $(cat "$work/out" "$work/err" | grep -c 'flaky() runs') == "$1" ]]
}
until_true flaky_has_run 4 # S3-6: once, and three times again
got=$("$cli" call "${patient[@]}" tasks add '[1, 2]' --execute all --server "unix:$work/socket" --token x)
[[ $got == "[3, 3, 3, 3]" ]] || fail "S3-7: what the call says wins over what the method declares: $got"
echo "ok - S3-7 the call's own modes win: $got"

start 0.5 3
"$submit" "unix:$work/socket" default tasks >"$work/submit.out" 2>&1 || fail "submit"
has "three slots a rank" 'all: \[0, 1, 4, 9, 16, 25, 36, 49, 64, 81\]'
"$cli" info tasks -o json --server "unix:$work/socket" --token x | grep -q '"limit": 3' || fail "info does not tell the slots"

# A rank dies during a call to all ranks. The call ends, and its error names that rank, not one that was stopped after it
start 1200 1
ranks=$(pgrep -P "$(pgrep -P "$pid" -f 'cadre-agent run')")
"$cli" call "${patient[@]}" tasks example_task 2 --dispatch one-to-all --execute all --server "unix:$work/socket" \
    --token x >"$work/all.out" 2>&1 &
all=$!
until curl -sS --unix-socket "$work/socket" -H "Content-Type: application/json" http://x/v1/namespaces/default/workergroups/tasks \
    -d '{"jsonrpc":"2.0","id":1,"method":"group.stats"}' | grep -q '"inFlight":1,'; do sleep 0.1; done
"$cli" kill "${patient[@]}" tasks --rank 2 --server "unix:$work/socket" --token x || fail "kill"
! wait "$all" || fail "a rank was killed, and nobody noticed"
grep -q 'rank 2 of default/tasks exited with code 137 while example_task() was pending' "$work/all.out" ||
    fail "the wrong rank is named: $(cat "$work/all.out")"
# shellcheck disable=SC2086 # they are several
kill -KILL $ranks 2>/dev/null || true # the others would go on for the time that they have to end
echo "ok - the rank that died is named: $(head -n1 "$work/all.out")"
