#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Methods that call groups, with real worker processes and no cluster: row S0-4 of the notebooks, circles, deadlines,
# cancellation. Arguments: the source tree, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, nested.so,
# nested_calls.so.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 nested=$6 calls=$7
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

is() { cli_says "$1" "$2" call "${@:3}"; }

says() { until_true grep -q "$1" "$work/out" "$work/err"; } # a worker has

# holds RANK COMMAND...: a call of hold() there reaches its limit, and hold() then ends. On a busy machine, the limit
# may come before hold() begins. So the command, which gets the limit in seconds as its last argument, runs with longer
# and longer limits.
holds() {
    local rank=$1 limit
    shift
    for limit in 2 20 200; do
        "$@" "$limit"
        for _ in $(seq 50); do
            ! grep -q "rank $rank lets go" "$work/out" "$work/err" || return 0
            sleep 0.1
        done
    done
    says "rank $rank lets go"
}

local_start -f "$source/examples/nested.yaml" --map "/modules=$(dirname "$nested")"
is "S0-4 get_work" '"Work done by child"' parent get_work --role parent

local_start --processes 3 -- "$worker" --module "$calls"
is "another rank" 42 local call --rank 0 '["twice", 1, [21]]'
is "all ranks are not called by one of them" 'CONFLICT: rank 0: a deadlock: twice() would wait for the thread of rank 0' \
    local call --rank 0 '["twice", -1, [21]]'
is "nor the own rank" 'which waits for it (default/local/1/call); a concurrency group gives it a thread of its own' \
    local call --rank 1 '["twice", 1, [21]]'
is "but a thread of its own" 14 local call --rank 1 '["beside", 1, [7]]'
is "nor in a circle" 'rank 0 of default/local, which waits for it (default/local/0/call, default/local/1/call)' \
    local call --rank 0 '["call", 1, ["twice", 0, [1]]]'
is "three deep" 6 local call --rank 0 '["call", 1, ["call", 2, ["beside", 0, [3]]]]'
is "many at a time" 249500 local many --rank 0 '[500, 1]'
is "an error keeps its name" 'call() called, and got NOT_FOUND: ' local call --rank 0 '["nothing", 1]'
own_timeout() {
    is "its own timeout" "got TIMEOUT: " local call --rank 0 "[\"hold\", 1, [], ${1}000]"
}
holds 1 own_timeout
outer_deadline() {
    is "the outer call's deadline" "TIMEOUT" local call --rank 0 '["hold", 2, []]' --timeout "${1}s"
}
holds 2 outer_deadline
is "nobody waits any more" 4 local call --rank 0 '["twice", 2, [2]]'
is "what is not got is canceled" 8 local leave --rank 0 '[1]'
# The call may not have begun. The rank is free in any case.
is "and holds up nobody" 6 local call --rank 0 '["twice", 1, [3]]'
