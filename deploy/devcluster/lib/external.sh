# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The cluster that "devcluster kubectl" and similar commands use: one of our own, or an existing one. The file
# clusters/NAME.use keeps the choice of "ensure" ("own", "kubeconfig CONTEXT" or "kind NAME"). For an existing cluster, the
# kubeconfig is in clusters/NAME.kubeconfig.

USE_FILE= # set by cluster_select

use_read() {
    USE_KIND=own USE_NAME='' USE_CONFIG=$CACHE_DIR/clusters/$CLUSTER.kubeconfig
    [[ -r $USE_FILE ]] || return 0
    read -r USE_KIND USE_NAME <"$USE_FILE" || true
}
use_write() {
    mkdir -p "${USE_FILE%/*}"
    echo "$*" >"$USE_FILE"
}

# Uses the user's kubectl, or our own, and builds ours if there is neither.
kubectl_ensure() { type -P kubectl >/dev/null || { deps_main && binaries_ensure kubectl; } >&2; }

kubeconfig_answers() { # FILE-LIST, as in $KUBECONFIG
    [[ $(KUBECONFIG=$1 timeout 4 kubectl --request-timeout=3s get --raw /readyz 2>/dev/null) == ok ]]
}

# A copy of the kubeconfig keeps the choice, so that a later switch of context does not let "devcluster helm uninstall" use
# another cluster.
kubeconfig_keep() { # FILE-LIST
    mkdir -p "${USE_FILE%/*}"
    (umask 077 && KUBECONFIG=$1 kubectl config view --minify --flatten --raw >"$CACHE_DIR/clusters/$CLUSTER.kubeconfig")
}

kind_create() { # NODES: a cluster with that number of workers
    local node
    {
        printf 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n'
        for ((node = 0; node < $1; node++)); do echo "- role: worker"; done
    } | kind create cluster --name "$CLUSTER" --config - >&2
}

# Fakes GPUs on the workers of a kind cluster, as node_gpus_set does on ours.
kind_gpus_set() { # FILE GPUS
    local node
    for node in $(KUBECONFIG=$1 kubectl get nodes -l '!node-role.kubernetes.io/control-plane' -o name); do
        KUBECONFIG=$1 kubectl patch "$node" --subresource=status --type=merge \
            -p "{\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"$2\"},\"allocatable\":{\"nvidia.com/gpu\":\"$2\"}}}" >/dev/null
    done
}

# ensure_kind NODES GPUS: uses the kind cluster of that name, or any other one, or creates one if docker works.
ensure_kind() {
    local name clusters file
    type -P kind >/dev/null && kubectl_ensure || return 1
    clusters=$(kind get clusters 2>/dev/null) || clusters=
    if grep -qx "$CLUSTER" <<<"$clusters"; then
        name=$CLUSTER
    elif [[ -n $clusters ]]; then
        name=$(head -n 1 <<<"$clusters")
    else
        timeout 3 docker info >/dev/null 2>&1 || return 1
        say "creating a kind cluster \"$CLUSTER\""
        kind_create "$1" || return 1
        name=$CLUSTER
    fi
    file=$(mktemp)
    if kind get kubeconfig --name "$name" >"$file" 2>/dev/null && kubeconfig_answers "$file"; then
        kubeconfig_keep "$file"
        [[ $2 -eq 0 ]] || kind_gpus_set "$file" "$2"
        use_write kind "$name"
        say "using the kind cluster \"$name\""
    fi
    rm -f "$file"
    use_read
    [[ $USE_KIND == kind ]]
}

ensure_kubeconfig() {
    local files=${KUBECONFIG:-$HOME/.kube/config} context
    [[ -e ${files%%:*} ]] && kubectl_ensure && kubeconfig_answers "$files" || return 1
    context=$(KUBECONFIG=$files kubectl config current-context)
    kubeconfig_keep "$files"
    use_write kubeconfig "$context"
    say "using the cluster of your kubeconfig, context \"$context\" (CADRE_USE=own for one of our own)"
}

ensure_command() {
    local args=("$@") nodes=2 gpus=4
    while [[ $# -gt 0 ]]; do
        case $1 in
        --nodes) need_value $# "$1" && require_count "$1" "$2" "$NODES_MAX" && nodes=$2 && shift ;;
        --gpus) need_value $# "$1" && require_count "$1" "$2" 64 && gpus=$2 && shift ;;
        *) die "ensure does not know \"$1\" (devcluster --help)" ;;
        esac
        shift
    done
    # The name of a cluster means one of our own.
    use_write own
    case ${CADRE_USE:-${CLUSTER_OPTION:+own}} in
    own) ;;
    kubeconfig) ensure_kubeconfig || die "CADRE_USE=kubeconfig, but the cluster of your kubeconfig does not answer" ;;
    kind) ensure_kind "$nodes" "$gpus" || die "CADRE_USE=kind, but there is no kind cluster and none can be made" ;;
    "") ensure_kubeconfig || ensure_kind "$nodes" "$gpus" || true ;;
    *) die "CADRE_USE is own, kubeconfig or kind, not \"$CADRE_USE\"" ;;
    esac
    use_read
    if [[ $USE_KIND != own ]]; then
        type -P helm >/dev/null || { deps_main && binaries_ensure helm; }
        return 0
    fi
    say "using a cluster of our own, \"$CLUSTER\""
    up_command "${args[@]}"
}
