# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A whole cluster: selects it, starts it, stops it, shows its status.

# The id names the cgroup, because the same name in another cache directory is another cluster.
cluster_select() { # NAME
    [[ $1 =~ ^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$ ]] || die "a cluster name is up to 32 of a-z, 0-9 and -, not \"$1\""
    CLUSTER=$1
    STATE=$CACHE_DIR/clusters/$CLUSTER
    read -r ID _ < <(cksum <<<"$STATE")
    ID=cadre-$CLUSTER-$ID
    CGROUP=$ID
    USE_FILE=$CACHE_DIR/clusters/$CLUSTER.use
    params_read
}

params_read() {
    NODES=0 GPUS=0 KWOK=0
    # shellcheck source=/dev/null
    [[ ! -r $STATE/params ]] || . "$STATE/params"
}
params_write() { printf 'NODES=%d GPUS=%d KWOK=%d\n' "$NODES" "$GPUS" "$KWOK" >"$STATE/params"; }

# Reads the parameters again: the former holder of the lock may have changed them.
cluster_lock() {
    lock_take 9 "$CACHE_DIR/clusters/$CLUSTER.lock"
    params_read
}
cluster_exists() { [[ -d $STATE || -n $(cgroup_dirs "$CGROUP") ]]; }
cluster_ready() { [[ -e $STATE/ready ]] && process_alive holder-control; }
cluster_require() {
    cluster_ready || die "cluster \"$CLUSTER\" is not up: devcluster${CLUSTER_OPTION:+ $CLUSTER_OPTION} up"
}

kubectl_own() { holder_net holder-control kubectl --kubeconfig "$STATE/kubeconfig" "$@"; }

# cluster_clean: removes everything of the cluster, in whatever state it is.
cluster_clean() {
    rm -f "$STATE/ready"
    cgroup_kill "$CGROUP"
    cgroup_remove "$CGROUP"
    # The kernel removes namespaces and mounts a moment after the last process has ended.
    local end=$((SECONDS + GONE_S))
    until rm -rf "$STATE" 2>/dev/null; do
        [[ $SECONDS -lt $end ]] || die "$STATE cannot be removed"
        sleep 0.1
    done
}

cluster_healthy() {
    local process name
    for process in "${CONTROL_PROCESSES[@]}"; do process_alive "$process" || return 1; done
    [[ $KWOK -eq 0 ]] || process_alive kwok || return 1
    for ((process = 1; process <= NODES; process++)); do
        name=n$process
        [[ -d $STATE/nodes/$name ]] && node_running "$name" || return 1
    done
}

cluster_summary() {
    local text="control plane"
    [[ $NODES -eq 0 ]] || text+=", $(plural "$NODES" node) with $GPUS GPUs each"
    [[ $KWOK -eq 0 ]] || text+=", $(plural "$KWOK" "fake node") with $GPUS GPUs each"
    echo "$text"
}

up_command() {
    local nodes='' gpus='' kwok='' fresh=0 name have old_gpus start=()
    while [[ $# -gt 0 ]]; do
        case $1 in
        --nodes) need_value $# "$1" && require_count "$1" "$2" "$NODES_MAX" && nodes=$((10#$2)) && shift ;;
        --gpus) need_value $# "$1" && require_count "$1" "$2" 64 && gpus=$((10#$2)) && shift ;;
        --kwok) need_value $# "$1" && require_count "$1" "$2" "$KWOK_MAX" && kwok=$((10#$2)) && shift ;;
        --fresh) fresh=1 ;;
        *) die "up does not know \"$1\" (devcluster --help)" ;;
        esac
        shift
    done
    deps_main || exit 1
    binaries_ensure
    pause_ensure
    STARTED_AT=$SECONDS
    cluster_lock
    use_write own
    if [[ $fresh -eq 1 ]] || ! cluster_ready; then
        ! cluster_exists || { say "removing what is left of cluster \"$CLUSTER\"" && cluster_clean; }
        NODES=0 GPUS=4 KWOK=0
        nodes=${nodes:-2}
        gpus=${gpus:-4}
    fi
    old_gpus=$GPUS
    have=$KWOK
    NODES=$((${nodes:-0} > NODES ? nodes : NODES)) GPUS=${gpus:-$GPUS} KWOK=$((${kwok:-0} > KWOK ? kwok : KWOK))
    [[ -z $nodes || $nodes -eq $NODES ]] || say "the cluster keeps its $NODES nodes (--fresh for a smaller one)"
    if cluster_ready && cluster_healthy && [[ $old_gpus -eq $GPUS && $have -eq $KWOK ]]; then
        say "cluster \"$CLUSTER\" is up already: $(cluster_summary)"
        return 0
    fi
    mkdir -p "$STATE"/{run,logs,nodes,images}
    chmod 700 "$STATE"
    params_write
    binaries_path_keep
    cgroup_create "$CGROUP/control"
    # Fake nodes need another grace period.
    [[ $have -gt 0 || $KWOK -eq 0 ]] || process_kill kube-controller-manager
    control_start
    for ((name = 1; name <= NODES; name++)); do
        [[ -d $STATE/nodes/n$name ]] && node_running "n$name" && continue
        mkdir -p "$STATE/nodes/n$name"
        node_boot "n$name"
        start+=("n$name")
    done
    control_finish
    say_timed "control plane is ready"
    if [[ ${#start[@]} -gt 0 ]]; then
        nodes_start "${start[@]}"
        say_timed "ready: ${start[*]}"
    fi
    [[ $old_gpus -eq $GPUS ]] || for name in $(node_names); do node_gpus_set "$name"; done
    if [[ $KWOK -gt 0 ]]; then
        kwok_start
        have=$(kwok_count)
        [[ $have -ge $KWOK ]] || kwok_add "$have" "$KWOK"
        say_timed "ready: $(plural "$KWOK" "fake node")"
    fi
    : >"$STATE/ready"
    say_timed "cluster \"$CLUSTER\" is up: $(cluster_summary)"
}

down_command() {
    local lock
    case ${1:-} in
    "") down_one ;;
    --all)
        for lock in "$CACHE_DIR"/clusters/*.lock; do
            lock=${lock##*/}
            [[ $lock == "*.lock" ]] || (cluster_select "${lock%.lock}" && cluster_exists && down_one) || true
        done
        ;;
    *) die "down does not know \"$1\" (devcluster --help)" ;;
    esac
}

down_one() {
    cluster_lock
    use_read
    [[ $USE_KIND == own ]] || say "this forgets the $USE_KIND cluster, and does not stop it"
    if cluster_exists; then
        cluster_clean
        say_timed "cluster \"$CLUSTER\" is gone"
    else
        say "there is no cluster \"$CLUSTER\""
    fi
    rm -f "$USE_FILE" "$CACHE_DIR/clusters/$CLUSTER.kubeconfig" "$CACHE_DIR/clusters/$CLUSTER.lock"
}

status_command() {
    local process pid name
    use_read
    if [[ $USE_KIND != own ]]; then
        echo "cluster \"$CLUSTER\" stands for $USE_KIND \"$USE_NAME\""
        KUBECONFIG=$USE_CONFIG kubectl get nodes
        return
    fi
    cluster_exists || die "cluster \"$CLUSTER\" is not up"
    printf '%-28s %-9s %8s\n' PROCESS PID MEMORY
    for process in "${CONTROL_PROCESSES[@]}" kwok $(for name in $(node_names); do node_processes "$name"; done); do
        [[ -e $STATE/run/$process.pid ]] || continue
        if pid=$(process_pid "$process"); then
            printf '%-28s %-9s %5d MB\n' "$process" "$pid" \
                $(($(awk '$1 == "VmRSS:" { print $2 }' "/proc/$pid/status") / 1024))
        else
            printf '%-28s %-9s\n' "$process" stopped
        fi
    done
    echo "state and logs: $STATE"
    cluster_ready || echo "not ready: \"up\" did not end; \"up\" again starts again"
    ! api_ready || kubectl_own get nodes -L nvidia.com/gpu --request-timeout=5s -l type!=kwok \
        -o 'custom-columns=NODE:.metadata.name,READY:.status.conditions[?(@.type=="Ready")].status,GPUS:.status.allocatable.nvidia\.com/gpu,ADDRESS:.status.addresses[0].address'
}
