#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts how often an operator, a local run, an agent and a worker wake up while nothing happens, in several windows of
# time, and prints the median and the maximum. Nothing wakes the agent and the worker: the connections of a local run are
# Unix sockets, where no pings are sent while no call is open. A timer of libwebsockets wakes the operator and the local
# run every 30 seconds. The API server also sends the operator a bookmark of each watch every minute, and the operator
# looks up its other replicas every one to two minutes. It elects no leader: a leader renews its Lease every two seconds.
# The timer of libwebsockets stays. No function of libwebsockets stops it, and it is needed: libwebsockets looks for the
# time limits of its connections only after it has dealt with an event of a socket itself. Cadre hands it sockets and
# requests at other times (common/ws/ws_preread), which also begins such limits. This timer may then be the only one that
# finds a limit that is over.
# Needs root, for the API server; six minutes.
#   bench/idle/run.sh [OPTION]...
#   --windows N       (6) how often it counts
#   --seconds N       (10) how long each time
#   --settle N        (180) how long it waits before, for what follows a start
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
windows=6 seconds=10 settle=180
while [[ $# -gt 0 ]]; do
    case $1 in
    --windows) windows=$2 ;;
    --seconds) seconds=$2 ;;
    *) settle=$2 ;;
    esac
    shift 2
done
((windows > 0)) || options_refuse "--windows takes at least 1"
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

names=(operator "local run" agent worker)
pids=("$operator" "$local" "$agent" "$worker")
for ((w = 0; w < windows; w++)); do
    before=()
    for pid in "${pids[@]}"; do before+=("$(wakeups "$pid")"); done
    sleep "$seconds"
    for i in "${!pids[@]}"; do echo $(($(wakeups "${pids[i]}") - before[i])) >>"$folder/counts.$i"; done
done
printf '%-12s %8s %8s   wake-ups in %d s, %d times\n' process median maximum "$seconds" "$windows"
for i in "${!names[@]}"; do
    sort -n "$folder/counts.$i" | awk -v name="${names[i]}" '{ n[NR] = $1 }
        END { printf "%-12s %8g %8d\n", name, (n[int((NR + 1) / 2)] + n[int(NR / 2) + 1]) / 2, n[NR] }'
done
