#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What agents say of GPUs, on a cluster whose pods have a stand-in for NVIDIA's driver: GPUs by rank in info and in
# metrics; a GPU that falls off the bus moves its group to another node.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2016
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"

# The driver's library, and what it says in the beginning: each pod has a copy that can be changed.
driver() {
    cc -shared -fPIC -D_GNU_SOURCE -o "$suite_dir/libnvidia-ml.so.1" "$here/../unit/worker/device/nvml_stand_in.c"
    echo "gpu GPU-NODE H200 300 41 0 0 ok" >"$suite_dir/control"
    kc create configmap driver "--from-file=$suite_dir/libnvidia-ml.so.1" "--from-file=$suite_dir/control"
}

group() {
    module_apply gpus 2 /modules/accumulator.so Accumulator \
        '.spec.template.spec |= (.volumes = [{name: "driver", configMap: {name: "driver"}}, {name: "state", emptyDir: {}}]
            | .containers[0].resources.limits = {"nvidia.com/gpu": 1}
            | .containers[0].env = [{name: "NODE", valueFrom: {fieldRef: {fieldPath: "spec.nodeName"}}},
                {name: "NVIDIA_VISIBLE_DEVICES", value: "all"}, {name: "LD_LIBRARY_PATH", value: "/driver"},
                {name: "NVML_STAND_IN", value: "/state/control"}]
            | .containers[0].volumeMounts = [{name: "driver", mountPath: "/driver"}, {name: "state", mountPath: "/state"}]
            | .initContainers = [.containers[0] | .name = "state" | del(.resources.limits)
                | .command = ["sh", "-c", "sed s/NODE/$NODE/ /driver/control >/state/control"]])'
}

nodes() { # of its pods, each once
    kc get pods -l cadre.dev/group=gpus -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u
}

metrics() {
    "$devcluster" exec -- curl --silent --show-error --max-time 5 \
        http://cadre-operator-metrics.cadre-system.svc:8080/metrics | grep DCGM_FI_DEV_GPU_TEMP
}

# lose POD: its GPU.
lose() {
    kc exec "$1" -c worker -- sh -c 'sed -i s/ok/lost/ /state/control'
}

moved() { # FROM: all pods are elsewhere
    [[ -n $(nodes) ]] && ! nodes | grep -qx "$1"
}

test_gpus() {
    local pod node
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=120s wg/gpus
    node=$(nodes | head -n 1)
    check "info shows the GPU of each rank" eventually 60 matches "1 +0 +Ok +0 +0 +41 .* H200 +GPU-" cadre info gpus
    check "metrics have DCGM's names" eventually 60 matches "DCGM_FI_DEV_GPU_TEMP.*Hostname=\"$node\".*UUID=\"GPU-$node\".* 41" \
        metrics
    pod=$(kc get pods -l cadre.dev/group=gpus -o 'jsonpath={.items[0].metadata.name}')
    check "a GPU is lost" lose "$pod"
    check "... which an Event says, with node and UUID" eventually 60 matches "GPU-$node .* on node $node fell off the bus" \
        kc get events.events.k8s.io -o 'jsonpath={.items[*].note}'
    check "... and lastFailure" eventually 30 is GPULost kc get wg gpus -o 'jsonpath={.status.lastFailure.reason}'
    check "... the group moves off the node" eventually 90 moved "$node"
    check "... and becomes Ready" kc wait --for=condition=Ready --timeout=120s wg/gpus
    check "... which ends the condition" eventually 30 is False \
        kc get wg gpus -o 'jsonpath={.status.conditions[?(@.type=="GPULost")].status}'
    check "... no restart was counted" is 0 kc get wg gpus -o 'jsonpath={.status.restartsCountTowardsMax}'
    check "... and calls go on" is "[0, 1]" cadre call gpus get_value
}

suite_start e2e-gpus --nodes 2 --gpus 4
calls_install --set crds.install=false
check "there is a driver" driver
group
test_gpus
check "a deleted group leaves nothing" group_delete gpus
suite_end
