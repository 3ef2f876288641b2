# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# WorkerGroups of the suites and questions about them. Needs suite.sh.

ns=default

# group_namespace NAME: later functions use the groups there.
group_namespace() {
    ns=$1
}

# group_json NAME [JQ-FILTER...]: two replicas of one GPU, changed by the filters.
group_json() {
    local name=$1 filter=. part
    shift
    for part in "$@"; do filter+=" | $part"; done
    jq -n --arg name "$name" '{apiVersion: "cadre.dev/v1alpha1", kind: "WorkerGroup", metadata: {name: $name},
        spec: {replicas: 2, runtime: "Plain", template: {spec: {containers: [{name: "worker", image: "none",
            resources: {requests: {cpu: "1"}, limits: {"nvidia.com/gpu": "1"}}}]}}}}' | jq "$filter"
}

# group_apply NAME [JQ-FILTER...]
group_apply() {
    group_json "$@" | kc -n "$ns" apply -f -
}

# One group as kubectl shows it: "status/reason" of a condition, its message, any field, its pods.
group_condition() { # NAME TYPE
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}/{.status.conditions[?(@.type==\"$2\")].reason}"
}

group_message() { # NAME TYPE
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].message}"
}

group_status() { # NAME FIELD
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.$2}"
}

group_observed() { # NAME: its status is of the present spec
    equals "$(kc -n "$ns" get wg "$1" -o 'jsonpath={.metadata.generation}')" "$(group_status "$1" observedGeneration)"
}

group_pods() { # NAME: "pod node phase" a line
    kc -n "$ns" get pods -l "cadre.dev/group=$1" \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.phase}{"\n"}{end}'
}

group_pod_names() { # NAME: on one line
    kc -n "$ns" get pods -l "cadre.dev/group=$1" -o 'jsonpath={.items[*].metadata.name}'
}

group_nodes() { # NAME: how many of its pods are on each node, ascending: "1 3"
    group_pods "$1" | awk '{ n[$2]++ } END { for (i in n) print n[i] }' | sort -n | xargs
}

group_events() { # NAME: reasons
    kc -n "$ns" get events.events.k8s.io -o json |
        jq -r --arg name "$1" '.items[] | select(.regarding.kind == "WorkerGroup" and .regarding.name == $name) | .reason'
}

group_ready() { # NAME [SECONDS]
    kc -n "$ns" wait --for=condition=Ready "wg/$1" "--timeout=${2:-20}s"
}

# group_reason NAME REASON [SECONDS]: STATUS of kubectl get becomes that.
group_reason() {
    eventually "${3:-15}" matches "/$2\$" group_condition "$1" Ready
}

group_delete() { # NAME...: returns when the pods are gone, too
    local name
    kc -n "$ns" delete wg "$@" --wait=false --ignore-not-found >/dev/null
    for name in "$@"; do eventually 60 is "" group_pod_names "$name"; done
}

# fail_pod POD EXIT-CODE MESSAGE: the kubelet's word that its container has ended, which no fake node would give.
fail_pod() {
    kc patch pod "$1" --subresource=status --type merge -p "$(jq -n --argjson code "$2" --arg message "$3" \
        --arg now "$(date -u +%FT%TZ)" '{status: {phase: (if $code == 0 then "Succeeded" else "Failed" end),
            containerStatuses: [{name: "worker", image: "none", imageID: "", ready: false, restartCount: 0,
            state: {terminated: {exitCode: $code, reason: (if $code == 0 then "Completed" else "Error" end),
            message: $message, startedAt: $now, finishedAt: $now}}}]}}')" >/dev/null
}

# evict POD: as kubectl drain does for each pod of a node.
evict() {
    jq -n --arg name "$1" --arg ns "$ns" '{apiVersion: "policy/v1", kind: "Eviction", metadata: {name: $name, namespace: $ns}}' |
        kc create --raw "/api/v1/namespaces/$ns/pods/$1/eviction" -f - >/dev/null
}

# group_counts NAME: restarts, those that count, and why the last one was.
group_counts() {
    kc -n "$ns" get wg "$1" -o 'jsonpath={.status.restarts} {.status.restartsCountTowardsMax} {.status.lastFailure.reason}'
}

# Nothing of the group is left: no object, pod or Service.
group_gone() { # NAME
    is "" kc -n "$ns" get wg,pods,services -l "cadre.dev/group=$1" -o name &&
        is "" kc -n "$ns" get wg "$1" -o name --ignore-not-found
}

groups_explain() {
    kc get wg -A -o wide
    kc get pods -A -o wide
    kc get events -A --sort-by=.metadata.creationTimestamp | tail -n 15
}

suite_explain+=(groups_explain)
