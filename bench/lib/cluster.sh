# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by benchmarks on a cluster of their own. Set before this is read: root, the tree. BENCH_CLUSTER=NAME uses a
# cluster that is up, and leaves it up.

: "${root:?}"
devcluster=$root/deploy/devcluster/devcluster
build=$root/build/release
export CADRE_CLUSTER=${BENCH_CLUSTER:-bench-$$} CADRE_USE=own
state=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/clusters/$CADRE_CLUSTER

cluster_need_root() {
    [[ $EUID -eq 0 ]] || {
        echo "bench: a cluster needs root: run it as root" >&2
        exit 1
    }
}

cluster_up() { # [FAKE-NODES]
    [[ -n ${BENCH_CLUSTER:-} ]] || "$devcluster" up --nodes 0 --kwok "${1:-1000}" --gpus 8
}
cluster_down() { [[ -n ${BENCH_CLUSTER:-} ]] || "$devcluster" down >/dev/null 2>&1 || true; }

release_build() { # TARGET...
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
    cmake --build "$build" --target "$@" >/dev/null
}

# account_config NAMESPACE NAME: a kubeconfig of this ServiceAccount.
account_config() {
    local token
    token=$("$devcluster" kubectl -n "$1" create token "$2" --duration 6h)
    "$devcluster" exec -- kubectl config view --raw -o json |
        jq --arg token "$token" '.users = [{name: "manager", user: {token: $token}}]
            | .contexts[].context.user = "manager"'
}

# cadre_install FILE: everything of the chart but the operator itself, and the namespace "bench". The operator is who it
# is in an installation: FILE is for the chart's ServiceAccount, to which priority and fairness apply. BENCH_FLOWSCHEMAS=no
# leaves the chart's FlowSchemas out.
cadre_install() {
    local flows=(--show-only templates/flowschema.yaml)
    if [[ ${BENCH_FLOWSCHEMAS:-yes} == no ]]; then
        flows=()
        "$devcluster" kubectl delete flowschema -l app.kubernetes.io/name=cadre >/dev/null
    fi
    "$devcluster" kubectl apply -f "$root/crds" >/dev/null
    "$devcluster" kubectl wait --for=condition=Established --timeout=60s crd/workergroups.cadre.dev >/dev/null
    "$devcluster" kubectl create namespace bench --dry-run=client -o yaml | "$devcluster" kubectl apply -f - >/dev/null
    until "$devcluster" kubectl -n bench get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done
    "$devcluster" helm template cadre "$root/charts/cadre" --namespace bench --kube-version 1.30.0 \
        --set crds.install=false --show-only templates/serviceaccount.yaml --show-only templates/rbac.yaml \
        --show-only templates/keys.yaml "${flows[@]}" |
        "$devcluster" kubectl -n bench apply -f - >/dev/null
    account_config bench cadre-operator >"$1"
}

# noise_account FILE: a kubeconfig of a workload that may do nothing but list nodes.
noise_account() {
    "$devcluster" kubectl apply -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: ServiceAccount
	metadata: {name: noise, namespace: bench}
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRole
	metadata: {name: bench-noise}
	rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRoleBinding
	metadata: {name: bench-noise}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bench-noise}
	subjects: [{kind: ServiceAccount, name: noise, namespace: bench}]
	EOF
    account_config bench noise >"$1"
}

cluster_components() { # the pids whose CPU time is counted, with commas
    local name pid list=
    for name in etcd kube-apiserver kube-controller-manager kube-scheduler kwok; do
        read -r pid _ <"$state/run/$name.pid"
        list+=${list:+,}$pid
    done
    echo "$list"
}
