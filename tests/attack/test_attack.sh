#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A client of one namespace, or a client without a token, attacks an installed operator, while clients of another namespace
# call all the time. Each of their calls must be answered. The operator must stay alive, healthy, below its memory limit,
# and the leader. The suite prints how long the calls took, how long they took without an attack, and how many turns of
# the operator's loop took longer than 2 ms and 10 ms.
# CADRE_ATTACK_SECONDS: how long each attack takes. CADRE_ATTACKS: a regular expression that chooses some of them.
# CADRE_ATTACK_DETAILS=1: print all output of the attacks.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2034
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"
# shellcheck source=/dev/null
. "$here/../lib/clients.sh"

seconds=${CADRE_ATTACK_SECONDS:-4}
clients_deadline=600 # every call must be answered. How fast depends on the machine
# Short attacks only have to leave the Lease alone. With the Lease of the chart, a slow machine alone could lose it.
lease=(--set 'extraArgs={--leader-elect-lease-duration=60s,--leader-elect-renew-deadline=50s}')
[[ $seconds -lt 30 ]] || lease=()
limit_mib=${CADRE_ATTACK_MEMORY_MIB:-512}

setup() {
    calls_install --set replicas=1 --set "resources.limits.memory=${limit_mib}Mi" "${lease[@]}"
    calls_user caller >/dev/null
    module_apply victim 2 /modules/accumulator.so Accumulator
    kc create namespace mallory >/dev/null
    group_namespace mallory
    calls_user mallory >/dev/null
    calls_token mallory >"$suite_dir/mallory"
    module_apply echo 1 /modules/echo.so Echo
    module_apply waits 1 /modules/echo.so Echo '.spec.template.spec.nodeSelector = {none: "such"}'
    module_apply mortal 1 /modules/echo.so Echo '.spec.maxRestarts = 1000'
    module_apply huge 10000 /modules/echo.so Echo '.spec.suspend = true' '.spec.workersPerReplica = 64'
    group_ready echo 60
    group_ready mortal 60
    group_namespace default
    group_ready victim 60
    operator_ip=$(operator_pods | cut -d ' ' -f 2)
}

operator_get() { # PATH...: pages of its HTTP server
    inside curl --silent --show-error --fail --max-time 60 "${@/#/http://$operator_ip:8080}"
}

# Prints the memory of the operator. Fails if the operator is not healthy.
resident_mib() {
    operator_get /healthz /metrics | awk '/^process_resident_memory_bytes/ { print int($2 / 1048576) }'
}

# loop_turns SECONDS: the number of turns of the loop that took at most that long; "+Inf": all turns.
loop_turns() {
    awk -v le="le=\"$1\"" '/^cadre_loop_turn_seconds_bucket/ && index($0, le) { print $2 }' "$suite_dir/metrics"
}

# "N turns, A over 2 ms, B over 10 ms" since the last time.
turns_since() {
    local all short brief
    operator_get /metrics >"$suite_dir/metrics"
    all=$(loop_turns +Inf) short=$(loop_turns 0.002) brief=$(loop_turns 0.01)
    echo "$((all - turns_all)) turns, $((all - short - turns_over_2)) over 2 ms, $((all - brief - turns_over_10)) over 10 ms"
}

turns_begin() {
    operator_get /metrics >"$suite_dir/metrics"
    turns_all=$(loop_turns +Inf)
    turns_over_2=$((turns_all - $(loop_turns 0.002))) turns_over_10=$((turns_all - $(loop_turns 0.01)))
}

any_runs() { # PID...
    local pid
    for pid in "$@"; do
        kill -0 "$pid" 2>/dev/null && return 0
    done
    return 1
}

# Reads the health and the memory of the operator until the attacks are over.
watch_operator() { # PID...
    local mib
    : >"$suite_dir/unhealthy"
    most_mib=0
    while any_runs "$@"; do
        mib=$(resident_mib 2>>"$suite_dir/unhealthy" || echo 0)
        [[ $mib -le $most_mib ]] || most_mib=$mib
        sleep 0.2
    done
}

attack_by_client() { # NAME
    "$devcluster" exec -- python3 "$here/attack.py" --host "$calls_host" --ca "$suite_dir/ca.pem" \
        --token "$suite_dir/mallory" --namespace mallory --seconds "$seconds" "$1" </dev/null
}

hostile=26 # cases in hostile.py

hostile_cases() {
    kc -n mallory logs -l cadre.dev/group=hostile -c worker --tail=-1 --max-log-requests 9 2>/dev/null | grep -o "case [0-9]* of $hostile:.*" |
        sort -u -k 2,2n
}

all_hostile_cases() {
    [[ $(hostile_cases | wc -l) -eq $hostile ]]
}

# Each rank of a group misbehaves in another way (hostile.py). The ranks are forked, because 26 interpreters that start would
# themselves be an attack.
attack_by_workers() {
    group_namespace mallory
    kc create configmap hostile -n mallory "--from-file=$here/hostile.py" "--from-file=$here/peer.py" >/dev/null
    container_apply hostile 1 ".spec.workersPerReplica = $hostile" '.spec.worker = {python: "hostile", workingDir: "/code", preload: ["json"]}' \
        '.spec.template.spec |= (.volumes = [{name: "code", configMap: {name: "hostile"}}]
            | .containers[0].volumeMounts = [{name: "code", mountPath: "/code"}]
            | .containers[0].resources = {requests: {cpu: "10m"}}
            | .containers[0].image = "localhost/cadre-python:dev")'
    eventually 90 all_hostile_cases || {
        hostile_cases
        return 1
    }
    hostile_cases
    kc -n mallory delete wg hostile --wait=false >/dev/null
    echo "{\"cases\": $hostile}"
}

# A client calls the group while its worker is stopped and killed, in turns.
attack_by_kills() {
    local caller pod signal
    group_namespace mallory
    pod=$(group_pod_names mortal)
    attack_by_client kills &
    caller=$!
    while any_runs "$caller"; do
        for signal in STOP KILL; do
            worker_signal "$pod" "$signal" 2>/dev/null || sleep 0.1 # the worker has not started again yet
        done
    done
    wait "$caller"
}

attack_start() { # NAME
    local run=attack_by_client
    case $1 in workers | kills) run=attack_by_$1 ;; esac
    "$run" "$1" >"$suite_dir/attack.$1" 2>&1 &
    attack_pids+=($!)
}

attack_ended() { # NAME PID
    wait "$2" || {
        cat "$suite_dir/attack.$1"
        kc -n cadre-system logs -l app.kubernetes.io/component=operator --tail=20
        return 1
    }
}

quantiles() {
    report '"p50 \(.p50Ms) ms, p99 \(.p99Ms) ms"' --since "$clients_since" | tr -d '"'
}

# The process that wrote the last metrics, and whether it led.
process_and_lead() {
    awk '/^process_start_time_seconds/ { start = $2 } /^leader_election_master_status/ { leads = $2 } END { print start, leads }' \
        "$suite_dir/metrics"
}

lives_on() {
    kc -n cadre-system get pods -l app.kubernetes.io/component=operator \
        -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}'
}

leads_on() {
    kc -n cadre-system logs -l app.kubernetes.io/component=operator --tail=-1 | grep -c 'the lease is lost' || true
}

below_limit() {
    [[ $most_mib -le $((limit_mib * 8 / 10)) ]] || {
        echo "$most_mib MiB of $limit_mib MiB"
        return 1
    }
}

# attack NAME TEXT [NAME TEXT]...: one attack, or several at the same time.
attack() {
    local begun i turns names=() texts=()
    attack_pids=()
    for ((i = 1; i < $#; i += 2)); do
        [[ ${!i} =~ ${CADRE_ATTACKS:-.} ]] || continue
        names+=("${!i}")
        texts+=("${*:i+1:1}")
    done
    [[ ${#names[@]} -gt 0 ]] || return 0
    clients_since=$(wc -l <"$suite_dir/calls")
    turns_begin
    for i in "${names[@]}"; do attack_start "$i"; done
    watch_operator "${attack_pids[@]}"
    for i in "${!names[@]}"; do check "${texts[i]}" attack_ended "${names[i]}" "${attack_pids[i]}"; done
    begun=$(date +%s.%N)
    check "... others are answered afterwards" eventually 20 calls_answered "$begun"
    check "... and were all the time" is '[0,0,0,null]' report '[.failed, .lost, .wrong, .firstFailure]' --since "$clients_since"
    check "... health was answered" equals "" "$(<"$suite_dir/unhealthy")"
    check "... memory is below four fifths of the limit" below_limit
    turns=$(turns_since) || turns="no metrics"
    check "... it was not restarted, and leads" is "$first_process" process_and_lead
    for i in "${names[@]}"; do
        [[ -z ${CADRE_ATTACK_DETAILS-} ]] || sed 's/^/# /' "$suite_dir/attack.$i"
        echo "# $i: $(tail -n 1 "$suite_dir/attack.$i")"
    done
    echo "# ${names[*]}: $(quantiles), $most_mib MiB, $turns"
}

suite_cluster e2e-attack --nodes 1 --gpus 8
calls_images=(python)
setup
clients_start victim/0 victim/1
turns_begin
first_process=$(process_and_lead)
sleep "$seconds" # the time of the measurement
echo "# alone: $(quantiles), $(resident_mib) MiB, $(turns_since)"
attack info "group.info of 640,000 ranks, over and over, by 16 clients that read nothing" posts "... by HTTP"
attack hoard "answers of 4 MiB for 50 clients that read nothing"
attack calls "4,096 waiting calls of each of 64 clients, which then hang up at once"
attack ahead "calls that wait for a later attempt, before a group that is called all the time"
attack flood "clients that ignore HOLD"
attack hellos "strangers whose HELLO never ends"
attack silent "connections without a byte" slow "requests that arrive byte by byte"
attack sessions "2,000 clients that do nothing"
attack handshakes "TLS handshakes without a request" tokens "made-up tokens"
attack bodies "POSTs of 100 KiB, on 400 connections"
attack texts "requests of 8 MiB, as JSON"
attack documents "malformed batches" frames "frames that break RFC 6455" crumbs "pings, texts and pieces of a byte"
attack kills "workers that are stopped and killed while they are called"
attack workers "workers that break the protocol"
check "it was not restarted, and never lost the lease" is "0 0" echo "$(lives_on) $(leads_on)"
check "the clients end" clients_stop
check "during all attacks, no call of theirs failed or was lost" is "[0,0,0]" report '[.failed, .lost, .wrong]'
suite_end
