#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The life of a PlacementGroup against a real API server, scheduler and controller manager, on six fake nodes of four
# GPUs: reserved as its strategy promises, shown, grown, shrunk, waiting for room, hit by the loss of a node, deleted.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"

export POD_NAMESPACE=cadre-system

# plg_apply NAME BUNDLES [JQ-FILTER]: so many bundles of one GPU.
plg_apply() {
    jq -n --arg name "$1" --argjson n "$2" '{apiVersion: "cadre.dev/v1alpha1", kind: "PlacementGroup",
        metadata: {name: $name}, spec: {bundles: [{count: $n, resources: {cpu: "1", "nvidia.com/gpu": "1"}}]}}' |
        jq "${3:-.}" | kc apply -f -
}

plg_status() { # NAME FIELD
    kc get plg "$1" -o "jsonpath={.status.$2}"
}

plg_condition() { # NAME TYPE
    kc get plg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}/{.status.conditions[?(@.type==\"$2\")].reason}"
}

plg_message() { # NAME
    kc get plg "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
}

plg_ready() { # NAME: for the present spec
    eventually "${2:-30}" is "true True/Running" plg_observed "$1"
}

plg_observed() {
    echo "$(kc get plg "$1" -o json | jq '.metadata.generation == .status.observedGeneration') $(plg_condition "$1" Ready)"
}

plg_pods() { # NAME: "name=bundles" of each
    kc get pods -l "cadre.dev/group=$1-plg" -o json |
        jq -r '[.items[] | "\(.metadata.name)=\(.metadata.annotations["cadre.dev/bundles"])"] | join(" ")'
}

plg_uids() { # POD...
    kc get pods "$@" -o 'jsonpath={.items[*].metadata.uid}{.metadata.uid}'
}

plg_delete() { # NAME...
    local name
    kc delete plg "$@" --wait=false >/dev/null
    for name in "$@"; do eventually 60 plg_gone "$name"; done
}

plg_gone() {
    is "" kc get pods,services -l "cadre.dev/group=$1-plg" -o name && is "" kc get plg "$1" -o name --ignore-not-found
}

plg_layout() { # NAME: bundles on each node, ascending
    kc get plg "$1" -o json | jq -r '[.status.placements[].bundles | [split(",")[] | split("-") | map(tonumber) |
        .[-1] - .[0] + 1] | add] | sort | map(tostring) | join(" ")'
}

# ---- reserved -------------------------------------------------------------------------------------------------------

pod_json() { # POD FILTER
    kc get pod "$1" -o json | jq -r "$2"
}

columns() { # LINE ARGS...
    local line=$1
    shift
    kc get plg pool "$@" | sed -n "${line}p" | xargs
}

test_reserve() {
    plg_apply pool 6 >/dev/null
    check "a PlacementGroup becomes Ready, and kubectl wait sees it" kc wait --for=condition=Ready plg/pool --timeout=30s
    check "one pod a node, with the bundles there" is "pool-plg-0-0=0-3 pool-plg-1-0=4-5" plg_pods pool
    check "the pod has the sum of their resources, as requests and limits" is "4 4 4 4" pod_json pool-plg-0-0 \
        '.spec.containers[0].resources | "\(.requests.cpu) \(.requests["nvidia.com/gpu"]) \(.limits.cpu) \(.limits["nvidia.com/gpu"])"'
    check "the agent is what runs in it" is "/cadre/cadre-agent cadre-agent" pod_json pool-plg-0-0 \
        '"\(.spec.containers[0].command[0]) \(.spec.initContainers[0].name)"'
    check "it is pinned, named and owned" is "pool-plg-1 pool-plg PlacementGroup pool true" pod_json pool-plg-1-0 \
        '"\(.spec.hostname) \(.spec.subdomain) \(.metadata.ownerReferences[0] | "\(.kind) \(.name) \(.controller)")"'
    check "the Service is headless" is None kc get service pool-plg -o 'jsonpath={.spec.clusterIP}'
    check "the status counts" is "6 6 6 2 0" kc get plg pool -o \
        'jsonpath={.status.bundles} {.status.boundBundles} {.status.gpus} {.status.nodes} {.status.incarnation}'
    check "all conditions are there" is "Accepted/Valid Failed/NoFailure Ready/Running Scheduled/Bound" all_conditions
    check "kubectl get plg has the columns" is "NAME STRATEGY BUNDLES BOUND GPUS STATUS NODES AGE" columns 1
    check "... with what people want to know" matches "^pool Pack 6 6 6 Running 2 [0-9]+" columns 2
    check "-o wide adds the message" matches "all 6 bundles are ready$" columns 2 -o wide
    check "there are events" matches Scheduled events pool
}

all_conditions() {
    kc get plg pool -o json | jq -r '[.status.conditions[] | "\(.type)/\(.reason)"] | sort | join(" ")'
}

events() {
    kc get events.events.k8s.io -o json | jq -r --arg name "$1" \
        '.items[] | select(.regarding.kind == "PlacementGroup" and .regarding.name == $name) | .reason'
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
    check "the strategy cannot be changed" exits 1 plg_apply pool 5 '.spec.strategy = "Spread"'
    plg_delete pool
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

# ---- lost -----------------------------------------------------------------------------------------------------------

test_loss() {
    local before victim
    plg_apply lost 8 >/dev/null
    plg_ready lost >/dev/null
    before=$(plg_uids lost-plg-0-0)
    victim=$(pod_json lost-plg-1-0 .spec.nodeName)
    kc get node "$victim" -o json | jq 'del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp)' \
        >"$suite_dir/node.json"
    kc delete node "$victim" >/dev/null
    check "a node is lost: its bundles are planned again" eventually 40 is "lost-plg-0-0=0-3 lost-plg-1-1=4-7" plg_pods lost
    check "... the others stay" is "$before" plg_uids lost-plg-0-0
    check "... and it is Ready again" plg_ready lost
    check "... which an event tells" matches Restarting events lost
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
    check "an operator that starts anew finds what is held" plg_ready lost
    check "... and leaves it" is "$before" plg_uids lost-plg-0-2 lost-plg-1-1
    kc delete plg lost >/dev/null
    check "a deleted PlacementGroup leaves nothing" eventually 60 plg_gone lost
}

suite_start itest-plg --nodes 0 --kwok 6 --gpus 4
kc create namespace cadre-system >/dev/null
kc -n cadre-system create secret generic cadre-keys >/dev/null
operator_start op --leader-elect=false
test_reserve
test_size
test_strategies
test_room
test_quota
test_loss
test_restart_and_delete
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
