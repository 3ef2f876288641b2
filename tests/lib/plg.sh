# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Creates the PlacementGroups of the suites, and asks about them. Needs suite.sh.

# plg_apply NAME BUNDLES [JQ-FILTER]: that number of bundles, each with one GPU.
plg_apply() {
    jq -n --arg name "$1" --argjson n "$2" '{apiVersion: "cadre.dev/v1alpha1", kind: "PlacementGroup",
        metadata: {name: $name}, spec: {bundles: [{count: $n, resources: {cpu: "1", "nvidia.com/gpu": "1"}}]}}' |
        jq "${3:-.}" | kc apply -f -
}

plg_condition() { # NAME TYPE
    kc get plg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}/{.status.conditions[?(@.type==\"$2\")].reason}"
}

plg_message() { # NAME
    kc get plg "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
}

plg_ready() { # NAME [SECONDS]: it becomes Ready with its present spec
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

plg_layout() { # NAME: the number of bundles on each node, ascending
    kc get plg "$1" -o json | jq -r '[.status.placements[].bundles | [split(",")[] | split("-") | map(tonumber) |
        .[-1] - .[0] + 1] | add] | sort | map(tostring) | join(" ")'
}

plg_events() { # NAME: the reasons of its events
    kc get events.events.k8s.io -o json | jq -r --arg name "$1" \
        '.items[] | select(.regarding.kind == "PlacementGroup" and .regarding.name == $name) | .reason'
}

plg_pod() { # POD JQ-FILTER
    kc get pod "$1" -o json | jq -r "$2"
}
