#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Crashes: the operator dies at random moments, the API server dies, and objects disappear while the operator works on them.
# With a real API server, scheduler and controller manager, on fake nodes.
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

seed=${CADRE_SEED:-$RANDOM}
RANDOM=$seed
groups=10

# many PREFIX REPLICAS [FILTER]: ten groups without GPUs, each in one request.
many() {
    local i
    for ((i = 0; i < groups; i++)); do
        group_json "$1-$i" ".spec.replicas = $2" 'del(.spec.template.spec.containers[0].resources.limits)' "${3:-.}"
    done | kc apply -f - >/dev/null
}

# crooked PREFIX REPLICAS: a line for each group of the prefix that is not whole.
crooked() {
    kc get wg,pods -o json | jq -r --arg prefix "$1-" --argjson replicas "$2" '
        [.items[] | select(.kind == "Pod")] as $pods | .items[] | select(.kind == "WorkerGroup")
        | select(.metadata.name | startswith($prefix)) | . as $g
        | [$pods[] | select(.metadata.labels["cadre.dev/group"] == $g.metadata.name)] as $mine
        | ([$mine[].metadata.labels["cadre.dev/index"] | tonumber] | sort) as $indices
        | ([$mine[].metadata.labels["cadre.dev/incarnation"]] | unique) as $incarnations
        | ([.status.conditions[]? | select(.type == "Ready") | .status] | first) as $ready
        | select($indices != [range($replicas)] or ($incarnations | length) != 1 or $ready != "True"
                 or .status.readyReplicas != $replicas
                 or .status.observedGeneration != .metadata.generation
                 or any($mine[]; .metadata.ownerReferences[0].uid != $g.metadata.uid))
        | "\(.metadata.name): indices \($indices) incarnations \($incarnations) ready \($ready)"'
}

count_of() { # PREFIX
    kc get wg -o name | grep -c "/$1-" || true
}

all_straight() { # PREFIX REPLICAS [SECONDS]
    is "$groups" count_of "$1" && eventually "${3:-60}" is "" crooked "$1" "$2"
}

counters() { # PREFIX FIELD: the different values of that field, on one line
    kc get wg -o json | jq -r --arg prefix "$1-" "[.items[] | select(.metadata.name | startswith(\$prefix)) | $2] | unique | map(tostring) | join(\" \")"
}

leftovers() { # PREFIX
    kc get wg,pods,services -o name | grep "/$1-" || true
}

drop() { # PREFIX
    kc get wg -o name | grep "/$1-" | xargs "$devcluster" kubectl delete --wait=false >/dev/null
    eventually 60 is "" leftovers "$1"
}

# ---- killed ---------------------------------------------------------------------------------------------------------

# kill_in TIMES PATTERN REPLICAS: each time, starts the operator, waits for a plan that matches, and kills the operator at a
# random moment while it carries out the plan. It stops when the groups are whole, because then no plan is left. The seed is
# printed, for another run with the same moments. The caller has ended the operator before there was anything to do. In the
# end, an operator runs.
kill_in() {
    local i looks end hits=0
    for ((i = 0; i < $1; i++)); do
        operator_launch op --leader-elect=false
        looks=0 end=$((SECONDS + 600))
        until operator_said op "$2"; do
            [[ $SECONDS -lt $end ]] || return 1
            ((++looks % 200)) || ! is "" crooked born "$3" || break 2
            sleep 0.01
        done
        hits=$((hits + 1))
        nap 0 60
        operator_kill op || return 1
    done
    [[ -n ${operator_pid[op]:-} ]] || operator_launch op --leader-elect=false
    echo "# killed in $hits plans" >>"$suite_dir/hits"
    [[ $hits -gt 0 ]] # else it was not tested
}

test_killed_creating() {
    operator_kill op
    many born 6
    check "killed while it creates the Services and pods of ten groups" kill_in 8 "create \(service\|pod\)" 6
    check "... all are whole in the end" all_straight born 6
    check "... no restart is counted" is 0 counters born .status.restarts
    check "... all in their first attempt" is 1 counters born .status.attempt
    check "... with one Service each" is "$groups" services_of born
}

services_of() {
    kc get services -o name | grep -c "/$1-" || true
}

test_killed_replacing() {
    local i
    operator_kill op
    for ((i = 0; i < groups; i++)); do
        kc patch wg "born-$i" --type merge -p '{"spec":{"replicas":3}}' >/dev/null
    done
    check "killed while it gives their pods up and creates others" kill_in 8 "\(delete\|create\) pod" 3
    check "... all are whole in the end" all_straight born 3
    check "... no restart is counted" is 0 counters born .status.restarts
    check "... each in its second attempt" is 2 counters born .status.attempt
}

test_killed_restarting() {
    local i
    operator_kill op
    for ((i = 0; i < groups; i++)); do
        kc delete pod --wait=false -l "cadre.dev/group=born-$i,cadre.dev/index=$((i % 3))" >/dev/null
    done
    check "killed while it restarts them" kill_in 5 "delete pod" 3
    check "... all are whole in the end" all_straight born 3
    check "... each has restarted once" is "1 3" echo \
        "$(counters born .status.restarts) $(counters born .status.attempt)"
    check "... which does not count against them" is 0 counters born .status.restartsCountTowardsMax
    drop born
    cat "$suite_dir/hits"
}

# ---- absent ---------------------------------------------------------------------------------------------------------

test_absent() {
    many away 2
    all_straight away 2
    check "a graceful stop" operator_stop op
    kc delete wg away-0 --wait=false >/dev/null
    kc delete pod --wait=false -l cadre.dev/group=away-1,cadre.dev/index=0 >/dev/null
    kc scale wg/away-2 --replicas=3 >/dev/null
    kc patch wg away-3 --type merge -p '{"spec":{"suspend":true}}' >/dev/null
    kc delete service away-4 >/dev/null
    eventually 60 is "" group_pod_names away-0
    operator_start op --leader-elect=false
    check "what happened in its absence is made good: a deleted pod" \
        eventually 30 is "away-0 away-1" restarted_pods
    check "... a new size" eventually 30 is 3 group_status away-2 readyReplicas
    check "... a suspension" eventually 30 is "" group_pod_names away-3
    check "... a deleted Service" eventually 30 kc get service away-4
    check "... without a restart" is "0 1" kc get wg away-4 -o 'jsonpath={.status.restarts} {.status.attempt}'
    drop away
}

restarted_pods() {
    kc get pods -l cadre.dev/group=away-1,cadre.dev/incarnation=1 -o 'jsonpath={.items[*].spec.hostname}' |
        sed 's/away-1-/away-/g'
}

# ---- objects that go ------------------------------------------------------------------------------------------------

test_deleted_creating() {
    local i
    for ((i = 0; i < groups; i++)); do
        group_apply "short-$i" '.spec.replicas = 6' 'del(.spec.template.spec.containers[0].resources.limits)' >/dev/null
        nap 0 250
        kc delete wg "short-$i" --wait=false >/dev/null
    done
    check "ten groups deleted in the middle of their creation leave nothing" eventually 60 is "" leftovers short
    check "... and no errors in the operator's log but of what was gone" is "" errors_but NotFound
    for ((i = 0; i < groups; i++)); do
        group_apply same '.spec.replicas = 3' >/dev/null
        nap 0 250
        kc delete wg same --wait=false >/dev/null
    done
    group_apply same '.spec.replicas = 3' >/dev/null
    check "one name created and deleted ten times ends as the last one asks" eventually 60 is "3 True/Running" same_state
    check "... with pods of the last one only" is "$(kc get wg same -o 'jsonpath={.metadata.uid}')" same_owners
    group_delete same
}

errors_but() {
    operator_log op | grep '"level":"error"' | grep -v "$1" || true
}

same_state() {
    echo "$(group_pods same | wc -l) $(group_condition same Ready)"
}

same_owners() {
    kc get pods -l cadre.dev/group=same -o 'jsonpath={range .items[*]}{.metadata.ownerReferences[0].uid}{"\n"}{end}' | sort -u
}

# ---- the API server goes --------------------------------------------------------------------------------------------

test_apiserver() {
    many calm 2
    all_straight calm 2
    "$devcluster" apiserver stop >/dev/null 2>&1
    check "without an API server, the operator says which server does not answer" \
        eventually 20 matches '"level":"warn".*172.30.0.1:6443' operator_log op
    check "... and lives" operator_http op /healthz --fail
    "$devcluster" apiserver start >/dev/null 2>&1
    check "it notices that the API server is back, though no Lease tells" \
        eventually 30 matches 'the API server answers again' operator_log op
    many after 2
    check "it catches up when the API server is back" all_straight after 2 90
    check "... and costs the groups that ran nothing" is "0 1 0" echo \
        "$(counters calm .status.restarts) $(counters calm .status.attempt) $(counters calm .status.incarnation)"
    drop after
    many cut 4
    nap 200 1500
    "$devcluster" apiserver stop >/dev/null 2>&1
    "$devcluster" apiserver start >/dev/null 2>&1
    check "the API server killed in the middle of ten creations" all_straight cut 4 120
    check "... costs no restart" is 0 counters cut .status.restarts
    check "... and no attempt" is 1 counters cut .status.attempt
    drop cut
    drop calm
}

suite_start itest-faults --nodes 0 --kwok 6 --gpus 4
echo "# CADRE_SEED=$seed"
operator_start op --leader-elect=false
test_killed_creating
test_killed_replacing
test_killed_restarting
test_absent
test_deleted_creating
test_apiserver
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
