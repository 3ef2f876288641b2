#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GPUs on a cluster whose pods have a stand-in for NVIDIA's driver. Agents report GPUs by rank in info and in metrics, and a
# GPU that falls off the bus moves its group to another node. Modules pass tensors from pod to pod. A rank that loses its GPU
# starts again, and lastFailure says why.
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
# shellcheck source=/dev/null
. "$here/../lib/plg.sh"

# The driver's libraries, a module, and the first state of the driver. Each pod has a copy of the state that can be changed.
driver() {
    local root=$here/../.. file from=()
    local device=$root/tests/unit/worker/device
    stand_in() { cc -shared -fPIC -D_GNU_SOURCE -O1 -s -I "$root" -I "$root/sdk/c/include" -o "$suite_dir/$1" "${@:2}"; }
    stand_in libnvidia-ml.so.1 "$device/nvml_stand_in.c"
    stand_in libcuda.so.1 "$device/cuda_stand_in.c" "$device/fake_device.c"
    stand_in stand_in_tensor.so "$root/tests/unit/modules/stand_in_tensor.c"
    echo "gpu GPU-NODE H200 300 41 0 0 ok 17 312500" >"$suite_dir/control"
    for file in libnvidia-ml.so.1 libcuda.so.1 stand_in_tensor.so control; do from+=("--from-file=$suite_dir/$file"); done
    kc create configmap driver "${from[@]}"
}

# Gives pods that driver. Their limits of GPUs stay the same.
driven='.spec.template.spec |= (.volumes = [{name: "driver", configMap: {name: "driver"}}, {name: "state", emptyDir: {}}]
    | .containers[0].env = [{name: "NODE", valueFrom: {fieldRef: {fieldPath: "spec.nodeName"}}},
        {name: "NVIDIA_VISIBLE_DEVICES", value: "all"}, {name: "LD_LIBRARY_PATH", value: "/driver"},
        {name: "NVML_STAND_IN", value: "/state/control"}, {name: "GPU_STAND_IN", value: "/state"}]
    | .containers[0].volumeMounts = [{name: "driver", mountPath: "/driver"}, {name: "state", mountPath: "/state"}]
    | .initContainers = [.containers[0] | .name = "state" | del(.resources)
        | .command = ["sh", "-c", "sed s/NODE/$NODE/ /driver/control >/state/control"]])'

group() {
    module_apply gpus 2 /modules/accumulator.so Accumulator "$driven" \
        '.spec.template.spec.containers[0].resources.limits = {"nvidia.com/gpu": 1}'
}

# Two ranks on bundles of a PlacementGroup, in one pod with two GPUs.
pool() {
    plg_apply pool 2 ".spec.bundles[0].resources.cpu = \"50m\" | .spec.template = {spec: {terminationGracePeriodSeconds: 6,
        containers: [{name: \"worker\", image: \"$calls_image\", imagePullPolicy: \"IfNotPresent\"}]}} | $driven" >/dev/null
    jq -n '{apiVersion: "cadre.dev/v1alpha1", kind: "WorkerGroup", metadata: {name: "bundled"}, spec: {replicas: 2,
        placement: {groups: [{name: "pool"}]}, restartBackoff: {initialSeconds: 1, maxSeconds: 2},
        worker: {module: "/modules/accumulator.so", class: "Accumulator"}}}' | kc apply -f - >/dev/null
}

pool_pods() { # UIDs of the pods of the pool
    kc get pods -l cadre.dev/group=pool-plg -o 'jsonpath={.items[*].metadata.uid}'
}

pool_node() {
    kc get pods -l cadre.dev/group=pool-plg -o 'jsonpath={.items[*].spec.nodeName}'
}

nodes() { # the nodes of the group's pods, each once
    kc get pods -l cadre.dev/group=gpus -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u
}

metrics() {
    "$devcluster" exec -- curl --silent --show-error --max-time 60 \
        http://cadre-operator-metrics.cadre-system.svc:8080/metrics | grep -E '^(DCGM_FI_DEV_|cadre_gpu_lost)'
}

# gpu_metric NAME NODE VALUE: the metric of the GPU of that node has the value.
gpu_metric() {
    matches "(^|"$'\n'")$1\{[^}]*Hostname=\"$2\"[^}]*UUID=\"GPU-$2\"[^}]*\} $3("$'\n'"|$)" metrics
}

# The values that the stand-in for the driver reports.
told_metrics=(DCGM_FI_DEV_GPU_TEMP=41 DCGM_FI_DEV_GPU_UTIL=7 DCGM_FI_DEV_POWER_USAGE=312 DCGM_FI_DEV_FB_USED=0
    DCGM_FI_DEV_FB_TOTAL=0 DCGM_FI_DEV_XID_ERRORS=0 DCGM_FI_DEV_ECC_SBE_VOL_TOTAL=17 DCGM_FI_DEV_ECC_DBE_VOL_TOTAL=0
    cadre_gpu_lost=0)

# lose POD: the GPU of the pod falls off the bus.
lose() {
    kc exec "$1" -c worker -- sh -c 'sed -i s/ok/lost/ /state/control'
}

moved() { # NODE: all pods are on other nodes
    [[ -n $(nodes) ]] && ! nodes | grep -qx "$1"
}

test_gpus() {
    local pod node told
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/gpus
    node=$(nodes | head -n 1)
    check "status is info, which begins with the group's STATUS" eventually 30 \
        matches "Group: +[a-z0-9-]+/gpus.Status: +Running.Attempt: .*1 +0 +Ok" cadre status gpus
    check "info shows the GPU of each rank" eventually 60 matches "1 +0 +Ok +0 +0 +41 .* H200 +GPU-" cadre info gpus
    for told in "${told_metrics[@]}"; do
        check "metrics have DCGM's names: ${told%=*}" eventually 60 gpu_metric "${told%=*}" "$node" "${told#*=}"
    done
    pod=$(kc get pods -l cadre.dev/group=gpus -o 'jsonpath={.items[0].metadata.name}')
    check "a GPU is lost" lose "$pod"
    check "... which an Event says, with node and UUID" eventually 60 matches "GPU-$node .* on node $node fell off the bus" \
        kc get events.events.k8s.io -o 'jsonpath={.items[*].note}'
    check "... and lastFailure" eventually 30 is GPULost kc get wg gpus -o 'jsonpath={.status.lastFailure.reason}'
    check "... the group moves off the node" eventually 90 moved "$node"
    check "... and becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/gpus
    check "... which ends the condition" eventually 30 is False \
        kc get wg gpus -o 'jsonpath={.status.conditions[?(@.type=="GPULost")].status}'
    check "... no restart was counted" is 0 kc get wg gpus -o 'jsonpath={.status.restartsCountTowardsMax}'
    check "... and calls go on" is "[0, 1]" cadre call gpus get_value
}

# Two ranks in two pods. A GPU cannot open the memory of a GPU in another pod.
tensors() {
    module_apply tensors 2 /driver/stand_in_tensor.so Tensors "$driven" \
        '.spec.template.spec.containers[0].resources.limits = {"nvidia.com/gpu": 1}'
}

test_tensors() {
    local x
    check "a group with tensors becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/tensors
    x=$(cadre call tensors ramp 1000 --rank 0 --keep)
    check "a tensor on the GPU of a pod is the argument of the other pod's rank" is "[499500, 499500]" cadre call tensors sum "$x"
    check "an illegal address fails the call" matches "cudaErrorIllegalAddress" cadre call tensors stray --rank 1
    check "... the rank ends with its own exit code" eventually 60 is "1 67" \
        kc get wg tensors -o 'jsonpath={.status.lastFailure.rank} {.status.lastFailure.exitCode}'
    check "... lastFailure says why" matches "Tensors.stray: the GPU: it is lost .* CUDA_ERROR_ILLEGAL_ADDRESS" \
        kc get wg tensors -o 'jsonpath={.status.lastFailure.message}'
    check "... and the new one has its GPU" eventually 60 is "[1000, 1000]" rows
}

# The rows of a tensor that each rank has made and kept.
rows() {
    cadre call tensors rows "$(cadre call tensors ramp 1000 --keep)" --dispatch all-to-all
}

replaced() { # UID: the pool has another pod than that one
    [[ -n $(pool_pods) && $(pool_pods) != *"$1"* ]]
}

pool_moved() { # NODE: the pod of the pool is on another node
    [[ -n $(pool_node) && $(pool_node) != "$1" ]]
}

test_pool() {
    local pod uid node
    check "a group on bundles becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/bundled
    check "... and info shows its GPU" eventually 60 matches "0 +0 +Ok .* H200 +GPU-" cadre info bundled
    pod=$(kc get pods -l cadre.dev/group=pool-plg -o 'jsonpath={.items[0].metadata.name}') uid=$(pool_pods)
    node=$(pool_node)
    check "a GPU of it is lost" lose "$pod"
    check "... the PlacementGroup gets another pod" eventually 90 replaced "$uid"
    check "... on another node" eventually 60 pool_moved "$node"
    check "... lastFailure says why" is GPULost kc get wg bundled -o 'jsonpath={.status.lastFailure.reason}'
    check "... and the group becomes Ready on it" eventually 90 is "[0, 1]" cadre call bundled get_value --no-wait
}

suite_start e2e-gpus --nodes 2 --gpus 4
calls_install --set crds.install=false
check "there is a driver" driver
group
test_gpus
check "a deleted group leaves nothing" group_delete gpus
tensors
test_tensors
check "... with tensors, too" group_delete tensors
pool
test_pool
suite_end
