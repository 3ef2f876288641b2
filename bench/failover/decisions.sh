#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From the end of a dead leader's lease to the first decision of the next leader, beside a load; prints a table.
#   bench/failover/decisions.sh [--rounds N]      (5) leaders of each pair that are killed
#                               [--pairs N]       (10) pairs of operators at the same time, each with a Lease of its own
#                               [--busy N]        (2) processes beside them that compute all the time
# It brings up a cluster of its own and takes it down again: root, 2 GB of memory, three minutes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
# shellcheck source=bench/lib/cluster.sh
. "$root/bench/lib/cluster.sh"
cluster_need_root
release_build cadre-operator
trap cluster_down EXIT
cluster_up 4
"$devcluster" kubectl apply -f "$root/crds" >/dev/null
"$devcluster" kubectl wait --for=condition=Established --timeout=60s crd/workergroups.cadre.dev >/dev/null
"$devcluster" exec -- python3 "$root/bench/failover/decisions.py" --operator "$build/operator/cadre-operator" "$@"
