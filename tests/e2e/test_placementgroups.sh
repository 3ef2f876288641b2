#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PlacementGroups with real containers on two real nodes of four fake GPUs: they are reserved, idle, lose a node, and are
# drained. The chart installs the operator on n1, because the suite stops n2.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
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

columns() { # LINE ARGS...
    local line=$1
    shift
    kc get plg "$@" | sed -n "${line}p" | xargs
}

in_pod() { # POD COMMAND...
    kc exec "$1" -c worker -- "${@:2}"
}

on_node() { # NAME: "index node" of its pods
    kc get pods -l "cadre.dev/group=$1-plg" --sort-by '{.metadata.labels.cadre\.dev/index}' \
        -o 'jsonpath={range .items[*]}{.metadata.labels.cadre\.dev/index} {.spec.nodeName}{"\n"}{end}' | xargs
}

# ---- reserved -------------------------------------------------------------------------------------------------------

test_example() {
    check "kubectl apply -f examples/placementgroup.yaml" kc apply -f "$suite_root/examples/placementgroup.yaml"
    check "it becomes Ready" kc wait --for=condition=Ready plg/gpus --timeout=600s
    check "kubectl get plg has the columns" is "NAME STRATEGY BUNDLES BOUND GPUS STATUS NODES AGE" columns 1
    check "... with what people want to know" matches "^gpus StrictPack 4 4 4 Running 1 [0-9]+[ms]([0-9]+s)?$" columns 2
    check "all of it is in one pod" is "gpus-plg-0-0=0-3" plg_pods gpus
    check "... of the Guaranteed class" is Guaranteed plg_pod gpus-plg-0-0 .status.qosClass
    check "it idles in the agent" matches "^/cadre/cadre-agent" in_pod gpus-plg-0-0 sh -c 'tr "\0" " " </proc/1/cmdline'
    check "... which runs nothing" is 1 in_pod gpus-plg-0-0 sh -c 'grep -l cadre /proc/[0-9]*/comm | wc -l'
    check "... and has found the operator" eventually 20 says connected kc logs gpus-plg-0-0 -c worker
    check "nothing of a rank is in its environment" is "" in_pod gpus-plg-0-0 \
        sh -c 'env | grep -E "^(RANK|WORLD_SIZE|MASTER_ADDR|LOCAL_RANK)=" || true'
}

# Without a template, pods have the operator's image. The namespace has Pod Security restricted.
test_default_template() {
    kc label namespace default pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null 2>&1
    plg_apply bare 2 '.spec |= (.strategy = "StrictSpread" | .bundles[0].resources = {cpu: "50m", memory: "32Mi"})' >/dev/null
    check "without a template: Pods of the operator's image, and Pod Security restricted" plg_ready bare 60
    check "... a bundle on each node" is "1 1" plg_layout bare
    check "... which have found the operator" eventually 20 says connected kc logs bare-plg-0-0 -c worker
    plg_apply bare 3 '.spec |= (.strategy = "StrictSpread" | .bundles[0].resources = {cpu: "50m", memory: "32Mi"})' >/dev/null
    check "more than there are nodes: the rest waits" eventually 20 matches "False/(Infeasible|Insufficient)" plg_condition bare Ready
    check "... and what is there stays" is "bare-plg-0-0=0 bare-plg-1-0=1" plg_pods bare
    kc label namespace default pod-security.kubernetes.io/enforce- >/dev/null
}

# ---- drained --------------------------------------------------------------------------------------------------------

test_drain() {
    kc delete plg gpus bare --wait=false >/dev/null
    check "a deleted PlacementGroup leaves nothing" eventually 60 plg_gone gpus
    check "... nor does another" eventually 60 plg_gone bare
    plg_apply patient 1 '.spec |= (.bundles[0].resources = {cpu: "50m"} | .template = {spec: {terminationGracePeriodSeconds: 3600}})' >/dev/null
    check "pods that may take an hour to end" plg_ready patient 60
    kc delete plg patient --wait=false >/dev/null
    check "... end at once, not by force" eventually 60 plg_gone patient
}

# ---- lost -----------------------------------------------------------------------------------------------------------

test_node_lost() {
    local kept
    plg_apply lost 4 '.spec |= (.strategy = "Spread" | .nodeLostSeconds = 5
        | .bundles[0].resources = {cpu: "50m", memory: "32Mi", "nvidia.com/gpu": 1})' >/dev/null
    check "spread over both nodes" plg_ready lost 60
    check "... two each" is "2 2" plg_layout lost
    kept=$(kc get pods -l cadre.dev/group=lost-plg -o json | jq -r '.items[] | select(.spec.nodeName == "n1") | .metadata.uid')
    "$devcluster" node stop n2 >/dev/null 2>&1
    check "a node dies: its bundles are planned again" eventually 90 is "0 n1 1 n1" on_node lost
    check "... the others stay" says "$kept" kc get pods -l cadre.dev/group=lost-plg -o 'jsonpath={.items[*].metadata.uid}'
    check "... and it is Ready again" plg_ready lost 60
    check "... with all on the node that is left" is 4 plg_layout lost
    "$devcluster" node start n2 >/dev/null 2>&1
    check "the node comes back, and nothing moves" is "0 n1 1 n1" on_node lost
    plg_delete lost
    check "nothing runs on any node" eventually 60 is "" kc get pods -o name
}

operator_errors() {
    kc -n cadre-system logs -l app.kubernetes.io/component=operator --tail=-1 | grep '"level":"error"'
}

suite_start e2e-plg --nodes 2 --gpus 4
calls_install --set crds.install=false --set 'nodeSelector.kubernetes\.io/hostname=n1'
check "the operators are not on the node that will be lost" is "n1 n1" kc -n cadre-system get pods \
    -l app.kubernetes.io/component=operator -o 'jsonpath={.items[*].spec.nodeName}'
test_example
test_default_template
test_drain
test_node_lost
check "the operators have logged no error" is "" operator_errors
suite_end
