# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Fake nodes without a kubelet. kwok reports that they are Ready, and that every pod on them runs (kwok-stages.yaml).

KWOK_MAX=10000

kwok_start() {
    process_start kwok "$CGROUP/control" holder-control kwok --kubeconfig "$STATE/kubeconfig" --config "$HERE/kwok-stages.yaml" \
        --manage-nodes-with-label-selector=type=kwok --node-lease-duration-seconds=160 --server-address=127.0.0.1:10247 --v=WARN
}

# kwok_nodes FIRST LAST: prints the nodes of these numbers, with the names kwok-0000 and so on.
kwok_nodes() {
    jq -n --argjson first "$1" --argjson last "$2" --arg gpus "$GPUS" '
        {apiVersion: "v1", kind: "List", items: [range($first; $last + 1) | ("0000\(.)" | .[-([4, length - 4] | max):]) as $n | {
            apiVersion: "v1", kind: "Node",
            metadata: {name: "kwok-\($n)", labels: {type: "kwok", "kubernetes.io/hostname": "kwok-\($n)",
                       "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
            status: ({cpu: "64", memory: "512Gi", "ephemeral-storage": "1Ti", pods: "256"}
                     + (if $gpus == "0" then {} else {"nvidia.com/gpu": $gpus} end) | {capacity: ., allocatable: .})}]}'
}

kwok_add() { # HAVE WANT
    say "adding $(plural $(($2 - $1)) "fake node")"
    kwok_nodes "$1" $(($2 - 1)) | kubectl_own create -f - >/dev/null || die "the fake nodes cannot be made"
    wait_until 300 "the Ready state of $2 fake nodes" --alive kwok kwok_ready "$2"
}

kwok_count() { kubectl_own get nodes -l type=kwok -o name --chunk-size=0 | wc -l; }
kwok_ready() {
    [[ $(kubectl_own get nodes -l type=kwok --chunk-size=0 -o json | jq '[.items[].status.conditions // [] | .[]
        | select(.type == "Ready" and .status == "True")] | length') -ge $1 ]]
}
