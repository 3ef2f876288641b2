#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The life of a PlacementGroup with a real API server, scheduler and controller manager, on six fake nodes of four GPUs. It is
# reserved by its strategy, shown, grown, shrunk and deleted, waits for room, and loses a node.
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

# ---- reserved -------------------------------------------------------------------------------------------------------

columns() { # LINE ARGS...
    local line=$1
    shift
    kc get plg pool "$@" | sed -n "${line}p" | xargs
}

test_reserve() {
    plg_apply pool 6 >/dev/null
    check "a PlacementGroup becomes Ready, and kubectl wait sees it" \
        kc wait --for=condition=Ready plg/pool --timeout=600s
    check "one pod a node, with the bundles there" is "pool-plg-0-0=0-3 pool-plg-1-0=4-5" plg_pods pool
    check "the pod has the sum of their resources, as requests and limits" is "4 4 4 4" plg_pod pool-plg-0-0 \
        '.spec.containers[0].resources | "\(.requests.cpu) \(.requests["nvidia.com/gpu"]) \(.limits.cpu) \(.limits["nvidia.com/gpu"])"'
    check "the operator's image has the agent that runs in it: nobody brings one" is "/usr/bin/cadre-agent null" \
        plg_pod pool-plg-0-0 '"\(.spec.containers[0].command[0]) \(.spec.initContainers)"'
    check "... nor does it need a token of the API server's" is cadre-token plg_pod pool-plg-0-0 \
        '[.spec.volumes[].name] | join(" ")'
    check "it is pinned, named and owned" is "pool-plg-1 pool-plg PlacementGroup pool true" plg_pod pool-plg-1-0 \
        '"\(.spec.hostname) \(.spec.subdomain) \(.metadata.ownerReferences[0] | "\(.kind) \(.name) \(.controller)")"'
    check "no Service as long as no group runs on it" is "" kc get service pool-plg --ignore-not-found -o name
    check "the status counts" is "6 6 6 2 0" kc get plg pool -o \
        'jsonpath={.status.bundles} {.status.boundBundles} {.status.gpus} {.status.nodes} {.status.incarnation}'
    check "all conditions are there" is "Accepted/Valid Failed/NoFailure Ready/Running Scheduled/Bound" all_conditions
    check "kubectl get plg has the columns" is "NAME STRATEGY BUNDLES BOUND GPUS STATUS NODES AGE" columns 1
    check "... with what people want to know" matches "^pool Pack 6 6 6 Running 2 [0-9]+" columns 2
    check "-o wide adds the message" matches "all 6 bundles are ready$" columns 2 -o wide
    check "there are events" eventually 5 matches Scheduled plg_events pool
}

all_conditions() {
    kc get plg pool -o json | jq -r '[.status.conditions[] | "\(.type)/\(.reason)"] | sort | join(" ")'
}

# ---- grown and shrunk -----------------------------------------------------------------------------------------------

test_size() {
    local before
    before=$(plg_uids pool-plg-0-0 pool-plg-1-0)
    plg_apply pool 9 >/dev/null
    check "it grows" plg_ready pool
    check "... by new pods" matches "pool-plg-0-0=0-3 pool-plg-1-0=4-5 pool-plg-2-1=6-[0-9]" plg_pods pool
    check "... and what runs stays" is "$before" plg_uids pool-plg-0-0 pool-plg-1-0
    plg_apply pool 5 >/dev/null
    check "it shrinks: the tail goes" eventually 60 is "pool-plg-0-0=0-3 pool-plg-1-0=4-5" plg_pods pool
    check "... and it is Ready" plg_ready pool
    check "... and what runs stays" is "$before" plg_uids pool-plg-0-0 pool-plg-1-0
    check "... which the status says" is "5 5 5" kc get plg pool -o \
        'jsonpath={.status.bundles} {.status.boundBundles} {.status.gpus}'
    plg_delete pool
}

# ---- refused and changed --------------------------------------------------------------------------------------------

shaped() { # BUNDLES JQ-FILTER: applies the group "shaped", which has a pod for each bundle
    plg_apply shaped "$1" ".spec.podPer = \"Bundle\" | $2"
}

limit_cpu() { # MAX
    kc apply -f - <<EOF >/dev/null
{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "cpu"},
 "spec": {"limits": [{"type": "Container", "max": {"cpu": "$1"}}]}}
EOF
}

test_changes() {
    local before field
    shaped 4 . >/dev/null
    plg_ready shaped >/dev/null
    for field in strategy=StrictPack topologyKey=example.com/rack podPer=Node; do
        check "${field%=*} cannot be changed" says "${field%=*} cannot be changed" \
            shaped 4 ".spec.${field%=*} = \"${field#*=}\""
    done
    before=$(plg_uids shaped-plg-0-0 shaped-plg-1-0 shaped-plg-2-0 shaped-plg-3-0)
    shaped 4 '.spec.template.spec = {hostname: "mine", containers: [{name: "worker"}]}' >/dev/null
    check "a template that sets what is ours is refused" eventually 10 is "False/InvalidTemplate" plg_condition shaped Accepted
    shaped 4 '.spec.template.spec = {containers: [{name: "worker", image: "none", ports: [{containerPort: 70000}]}]}' >/dev/null
    check "... and one that the API server refuses, in its words" eventually 10 says "must be between 1 and 65535" \
        kc get plg shaped -o 'jsonpath={.status.conditions[?(@.type=="Accepted")].message}'
    limit_cpu 2
    shaped 3 '.spec.bundles += [{resources: {cpu: "2500m"}}]' >/dev/null
    check "a shape that a LimitRange forbids is refused, by its bundle" eventually 10 \
        matches "a pod with bundle 3: .*maximum cpu usage per Container is 2" \
        kc get plg shaped -o 'jsonpath={.status.conditions[?(@.type=="Accepted")].message}'
    check "... what is held stays" is "$before" plg_uids shaped-plg-0-0 shaped-plg-1-0 shaped-plg-2-0 shaped-plg-3-0
    check "... and is Ready" is "True/Running" plg_condition shaped Ready
    shaped 3 '.spec.bundles += [{resources: {cpu: "2"}}]' >/dev/null
    check "a bundle gets another shape: its pod is replaced" plg_ready shaped
    kc delete limitrange cpu >/dev/null
    check "... and no other" is "shaped-plg-0-0=0 shaped-plg-1-0=1 shaped-plg-2-0=2 shaped-plg-3-1=3" plg_pods shaped
    shaped 3 '.spec.template.spec.priority = 0 | .spec.template.metadata.labels.team = "a"' >/dev/null
    check "another template without containers: all pods are replaced" plg_ready shaped
    check "... and carry it" is "shaped-plg-0-2=0 shaped-plg-1-2=1 shaped-plg-2-2=2" plg_pods shaped
    check "... beside a container of ours" is "a worker" plg_pod shaped-plg-0-2 \
        '"\(.metadata.labels.team) \(.spec.containers[0].name)"'
    plg_delete shaped
}

test_conflict() {
    kc create service clusterip taken-plg --tcp=80 >/dev/null
    plg_apply taken 2 >/dev/null
    check "a Service of its name that is not its own harms nothing" plg_ready taken
    tenant taken | kc apply -f - >/dev/null
    check "... until a group needs the name" eventually 10 is "False/NameConflict" plg_condition taken Accepted
    check "... which waits, and says for what" eventually 5 matches "has no Service taken-plg" \
        kc get wg on-taken -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
    kc delete service taken-plg >/dev/null
    check "... and goes on when it is gone" eventually 30 is "True/Valid" plg_condition taken Accepted
    check "... with a headless Service" is None kc get service taken-plg -o 'jsonpath={.spec.clusterIP}'
    kc delete wg on-taken >/dev/null
    plg_delete taken
}

# A WorkerGroup on the first bundle of a PlacementGroup.
tenant() { # NAME
    jq -n --arg name "$1" '{apiVersion: "cadre.dev/v1alpha1", kind: "WorkerGroup", metadata: {name: "on-\($name)"},
        spec: {replicas: 1, placement: {groups: [{name: $name, bundles: "0"}]}, worker: {command: ["true"]}}}'
}

# ---- placed ---------------------------------------------------------------------------------------------------------

is_placed() { # WANT NAME STRATEGY BUNDLES [FILTER]
    plg_apply "$2" "$4" ".spec.strategy = \"$3\" | ${5:-.}" >/dev/null && plg_ready "$2" && is "$1" plg_layout "$2" &&
        plg_delete "$2"
}

test_strategies() {
    check "Pack: as few nodes as can be" is_placed "2 4 4" pack Pack 10
    check "StrictPack: one node" is_placed 4 strictpack StrictPack 4
    check "Spread: all nodes, evenly" is_placed "1 1 1 1 2 2" spread Spread 8
    check "StrictSpread: each its own" is_placed "1 1 1 1 1 1" strictspread StrictSpread 6
    kc label node kwok-0000 kwok-0001 kwok-0002 example.com/rack=a >/dev/null
    kc label node kwok-0003 kwok-0004 kwok-0005 example.com/rack=b >/dev/null
    check "StrictPack in a rack: more than a node takes" is_placed "4 4" rack StrictPack 8 \
        '.spec.topologyKey = "example.com/rack"'
    check "podPer Bundle: a pod each" is_placed "1 4" each Pack 5 '.spec.podPer = "Bundle"'
    check "kubectl apply -f examples/rack.yaml" kc apply -f "$here/../../examples/rack.yaml"
    check "... is all in one rack, a pod for each bundle" plg_ready racked
    check "... on as few of its nodes as possible" is "2 4 6" echo "$(plg_layout racked) $(plg_pods racked | wc -w)"
    check "... of one rack" is 1 echo "$(racks racked | xargs -n 1 | sort -u | wc -l)"
    plg_delete racked
    plg_apply shapes 2 '.spec.strategy = "StrictSpread" | .spec.bundles[0].nodeSelector = {"example.com/rack": "a"}
        | .spec.bundles += [{resources: {cpu: "2"}, nodeSelector: {"example.com/rack": "b"}}]' >/dev/null
    check "bundles of several shapes" plg_ready shapes
    check "... each where its selector says" is "a a b" racks shapes
    plg_delete shapes
}

racks() {
    local node
    for node in $(kc get plg "$1" -o 'jsonpath={.status.placements[*].node}'); do
        kc get node "$node" -o 'jsonpath={.metadata.labels.example\.com/rack}{"\n"}'
    done | sort | xargs
}

# ---- waiting --------------------------------------------------------------------------------------------------------

test_room() {
    plg_apply big 25 >/dev/null
    check "what no cluster takes is Infeasible" eventually 20 is "False/Infeasible" plg_condition big Ready
    check "... with the numbers" says "needs 25 x 1 nvidia.com/gpu, at most 24 fit" plg_message big
    check "... and no pod is made" is "" plg_pods big
    plg_delete big
    plg_apply big 1 '.spec.bundles[0].resources = {"nvidia.com/gpu": 5}' >/dev/null
    check "a bundle bigger than any node: Infeasible at once" eventually 5 is "False/Infeasible" plg_condition big Ready
    check "... and says what is too small" says "needs 1 x 5 nvidia.com/gpu" plg_message big
    plg_delete big
    plg_apply nokey 2 '.spec.topologyKey = "example.com/nowhere"' >/dev/null
    check "a topologyKey that no node has" eventually 20 is "False/Infeasible" plg_condition nokey Ready
    check "... and says so" says "(6 without example.com/nowhere)" plg_message nokey
    kc label node kwok-0000 example.com/nowhere=here >/dev/null
    check "... until a node has it" plg_ready nokey
    check "... which takes all" is 2 plg_layout nokey
    kc label node kwok-0000 example.com/nowhere- >/dev/null
    plg_delete nokey
    plg_apply first 16 >/dev/null
    plg_ready first >/dev/null
    plg_apply second 16 >/dev/null
    check "the second of two that need more than half waits" eventually 20 is "False/Insufficient" plg_condition second Ready
    check "... and says for what" says "needs 16 x 1 free nvidia.com/gpu, found 8; 2 of 6 nodes have room (4 full)" \
        plg_message second
    check "... and holds nothing" is "" plg_pods second
    plg_delete first
    check "... until the first is gone" plg_ready second
    plg_delete second
}

test_hopeless_change() {
    local uids
    plg_apply keeps 8 >/dev/null
    check "a group is reserved" plg_ready keeps
    uids=$(plg_uids -l cadre.dev/group=keeps-plg)
    plg_apply keeps 8 '.spec.bundles[0].resources = {"nvidia.com/gpu": 5}' >/dev/null
    check "bundles that no node could ever take: said" eventually 10 is "False/Infeasible" plg_condition keeps Accepted
    check "... while all stays as it is" is "True/Running $uids" echo \
        "$(plg_condition keeps Ready) $(plg_uids -l cadre.dev/group=keeps-plg)"
    plg_apply keeps 8 >/dev/null
    check "the change is taken back" eventually 10 is "True/Valid True/Running $uids" echo_kept
    plg_delete keeps
}

echo_kept() {
    echo "$(plg_condition keeps Accepted) $(plg_condition keeps Ready) $(plg_uids -l cadre.dev/group=keeps-plg)"
}

test_quota() {
    kc create quota few --hard=pods=1 >/dev/null
    eventually 10 matches "pods" kc get quota few -o 'jsonpath={.status.hard}' >/dev/null
    plg_apply quota 8 >/dev/null
    check "a quota refuses a part: all is given back" eventually 30 is "False/QuotaExceeded" plg_condition quota Ready
    kc delete quota few >/dev/null
    check "... and had when it allows" plg_ready quota 60
    plg_delete quota
    plg_apply slow 8 '.spec.timeoutSeconds = 2 | .spec.template.spec = {schedulerName: "nobody",
        containers: [{name: "worker"}]}' >/dev/null
    check "not bound in time: all is given back" eventually 30 is "False/BindTimeout" plg_condition slow Ready
    plg_delete slow
}

# Eight gangs are created at the same time, and each needs more than half of the cluster. At any time, one of them has all that
# it asks for, and in the end all of them had it.
test_contention() {
    local i names=(rival-1 rival-2 rival-3 rival-4)
    for i in 1 2 3 4; do
        plg_apply "rival-$i" 13 "$( ((i % 2)) && echo . || echo '.spec.podPer = "Bundle"')"
        group_apply "wg-$i" '.spec.replicas = 13'
    done >/dev/null
    for i in 1 2 3 4 5 6 7 8; do
        check "of gangs that need more than half, one has it ($i)" eventually 30 ready_alone
        check "... and the others nothing" is "" waiting_pods
        kc delete "$winner" --wait=false >/dev/null
    done
    for i in "${names[@]}"; do eventually 60 plg_gone "$i"; done
    check "nothing is left" eventually 60 is "" kc get pods -o name
}

ready_alone() { # one gang is Ready: $winner
    winner=$(kc get plg,wg -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null)
        | select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))
        | "\(.kind | ascii_downcase)/\(.metadata.name)"')
    [[ $winner == */* && $winner != *$'\n'* ]]
}

waiting_pods() { # the pods of all gangs but $winner
    kc get pods -o json | jq -r --arg winner "${winner#*/}" '.items[] | select(.metadata.deletionTimestamp == null)
        | select(.metadata.ownerReferences[0].name != $winner) | .metadata.name'
}

# ---- lost -----------------------------------------------------------------------------------------------------------

test_loss() {
    local before victim
    plg_apply lost 8 >/dev/null
    plg_ready lost >/dev/null
    before=$(plg_uids lost-plg-0-0)
    victim=$(plg_pod lost-plg-1-0 .spec.nodeName)
    kc get node "$victim" -o json | jq 'del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp)' \
        >"$suite_dir/node.json"
    kc delete node "$victim" >/dev/null
    check "a node is lost: its bundles are planned again" eventually 40 is "lost-plg-0-0=0-3 lost-plg-1-1=4-7" plg_pods lost
    check "... the others stay" is "$before" plg_uids lost-plg-0-0
    check "... and it is Ready again" plg_ready lost
    check "... which an event tells" eventually 10 matches Restarting plg_events lost
    kc create -f "$suite_dir/node.json" >/dev/null
    kc delete pod lost-plg-0-0 --wait=false >/dev/null
    check "a pod deleted by hand is made again" eventually 40 is "lost-plg-0-2=0-3 lost-plg-1-1=4-7" plg_pods lost
    check "... and it is Ready again" plg_ready lost
}

test_restart_and_delete() {
    local before
    before=$(plg_uids lost-plg-0-2 lost-plg-1-1)
    operator_kill op
    operator_start op --leader-elect=false
    plg_apply lost 9 >/dev/null
    check "an operator that starts again finds what is held" plg_ready lost
    check "... and leaves it" is "$before" plg_uids lost-plg-0-2 lost-plg-1-1
    kc delete plg lost >/dev/null
    check "a deleted PlacementGroup leaves nothing" eventually 60 plg_gone lost
}

# Operators die while gangs are created, and gangs are deleted while they are created.
test_crashes() {
    local i
    for i in 1 2 3 4 5 6; do
        plg_apply "crash-$i" 4 "$( ((i % 2)) && echo '.spec.podPer = "Bundle"' || echo .)" >/dev/null
    done
    for i in 1 2 3; do
        nap 0 400
        operator_kill op
        operator_start op --leader-elect=false
    done
    for i in 1 2 3 4 5 6; do
        check "created whole by operators that died: group $i" plg_ready "crash-$i" 60
    done
    check "no bundle is held twice" is "24 24" held_bundles
    for i in 1 2 3 4 5 6; do kc delete plg "crash-$i" --wait=false; done >/dev/null
    for i in 1 2 3 4 5 6; do
        plg_apply "brief-$i" 4 >/dev/null
        nap 0 90
        kc delete plg "brief-$i" --wait=false >/dev/null
    done
    check "deleted while they are created: nothing is left" eventually 60 is "" kc get pods,plg -l '!provider' -o name
}

held_bundles() { # how many bundles are held, and how many different ones
    kc get pods -o json | jq -r '[.items[] | .metadata.labels["cadre.dev/group"] as $g
        | .metadata.annotations["cadre.dev/bundles"] | split(",")[] | split("-") | map(tonumber)
        | range(.[0]; .[-1] + 1) | "\($g) \(.)"] | "\(length) \(unique | length)"'
}

suite_start itest-plg --nodes 0 --kwok 6 --gpus 4
kc create namespace cadre-system >/dev/null
kc -n cadre-system create secret generic cadre-keys >/dev/null
operator_start op --leader-elect=false
test_reserve
test_size
test_changes
test_conflict
test_strategies
test_room
test_hopeless_change
test_quota
test_contention
test_loss
test_restart_and_delete
test_crashes
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
