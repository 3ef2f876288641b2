# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A node has the namespaces of "holder-NAME", containerd, kubelet and kube-proxy in them, and a veth to the bridge of the
# control plane. Nodes are named n1, n2, ...

NODES_MAX=50

node_index() { # NAME: prints 1 for n1; the cluster must have the node
    [[ $1 =~ ^n([1-9][0-9]?)$ && -d $STATE/nodes/$1 ]] || die "no node \"$1\" in cluster $CLUSTER (devcluster node list)"
    echo "${BASH_REMATCH[1]}"
}

node_names() { [[ ! -d $STATE/nodes ]] || find "$STATE/nodes" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V; }
node_address() { echo "$NET_PREFIX.$((10 + $1))"; }
node_processes() { printf '%s\n' "holder-$1" "containerd-$1" "kubelet-$1" "kube-proxy-$1"; }

node_running() {
    local process
    for process in $(node_processes "$1"); do
        process_alive "$process" || return 1
    done
}

# The veth is v-NAME at the bridge, and eth0 in the node. Both ends disappear with the node's namespace.
node_network() { # NAME INDEX
    local pid subnet=${POD_CIDR%.0.0/16}.$2
    holder_net "holder-$1" ip link show eth0 >/dev/null 2>&1 && return 0
    pid=$(process_pid "holder-$1")
    holder_net holder-control ip -batch - <<EOF
link add v-$1 type veth peer name eth0 netns $pid
link set v-$1 master br0
link set v-$1 up
route replace $subnet.0/24 via $(node_address "$2")
EOF
    {
        printf 'link set lo up\naddr add %s/24 dev eth0\nlink set eth0 up\n' "$(node_address "$2")"
        local other
        for ((other = 1; other <= NODES_MAX; other++)); do
            [[ $other -eq $2 ]] || printf 'route add %s.%d.0/24 via %s\n' "${POD_CIDR%.0.0/16}" "$other" "$(node_address "$other")"
        done
    } | holder_net "holder-$1" ip -batch -
    holder_net "holder-$1" sysctl -qw net.ipv4.ip_forward=1
    services_route
}

# Programs in the control plane's namespace (devcluster exec) reach the addresses of Services through the first node that
# runs. Its kube-proxy translates and masquerades packets that do not come from a pod.
services_route() {
    local name
    for name in $(node_names); do
        process_alive "holder-$name" || continue
        holder_net holder-control ip route replace "$SERVICE_CIDR" via "$(node_address "$(node_index "$name")")"
        return 0
    done
}

node_configure() { # NAME INDEX
    local dir=$STATE/nodes/$1
    [[ ! -s $dir/kubelet.yaml ]] || return 0
    mkdir -p "$dir"/{cni,containerd,kubelet,pods}
    : >"$dir/resolv.conf"
    # ptp routes every packet, so the addresses of Services also work between pods of one node. A bridge would not.
    cat >"$dir/cni/10-pods.conflist" <<EOF
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "mtu": 1500,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "routes": [{"dst": "0.0.0.0/0"}],
           "ranges": [[{"subnet": "${POD_CIDR%.0.0/16}.$2.0/24"}]]}}]}
EOF
    cat >"$dir/containerd.toml" <<EOF
version = 3
root = "$dir/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
address = "/run/containerd/containerd.sock"
# The defaults are 2 s and 5 s. Then containers on a machine that stands still get an unknown state.
[timeouts]
"io.containerd.timeout.shim.cleanup" = "60s"
"io.containerd.timeout.shim.load" = "60s"
"io.containerd.timeout.task.state" = "60s"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "$PAUSE_IMAGE"
[plugins.'io.containerd.cri.v1.runtime']
# Without CAP_SYS_RESOURCE, nobody may lower a score, and runc would fail for every sandbox.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "$dir/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
EOF
    cat >"$dir/kube-proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: $1
clientConnection: {kubeconfig: "$STATE/pki/kube-proxy.conf"}
clusterCIDR: $POD_CIDR
detectLocalMode: ClusterCIDR
bindAddress: $(node_address "$2")
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
nftables: {minSyncPeriod: 100ms}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s, udpTimeout: 0s, udpStreamTimeout: 0s}
EOF
    # A full disk evicts and collects nothing: the disk is the developer's, and images come by "load".
    cat >"$dir/.kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_address "$2")
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$STATE/pki/ca.crt"}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP/$1
failCgroupV1: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
podLogsDir: $dir/pods
resolvConf: $dir/resolv.conf
clusterDNS: [$API_ADDRESS]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
failSwapOn: false
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageMaximumGCAge: 0s
maxPods: 200
nodeLeaseDurationSeconds: 12
nodeStatusUpdateFrequency: 10s
serializeImagePulls: false
healthzBindAddress: 127.0.0.1
EOF
    mv "$dir/.kubelet.yaml" "$dir/kubelet.yaml"
}

# node_boot NAME: starts everything that does not need the API server. node_join NAME: starts the rest.
node_boot() {
    local name=$1 dir=$STATE/nodes/$1 index
    mkdir -p "$dir"
    index=$(node_index "$name")
    # A node without its holder is dead. Its remains are removed first, with the cgroups of its pods.
    process_alive "holder-$name" || { cgroup_kill "$CGROUP/$name" && cgroup_remove "$CGROUP/$name"; }
    cgroup_create "$CGROUP/$name/system"
    holder_start "holder-$name" "$CGROUP/$name/system"
    node_network "$name" "$index"
    node_configure "$name" "$index"
    client_create "kubelet-$name" "/O=system:nodes/CN=system:node:$name"
    process_start "containerd-$name" "$CGROUP/$name/system" "holder-$name" containerd --config "$dir/containerd.toml" --log-level warn
}

node_ctr() { # NAME ARGS...: ctr on that node
    local name=$1
    shift
    holder_exec "holder-$name" ctr -n k8s.io "$@"
}

node_join() {
    local name=$1 dir=$STATE/nodes/$1 image
    wait_until 60 "containerd of $name" --alive "containerd-$name" node_ctr "$name" version
    [[ -e $dir/images/pause ]] || {
        node_ctr "$name" images import --local "$PAUSE_DIR/pause.tar" >>"$STATE/logs/images.log" 2>&1 ||
            die "the pause image cannot be imported on $name; log: $STATE/logs/images.log"
        mkdir -p "$dir/images"
        : >"$dir/images/pause"
    }
    for image in "$STATE"/images/*.tar; do
        [[ ! -e $image ]] || image_import "$name" "$image"
    done
    process_start "kubelet-$name" "$CGROUP/$name/system" "holder-$name" kubelet --config "$dir/kubelet.yaml" \
        --root-dir "$dir/kubelet" --cert-dir "$dir/kubelet/pki" --kubeconfig "$STATE/pki/kubelet-$name.conf" \
        --hostname-override "$name" --node-ip "$(node_address "$(node_index "$name")")"
    process_start "kube-proxy-$name" "$CGROUP/$name/system" "holder-$name" kube-proxy --config "$dir/kube-proxy.yaml"
}

# A node that comes back has its old Ready condition until the kubelet's first report. So only a report that is newer than
# this start counts.
node_ready() { # NAME
    api_get "/api/v1/nodes/$1" | jq -e --arg since "$(<"$STATE/nodes/$1/started")" '.status.conditions[]
        | select(.type == "Ready" and .status == "True" and (.lastHeartbeatTime | fromdate) >= ($since | tonumber))'
}

# Fakes GPUs. The kubelet keeps an extended resource that somebody else has written into the status of its node, but not when
# it registers. So call this after each start of the kubelet.
node_gpus_set() { # NAME
    kubectl_own patch node "$1" --subresource=status --type=merge \
        -p "{\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"$GPUS\"},\"allocatable\":{\"nvidia.com/gpu\":\"$GPUS\"}}}" >/dev/null ||
        die "the GPUs of node $1 cannot be set"
}

nodes_start() { # NAME...: starts the nodes at the same time as far as possible
    local name
    for name in "$@"; do
        date +%s >"$STATE/nodes/$name/started"
        node_join "$name"
    done
    for name in "$@"; do
        wait_until 120 "node $name" --alive "kubelet-$name" node_ready "$name"
        [[ $GPUS -eq 0 ]] || node_gpus_set "$name"
    done
}

node_stop() { # NAME: as a power cut: no agent reports the end of its ranks, and no kubelet the end of its pods
    local pids
    cgroup_freeze "$CGROUP/$1" on
    pids=$(cgroup_pids "$CGROUP/$1")
    # shellcheck disable=SC2086
    [[ -z $pids ]] || kill -KILL $pids 2>/dev/null || true
    cgroup_freeze "$CGROUP/$1" off
    cgroup_kill "$CGROUP/$1"
    services_route
}

node_cut() { # NAME up|down: plugs in or pulls out its network cable
    holder_net holder-control ip link set "v-$1" "$2" 2>/dev/null || die "node $1 does not run"
}

# nodes_part NAME NAME: each node drops packets from the other node and its pods, until nodes_join or the end of a node.
nodes_part() {
    nodes_join "$1" "$2"
    node_deafen "$1" "$2"
    node_deafen "$2" "$1"
}

node_deafen() { # NAME OTHER
    local other
    other=$(node_index "$2")
    holder_net "holder-$1" nft -f - <<EOF
table inet apart-$2 {
    chain in {
        type filter hook prerouting priority raw
        ip saddr { $(node_address "$other"), ${POD_CIDR%.0.0/16}.$other.0/24 } drop
    }
}
EOF
}

nodes_join() { # NAME NAME
    local name
    for name in "$@"; do
        node_index "$name" >/dev/null
        node_running "$name" || die "node $name does not run"
    done
    holder_net "holder-$1" nft delete table inet "apart-$2" 2>/dev/null || true
    holder_net "holder-$2" nft delete table inet "apart-$1" 2>/dev/null || true
}

node_start() { # NAME
    if node_running "$1"; then
        node_cut "$1" up
        return 0
    fi
    node_boot "$1"
    nodes_start "$1"
}

node_state() { # NAME
    if ! node_running "$1"; then
        echo stopped
    elif [[ $(holder_net holder-control ip link show "v-$1") == *"state UP"* ]]; then
        echo running
    else
        echo cut
    fi
}
