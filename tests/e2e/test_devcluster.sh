#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests deploy/devcluster: the pods of its nodes reach each other, it causes faults on demand, clusters do not disturb each
# other, and nothing of a cluster is left behind. Prints TAP. Exit status 77: no root, so no cluster.
set -uo pipefail

if [[ $EUID -ne 0 ]]; then
    echo "1..0 # SKIP a dev cluster needs root"
    exit 77
fi

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
DEVCLUSTER=$ROOT/deploy/devcluster/devcluster
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/cadre
IMAGE=localhost/debian:bookworm-slim-merged
A=devtest-a B=devtest-b C=devtest-c
work=$(mktemp -d)
# shellcheck source=tests/lib/tap.sh
. "$ROOT/tests/lib/tap.sh"
tap_diag=$work/out

on() { # CLUSTER ARGS...
    "$DEVCLUSTER" --name "$@"
}

reads_s=60 # limit for a program that connects

# Only a short time shows that something does not happen.
check_not() { # DESCRIPTION CMD...
    local description=$1 reads_s=5
    shift
    refuses() { ! "$@"; }
    check "$description" refuses "$@"
}

# Prints the cgroups of a cluster. Their path contains its name.
cgroups_of() { find /sys/fs/cgroup -type d -path "*/cadre-$1-*" 2>/dev/null; }
pids_of() { # CLUSTER [NODE]
    local dir
    for dir in $(cgroups_of "$1" | grep "/cadre-$1-[0-9]*/${2:-}"); do cat "$dir/cgroup.procs" 2>/dev/null; done | sort -un
}

# Writes down the processes and namespaces of a cluster that runs. nothing_left looks for them later. A process is known by
# its pid and its start, because pids are used again. Only present namespaces count: another cluster may meanwhile have the
# number of an earlier one.
trace() { # CLUSTER
    local pid
    for pid in $(pids_of "$1"); do
        awk -v pid="$pid" '{ sub(/.*\) /, ""); print pid, $20 }' "/proc/$pid/stat" 2>/dev/null >>"$work/$1.pids"
        readlink "/proc/$pid/ns/net" "/proc/$pid/ns/mnt" 2>/dev/null
    done >"$work/all.ns"
    # The processes of the control plane share the machine's own namespaces.
    grep -vxF -e "$(readlink /proc/self/ns/net)" -e "$(readlink /proc/self/ns/mnt)" "$work/all.ns" | sort -u >"$work/$1.ns"
    in_namespaces | grep -wF -f "$work/$1.ns" >>"$work/$1.in"
}

# "PID START NAMESPACE" of all processes.
in_namespaces() {
    local dir start
    for dir in /proc/[0-9]*; do
        start=$(awk '{ sub(/.*\) /, ""); print $20 }' "$dir/stat" 2>/dev/null) || continue
        readlink "$dir/ns/net" "$dir/ns/mnt" 2>/dev/null | sed "s|^|${dir#/proc/} $start |" || true
    done
}

nothing_left() { # CLUSTER
    local pid start left=0
    while read -r pid start; do
        [[ $(awk '{ sub(/.*\) /, ""); print ($1 == "Z" ? "" : $20) }' "/proc/$pid/stat" 2>/dev/null) != "$start" ]] || {
            echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
            left=1
        }
    done <"$work/$1.pids"
    # New namespaces, such as in another suite's cluster, get the numbers of old ones. So a namespace is left only
    # if a process that was in it still is in it.
    comm -12 <(in_namespaces | sort -u) <(sort -u "$work/$1.in") >"$work/common"
    [[ ! -s $work/common ]] || { echo "namespaces: $(<"$work/common")" && left=1; }
    [[ -z $(cgroups_of "$1") ]] || { echo "cgroups: $(cgroups_of "$1")" && left=1; }
    grep -qs "$CACHE/clusters/$1/" /proc/mounts && echo "mounts: $(grep "$CACHE/clusters/$1/" /proc/mounts)" && left=1
    # Without the brackets, the search would find itself.
    grep -lsa "/clusters/[${1:0:1}]${1:1}/" /proc/[0-9]*/cmdline && left=1
    [[ ! -e $CACHE/clusters/$1 ]] || { echo "state: $CACHE/clusters/$1" && left=1; }
    return $left
}

traced_something() { [[ $(wc -l <"$work/$1.pids") -ge $2 && -s $work/$1.ns ]]; }

node_ready() { # CLUSTER NODE True|False|Unknown
    [[ $(on "$1" kubectl get node "$2" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == "$3" ]]
}
node_is_off() { [[ -z $(pids_of "$1" "$2") && -n $(pids_of "$1") ]] && on "$1" node list | grep "^$2 *stopped"; }
node_gpus() { [[ $(on "$1" kubectl get node "$2" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}') == "$3" ]]; }

pods() {
    cat <<EOF
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, selector: {app: peers}, publishNotReadyAddresses: true}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: peers}, ports: [{port: 80, targetPort: 8000}]}
EOF
    local node
    for node in n1 n2; do
        cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $node, labels: {app: peers}}
spec:
  nodeSelector: {kubernetes.io/hostname: $node}
  hostname: $node
  subdomain: peers
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: $IMAGE
    imagePullPolicy: Never
    command: [perl, -MIO::Socket::INET, -e]
    args: ['my \$s = IO::Socket::INET->new(LocalPort => 8000, Listen => 9, ReuseAddr => 1) or die; while (my \$c = \$s->accept) { print \$c "pod $node\n" }']
    resources: {limits: {nvidia.com/gpu: "3"}}
EOF
    done
}

# pod_reads and host_reads: a pod, or a program of this machine, connects and reads a line that matches.
pod_reads() { # POD HOST PORT EXPECTED-PATTERN
    on $A kubectl exec "$1" -- timeout "$reads_s" bash -c "cat </dev/tcp/$2/$3" | grep -E "$4"
}
host_reads() { on $A exec -- timeout "$reads_s" bash -c "cat </dev/tcp/$1/$2" | grep -E "$3"; }
pod_ip() { on $A kubectl get pod "$1" -o 'jsonpath={.status.podIP}'; }

# up_killed CLUSTER FILE: runs "up" and kills it with SIGKILL as soon as FILE exists in the state. On a busy machine, "up"
# may end before that. Then it tries again.
up_killed() {
    local tries up
    for tries in 1 2 3 4 5; do
        "$DEVCLUSTER" --name "$1" up --nodes 1 >"$work/up" 2>&1 &
        up=$!
        until [[ -e $CACHE/clusters/$1/$2 ]] || ! kill -0 $up; do sleep 0.02; done
        kill -KILL $up
        wait $up 2>/dev/null
        trace "$1"
        [[ -e $CACHE/clusters/$1/$2 ]] || return 1
        [[ -e $CACHE/clusters/$1/ready ]] || return 0
        echo "try $tries: the cluster is up already"
        on "$1" down
    done
    return 1
}

build_all() { "$DEVCLUSTER" build && "$ROOT/deploy/devcluster/image" base; }
up_says_already() { on $A up --nodes 2 --gpus 4 2>&1 | grep "up already"; }
pods_create() { pods | on $A kubectl apply -f -; }
parted_reach_api() {
    local pod
    for pod in n1 n2; do
        on $A kubectl exec "$pod" -- timeout 60 bash -c 'echo </dev/tcp/kubernetes.default/443' || return
    done
}
pod_reads_address() { pod_reads n1 "$(pod_ip n2)" 8000 '^pod n2$'; }
fake_pod_runs() {
    on $B kubectl run p --image=none/none && on $B kubectl wait --for=condition=Ready pod/p --timeout=600s
}
pod_runs_again() {
    on $A kubectl delete pod n1 --force --grace-period=0 && pods_create &&
        on $A kubectl wait --for=condition=Ready pod/n1 --timeout=600s
}
node_comes_back() { eventually 30 node_ready $A n2 True && [[ $(on $A kubectl get pod n2 -o 'jsonpath={.status.phase}') == Running ]]; }
node_has_image() { on $A exec --node n3 -- ctr -n k8s.io images ls -q | grep -x "$IMAGE"; }
up_repairs() {
    local name
    for name in kube-controller-manager kubelet-n1; do
        kill -KILL "$(cut -d' ' -f1 "$CACHE/clusters/$C/run/$name.pid")"
    done
    on $C up && [[ $(on $C status | grep -c stopped) -eq 0 ]] && eventually 10 node_gpus $C n1 4
}

all_down() {
    local name
    for name in $A $B $C; do on "$name" down >/dev/null 2>&1; done
}

trap 'all_down; rm -rf "$work"' EXIT
all_down

check "programs and the base image can be built" build_all
check "two nodes come up" on $A up --nodes 2 --gpus 4
check "up again does nothing" up_says_already
check "node n1 has 4 GPUs" node_gpus $A n1 4
check "node n2 has 4 GPUs" node_gpus $A n2 4
check "an image is loaded" on $A load $IMAGE
check "pods are created" pods_create
check "a pod runs on each node" on $A kubectl wait --for=condition=Ready pod/n1 pod/n2 --timeout=600s
check "a pod reaches the other node's by address" eventually 10 pod_reads_address
check "a pod reaches the other node's by its headless name" eventually 10 pod_reads n2 n1.peers.default.svc 8000 '^pod n1$'
check "a pod reaches itself by its headless name" eventually 10 pod_reads n1 n1.peers 8000 '^pod n1$'
check "a pod reaches a Service address" eventually 10 pod_reads n1 front 80 '^pod n[12]$'
check "a pod reaches the API server's Service" \
    eventually 10 on $A kubectl exec n2 -- timeout 60 bash -c 'echo </dev/tcp/kubernetes.default/443'
check_not "a pod does not resolve a foreign name" on $A kubectl exec n1 -- timeout 5 getent hosts example.com
check "a program of this machine reaches a pod by name" eventually 10 host_reads n2.peers.default 8000 '^pod n2$'
check "a program of this machine reaches a Service" eventually 10 host_reads front.default 80 '^pod n[12]$'
check "logs come through the kubelet" on $A kubectl logs n1

check "a second cluster comes up beside it" on $B up --nodes 0 --kwok 3 --gpus 8
check "its fake nodes are Ready" node_ready $B kwok-0002 True
check "its fake nodes have 8 GPUs" node_gpus $B kwok-0002 8
check "a pod seems to run on a fake node" fake_pod_runs
check "and goes when it is deleted" on $B kubectl delete pod p --timeout=600s
check_not "the clusters do not see each other's nodes" on $B kubectl get node n1
trace $B
check "the second cluster had processes" traced_something $B 6
check "the second cluster goes down" on $B down
check "it left nothing" eventually 5 nothing_left $B
check "the first one still works" eventually 10 pod_reads n1 n2.peers 8000 '^pod n2$'

trace $A
check "n1 loses its power" on $A node stop n1
check "nothing of it runs" node_is_off $A n1
check "the cluster notices" eventually 60 node_ready $A n1 Unknown
check "Services still work for programs of this machine" \
    eventually 10 on $A exec -- timeout 60 bash -c 'echo </dev/tcp/kubernetes.default.svc/443'
check "n1 starts again and is Ready" on $A node start n1
check "with its GPUs" node_gpus $A n1 4
check "a pod on it runs" pod_runs_again
check "and reaches the other node's pod" eventually 10 pod_reads n1 n2.peers 8000 '^pod n2$'
check "n2's cable is pulled" on $A node cut n2
check "the cluster notices that too" eventually 60 node_ready $A n2 Unknown
check "n2 is plugged in again" on $A node start n2
check "and comes back with its pod untouched" node_comes_back
check "the API server is stopped" on $A apiserver stop
check_not "it does not answer" on $A kubectl get --raw /readyz --request-timeout=2s
check "the API server is started again" on $A apiserver start
check "it answers" on $A kubectl get --raw /readyz
check "etcd is frozen" on $A etcd freeze
check_not "the API server has no data" on $A kubectl get nodes --request-timeout=2s
check "etcd is thawed" on $A etcd thaw
check "the API server has them" eventually 20 on $A kubectl get nodes --request-timeout=60s
check "etcd is stopped" on $A etcd stop
check_not "the API server has no data" on $A kubectl get nodes --request-timeout=2s
check "etcd is started again" on $A etcd start
check "the API server has them" eventually 20 on $A kubectl get nodes --request-timeout=60s
check "the name server is stopped" on $A dns stop
check_not "a pod does not find the other's name" pod_reads n1 n2.peers.default.svc 8000 '^pod n2$'
check "the name server is started again" on $A dns start
check "it finds it" eventually 10 pod_reads n1 n2.peers.default.svc 8000 '^pod n2$'
check "the nodes are parted" on $A node part n1 n2
check_not "a pod does not reach the other node's" pod_reads_address
check "both reach the API server" eventually 10 parted_reach_api
check "they are joined" on $A node join n2 n1
check "a pod reaches the other node's" eventually 10 pod_reads_address
check "a third node is added to the running cluster" on $A up --nodes 3
check "it has the loaded image" node_has_image

trace $A
check "the first cluster had processes" traced_something $A 15
check "the first cluster goes down" on $A down
check "it left nothing" eventually 5 nothing_left $A

check "up is killed while the control plane starts" up_killed $C run/kube-apiserver.pid
check "down cleans up after it" on $C down
check "it left nothing" eventually 5 nothing_left $C
check "up is killed while a node starts" up_killed $C run/kubelet-n1.pid
check "up after it starts again" on $C up --nodes 1
check "its node is Ready" node_ready $C n1 True
check "a controller manager and a kubelet that died are started again by up" up_repairs
trace $C
check "down removes it" on $C down
check "it left nothing" eventually 5 nothing_left $C
check "down without a cluster is not an error" on $C down
check_not "kubectl without a cluster is one" on $C kubectl get nodes
check_not "a wrong option is one" on $C up --nodse 2

tap_end
