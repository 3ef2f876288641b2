#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WorkerGroups against bare pinned pods, on a cluster of its own with 1,000 fake nodes; prints a table. Needs root.
#   bench/groups/run.sh [OPTION]...
#   --singles N             rounds of one group (10)
#   --pairs N               rounds of 100 groups (3)
#   --thousands N           rounds of 1,000 groups (0)
#   --restarts N            of one group, alone and among others (6)
#   --starts N              of the operator, in an empty and in a full cluster (3)
#   --creates N             rounds of 1,000 creations (3)
#   --placementgroups N     rounds of 100 PlacementGroups of 1 bundle (3)
#   --kiloplacementgroups N rounds of 1,000 PlacementGroups of 3 bundles (0)
#   --parts N               rounds of what each part of a group costs, without an operator; nothing else is measured (0)
#   --placementgroup-parts N
#                         the same of PlacementGroups of 1 bundle: bare pods, the operator's, objects, all of it (0)
# The operator and bench-groups are built into build/release. BENCH_CLUSTER=NAME uses a cluster that is up, and leaves
# it up (deploy/devcluster/devcluster --name NAME up --nodes 0 --kwok 1000 --gpus 8).
# With --noise-rate or --noise-at-once a workload lists all nodes while PlacementGroups are measured;
# BENCH_FLOWSCHEMAS=no leaves out the chart's FlowSchemas.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
# shellcheck source=bench/lib/cluster.sh
. "$root/bench/lib/cluster.sh"
work=$(mktemp -d)

finish() {
    local code=$?
    [[ $code -eq 0 || ! -s $work/operator.log ]] || tail -n 20 "$work/operator.log" >&2
    cluster_down
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT

cluster_need_root
release_build cadre-operator bench-groups
nodes=1000
[[ $* != *parts* ]] || nodes=100 # what they cost idle would hide what is measured
cluster_up $nodes
cadre_install "$work/operator.conf"
noise=()
if [[ $* == *--noise-* ]]; then
    noise_account "$work/noise.conf"
    noise=(--noise-kubeconfig "$work/noise.conf")
fi
"$devcluster" exec -- "$build/bench/groups/bench-groups" --kubeconfig "$state/kubeconfig" \
    --operator-kubeconfig "$work/operator.conf" --operator "$build/operator/cadre-operator" \
    --operator-log "$work/operator.log" --components "$(cluster_components)" "${noise[@]}" "$@"
