# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Creates the WorkerGroups of the suites, and asks about them. Needs suite.sh.

ns=default
group_edits=1000 # maxRestarts of groups that were edited

# group_namespace NAME: later functions use groups in that namespace.
group_namespace() {
    ns=$1
}

# group_json NAME [JQ-FILTER...]: a group of two replicas with one GPU each, changed by the filters.
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

# A group as kubectl shows it: "status/reason" of a condition, its message, any field, its pods.
group_condition() { # NAME TYPE
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}/{.status.conditions[?(@.type==\"$2\")].reason}"
}

group_message() { # NAME TYPE
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].message}"
}

group_status() { # NAME FIELD
    kc -n "$ns" get wg "$1" -o "jsonpath={.status.$2}"
}

group_observed() { # NAME: the operator has seen its present spec
    equals "$(kc -n "$ns" get wg "$1" -o 'jsonpath={.metadata.generation}')" "$(group_status "$1" observedGeneration)"
}

# group_decide NAME: edits what changes nothing that runs, and returns when the operator has decided about the group.
# Something that has not happened by then does not happen.
group_decide() {
    group_edits=$((group_edits + 1))
    kc -n "$ns" patch wg "$1" --type merge -p "{\"spec\": {\"maxRestarts\": $group_edits}}" >/dev/null
    eventually 20 group_observed "$1"
}

group_pods() { # NAME: "pod node phase" a line
    kc -n "$ns" get pods -l "cadre.dev/group=$1" \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.phase}{"\n"}{end}'
}

group_pod_names() { # NAME: on one line
    kc -n "$ns" get pods -l "cadre.dev/group=$1" -o 'jsonpath={.items[*].metadata.name}'
}

group_nodes() { # NAME: the number of its pods on each node, ascending: "1 3"
    group_pods "$1" | awk '{ n[$2]++ } END { for (i in n) print n[i] }' | sort -n | xargs
}

group_events() { # NAME: the reasons of its events
    kc -n "$ns" get events.events.k8s.io -o json |
        jq -r --arg name "$1" '.items[] | select(.regarding.kind == "WorkerGroup" and .regarding.name == $name) | .reason'
}

group_ready() { # NAME [SECONDS]
    kc -n "$ns" wait --for=condition=Ready "wg/$1" "--timeout=$(patience "${2:-20}")s"
}

# group_reason NAME REASON [SECONDS]: the column STATUS of kubectl get becomes REASON.
group_reason() {
    eventually "${3:-15}" matches "/$2\$" group_condition "$1" Ready
}

group_delete() { # NAME...: returns when the pods are also gone
    local name
    kc -n "$ns" delete wg "$@" --wait=false --ignore-not-found >/dev/null
    for name in "$@"; do eventually 60 is "" group_pod_names "$name"; done
}

# fail_pod POD EXIT-CODE MESSAGE: writes the status of a pod whose container has ended. Fake nodes have no kubelet for that.
fail_pod() {
    kc patch pod "$1" --subresource=status --type merge -p "$(jq -n --argjson code "$2" --arg message "$3" \
        --arg now "$(date -u +%FT%TZ)" '{status: {phase: (if $code == 0 then "Succeeded" else "Failed" end),
            containerStatuses: [{name: "worker", image: "none", imageID: "", ready: false, restartCount: 0,
            state: {terminated: {exitCode: $code, reason: (if $code == 0 then "Completed" else "Error" end),
            message: $message, startedAt: $now, finishedAt: $now}}}]}}')" >/dev/null
}

# evict POD: evicts the pod, as kubectl drain does.
evict() {
    jq -n --arg name "$1" --arg ns "$ns" '{apiVersion: "policy/v1", kind: "Eviction", metadata: {name: $name, namespace: $ns}}' |
        kc create --raw "/api/v1/namespaces/$ns/pods/$1/eviction" -f - >/dev/null
}

# group_counts NAME: the restarts, those that count, and the reason of the last one.
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
