#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Priorities with a real API server and kube-scheduler, on six fake nodes of four GPUs. kube-scheduler evicts the pods that the
# plan of a gang counted on. Gangs that wait say behind whom they wait, and run in that order.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/plg.sh"

export POD_NAMESPACE=cadre-system

of_size() { # NAME REPLICAS [CLASS [STRATEGY]]
    local class=.
    [[ -z ${3:-} ]] || class=".spec.template.spec.priorityClassName = \"$3\""
    group_apply "$1" ".spec.replicas = $2" ".spec.placement = {strategy: \"${4:-Pack}\"}" \
        ".spec.template.spec.terminationGracePeriodSeconds = 1" "$class" >/dev/null
}

classes() {
    kc create priorityclass high --value=1000 >/dev/null
    kc create priorityclass patient --value=1000 --preemption-policy=Never >/dev/null
}

# 24 GPUs: 12 on three nodes of a group that came first, 12 of one that came later.
test_preemption() {
    of_size low-1 12 ""
    group_ready low-1 40 >/dev/null
    of_size low-2 12 ""
    group_ready low-2 40 >/dev/null
    of_size patient 4 patient StrictPack
    check "who may not preempt waits" group_reason patient Insufficient
    check "... and is told who has what it needs" says \
        "in use there: 24 of 24 nvidia.com/gpu, 12 by WorkerGroup default/low-1, 12 by WorkerGroup default/low-2" \
        group_message patient Scheduled
    kc delete wg patient --wait=false >/dev/null
    of_size high 4 high StrictPack
    check "a gang of higher priority is placed" group_ready high 60
    check "... on one node" is 4 group_nodes high
    check "... for which one gang goes, the other stays" eventually 60 is "Insufficient 12" losers
    losers >/dev/null
    check "... which does not count as its failure" is "0" group_status "$loser" restartsCountTowardsMax
    check "... and waits as a whole" eventually 30 is "" group_pod_names "$loser"
    of_size late 12 "" # as large as the other one. A smaller one would fit while the pods of "high" end one by one
    check "one that comes later waits behind it" eventually 20 says "these wait ahead of it: WorkerGroup default/$loser since 20" \
        group_message late Scheduled
    kc delete wg high --wait=false >/dev/null
    check "room goes to the one that is ahead" group_ready "$loser" 60
    check "... not to the one behind it" is "False/Insufficient" group_condition late Scheduled
    group_delete low-1 low-2
    check "... until there is room for that, too" group_ready late 60
    group_delete late patient
}

losers() { # the reason of the gang that waits ($loser), and how many pods the other one has
    local name
    loser=
    for name in low-1 low-2; do
        [[ $(group_condition "$name" Ready) == True/* ]] || loser=$name
    done
    [[ -n $loser ]] || return 1
    local other=low-1
    [[ $loser != low-1 ]] || other=low-2
    echo "$(group_condition "$loser" Ready | cut -d/ -f2) $(group_pods "$other" | grep -c Running)"
}

test_placementgroup() {
    of_size low 24 ""
    group_ready low 60 >/dev/null
    plg_apply pool 4 '.spec.strategy = "StrictPack" | .spec.template.spec = {priorityClassName: "high",
        containers: [{name: "worker"}]}' >/dev/null
    check "a PlacementGroup preempts as well" plg_ready pool 60
    check "... for one node" is 4 plg_layout pool
    check "... and the gang that is hit waits" eventually 60 is "False/Insufficient" group_condition low Ready
    plg_delete pool
    check "... until it is gone" group_ready low 60
    group_delete low
}

test_example() {
    of_size low 24 ""
    group_ready low 60 >/dev/null
    check "kubectl apply -f examples/priority.yaml" kc apply -f "$here/../../examples/priority.yaml"
    check "it takes the room of one that has no priority" group_ready urgent 60
    check "... on one node" is 4 group_nodes urgent
    check "... and the gang that is hit waits" eventually 60 is "False/Insufficient" group_condition low Ready
    kc delete -f "$here/../../examples/priority.yaml" >/dev/null
    check "... until it is gone" group_ready low 60
    group_delete low
}

suite_start itest-priorities --nodes 0 --kwok 6 --gpus 4
kc create namespace cadre-system >/dev/null
kc -n cadre-system create secret generic cadre-keys >/dev/null
operator_start op --leader-elect=false
classes
test_preemption
test_placementgroup
test_example
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
