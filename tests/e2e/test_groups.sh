#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Groups with real containers on two real nodes of four fake GPUs: what the ranks see, how they end, and what happens when an
# image, a process or a node fails. The operator with sanitizers runs outside the cluster.
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

image=localhost/cadre-example:dev

# run NAME COMMAND [FILTER...]: a group whose ranks run the command in the shell of the example image.
run() {
    local name=$1 command
    command=$(jq -n --arg c "$2" '["/bin/sh", "-c", $c]')
    shift 2
    group_apply "$name" ".spec.template.spec.containers[0] |= (.image = \"$image\" | .command = $command
        | .resources.requests.cpu = \"10m\" | .imagePullPolicy = \"IfNotPresent\")" \
        '.spec.template.spec.terminationGracePeriodSeconds = 1' "$@" >/dev/null
}

failure() { # NAME FIELDS: the fields of lastFailure, on one line
    kc get wg "$1" -o json | jq -r ".status.lastFailure | \"$2\""
}

logs() { # POD-ARGUMENTS...
    kc logs --tail=-1 "$@"
}

# ---- what the ranks see ---------------------------------------------------------------------------------------------

wanted_env() { # INDEX
    local uid
    uid=$(kc get wg env -o 'jsonpath={.metadata.uid}')
    cat <<ENV
CADRE_ATTEMPT=1
CADRE_DEVICE=0
CADRE_GROUP_UID=$uid
CADRE_INDEX=$1
CADRE_NAMESPACE=default
GROUP_NAME=env
GROUP_RANK=$1
LOCAL_RANK=0
LOCAL_WORLD_SIZE=2
MASTER_ADDR=env-0.env.default.svc
MASTER_PORT=29777
MINE=rank $(($1 * 2)) of 8 at env-0.env.default.svc
NNODES=4
NODE_RANK=$1
PET_MASTER_ADDR=env-0.env.default.svc
PET_MASTER_PORT=29777
PET_NNODES=4
PET_NODE_RANK=$1
PET_NPROC_PER_NODE=2
RANK=$(($1 * 2))
WORLD_SIZE=8
ENV
}

seen_env() { # INDEX CONTAINER
    logs "env-$1-0" -c "$2" | grep -E '^(MINE|RANK|LOCAL_|WORLD_SIZE|MASTER_|NODE_RANK|GROUP_|NNODES|PET_|CADRE_)' | sort
}

same_env() { # CONTAINER
    local i
    for i in 0 1 2 3; do is "$(wanted_env "$i")" seen_env "$i" "$1" || return 1; done
}

looked_up() { # the address in the answer of nslookup
    sed -nE 's/^Address( 1)?: ([0-9.]+)$/\2/p' | tail -n 1
}

resolves() { # INDEX: the address that MASTER_ADDR has in that pod
    # shellcheck disable=SC2016
    kc exec "env-$1-0" -c worker -- sh -c 'nslookup "$MASTER_ADDR.cluster.local"' | looked_up
}

# all_named INCARNATION: the name of each pod leads to that pod, in every pod.
all_named() {
    local from to ip
    for to in 0 1 2 3; do
        ip=$(kc get pod "env-$to-$1" -o 'jsonpath={.status.podIP}')
        for from in 0 1 2 3; do
            is "$ip" looked_up < <(kc exec "env-$from-$1" -c worker -- nslookup "env-$to.env.default.svc.cluster.local") || return 1
        done
    done
}

env_is() {
    echo "$(group_condition env Ready) $(group_status env restarts)"
}

slices() { # NAME: its EndpointSlices, who manages them, and how many endpoints are ready
    kc get endpointslices -l "kubernetes.io/service-name=$1" -o json | jq -r '.items[] | [.metadata.name,
        .metadata.labels["endpointslice.kubernetes.io/managed-by"], (.endpoints | map(select(.conditions.ready)) | length)] | join(" ")'
}

all_resolve() {
    local i ip
    ip=$(kc get pod env-0-0 -o 'jsonpath={.status.podIP}')
    for i in 0 1 2 3; do is "$ip" resolves "$i" || return 1; done
}

test_environment() {
    run env 'env; exec sleep 1000' '.spec |= (.replicas = 4 | .workersPerReplica = 2 | .rendezvousPort = 29777)' \
        '.spec.placement.strategy = "Spread"' \
        '.spec.template.spec.containers[0].env = [{name: "MINE", value: "rank $(RANK) of $(WORLD_SIZE) at $(MASTER_ADDR)"}]' \
        '.spec.template.spec.initContainers = [.spec.template.spec.containers[0] | .name = "setup" | .command = ["env"]]'
    check "a group of four pods of two ranks becomes Ready" group_ready env 60
    check "every variable is right in every rank, and the user's own may use them" eventually 20 same_env worker
    check "in the init containers, too" eventually 20 same_env setup
    check "the host name has no incarnation" is env-3 kc exec env-3-0 -c worker -- hostname
    check "MASTER_ADDR resolves to rank 0's address in every pod" eventually 20 all_resolve
    check "... and every pod's name to its own" eventually 20 all_named 0
    check "the names are one EndpointSlice, the operator's" eventually 10 is "env-ipv4-0 cadre.dev 4" slices env
    check "Spread: evenly on both nodes" is "2 2" group_nodes env
    kc delete pod env-2-0 --wait=false >/dev/null
    check "a pod is deleted: the group restarts with new pods" eventually 90 is "True/Running 1" env_is
    check "... whose names lead to them, not to those before" eventually 20 all_named 1
    check "... in the same EndpointSlice" eventually 10 is "env-ipv4-0 cadre.dev 4" slices env
    kc delete endpointslice env-ipv4-0 >/dev/null
    check "somebody deletes it: it is made again" eventually 10 is "env-ipv4-0 cadre.dev 4" slices env
    kc delete service env >/dev/null
    check "somebody deletes the Service: the names come back with it" eventually 20 all_named 1
    kc delete wg env --wait=false >/dev/null
}

# ---- how they meet and end ------------------------------------------------------------------------------------------

test_rendezvous() {
    run strictspread 'exec rendezvous --exit' '.spec.placement.strategy = "StrictSpread"'
    run strictpack 'exec rendezvous --exit' '.spec |= (.replicas = 4 | .placement.strategy = "StrictPack")'
    check "StrictSpread: the ranks meet and end, the group has Succeeded" \
        kc wait --for=condition=Succeeded wg/strictspread --timeout=600s
    check "... from two nodes" is "1 1" group_nodes strictspread
    check "StrictPack: the same" kc wait --for=condition=Succeeded wg/strictpack --timeout=600s
    check "... from one node" is 4 group_nodes strictpack
    check "the roll-call is in rank 0's log" says "roll-call: 4 of 4 ranks" logs strictpack-0-0
    check "an end is not a restart" is "0 1" kc get wg strictpack -o 'jsonpath={.status.restarts} {.status.attempt}'
    check "STATUS says Completed" is "False/Completed" group_condition strictpack Ready
    check "what has ended stays so when the operator decides again" group_decide strictpack
    check "... which STATUS says" is "False/Completed" group_condition strictpack Ready
    check "deleted, they leave nothing" group_delete strictpack strictspread
}

# ---- processes that fail --------------------------------------------------------------------------------------------

test_exits() {
    run dies 'echo first; echo last words; exit 3' '.spec |= (.maxRestarts = 2 | .restartBackoff.initialSeconds = 2)'
    run never 'sleep 1; exit 4' '.spec.restartPolicy = "Never"'
    run second 'exec rendezvous --fail-rank 1 --exit-code 7' '.spec |= (.maxRestarts = 0 | .replicas = 3)'
    # The operator's log has each state. A look from outside may miss one.
    check "a command that exits at once: it waits before the next attempt, and says for how long and why" \
        eventually 40 matches 'reason.{1,6}Backoff.{1,12}message.{1,6}attempt [23] begins after a backoff of [0-9.]+ s .{0,60}rank [01]' \
        operator_log op
    check "restartPolicy Never: Failed at once" kc wait --for=condition=Failed wg/never --timeout=600s
    check "... for that reason" is "True/WorkerFailed" group_condition never Failed
    check "... with its exit code, without a restart" is "4 0" echo \
        "$(failure never '\(.exitCode)') $(group_status never restarts)"
    check "one rank of three fails: it is the one that is named" kc wait --for=condition=Failed wg/second --timeout=600s
    check "... with its code" is "1 second-1-0 7" failure second '\(.rank) \(.pod) \(.exitCode)'
    check "... and its log is still there" matches "rank 1" logs second-1-0
    check "maxRestarts is used up: Failed" kc wait --for=condition=Failed wg/dies --timeout=600s
    check "... for that reason, after two restarts" is "True/MaxRestartsExceeded 2 2" echo \
        "$(group_condition dies Failed) $(group_status dies restarts) $(group_status dies restartsCountTowardsMax)"
    check "... with the code and the reason" is "3 Error" failure dies '\(.exitCode) \(.reason)'
    check "... and the last lines of the output" says "last words" failure dies '\(.message)'
    check "... on a node" matches "^n[12]$" failure dies '\(.node)'
    check "... events tell of both restarts and the end" eventually 20 is "MaxRestartsExceeded Restarting Restarting" \
        event_counts dies
    check "deleted, they leave nothing" group_delete dies never second
}

event_counts() { # NAME: the reasons of its warnings, each as often as it happened
    kc get events.events.k8s.io -o json | jq -r --arg name "$1" '.items[]
        | select(.regarding.kind == "WorkerGroup" and .regarding.name == $name and .type == "Warning")
        | .reason as $r | range(.series.count // .deprecatedCount // 1) | $r' | sort | xargs
}

# ---- the examples of how a group ends -------------------------------------------------------------------------------

asleep_state() {
    echo "$(group_condition asleep Suspended) $(group_pod_names asleep)"
}

test_ends() {
    local name
    # On a slow machine, its time to live could be over before anybody has seen that it succeeded.
    sed 's/ttlSecondsAfterFinished: .*/ttlSecondsAfterFinished: 3600/' "$suite_root/examples/ttl.yaml" |
        kc apply -f - >/dev/null
    for name in failure-rules rank-zero suspended; do kc apply -f "$suite_root/examples/$name.yaml" >/dev/null; done
    check "ttl.yaml succeeds" kc wait --for=condition=Succeeded wg/brief --timeout=600s
    kc apply -f "$suite_root/examples/ttl.yaml" >/dev/null
    check "failure-rules.yaml fails at once" eventually 60 is "True/FailurePolicy" group_condition rules Failed
    check "... with the code of rank 1, without a restart" is "1 42 0" echo \
        "$(failure rules '\(.rank) \(.exitCode)') $(group_status rules restarts)"
    check "rank-zero.yaml succeeds with its rank 0" kc wait --for=condition=Succeeded wg/zero --timeout=600s
    check "... and the others are stopped" eventually 30 is "zero-0-0" group_pod_names zero
    check "suspended.yaml has no pods" eventually 10 is "True/Suspended " asleep_state
    kc patch wg asleep --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "... until it is let begin" group_ready asleep 60
    check "... with its first attempt" is 1 group_status asleep attempt
    check "ttl.yaml is deleted after its time" kc wait --for=delete wg/brief --timeout=600s
    check "deleted, they leave nothing" group_delete rules zero asleep
}

# ---- containers that cannot start -----------------------------------------------------------------------------------

test_images() {
    run noimage 'exec sleep 1000' '.spec.template.spec.containers[0].image = "localhost/no-such-image:1"'
    run noconfig 'exec sleep 1000' \
        '.spec.template.spec.containers[0].env = [{name: "X", valueFrom: {configMapKeyRef: {name: "later", key: "x"}}}]'
    run nocommand 'true' '.spec.template.spec.containers[0].command = ["/no/such/program"]' '.spec.maxRestarts = 0'
    check "an image that does not exist: ImagePullFailed" group_reason noimage ImagePullFailed 60
    check "... names it" says "localhost/no-such-image:1" group_message noimage Ready
    check "... in an event, too" eventually 5 matches ImagePullFailed group_events noimage
    kc patch wg noimage --type json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":\"$image\"}]" >/dev/null
    check "... the right image: it runs" group_ready noimage 60
    check "a ConfigMap that is missing: ContainerConfigError" group_reason noconfig ContainerConfigError 60
    check "... names it" says "later" group_message noconfig Ready
    kc create configmap later --from-literal=x=1 >/dev/null
    check "... made: it runs" group_ready noconfig 90
    check "... in the first attempt" is 1 group_status noconfig attempt
    check "a program that is not in the image: said so" eventually 60 says "/no/such/program" \
        kc get wg nocommand -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message} {.status.lastFailure.message}'
    group_delete noimage noconfig nocommand
}

# ---- evicted, and out of memory -------------------------------------------------------------------------------------

test_evicted() {
    local node
    run moved 'exec sleep 1000' '.spec.maxRestarts = 0'
    group_ready moved 60 >/dev/null
    evict moved-1-0
    check "a pod is evicted: the group restarts, though it has no restarts" eventually 60 is "moved-0-1 moved-1-1" group_pod_names moved
    check "... because that does not count" eventually 10 is "1 0 EvictionByEvictionAPI" group_counts moved
    check "... it becomes Ready" group_ready moved 60
    node=$(node_of moved-0-1)
    check "a node is drained" kc drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=600s
    check "... the group runs on the other one" eventually 90 is True/Running group_condition moved Ready
    check "... all of it" is "" nodes_but moved "$node"
    check "... at no cost" matches "^[2-9] 0 EvictionByEvictionAPI$" group_counts moved
    kc uncordon "$node" >/dev/null
    group_delete moved
}

test_out_of_memory() {
    run hungry 'exec dd if=/dev/zero of=/dev/null bs=400M count=1' '.spec |= (.replicas = 1 | .restartPolicy = "Never")' \
        '.spec.template.spec.containers[0].resources.limits.memory = "64Mi"'
    check "a container takes more memory than it may have: Failed" \
        kc wait --for=condition=Failed wg/hungry --timeout=600s
    check "... and it is said why" is "0 137 OOMKilled" failure hungry '\(.rank) \(.exitCode) \(.reason)'
    group_delete hungry
}

# ---- a node that fails ----------------------------------------------------------------------------------------------

node_of() { # POD
    kc get pod "$1" -o 'jsonpath={.spec.nodeName}'
}

test_node() {
    local lost began
    run moves 'exec sleep 1000' '.spec |= (.replicas = 3 | .placement = {strategy: "StrictPack", nodeLostSeconds: 10})'
    group_ready moves 60 >/dev/null
    lost=$(node_of moves-0-0)
    run apart 'exec sleep 1000' '.spec.placement = {strategy: "StrictSpread", nodeLostSeconds: 10}'
    run patient 'exec sleep 1000' \
        ".spec.placement.nodeLostSeconds = 600 | .spec.template.spec.nodeSelector = {\"kubernetes.io/hostname\": \"$lost\"} | .spec.replicas = 1" \
        'del(.spec.template.spec.containers[0].resources.limits)' \
        '.spec.template.spec.tolerations = [{key: "node.kubernetes.io/unreachable", operator: "Exists"}]'
    group_ready apart 60 >/dev/null
    group_ready patient 60 >/dev/null
    began=$SECONDS
    "$devcluster" node stop "$lost" >/dev/null 2>&1
    check "a node is lost: the group starts again" eventually 90 is "moves-0-1 moves-1-1 moves-2-1" group_pod_names moves
    echo "# after $((SECONDS - began)) s; Kubernetes needs about 20 of them to notice"
    check "... on the other node" is "" nodes_but moves "$lost"
    check "... becomes Ready" group_ready moves 60
    check "... and says what happened" is "NodeLost $lost" failure moves '\(.reason) \(.node)'
    check "... which does not count" is "1 0" kc get wg moves -o 'jsonpath={.status.restarts} {.status.restartsCountTowardsMax}'
    check "one that needs two nodes waits" group_reason apart 'In(sufficient|feasible)' 60
    check "... and says why" matches "1 (not ready|of 2)" group_message apart Ready
    check "... holding no room" eventually 30 is "" group_pod_names apart
    check "one that is told to be patient is" is "patient-0-0" group_pod_names patient
    check "... and is not shown as Ready" eventually 60 matches "^False/" group_condition patient Ready
    check "... though nobody has deleted its pod" is "" kc get pod patient-0-0 -o 'jsonpath={.metadata.deletionTimestamp}'
    "$devcluster" node start "$lost" >/dev/null 2>&1
    check "the node is back: the one that waits runs" group_ready apart 60
    group_delete moves apart patient
}

nodes_but() { # NAME NODE: its pods on that node
    group_pods "$1" | awk -v node="$2" '$2 == node'
}

# ---- the operator dies ----------------------------------------------------------------------------------------------

test_operator_killed() {
    local n
    for n in 1 2 3; do
        run "born-$n" 'rendezvous & trap "exit 9" TERM; wait' '.spec.replicas = 2'
        eventually 20 says "born-$n" operator_log op
        nap 0 300
        operator_kill op
        operator_launch op --leader-elect=false
    done
    operator_ready op
    check "killed in the middle of creating groups: all become Ready" \
        kc wait --for=condition=Ready wg/born-1 wg/born-2 wg/born-3 --timeout=600s
    check "... with one pod a rank" is "born-1-0 born-1-1 born-2-0 born-2-1 born-3-0 born-3-1" kc get pods \
        -l app.kubernetes.io/managed-by=cadre -o 'jsonpath={.items[*].spec.hostname}'
    check "... without a restart" is "0 0 0" kc get wg -o 'jsonpath={.items[*].status.restarts}'
    operator_kill op
    kc exec born-2-1-0 -- kill 1 >/dev/null 2>&1 || true
    operator_start op --leader-elect=false
    check "a rank that ended while it was dead: the group starts again" eventually 60 matches "born-2-0-1 born-2-1-1" group_pod_names born-2
    check "... with the code in its status" is "1 9" failure born-2 '\(.rank) \(.exitCode)'
    check "... becomes Ready" group_ready born-2 60
    check "... and the others go on" is "0 0" echo "$(group_status born-1 restarts) $(group_status born-3 restarts)"
    group_delete born-1 born-2 born-3
}

suite_start e2e-groups --nodes 2 --gpus 4
suite_images example
operator_start op --leader-elect=false
test_environment
test_rendezvous
test_exits
test_ends
test_images
test_evicted
test_out_of_memory
test_node
test_operator_killed
check "nothing is left of all the groups" \
    eventually 60 is "" kc get wg,pods,services -A -l app.kubernetes.io/managed-by=cadre -o name
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
