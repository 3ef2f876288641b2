#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WorkerGroups against bare pinned pods, on a cluster of its own with 1,000 fake nodes; prints a table.
#   bench/groups/run.sh [OPTION OF bench-groups]...     such as --thousands 1 --singles 30
# The operator and bench-groups are built into build/release. BENCH_CLUSTER=NAME uses a cluster that is up, and leaves
# it up (deploy/devcluster/devcluster --name NAME up --nodes 0 --kwok 1000 --gpus 8).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
devcluster=$root/deploy/devcluster/devcluster
build=$root/build/release
export CADRE_CLUSTER=${BENCH_CLUSTER:-bench-$$} CADRE_USE=own
state=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/clusters/$CADRE_CLUSTER
work=$(mktemp -d)

finish() {
    local code=$?
    [[ $code -eq 0 || ! -s $work/operator.log ]] || tail -n 20 "$work/operator.log" >&2
    [[ -n ${BENCH_CLUSTER:-} ]] || "$devcluster" down >/dev/null 2>&1 || true
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT

if [[ $EUID -ne 0 ]]; then
    echo "bench: a cluster needs root: run it as root" >&2
    exit 1
fi

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target cadre-operator bench-groups >/dev/null
[[ -n ${BENCH_CLUSTER:-} ]] || "$devcluster" up --nodes 0 --kwok 1000 --gpus 8
"$devcluster" kubectl apply -f "$root/crds" >/dev/null
"$devcluster" kubectl wait --for=condition=Established --timeout=60s crd/workergroups.cadre.dev >/dev/null
"$devcluster" kubectl create namespace bench --dry-run=client -o yaml | "$devcluster" kubectl apply -f - >/dev/null
until "$devcluster" kubectl -n bench get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done

# The operator is who it is in an installation: the chart's ServiceAccount, to which priority and fairness apply.
"$devcluster" helm template cadre "$root/charts/cadre" --namespace bench --kube-version 1.30.0 \
    --set crds.install=false --show-only templates/serviceaccount.yaml --show-only templates/rbac.yaml \
    --show-only templates/keys.yaml --show-only templates/flowschema.yaml | "$devcluster" kubectl -n bench apply -f - >/dev/null
token=$("$devcluster" kubectl -n bench create token cadre-operator --duration 6h)
"$devcluster" exec -- kubectl config view --raw -o json |
    jq --arg token "$token" '.users = [{name: "operator", user: {token: $token}}]
        | .contexts[].context.user = "operator"' >"$work/operator.conf"

components=
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kwok; do
    read -r pid _ <"$state/run/$name.pid"
    components+=${components:+,}$pid
done
"$devcluster" exec -- "$build/bench/groups/bench-groups" --kubeconfig "$state/kubeconfig" \
    --operator-kubeconfig "$work/operator.conf" --operator "$build/operator/cadre-operator" \
    --operator-log "$work/operator.log" --components "$components" "$@"
