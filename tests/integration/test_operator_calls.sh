#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two replicas of the operator with sanitizers, with agents and workers in real pods. The replicas run outside the cluster. A
# headless Service without a selector names them, so agents and workers connect as in an install. Operators, agents, workers,
# pods and a node die at random moments. Every process writes a witness file into a folder that all nodes share. It complains
# there if its rank was started twice in an attempt, or if it runs beside a process of another attempt.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2016
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"

seed=${CADRE_SEED:-$RANDOM}
RANDOM=$seed
declare -A address=([a]=172.30.0.3 [b]=172.30.0.4)
export POD_NAMESPACE=cadre-system

# ---- two operators that pods can reach ------------------------------------------------------------------------------

install_service() {
    local name
    kc create namespace cadre-system
    kc -n cadre-system create secret generic cadre-keys
    for name in a b; do "$devcluster" exec -- ip address add "${address[$name]}/16" dev br0 || return 1; done
    kc -n cadre-system apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: cadre-operator}
spec: {clusterIP: None, ports: [{name: calls, port: 9443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cadre-operator, labels: {kubernetes.io/service-name: cadre-operator}}
addressType: IPv4
ports: [{name: calls, port: 9443}]
endpoints: [{addresses: [${address[a]}]}, {addresses: [${address[b]}]}]
YAML
}

replica_launch() { # NAME
    POD_NAME=$1 operator_launch "$1" --listen "${address[$1]}:9443" --agent-image localhost/cadre-operator:dev \
        --agent-image-pull-policy IfNotPresent --leader-elect-lease-duration 8s --leader-elect-renew-deadline 6s \
        --leader-elect-retry-period 1s
}

leader() {
    kc -n cadre-system get lease cadre-operator -o 'jsonpath={.spec.holderIdentity}' | cut -d _ -f 1
}

other() { # NAME
    [[ $1 == a ]] && echo b || echo a
}

leads_now() { # NAME
    matches 'leader_election_master_status\{[^}]*\} 1' operator_http "$1" /metrics
}

one_leads() {
    leads_now a || leads_now b
}

# ---- witnesses ------------------------------------------------------------------------------------------------------

# The processes of most groups first run this script, which writes their witness file, and then the script of the case.
write_witness() {
    mkdir -p "$suite_dir/witness"
    chmod 777 "$suite_dir/witness"
    cat >"$suite_dir/witness/begin" <<'SH'
me=/witness/$CADRE_GROUP_UID.$RANK.$CADRE_ATTEMPT
wrong() { echo "$GROUP_NAME rank $RANK attempt $CADRE_ATTEMPT on $(hostname): $*" >>/witness/wrong; }
set -C
{ : >"$me"; } 2>/dev/null || wrong started twice
set +C
exec 9>>"$me"
flock -n 9 || wrong runs twice
for other in /witness/"$CADRE_GROUP_UID".*.*; do
    [ "${other##*.}" = "$CADRE_ATTEMPT" ] || [ "${other##*.}" = ip ] || flock -n -s "$other" true || wrong "beside $other"
done
getent ahostsv4 "$MASTER_ADDR" | awk '{ print $1; exit }' >"/witness/$CADRE_GROUP_UID.$RANK.$CADRE_ATTEMPT.ip"
echo "begun $CADRE_ATTEMPT"
SH
}

witnessed='.spec.template.spec |= (.volumes = [{name: "witness", hostPath: {path: "WITNESS"}}]
    | .containers[0].volumeMounts = [{name: "witness", mountPath: "/witness"}])'

# script_apply NAME REPLICAS SCRIPT [FILTER...]: a group whose processes write their witness file and run the script.
script_apply() {
    local command
    command=$(jq -rn --arg script ". /witness/begin; $3" '["/bin/sh", "-c", $script]')
    container_apply "$1" "$2" "${witnessed/WITNESS/$suite_dir/witness}" \
        ".spec.template.spec.containers[0].command = $command" "${@:4}"
}

forever='exec sleep infinity'

complaints() {
    cat "$suite_dir/witness/wrong" 2>/dev/null || true
}

# started GROUP ATTEMPT: how many ranks were started in that attempt.
started() {
    local uid
    uid=$(kc get wg "$1" -o 'jsonpath={.metadata.uid}')
    find "$suite_dir/witness" -name "$uid.*.$2" | wc -l
}

# masters GROUP ATTEMPT: the addresses that MASTER_ADDR had for its processes when they began, each once.
masters() {
    local uid
    uid=$(kc get wg "$1" -o 'jsonpath={.metadata.uid}')
    cat "$suite_dir/witness/$uid".*."$2.ip" | sort -u
}

pod_ip() { # POD
    kc get pod "$1" -o 'jsonpath={.status.podIP}'
}

process_kill() { # POD [SIGNAL]: signals its worker process, a sleep
    kc exec "$1" -c worker -- killall "-${2:-KILL}" sleep
}

# counters GROUP: "restarts attempt".
counters() {
    kc get wg "$1" -o 'jsonpath={.status.restarts} {.status.attempt}'
}

pod_uids() { # GROUP
    kc get pods -l "cadre.dev/group=$1" -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'
}

# ---- what runs ------------------------------------------------------------------------------------------------------

test_start() {
    module_apply served 2 /modules/accumulator.so Accumulator '.spec.placement.strategy = "Spread"' \
        '.spec.heartbeatSeconds = 20' # see test_leader_dies
    script_apply runs 2 "$forever" '.spec.placement.strategy = "Spread"' '.spec.maxRestarts = 100'
    script_apply three 2 "$forever" '.spec.workersPerReplica = 3'
    check "groups become Ready" kc wait --for=condition=Ready --timeout=600s wg/served wg/runs wg/three
    check "... each rank was started once" is "2 6" echo "$(started runs 1) $(started three 1)"
    check "... for whom MASTER_ADDR was rank 0's pod" is "$(pod_ip runs-0-0)" masters runs 1
    check "... readyWorkers counts processes" is "6 2" echo "$(group_status three readyWorkers) $(group_status three readyReplicas)"
    for name in a b; do
        calls_at "${address[$name]}"
        check "calls through replica $name" eventually 15 matches '^\[[0-9]+,[0-9]+\]$' called served '{"method": "add", "args": [1]}'
    done
    calls_at ""
}

# ---- operators that die ---------------------------------------------------------------------------------------------

# happens NUMBER: does something while the leader dies. Afterwards, all groups must become Ready, or be gone.
happens() {
    case $1 in
    0) script_apply "storm-$1" 2 "$forever" ;;
    1) process_kill "$(group_pod_names runs | cut -d ' ' -f 1)" ;;
    2)
        script_apply "storm-$1" 2 "$forever"
        nap 0 1000
        kc delete wg "storm-$1" --wait=false
        ;;
    3) kc delete pod "$(group_pod_names runs | cut -d ' ' -f 2)" --wait=false ;;
    4) kc patch wg runs --type merge -p "{\"spec\":{\"suspend\":true}}" && nap 0 1500 &&
        kc patch wg runs --type merge -p "{\"spec\":{\"suspend\":false}}" ;;
    esac
}

all_ready() {
    is "" not_ready && is "" kc get pods,services -l cadre.dev/group=storm-2 -o name
}

not_ready() {
    kc get wg -o json | jq -r '.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True") | not)
        | "\(.metadata.name) \([.status.conditions[]? | select(.type == "Ready")] | first | "\(.reason): \(.message)")"'
}

# Records the condition Ready of the group that nobody touches, each change on a line.
watch_ready() {
    "$devcluster" kubectl get wg served --watch --output-watch-events=false \
        -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{"\n"}' >"$suite_dir/ready" 2>/dev/null &
    watch_pid=$!
}

# After the death of a leader, a group is shown as Ready for three heartbeats, until its agents are connected again. On a
# slow machine, they need more than the usual ten seconds.
test_leader_dies() {
    local i dies pids
    pids=$(worker_pids served)
    watch_ready
    for ((i = 0; i < 5; i++)); do
        eventually 40 one_leads
        dies=$(leader)
        happens "$i" >/dev/null
        nap 0 2500
        check "$((i + 1)): the leader is killed, without a report of a sanitizer" operator_kill "$dies"
        replica_launch "$dies"
        check "... all groups become Ready" eventually 90 all_ready
    done
    operator_kill a
    operator_kill b
    process_kill "$(group_pod_names runs | cut -d ' ' -f 1)"
    nap 0 2500
    replica_launch a
    replica_launch b
    check "both are killed, and then a worker: all groups become Ready" eventually 90 all_ready
    check "nothing ran twice" is "" complaints
    check "a group that nobody touched runs on" is "$pids" worker_pids served
    check "... in the same attempt" is "0 1 True/Running" echo "$(counters served) $(group_condition served Ready)"
    kill "$watch_pid"
    check "... Ready all the time" is True sort -u "$suite_dir/ready"
    check "... and is called" eventually 20 matches '^\[[0-9]+,[0-9]+\]$' called served '{"method": "get_value"}'
    group_delete storm-0
}

# ---- agents, workers and pods that die -------------------------------------------------------------------------------

ready_in() { # GROUP ATTEMPT
    is "$2 True/Running" echo "$(group_status "$1" attempt) $(group_condition "$1" Ready)"
}

test_agent_dies() {
    local others node attempt
    attempt=$(group_status three attempt)
    others=$(pod_uids three | grep -v three-1-)
    node=$(kc get pod three-1-0 -o 'jsonpath={.spec.nodeName}')
    container_kill default three-1-0 worker
    check "an agent is killed: its index has a new pod on the same node" eventually 60 says "three-1-1 $node Running" group_pods three
    check "... the group goes on in the next attempt" eventually 60 ready_in three $((attempt + 1))
    check "... the other pod stayed" is "$others" eval 'pod_uids three | grep -v three-1-'
    check "... each rank was started once" is 6 started three $((attempt + 1))
}

test_rank_zero() {
    local attempt pod
    attempt=$(group_status three attempt)
    kc delete pod three-0-0 --wait=false >/dev/null
    check "rank 0's pod is deleted: the group goes on" eventually 60 ready_in three $((attempt + 1))
    pod=$(group_pod_names three | tr ' ' '\n' | grep three-0-)
    check "... for all ranks MASTER_ADDR is the new pod" is "$(pod_ip "$pod")" masters three $((attempt + 1))
}

test_exits() {
    script_apply flips 2 'echo "words of $CADRE_ATTEMPT"; exit $RANK' '.spec.maxRestarts = 2' \
        '.spec.restartBackoff = {initialSeconds: 1, maxSeconds: 1}'
    script_apply stubborn 2 'trap "" TERM; while :; do sleep 1; done'
    check "one rank exits with 0, the other with 1, again and again: Failed" \
        kc wait --for=condition=Failed --timeout=600s wg/flips
    check "... after maxRestarts" is "2 3 True/MaxRestartsExceeded" echo "$(counters flips) $(group_condition flips Failed)"
    check "... the culprit is named" is "1 1" echo "$(group_status flips lastFailure.rank) $(group_status flips lastFailure.exitCode)"
    check "... the pods are kept, as Completed" eventually 30 is "Succeeded Succeeded" kc get pods -l cadre.dev/group=flips \
        -o 'jsonpath={.items[*].status.phase}'
    check "... with the logs of all attempts" matches "words of 1.*words of 2.*words of 3" kc logs --tail=-1 flips-1-0
    check "a group that ignores SIGTERM runs" group_ready stubborn 60
    kc exec stubborn-1-0 -c worker -- killall -KILL sh || true
    check "... a rank of it dies: the others are killed after their grace time, and all run again" eventually 40 ready_in stubborn 2
    kc delete wg stubborn flips --wait=false >/dev/null
}

# With restartPolicy Worker, the attempts of the ranks differ, so there are no witness files.
test_apart() {
    local pid
    container_apply apart 2 '.spec.restartPolicy = "Worker"' \
        '.spec.template.spec.containers[0].command = ["/bin/sleep", "infinity"]'
    check "a group with restartPolicy Worker" group_ready apart 60
    pid=$(kc exec apart-0-0 -c worker -- pidof sleep)
    container_kill default apart-1-0 worker
    check "... an agent is killed: its index has a new pod, and the group is Ready" eventually 60 ready_in apart 2
    check "... there" is "apart-0-0 apart-1-1" group_pod_names apart
    process_kill apart-1-1
    check "... a process is killed: Ready again" eventually 40 ready_in apart 3
    check "... the other rank has run on" is "$pid" kc exec apart-0-0 -c worker -- pidof sleep
    kc delete wg apart --wait=false >/dev/null
}

# An agent that cannot find the operator: its pod is replaced again and again, and status and log say why.
test_never_comes() {
    script_apply lonely 1 "$forever" '.spec.placement.nodeLostSeconds = 5' \
        '.spec.template.spec.hostAliases = [{ip: "127.0.0.1", hostnames: ["cadre-operator.cadre-system.svc"]}]'
    check "an agent that never comes: its pod is replaced" eventually 60 says "lonely-0-1 " group_pods lonely
    check "... which is said" is AgentLost group_status lonely lastFailure.reason
    check "... and not counted" is 0 group_status lonely restartsCountTowardsMax
    check "... its log says why" eventually 20 says "operator at 127.0.0.1:9443: not reached" kc logs -l cadre.dev/group=lonely
    kc delete wg lonely --wait=false >/dev/null
}

# ---- what people do -------------------------------------------------------------------------------------------------

test_suspend() {
    local attempt
    attempt=$(group_status three attempt)
    kc patch wg three --type merge -p '{"spec":{"suspend":true}}' >/dev/null
    check "suspended: no pods" eventually 40 is "" group_pod_names three
    check "... Suspended" group_reason three Suspended
    kc patch wg three --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "resumed: the next attempt" eventually 60 ready_in three $((attempt + 1))
    attempt=$((attempt + 1))
    kc patch wg three --type merge -p '{"spec":{"workersPerReplica":1,"replicas":3}}' >/dev/null
    check "another spec: the next attempt, with other ranks" eventually 60 ready_in three $((attempt + 1))
    check "... each was started once" is "3 3" echo "$(started three $((attempt + 1))) $(group_status three readyWorkers)"
    check "... without a restart counted" is 0 group_status three restarts
    kc delete wg three --wait=false >/dev/null
}

test_short_lives() {
    local i
    for ((i = 0; i < 6; i++)); do
        script_apply brief 2 "$forever"
        nap 0 1000
        kc delete wg brief --wait=false >/dev/null
        eventually 60 group_gone brief || break
    done
    check "created and deleted within a second, six times: nothing is left" group_gone brief
}

rss_kib() { # NAME
    awk '/^VmRSS/ { print $2 }' "/proc/${operator_pid[$1]}/status"
}

cpu_ticks() { # NAME
    awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/${operator_pid[$1]}/stat"
}

succeeded() {
    kc get wg -o json | jq '[.items[] | select(.metadata.name | startswith("many-")) | select(any(.status.conditions[]?;
        .type == "Succeeded" and .status == "True"))] | length'
}

test_many() {
    local i leader ticks began=$SECONDS
    leader=$(leader)
    ticks=$(cpu_ticks "$leader")
    for ((i = 0; i < 30; i++)); do script_apply "many-$i" 1 'exit 0'; done
    check "thirty groups at once, more than there is room for: all succeed" eventually 240 is 30 succeeded
    echo "# after $((SECONDS - began)) s; the leader: $(rss_kib "$leader") KiB, $(($(cpu_ticks "$leader") - ticks)) ticks of CPU"
    for ((i = 0; i < 30; i++)); do echo "many-$i"; done | xargs "$devcluster" kubectl delete wg --wait=false >/dev/null
    check "... and go" eventually 90 is "" kc get pods -l cadre.dev/group -o 'jsonpath={.items[?(@.status.phase=="Succeeded")].metadata.name}'
}

# ---- a node dies -----------------------------------------------------------------------------------------------------

test_node_dies() {
    local attempt counted
    attempt=$(group_status runs attempt)
    counted=$(group_status runs restartsCountTowardsMax)
    kc patch wg runs --type merge -p '{"spec":{"placement":{"nodeLostSeconds":5}}}' >/dev/null
    "$devcluster" node stop n2 >/dev/null 2>&1
    check "a node dies: all of the group goes to the other one" eventually 120 is "n1 n1" eval \
        "kc get pods -l cadre.dev/group=runs -o 'jsonpath={.items[*].spec.nodeName}'"
    check "... in a later attempt" eventually 60 matches "True/Running" group_condition runs Ready
    check "... which is not counted" is "$counted" group_status runs restartsCountTowardsMax
    check "... lastFailure says so" matches "NodeLost|AgentLost" group_status runs lastFailure.reason
    check "... the attempt grew" test "$(group_status runs attempt)" -gt "$attempt"
    "$devcluster" node start n2 >/dev/null 2>&1
}

# ---- the end ---------------------------------------------------------------------------------------------------------

errors_of() { # NAME
    grep '"level":"error"' "$suite_dir/operator-$1.log" || true
}

secrets_in_logs() {
    grep -hoE '\\"(ticket|peerSecret)\\":\\"[^\\]{12}' "$suite_dir"/operator-*.log | head -n 3
}

test_end() {
    check "nothing ran twice, nor beside another attempt" is "" complaints
    group_delete runs served
    for name in a b; do
        check "replica $name has logged no error" is "" errors_of "$name"
        check "... and ends with 0, without a leak" operator_stop "$name"
    done
    check "no ticket is in a log" is "" secrets_in_logs
}

suite_start itest-calls --nodes 2 --gpus 4
echo "# CADRE_SEED=$seed"
suite_images operator example
install_service >"$tap_diag" 2>&1 || bail_out "the operator's Service cannot be made"
write_witness
calls_user caller >/dev/null
export TOKEN
TOKEN=$(calls_token caller)
replica_launch a
replica_launch b
eventually 30 one_leads
calls_ca
test_start
test_leader_dies
test_agent_dies
test_rank_zero
test_exits
test_apart
test_never_comes
test_suspend
test_short_lives
test_many
test_node_dies
test_end
suite_end
