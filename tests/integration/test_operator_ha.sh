#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two replicas of the operator. The leader dies at each of its writes while it creates, repairs and deletes a gang. The other
# replica finishes the work, and no pod is lost or created twice. Running groups must also survive an API server that is
# away, and one that refuses most requests of the operator.
# With a real API server, scheduler and controller manager, on fake nodes. The operator is built with CADRE_FAULTS.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
#   CADRE_OUTAGE_SECONDS=N   how long the API server is away; default: 8
# shellcheck disable=SC2154
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"

# Each lane is a namespace with a pair of operators of its own, so that several lives go on at once.
lanes=6
outage=${CADRE_OUTAGE_SECONDS:-8}

# lane_launch NAME LANE LEASE: starts an operator of that lane. Its Lease lasts LEASE seconds.
lane_launch() {
    local port=$((19440 + 2 * $2))
    [[ $1 == a* ]] || port=$((port + 1))
    POD_NAME=$1 operator_launch "$1" --namespace "ha-$2" --leader-elect-namespace "ha-$2" --listen "127.0.0.1:$port" \
        --leader-elect-lease-duration "$3s" --leader-elect-renew-deadline "$(($3 - 2))s" --leader-elect-retry-period 500ms
}

is_leader() { # NAME
    matches 'leader_election_master_status\{[^}]*\} 1' operator_http "$1" /metrics
}

lanes_make() {
    local i
    for ((i = 0; i < lanes; i++)); do
        kc create namespace "ha-$i" >/dev/null
        kc -n "ha-$i" create secret generic cadre-keys >/dev/null
    done
}

each_lane() { # OBJECT: prints that JSON once for the namespace of each lane
    local i
    for ((i = 0; i < lanes; i++)); do jq --arg ns "ha-$i" '.metadata.namespace = $ns' <<<"$1"; done
}

# ---- killed at every write ------------------------------------------------------------------------------------------

group_object() {
    group_json gang '.spec.replicas = 3' '.spec.maxRestarts = 3' '.spec.restartBackoff = {initialSeconds: 1, maxSeconds: 1}' \
        'del(.spec.template.spec.containers[0].resources.limits)'
}

placementgroup_object() {
    jq -n '{apiVersion: "cadre.dev/v1alpha1", kind: "PlacementGroup", metadata: {name: "gang"},
        spec: {podPer: "Bundle", bundles: [{count: 3, resources: {cpu: "1"}}]}}'
}

# A line for each gang that is not whole in that incarnation. All pods of a WorkerGroup are created again, and its slice names
# them. Only the missing pod of a PlacementGroup is created again.
crooked() { # KIND INCARNATION
    kc get "$1,pods,endpointslices" -A -o json | jq -r --arg kind "$1" --argjson incarnation "$2" --argjson lanes "$lanes" '
        def number($key): .metadata.labels[$key] | tonumber;
        [.items[] | select(.kind == "Pod")] as $pods
        | [.items[] | select(.kind == "EndpointSlice")] as $slices
        | [.items[] | select((.kind | test("Group$")) and .metadata.name == "gang")] as $gangs
        | (if ($gangs | length) == $lanes then empty else "\($gangs | length) of \($lanes) gangs" end),
          ($gangs[] | . as $g
          | [$pods[] | select(.metadata.ownerReferences[0].uid == $g.metadata.uid)] as $mine
          | ([$mine[] | "\(number("cadre.dev/index")).\(number("cadre.dev/incarnation"))"] | sort) as $are
          | (if $kind == "wg" then [range(3) | "\(.).\($incarnation)"]
             else [range(3) | "\(.).\(if . == 1 then $incarnation else 0 end)"] end) as $should
          | ([$slices[] | select(.metadata.ownerReferences[0].uid == $g.metadata.uid) | .endpoints[]?.targetRef.uid] | sort) as $named
          | ([.status.conditions[]? | select(.type == "Ready") | .status] | first) as $ready
          | select($are != $should or $ready != "True" or .status.incarnation != $incarnation
                   or any($mine[]; .status.phase != "Running")
                   or ($kind == "wg" and (.status.restarts != $incarnation or .status.attempt != $incarnation + 1
                       or $named != ([$mine[].metadata.uid] | sort))))
          | "\(.metadata.namespace): pods \($are) ready \($ready) named \($named | length) \(.status | {attempt, incarnation, restarts})")'
}

leftovers() {
    kc get wg,plg,pods,services,endpointslices -A -o name --field-selector metadata.namespace!=default 2>/dev/null | grep gang || true
}

# The second pod of each WorkerGroup gets the status of a failed pod. The second pod of each PlacementGroup is deleted.
hurt() { # KIND
    local i
    for ((i = 0; i < lanes; i++)); do
        if [[ $1 == plg ]]; then
            kc -n "ha-$i" delete pod gang-plg-1-0 --wait=false >/dev/null
        else
            kc -n "ha-$i" patch pod gang-1-0 --subresource=status --type merge -p "$(jq -n --arg now "$(date -u +%FT%TZ)" '
                {status: {phase: "Failed", containerStatuses: [{name: "worker", image: "none", imageID: "", ready: false,
                restartCount: 0, state: {terminated: {exitCode: 1, startedAt: $now, finishedAt: $now}}}]}}')" >/dev/null
        fi
    done
}

# Records every pod that is created: "namespace/name uid".
creations_begin() {
    kc get pods -A --watch -o 'jsonpath={.metadata.namespace}/{.metadata.name} {.metadata.uid}{"\n"}' \
        >"$suite_dir/creations" 2>/dev/null &
    creations_pid=$!
}

creations_end() {
    kill "$creations_pid" 2>/dev/null || true
    wait "$creations_pid" 2>/dev/null || true
}

creations() { # how many lanes created how many pods: "6x6" is six lanes with six pods each
    sort -u "$suite_dir/creations" | sed -n 's|^\(ha-[0-9]*\)/gang.*|\1|p' | sort | uniq -c |
        awk '{ n[$1]++ } END { for (i in n) print n[i] "x" i }' | xargs
}

creations_seen() { # NUMBER: the record has so many pods of gangs, because a slow machine writes them later
    [[ $(sort -u "$suite_dir/creations" | grep -c '^ha-[0-9]*/gang') -ge $1 ]]
}

crashed() { # how many of the first leaders are dead
    local i n=0
    for ((i = 0; i < lanes; i++)); do if process_gone "${operator_pid[a$i]}"; then n=$((n + 1)); fi; done
    echo "$n"
}

# The leader of lane i dies at write FIRST + i. Its Lease is long, so that a leader that lives keeps it on a slow machine.
pairs_start() { # MOMENT FIRST
    local i
    followed=()
    for ((i = 0; i < lanes; i++)); do kc -n "ha-$i" delete lease cadre-operator --ignore-not-found >/dev/null; done
    for ((i = 0; i < lanes; i++)); do CADRE_CRASH_AT_WRITE=$1:$(($2 + i)) lane_launch "a$i" "$i" 120; done
    for ((i = 0; i < lanes; i++)); do eventually 30 is_leader "a$i"; done
    for ((i = 0; i < lanes; i++)); do lane_launch "b$i" "$i" 120; done
    for ((i = 0; i < lanes; i++)); do operator_ready "b$i"; done
}

# Ends the Leases of leaders that are dead.
leases_end() {
    local i
    for ((i = 0; i < lanes; i++)); do
        if [[ -z ${followed[i]:-} ]] && process_gone "${operator_pid[a$i]}"; then
            kc -n "ha-$i" patch lease cadre-operator --type merge -p '{"spec": {"leaseDurationSeconds": 1}}' >/dev/null
            followed[i]=yes
        fi
    done
}

settled() { # COMMAND...: it prints nothing. Ends the Leases of dead leaders
    leases_end
    is "" "$@"
}

pairs_stop() {
    local i ok=0
    for ((i = 0; i < lanes; i++)); do operator_kill "a$i" || ok=1; done
    for ((i = 0; i < lanes; i++)); do kill -TERM "${operator_pid[b$i]}"; done
    for ((i = 0; i < lanes; i++)); do operator_gone "b$i" 0 || ok=1; done
    return "$ok"
}

# lives KIND MOMENT FIRST PODS: a life of a gang in each lane, each with a crash at another write. PODS pods are created in each.
lives() {
    local kind=$1 at="$2 write $3 to $(($3 + lanes - 1))"
    local object
    if [[ $kind == wg ]]; then object=$(group_object); else object=$(placementgroup_object); fi
    pairs_start "$2" "$3"
    creations_begin
    each_lane "$object" | kc apply -f - >/dev/null
    check "$kind, killed $at: whole after its creation" eventually 60 settled crooked "$kind" 0
    eventually 30 creations_seen "$((3 * lanes))"
    hurt "$kind"
    check "... and after the loss of a pod" eventually 60 settled crooked "$kind" 1
    kc delete "$kind" -A --all --wait=false >/dev/null
    check "... and nothing is left after its deletion" eventually 60 settled leftovers
    eventually 30 creations_seen "$((lanes * $4))" || true
    creations_end
    check "... no pod was made twice, none too many" is "${lanes}x$4" creations
    deaths=$(crashed)
    points=$((points + deaths))
    check "... the next leaders end without a leak" pairs_stop
}

# The number of writes in a life varies, because a status may wait for the next change. All writes were tried when some leaders
# of a round are still alive.
every_write() { # KIND MOMENT PODS
    local first=1
    points=0
    deaths=$lanes
    while [[ $deaths -eq $lanes ]]; do
        lives "$1" "$2" "$first" "$3"
        first=$((first + lanes))
    done
    check "$1: killed at $points writes, $2 each" test "$points" -ge 10
}

# ---- the API server is away -----------------------------------------------------------------------------------------

uids() {
    kc -n ha-0 get pods -o 'jsonpath={.items[*].metadata.uid}'
}

one_leads() {
    is_leader a0 || is_leader b0
}

stop_both() {
    operator_stop a0 && operator_stop b0
}

test_outage() {
    local before began
    lane_launch a0 0 8
    eventually 20 is_leader a0
    lane_launch b0 0 8
    operator_ready b0
    group_object | jq '.metadata.namespace = "ha-0"' | kc apply -f - >/dev/null
    placementgroup_object | jq '.metadata.namespace = "ha-0" | .metadata.name = "pool"' | kc apply -f - >/dev/null
    kc -n ha-0 wait --for=condition=Ready wg/gang plg/pool --timeout=600s >/dev/null
    before=$(uids)
    "$devcluster" apiserver stop >/dev/null 2>&1
    check "an API server that is away: a leader that cannot renew does not lead any more" eventually 20 \
        says "the lease is lost" operator_log a0
    sleep "$outage" # the outage itself
    check "... it lives on" operator_http a0 /healthz --fail
    check "... so does the standby" operator_http b0 /healthz --fail
    "$devcluster" apiserver start >/dev/null 2>&1
    began=$SECONDS
    check "... one of them leads when it is back" eventually 60 one_leads
    echo "# after $((SECONDS - began)) s"
    kc -n ha-0 patch wg gang --type merge -p '{"spec":{"maxRestarts":7}}' >/dev/null
    check "... and does its work" eventually 60 is 2 kc -n ha-0 get wg gang -o 'jsonpath={.status.observedGeneration}'
    kc -n ha-0 patch plg pool --type merge -p '{"spec":{"timeoutSeconds":599}}' >/dev/null
    check "... also for the PlacementGroup" eventually 60 is 2 kc -n ha-0 get plg pool -o 'jsonpath={.status.observedGeneration}'
    check "... all pods run on" is "$before" uids
    check "... nothing is counted" is "0 1 0" kc -n ha-0 get wg gang -o \
        'jsonpath={.status.restarts} {.status.attempt} {.status.incarnation}'
    check "... nor of the PlacementGroup" is "0" kc -n ha-0 get plg pool -o 'jsonpath={.status.incarnation}'
    kc -n ha-0 delete wg/gang plg/pool --wait=false >/dev/null
    check "... both end without a leak" stop_both
}

# ---- a storm of 429 -------------------------------------------------------------------------------------------------

# An operator with its own ServiceAccount. The API server takes its requests one at a time, and queues none.
storm_begin() {
    kc create namespace storm >/dev/null
    kc -n storm create secret generic cadre-keys >/dev/null
    kc -n storm create serviceaccount operator >/dev/null
    eventually 120 kc -n storm get serviceaccount default >/dev/null # a controller manager that was refused comes back late
    kc create clusterrolebinding storm --clusterrole=cluster-admin --serviceaccount=storm:operator >/dev/null
    kc apply -f - >/dev/null <<'YAML'
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: storm}
spec: {type: Limited, limited: {nominalConcurrencyShares: 1, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: storm}
spec:
  priorityLevelConfiguration: {name: storm}
  matchingPrecedence: 100
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {name: operator, namespace: storm}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
YAML
    "$devcluster" exec -- kubectl config view --raw -o json |
        jq --arg token "$(kc -n storm create token operator)" '.users = [{name: "storm", user: {token: $token}}]
            | .contexts[].context.user = "storm"' >"$suite_dir/storm.conf"
}

refused_429() {
    operator_http op /metrics | awk '/^rest_client_requests_total.*code="429"/ { n += $NF } END { print n + 0 }'
}

storm_crooked() { # REPLICAS
    kc -n storm get wg,pods -o json | jq -r --argjson replicas "$1" '
        [.items[] | select(.kind == "Pod")] as $pods | .items[] | select(.kind == "WorkerGroup") | . as $g
        | [$pods[] | select(.metadata.labels["cadre.dev/group"] == $g.metadata.name) | .metadata.name] as $mine
        | select(($mine | length) != $replicas or .status.readyReplicas != $replicas or .status.restarts != 0
                 or .status.attempt != 1)
        | "\(.metadata.name): \($mine) \(.status | {readyReplicas, restarts, attempt})"'
}

test_storm() {
    local i
    storm_begin
    # On a slow machine, a short Lease could be lost even without refusals.
    operator_start op --kubeconfig "$suite_dir/storm.conf" --namespace storm --leader-elect-namespace storm \
        --leader-elect-lease-duration 60s --leader-elect-renew-deadline 50s
    eventually 30 is_leader op
    for ((i = 0; i < 10; i++)); do
        group_object | jq --arg name "storm-$i" '.metadata = {name: $name, namespace: "storm"} | .spec.replicas = 20'
    done | kc apply -f - >/dev/null
    check "ten groups of twenty among refusals: all are whole in the end" eventually 120 is "" storm_crooked 20
    check "... there were refusals" test "$(refused_429)" -gt 0
    echo "# $(refused_429) requests were answered with 429"
    check "... it leads still" is_leader op
    check "it ends without a leak" operator_stop op
    kc delete flowschema/storm prioritylevelconfiguration/storm namespace/storm --wait=false >/dev/null
}

suite_start itest-ha --nodes 0 --kwok 6 --gpus 4
lanes_make
for moment in after before; do
    every_write wg "$moment" 6
    every_write plg "$moment" 4
done
test_outage
test_storm
suite_end
