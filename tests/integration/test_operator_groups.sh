#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The life of a WorkerGroup with a real API server, scheduler and controller manager, on six fake nodes of four GPUs. Groups
# are created, placed by their strategy, shown, scaled, suspended, changed and deleted, and wait for room.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"

# ---- created --------------------------------------------------------------------------------------------------------

pod_json() { # FILTER: a field of the pod of rank 1
    kc get pods -l cadre.dev/group=first,cadre.dev/index=1 -o json | jq -r ".items[0] | $1"
}

service_json() {
    kc get service first -o json | jq -r "$1"
}

all_conditions() {
    kc get wg first -o json | jq -r '.metadata.generation as $g | [.status.conditions[]
        | select(.observedGeneration == $g and .lastTransitionTime != null) | .type] | sort | join(" ")'
}

test_create() {
    group_apply first '.spec.replicas = 3' >/dev/null
    check "a group becomes Ready, and kubectl wait sees it" group_ready first
    check "its pods are named by index and incarnation" is "first-0-0 first-1-0 first-2-0" group_pod_names first
    check "all six conditions are there, each with the observed generation" \
        is "Accepted Failed Ready Scheduled Succeeded Suspended" all_conditions
    check "the worst that is said is that nothing has happened" is "False/InProgress" group_condition first Succeeded
    check "the hostname has no incarnation" is first-1 pod_json .spec.hostname
    check "the subdomain is the Service" is first pod_json .spec.subdomain
    check "the pod is pinned to the node that it is on" is true pod_json \
        '.spec.nodeName == .spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]'
    check "the kubelet restarts nothing" is Never pod_json .spec.restartPolicy
    check "the pod is the group's" is "WorkerGroup first true true" pod_json \
        '.metadata.ownerReferences[0] | "\(.kind) \(.name) \(.controller) \(.blockOwnerDeletion)"'
    check "RANK is the first of its variables but MASTER_ADDR and the like" is "1 3" pod_json \
        '[.spec.containers[0].env[] | select(.name == "RANK" or .name == "WORLD_SIZE") | .value] | sort | join(" ")'
    check "the Service is headless and names pods that are not ready" is "None true" service_json \
        '"\(.spec.clusterIP) \(.spec.publishNotReadyAddresses)"'
    check "the Service is the group's" is "$(kc get wg first -o 'jsonpath={.metadata.uid}')" service_json \
        '.metadata.ownerReferences[0].uid'
    check "it has no selector" is null service_json .spec.selector
    check "one EndpointSlice names all pods, ready" eventually 10 is "first-ipv4-0 first-0 first-1 first-2" slice_of first
    check "masterAddr is rank 0" is first-0.first.default.svc:29500 group_status first masterAddr
    check "the status counts" is "3 3 3 3 3" kc get wg first -o \
        'jsonpath={.status.replicas} {.status.scheduledReplicas} {.status.readyReplicas} {.status.worldSize} {.status.gpus}'
}

slice_of() { # GROUP: its slices, each with its host names
    kc get endpointslices -l "endpointslice.kubernetes.io/managed-by=cadre.dev,kubernetes.io/service-name=$1" -o json |
        jq -r '.items[] | [.metadata.name, (.endpoints[] | select(.conditions.ready) | .hostname)] | join(" ")'
}

test_columns() {
    check "kubectl get wg has the columns" is "NAME STATUS READY DESIRED GPUS PLACEMENT RESTARTS AGE" \
        columns 1
    check "... with what people want to know" matches "^first Running 3 3 3 Pack 0 [0-9]+" columns 2
    check "-o wide adds master, attempt and message" matches \
        "^first Running 3 3 3 Pack 0 [^ ]+ first-0.first.default.svc:29500 1 all 3 replicas are ready" columns 2 -o wide
    check "there are events" eventually 5 matches "Scheduled" group_events first
}

columns() { # LINE ARGS...
    local line=$1
    shift
    kc get wg first "$@" | sed -n "${line}p" | xargs
}

# ---- placed ---------------------------------------------------------------------------------------------------------

place() { # NAME STRATEGY REPLICAS [FILTER]
    group_apply "$1" ".spec.placement.strategy = \"$2\" | .spec.replicas = $3" "${4:-.}" >/dev/null
}

is_placed() { # WANT NAME STRATEGY REPLICAS
    local want=$1
    shift
    place "$@" && group_ready "$1" && is "$want" group_nodes "$1" && group_delete "$1"
}

in_rank_order() { # NAME: the ranks of a node follow each other
    is "$(group_pods "$1" | wc -l)" pods_in_order "$1"
}

pods_in_order() {
    local nodes
    nodes=$(group_pods "$1" | sort -V | awk '{print $2}')
    [[ $(uniq <<<"$nodes" | wc -l) -eq $(sort -u <<<"$nodes" | wc -l) ]] || echo "ranks are mixed: $nodes"
    wc -l <<<"$nodes"
}

test_strategies() {
    group_delete first
    check "Pack: as few nodes as can be" is_placed "2 4 4" pack Pack 10
    check "StrictPack: one node" is_placed 4 strictpack StrictPack 4
    check "Spread: all nodes, evenly" is_placed "1 1 1 1 2 2" spread Spread 8
    check "StrictSpread: each its own" is_placed "1 1 1 1 1 1" strictspread StrictSpread 6
    place order Pack 12
    group_ready order >/dev/null
    check "the ranks of a node follow each other" in_rank_order order
    check "the placements are in the status, in ranges" matches '"replicas":"0-3".*"replicas":"4-7".*"replicas":"8-11"' \
        group_status order placements
    group_delete order
    label_racks
    place racks StrictPack 8 '.spec.placement.topologyKey = "example.com/rack"'
    check "StrictPack in a rack: more than a node takes" group_ready racks
    check "... and all in one rack" is 1 racks_of racks
    group_delete racks
}

label_racks() {
    kc label node kwok-0000 kwok-0001 kwok-0002 example.com/rack=a >/dev/null
    kc label node kwok-0003 kwok-0004 kwok-0005 example.com/rack=b >/dev/null
}

racks_of() {
    local node
    for node in $(group_pods "$1" | awk '{print $2}' | sort -u); do
        kc get node "$node" -o 'jsonpath={.metadata.labels.example\.com/rack}{"\n"}'
    done | sort -u | wc -l
}

# ---- changed --------------------------------------------------------------------------------------------------------

test_scale() {
    place scaled Pack 2
    group_ready scaled >/dev/null
    check "kubectl scale" kc scale wg/scaled --replicas=5
    check "... makes a new attempt" eventually 15 is 2 group_status scaled attempt
    check "... with pods of the next incarnation" \
        eventually 20 is "scaled-0-1 scaled-1-1 scaled-2-1 scaled-3-1 scaled-4-1" group_pod_names scaled
    check "... that becomes Ready" eventually 15 is 5 group_status scaled readyReplicas
    kc scale wg/scaled --replicas=1 >/dev/null
    check "it scales down, too" eventually 20 is "scaled-0-2" group_pod_names scaled
    check "a scaled group is Ready at its size" eventually 15 is "1 1 True/Running" scaled_state
    check "no restart is counted" is 0 group_status scaled restarts
}

scaled_state() {
    echo "$(group_status scaled readyReplicas) $(group_status scaled worldSize) $(group_condition scaled Ready)"
}

test_suspend() {
    kc patch wg scaled --type merge -p '{"spec":{"suspend":true,"replicas":4}}' >/dev/null
    check "suspended: the pods go" eventually 20 is "" group_pod_names scaled
    check "... and it says so" eventually 5 is "True/Suspended" group_condition scaled Suspended
    check "... in the STATUS column, too" is "False/Suspended" group_condition scaled Ready
    check "it stays so when the operator decides again" group_decide scaled
    check "... without a pod" is "" group_pod_names scaled
    kc patch wg scaled --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "resumed: it runs again" group_ready scaled
    check "... as it was asked for meanwhile" eventually 5 is 4 group_status scaled readyReplicas
    check "... and is not suspended" is "False/NotSuspended" group_condition scaled Suspended
    group_apply asleep '.spec.suspend = true' >/dev/null
    check "a group that is born suspended says so" eventually 10 is "True/Suspended" group_condition asleep Suspended
    check "... and has no pods" is "" group_pod_names asleep
    group_delete asleep scaled
}

change_image() { # NAME IMAGE
    kc patch wg "$1" --type json -p "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":\"$2\"}]"
}

test_template_change() {
    place changed Pack 2
    group_ready changed >/dev/null
    local uids
    change_image changed other:2 >/dev/null
    check "a changed template: new pods" eventually 20 is "changed-0-1 changed-1-1" group_pod_names changed
    check "... of the new template" eventually 5 is "other:2 other:2" kc get pods -l cadre.dev/group=changed \
        -o 'jsonpath={.items[*].spec.containers[0].image}'
    group_ready changed >/dev/null
    uids=$(pod_uids changed)
    kc patch wg changed --type json -p '[{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"Nonsense"}]' >/dev/null
    check "a template that the API server refuses: InvalidTemplate" \
        eventually 10 is "False/InvalidTemplate" group_condition changed Accepted
    check "... with the API server's words" says 'Unsupported value: "Nonsense"' group_message changed Accepted
    check "... and costs the running pods nothing" is "$uids" pod_uids changed
    check "... which are Ready still" is "True/Running" group_condition changed Ready
    kc patch wg changed --type json -p '[{"op":"remove","path":"/spec/template/spec/dnsPolicy"}]' >/dev/null
    check "taken back: valid again" eventually 10 is "True/Valid" group_condition changed Accepted
    check "... with the same pods" is "$uids" pod_uids changed
    kc label wg changed team=a >/dev/null
    kc patch wg changed --type merge -p '{"spec":{"maxRestarts":7}}' >/dev/null
    check "what pods are not made from is read" eventually 10 group_observed changed
    check "... and makes no new pods" is "$uids" pod_uids changed
    group_delete changed
}

pod_uids() {
    kc get pods -l "cadre.dev/group=$1" -o 'jsonpath={.items[*].metadata.uid}'
}

# ---- waits for room -------------------------------------------------------------------------------------------------

test_room() {
    place big StrictPack 5
    check "more than the largest node has: Infeasible" group_reason big Infeasible
    check "... with the numbers" says "needs 5 x 1 nvidia.com/gpu on one node" group_message big Ready
    check "... in an event, too" eventually 5 matches "Infeasible" group_events big
    check "... and no pods" is "" group_pod_names big
    place full Pack 23
    group_ready full >/dev/null
    place waits Pack 2
    check "more than is free now: Insufficient" group_reason waits Insufficient
    check "... with the numbers" says "needs 2 x 1 free nvidia.com/gpu" group_message waits Ready
    check "... and not even the one pod that would fit" is "" group_pod_names waits
    kc delete wg full --wait=false >/dev/null
    check "it wakes up when others leave" group_ready waits
    kc patch node kwok-0003 --subresource=status --type merge \
        -p '{"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}}' >/dev/null
    check "an infeasible group wakes up when a node grows" group_ready big
    group_delete big waits full
    place cordoned StrictSpread 6
    group_ready cordoned >/dev/null
    group_delete cordoned
    kc cordon kwok-0005 >/dev/null
    place cordoned StrictSpread 6
    check "a cordoned node is none" group_reason cordoned 'In(feasible|sufficient)'
    check "... and the message names that" says "cordon" group_message cordoned Ready
    kc uncordon kwok-0005 >/dev/null
    check "it wakes up when the node is back" group_ready cordoned
    group_delete cordoned
}

test_hopeless_change() {
    local uids
    place runs StrictPack 3
    group_ready runs >/dev/null
    uids=$(pod_uids runs)
    kc scale wg runs --replicas 9 >/dev/null
    check "a change that no node could ever take: said" eventually 10 is False/Infeasible group_condition runs Accepted
    check "... with the numbers" says "needs 9 x 1 nvidia.com/gpu on one node, at most 8 fit" group_message runs Accepted
    check "... and it runs on, in the same pods" is "True/Running $uids" echo "$(group_condition runs Ready) $(pod_uids runs)"
    kc patch node kwok-0003 --subresource=status --type merge \
        -p '{"status":{"capacity":{"nvidia.com/gpu":"12"},"allocatable":{"nvidia.com/gpu":"12"}}}' >/dev/null
    check "it is carried out when a node can take it" eventually 30 is "9 True/Running True/Valid" hopeless_state
    group_delete runs
}

hopeless_state() {
    echo "$(group_pods runs | wc -l) $(group_condition runs Ready) $(group_condition runs Accepted)"
}

# ---- failed pods ----------------------------------------------------------------------------------------------------

test_failure() {
    place fails Pack 3 '.spec.maxRestarts = 1'
    group_ready fails >/dev/null
    fail_pod fails-1-0 3 "out of luck"
    check "a rank fails: all restart" eventually 30 is "fails-0-1 fails-1-1 fails-2-1" group_pod_names fails
    check "... which is counted" eventually 5 is "1 1" kc get wg fails -o \
        'jsonpath={.status.restarts} {.status.restartsCountTowardsMax}'
    check "... with its rank, code and last words" \
        eventually 5 is "1 fails-1-0 3 Error out of luck" kc get wg fails -o \
        'jsonpath={.status.lastFailure.rank} {.status.lastFailure.pod} {.status.lastFailure.exitCode} {.status.lastFailure.reason} {.status.lastFailure.message}'
    group_ready fails >/dev/null
    kc delete pod fails-2-1 --wait=false >/dev/null
    check "a pod deleted by hand: all restart" eventually 30 is "fails-0-2 fails-1-2 fails-2-2" group_pod_names fails
    check "... which is not counted against the group" eventually 5 is "2 1 PodDeleted" kc get wg fails -o \
        'jsonpath={.status.restarts} {.status.restartsCountTowardsMax} {.status.lastFailure.reason}'
    group_ready fails >/dev/null
    kc delete pod fails-0-2 --grace-period=0 --force >/dev/null 2>&1
    check "so is one deleted by force" eventually 30 is "fails-0-3 fails-1-3 fails-2-3" group_pod_names fails
    group_ready fails >/dev/null
    fail_pod fails-0-3 4 ""
    check "no restarts left: Failed, and kubectl wait sees it" kc wait --for=condition=Failed wg/fails --timeout=600s
    check "... for that reason" is "True/MaxRestartsExceeded" group_condition fails Failed
    check "... the failed pod is kept for its logs" eventually 15 is "fails-0-3" group_pod_names fails
    group_delete fails
    place ends Pack 2
    group_ready ends >/dev/null
    fail_pod ends-0-0 0 ""
    check "one rank has ended well: Completing" group_reason ends Completing
    fail_pod ends-1-0 0 ""
    check "all have: Succeeded" kc wait --for=condition=Succeeded wg/ends --timeout=600s
    check "... and their room is free" eventually 5 is "2" kc get wg ends -o 'jsonpath={.status.replicas}'
    group_delete ends
}

# ---- deleted --------------------------------------------------------------------------------------------------------

test_delete() {
    place gone Pack 4
    group_ready gone >/dev/null
    kc delete wg gone >/dev/null
    check "a deleted group leaves nothing" eventually 60 group_gone gone
    place gone Pack 4
    group_ready gone >/dev/null
    kc delete wg gone --wait=false >/dev/null
    place gone Pack 2
    check "one that comes back at once under its name gets its own pods" eventually 40 is "2 True/Running" back_state
    check "... all of them its own" is "$(kc get wg gone -o 'jsonpath={.metadata.uid}')" owners_of gone
    group_delete gone
}

back_state() {
    echo "$(group_pods gone | wc -l) $(group_condition gone Ready)"
}

owners_of() {
    kc get pods,services,endpointslices -l "cadre.dev/group=$1" -o json |
        jq -r '.items[] | select(.metadata.ownerReferences) | .metadata.ownerReferences[0].uid' | sort -u
}

suite_start itest-groups --nodes 0 --kwok 6 --gpus 4
operator_start op --leader-elect=false
test_create
test_columns
test_strategies
test_scale
test_suspend
test_template_change
test_room
test_hopeless_change
test_failure
test_delete
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
