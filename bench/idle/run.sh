#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts how often an operator, an agent and a worker wake up while nothing happens, and prints a table. A connection that
# was silent for ten seconds is asked with a ping, and the operator looks up its other replicas from time to time; nothing
# else wakes them up. The operator watches an API server without nodes, and elects no leader: a leader renews its Lease
# every two seconds. Needs root, for the API server; three minutes.
#   bench/idle/run.sh [OPTION]...
#   --seconds N       (10) how long it counts
#   --settle N        (90) how long it waits before, for what follows a start
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
seconds=10 settle=90
while [[ $# -gt 0 ]]; do
    [[ $1 == --seconds ]] && seconds=$2 || settle=$2
    shift 2
done
build=$root/build/release
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 && cmake --build "$build" \
    --target cadre-operator cadre-local cadre-agent cadre-worker module_accumulator 2>&1) || {
    echo "$log" >&2
    exit 1
}

export CADRE_CLUSTER=bench-idle-$$
devcluster=$root/deploy/devcluster/devcluster
folder=$(mktemp -d)
started=()
finish() {
    ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
    wait
    "$devcluster" down >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap finish EXIT

"$devcluster" up --nodes 0 >"$folder/up" 2>&1 || { cat "$folder/up" >&2 && exit 1; }
"$devcluster" kubectl apply -f "$root/crds/" >/dev/null
"$devcluster" kubectl create namespace cadre-system >/dev/null
POD_NAMESPACE=cadre-system POD_NAME=idle "$devcluster" exec -- sh -c "echo \$\$ >$folder/operator; exec $build/operator/cadre-operator \
    --leader-elect=false --http-address 127.0.0.1:18080 --listen 127.0.0.1:19443" >"$folder/operator.log" 2>&1 &
started+=($!)
"$build/operator/local/cadre-local" --listen "unix:$folder/socket" --agent "$build/worker/agent/cadre-agent" --namespace lab \
    --group idle --processes 1 -- "$build/worker/host/cadre-worker" --module "$build/examples/accumulator/accumulator.so" \
    >"$folder/local.log" 2>&1 &
local=$!
started+=("$local")
sleep "$settle"
operator=$(<"$folder/operator")
agent=$(pgrep -P "$local" | head -n 1)
worker=$(pgrep -P "$agent" | head -n 1)

wakeups() { # PID: of all of its threads, so far
    cat /proc/"$1"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}

declare -A pid=([operator]=$operator [local run]=$local [agent]=$agent [worker]=$worker) before=()
for name in "${!pid[@]}"; do before[$name]=$(wakeups "${pid[$name]}"); done
sleep "$seconds"
printf '%-12s %s\n' process "wake-ups in $seconds s"
for name in operator "local run" agent worker; do
    printf '%-12s %d\n' "$name" $(($(wakeups "${pid[$name]}") - before[$name]))
done
