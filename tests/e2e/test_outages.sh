#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Outages of the operator, and of what it needs, do not end running groups. Groups of both runtimes and a group on bundles run
# on their own node, and clients call their ranks all the time. The suite takes away one thing after the other, for longer
# than nodeLostSeconds, and gives it back. Each time, no pod is created again, no rank restarts, every call is answered once or
# fails with a named error, decisions go on, and kubectl get shows the truth.
# Prints TAP; lines with # say how long something took. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run
# a cluster.
#   CADRE_OUTAGE_SECONDS=N   how long something is away; default: 8. With 600, the suite takes three hours. From 30 on, the
#                            chart sets the Lease and the tolerations; below, they are shorter, so that nothing
#                            waits for them.
#   CADRE_OUTAGES=REGEX      only the outages whose function matches
# shellcheck disable=SC2034,SC2154
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
# shellcheck source=/dev/null
. "$here/../lib/clients.sh"
# shellcheck source=/dev/null
. "$here/../lib/outage.sh"

seconds=${CADRE_OUTAGE_SECONDS:-8} # each sleep below is an outage that lasts that long
lost=5      # nodeLostSeconds of every group
heartbeat=3 # heartbeatSeconds of every group
apart=".spec.template.spec.nodeSelector = {\"kubernetes.io/hostname\": \"$outage_node\"}"
short=(--set 'extraArgs={--leader-elect-lease-duration=6s,--leader-elect-renew-deadline=4s,--leader-elect-retry-period=1s}'
    --set-json 'tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]')
[[ $seconds -lt 30 ]] || short=()
limits= # a filter that sets them, see setup

# A slow machine stands still at times. There, agents count as silent and as lost later, and the outages last longer. The
# suite knows the machine by the time since its start: a quiet one has installed the operator in less than a minute.
slow_machine() {
    local times=$((SECONDS / 75))
    [[ $times -gt 1 ]] || return 0
    [[ $times -lt 10 ]] || times=10
    lost=$((lost * times))
    heartbeat=$((heartbeat * times))
    [[ -n ${CADRE_OUTAGE_SECONDS:-} ]] || seconds=$((lost + 3))
    echo "# a slow machine: outages of $seconds s"
}

# The operator's replicas are on n1 and n2, and the groups on $outage_node. So a node can be lost without a rank.
setup() {
    kc label node n1 n2 place=operator >/dev/null
    calls_install --set crds.install=false --set nodeSelector.place=operator "${short[@]}"
    kc -n cadre-system patch deployment cadre-operator --type merge -p '{"spec": {"minReadySeconds": 1}}' >/dev/null
    slow_machine
    limits=".spec.maxRestarts = 1000 | .spec.heartbeatSeconds = $heartbeat"
    kc create serviceaccount caller >/dev/null
    kc create role caller --verb=create --resource=workergroups.cadre.dev/call >/dev/null
    kc create rolebinding caller --role=caller --serviceaccount=default:caller >/dev/null
    kc create role maker --verb=create --resource=placementgroups.cadre.dev >/dev/null
    kc create rolebinding maker --role=maker --serviceaccount=default:caller >/dev/null
    module_apply agents 2 /modules/accumulator.so Accumulator "$apart" "$limits" \
        ".spec.placement.nodeLostSeconds = $lost"
    module_apply slow 1 /modules/tasks.so Tasks '.spec.worker.init = {seconds: 4}' "$apart" "$limits" \
        ".spec.placement.nodeLostSeconds = $lost"
    plain_apply
    plg_apply pool 2 ".spec |= (.bundles[0].resources = {cpu: \"10m\"} | .nodeLostSeconds = $lost
        | .template = {spec: {nodeSelector: {\"kubernetes.io/hostname\": \"$outage_node\"}, terminationGracePeriodSeconds: 1,
            containers: [{name: \"worker\", image: \"$calls_image\", imagePullPolicy: \"IfNotPresent\"}]}})" >/dev/null
    group_apply bundles "$limits" '.spec |= (del(.runtime, .template) | .placement = {groups: [{name: "pool"}]}
        | .worker = {module: "/modules/accumulator.so", class: "Accumulator"})' >/dev/null
    check "the chart's default is two replicas, on two nodes" is 2 operators_nodes
    check "groups of both runtimes and one on bundles run" eventually 120 decided
    outage_over
    decide
    eventually 30 decided
    echo "# without an outage, a decision and its state are seen after $(seconds_since "$outage_ended")"
    TOKEN=$(kc create token caller --audience=cadre --duration=24h)
    eventually 30 secret_whole
    secret_save
    states_watch
    clients_makes=made outage_unplaced=made
    clients_start agents/0 agents/1 bundles/0 bundles/1
    eventually 30 kc get plg made >/dev/null
    made=$(made_uid)
}

made_uid() {
    kc get plg made -o 'jsonpath={.metadata.uid}'
}

made_is_renewed_after() { # MILLISECONDS of the epoch
    [[ $(made_uid) == "$made" ]] &&
        [[ $(kc get plg made -o 'jsonpath={.metadata.annotations.cadre\.dev/session-renewed}') -gt $1 ]]
}

operators_nodes() {
    kc -n cadre-system get pods -l app.kubernetes.io/component=operator -o \
        'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l
}

plain_apply() {
    group_apply plain '.spec.template.spec.containers[0] |= (.image = "'"$calls_image"'" | .imagePullPolicy = "IfNotPresent"
        | .command = ["sleep", "infinity"] | .resources = {requests: {cpu: "10m"}})' \
        '.spec.template.spec.terminationGracePeriodSeconds = 1' "$apart" '.spec.maxRestarts = 1000' \
        ".spec.placement.nodeLostSeconds = $lost" >/dev/null
}

# ---- the operator ----------------------------------------------------------------------------------------------------

# The call goes through the other replica, and takes longer than the death of the leader.
leader_dies_under_a_call() {
    local ip
    ip=$(operator_pods | sed -n '2s/.* //p')
    calls_at "$ip"
    later slow '{"method": "example_task", "args": [7], "timeoutMs": 300000}'
    kill -KILL "$(operator_process "$(operator_leader)")"
    outage_over
    check "the leader dies under a call through the other replica, which is answered" matches '"result":49' came
    calls_at ""
}

# Kills each replica in turn, about every five seconds. The kubelet waits longer and longer before it starts a replica
# again. If a replica is not back, the test deletes its pod.
operators_killed_in_turn() {
    local end=$((SECONDS + (seconds > 40 ? seconds / 2 : 20))) pod pid turn=0
    while [[ $SECONDS -lt $end ]]; do
        turn=$((turn + 1))
        pod=$(operator_pods | sort | sed -n "$((turn % 2 + 1))s/ .*//p")
        pid=$(operator_process "$pod")
        if [[ -n $pid ]]; then
            kill -KILL "$pid"
        else
            kc -n cadre-system delete pod "$pod" --force --grace-period=0 >/dev/null 2>&1 || true
        fi
        nap 3000 7000
    done
    outage_over
}

operators_scaled_to_zero() {
    kc -n cadre-system scale deployment/cadre-operator --replicas=0 >/dev/null
    eventually 60 is "" operator_pods
    sleep "$seconds"
    outage_over
    kc -n cadre-system scale deployment/cadre-operator --replicas=2 >/dev/null
}

leader_frozen() {
    local pid
    pid=$(operator_process "$(operator_leader)")
    kill -STOP "$pid"
    sleep $((seconds >= 30 ? 30 : seconds + 4)) # longer than its Lease
    kill -CONT "$pid" || true # perhaps the kubelet has already started it again
    outage_over
}

operators_short_of_cpu() {
    cpu_quota 2
    sleep "$seconds"
    cpu_quota max
    outage_over
}

# ---- its Secret ------------------------------------------------------------------------------------------------------

secret_entries() {
    kc -n cadre-system get secret cadre-keys -o json | jq -r '.data // {} | keys | join(" ")'
}

secret_whole() {
    is "ca.crt ca.key install.key tls.crt tls.key" secret_entries
}

# The keys that pods and their processes trust. The certificate may change.
secret_digest() {
    kc -n cadre-system get secret cadre-keys -o json | jq -c '.data | [."ca.crt", ."install.key"]' | sha256sum
}

secret_save() {
    kc -n cadre-system get secret cadre-keys -o json | jq 'del(.metadata.resourceVersion, .metadata.uid)' >"$suite_dir/secret"
}

secret_restore() {
    kc -n cadre-system create -f "$suite_dir/secret" >/dev/null 2>&1 || true # it may be there
    kc -n cadre-system replace -f "$suite_dir/secret" >/dev/null
}

secret_patch() { # DATA
    kc -n cadre-system patch secret cadre-keys --type merge -p "{\"data\": $1}" >/dev/null
}

secret_deleted_and_restart() {
    local digest
    digest=$(secret_digest)
    kc -n cadre-system delete secret cadre-keys >/dev/null
    kc -n cadre-system rollout restart deployment/cadre-operator >/dev/null
    operators_ready
    outage_over
    check "the Secret is deleted, and the operator restarted: the same keys are in it again" eventually 30 is "$digest" secret_digest
}

secret_deleted_and_all_pods() {
    local digest
    digest=$(secret_digest)
    kc -n cadre-system delete secret cadre-keys >/dev/null
    kc -n cadre-system delete pods -l app.kubernetes.io/component=operator --wait=false >/dev/null
    eventually 60 operators_ready
    outage_over
    check "the Secret is deleted, and then all operators at once: the same keys are in it again" \
        eventually 30 is "$digest" secret_digest
}

# No replica remembers the keys any more. The next operators must not end running groups. Until the keys are back, the operator
# cannot see the agents, and clients cannot trust the operator.
secret_lost() {
    local pids
    outage_states="|False/KeysChanged|False/PlacementGroupNotReady|False/Silent"
    outage_errors=', "FORBIDDEN"'
    mapfile -t pids < <(operators_processes)
    kill -STOP "${pids[@]}"
    kc -n cadre-system delete secret cadre-keys >/dev/null
    kill -KILL "${pids[@]}"
    eventually 60 secret_whole # with new keys, which take a while
    sleep "$seconds"
    secret_restore
    outage_over
}

rights_of_secret() { # JQ-FILTER
    kc -n cadre-system get role cadre-operator-keys -o json | jq "$1" | kc -n cadre-system replace -f - >/dev/null
}

# The operator may not create the Secret again. Running replicas continue with their keys. A replica that starts says what is
# missing.
secret_forbidden() {
    kc -n cadre-system get role cadre-operator-keys -o json | jq 'del(.metadata.resourceVersion)' >"$suite_dir/role"
    rights_of_secret '.rules[].verbs -= ["create", "patch", "update"]'
    kc -n cadre-system delete secret cadre-keys >/dev/null
    sleep "$seconds"
    kill -KILL "$(operator_process "$(operator_other)")"
    check "the operator may not make its Secret again: it says what is missing" eventually 60 says cadre-keys operators_errors
    kc -n cadre-system replace -f "$suite_dir/role" >/dev/null
    secret_restore
    outage_over
}

operators_errors() {
    operators_log | grep -E '"level":"(error|warn)"'
}

secret_halved() {
    local digest
    digest=$(secret_digest)
    secret_patch '{"install.key": null, "ca.key": null}'
    sleep "$seconds"
    outage_over
    check "half of the Secret is gone: it is put back" eventually 30 is "$digest" secret_digest
    check "... all of it" secret_whole
}

# The keys of another installation. Peers that connected with the former keys continue.
secret_of_another() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=another \
        -keyout "$suite_dir/other.key" -out "$suite_dir/other.crt" 2>/dev/null
    secret_patch "$(jq -n --arg crt "$(base64 -w0 <"$suite_dir/other.crt")" --arg key "$(base64 -w0 <"$suite_dir/other.key")" \
        --arg install "$(head -c 32 /dev/urandom | base64 -w0)" \
        '{"ca.crt": $crt, "ca.key": $key, "install.key": $install, "tls.crt": null, "tls.key": null}')"
    sleep $((seconds + 5))
    secret_restore
    outage_over
}

# ---- what it needs ---------------------------------------------------------------------------------------------------

apiserver_stopped() {
    "$devcluster" apiserver stop >/dev/null 2>&1
    sleep "$seconds"
    "$devcluster" apiserver start >/dev/null 2>&1
    outage_over
}

etcd_stopped() {
    "$devcluster" etcd stop >/dev/null 2>&1
    sleep "$seconds"
    "$devcluster" etcd start >/dev/null 2>&1
    outage_over
}

etcd_slow() {
    local end=$((SECONDS + 2 * seconds))
    while [[ $SECONDS -lt $end ]]; do
        "$devcluster" etcd freeze
        nap 2000 3000 # a leader must renew its Lease within four seconds
        "$devcluster" etcd thaw
        nap 100 500
    done
    outage_over
}

dns_gone() {
    "$devcluster" dns stop >/dev/null 2>&1
    sleep "$seconds"
    "$devcluster" dns start >/dev/null 2>&1
    outage_over
}

lease_deleted() {
    kc -n cadre-system delete lease cadre-operator >/dev/null
    sleep "$seconds"
    outage_over
}

lease_edited() { # as another installation would edit it that then dies
    kc -n cadre-system patch lease cadre-operator --type merge -p "{\"spec\": {\"holderIdentity\": \"somebody\",
        \"leaseDurationSeconds\": $seconds, \"renewTime\": \"$(date -u +%FT%T.%6NZ)\"}}" >/dev/null
    sleep "$seconds"
    outage_over
}

# ---- nodes and the network between them ------------------------------------------------------------------------------

node_of_leader_lost() {
    local node
    node=$(operator_node "$(operator_leader)")
    "$devcluster" node stop "$node" >/dev/null 2>&1
    outage_over # the other replica is there
    eventually 60 decide
    check "the leader's node is lost: the other replica decides" eventually 90 decided
    echo "# after $(seconds_since "$outage_ended")"
    sleep "$seconds"
    "$devcluster" node start "$node" >/dev/null 2>&1
    kc wait --for=condition=Ready "node/$node" --timeout=600s >/dev/null
    outage_over
}

# With a single replica, Kubernetes starts another one when it has given up the node.
node_of_only_operator_lost() {
    local node
    kc -n cadre-system scale deployment/cadre-operator --replicas=1 >/dev/null
    eventually 60 is 1 operators_count
    node=$(operator_node "$(operator_leader)")
    "$devcluster" node stop "$node" >/dev/null 2>&1
    check "the node of the only replica is lost: another one is started" eventually 180 operator_elsewhere "$node"
    outage_over
    eventually 60 decide
    check "... which decides" eventually 90 decided
    echo "# after $(seconds_since "$outage_ended")"
    "$devcluster" node start "$node" >/dev/null 2>&1
    kc wait --for=condition=Ready "node/$node" --timeout=600s >/dev/null
    kc -n cadre-system scale deployment/cadre-operator --replicas=2 >/dev/null
    outage_over
}

operators_processes() {
    local pod
    for pod in $(operator_pods | cut -d ' ' -f 1); do operator_process "$pod"; done
}

operators_count() {
    operator_pods | wc -l
}

operator_elsewhere() { # NODE
    [[ $(kc -n cadre-system get pods -l app.kubernetes.io/component=operator -o json | jq --arg node "$1" \
        '[.items[] | select(.spec.nodeName != $node and any(.status.conditions[]?; .type == "Ready" and .status == "True"))]
        | length') -gt 0 ]]
}

# The leader does not see the ranks, but the other replica does. Both reach the API server.
leader_parted_from_ranks() {
    local node
    node=$(operator_node "$(operator_leader)")
    "$devcluster" node part "$node" "$outage_node"
    sleep $((seconds + 2 * lost))
    "$devcluster" node join "$node" "$outage_node"
    outage_over
}

# ---- all of them -----------------------------------------------------------------------------------------------------

# taken FUNCTION NAME
taken() {
    [[ ! $1 =~ ${CADRE_OUTAGES:-.} ]] || outage "$2" "$1"
}

suite_start e2e-outages --nodes 3 --gpus 4
setup
taken leader_dies_under_a_call "the leader is killed"
kc -n cadre-system rollout restart deployment/cadre-operator >/dev/null
operators_ready
eventually 60 is 2 operators_count
check "a client has what it has made after a rolling update of the operator" \
    eventually 60 made_is_renewed_after "$(date +%s%3N)"
taken operators_killed_in_turn "each replica in turn is killed every five seconds"
taken operators_scaled_to_zero "no operator at all"
taken leader_frozen "the leader is frozen and woken"
taken operators_short_of_cpu "a CPU quota of 2 % on the operator"
taken secret_deleted_and_restart "the Secret deleted and the operator restarted"
taken secret_deleted_and_all_pods "the Secret deleted and all its pods with it"
taken secret_lost "the Secret lost with all who remember it, and brought back"
taken secret_forbidden "the Secret deleted where the operator may not make it"
taken secret_halved "half of the Secret"
taken secret_of_another "the keys of another installation in the Secret"
taken apiserver_stopped "no API server"
taken etcd_slow "a slow etcd"
taken etcd_stopped "no etcd"
taken dns_gone "no DNS"
taken leader_parted_from_ranks "the network between the leader and the ranks cut"
taken lease_deleted "the Lease deleted"
taken lease_edited "the Lease taken by somebody else"
taken node_of_leader_lost "the leader's node lost and back"
taken node_of_only_operator_lost "the node of the only operator lost and back"
check "the clients end" clients_stop
check "in all of it no call was lost, and none ran twice" is "[0,0]" report '[.lost, .wrong]'
echo "# calls: $(report '"\(.answered) answered, \(.failed) failed by name (\(.mayHaveRun) may have run), \(.lost + .wrong) lost"')"
suite_end
