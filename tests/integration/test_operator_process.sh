#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The operator as a process: its messages about a configuration that cannot work, its probes and metrics, its rest, its end,
# and how several operators share the work. With a real API server.
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

# A lease for which nobody waits long; a machine that is busy renews it in time, too.
short_lease=(--leader-elect-lease-duration 8s --leader-elect-renew-deadline 6s --leader-elect-retry-period 1s)
# A lease that also a machine that stands still does not lose. The suite ends the lease of a dead leader itself.
long_lease=(--leader-elect-lease-duration 120s --leader-elect-renew-deadline 100s --leader-elect-retry-period 1s)

# ---- configuration --------------------------------------------------------------------------------------------------

# try ARGUMENTS...: runs the operator to its end, and prints its output. It must not hang.
try() {
    timeout --kill-after=5 600 "$devcluster" exec -- "$operator_program" --http-address 127.0.0.1:18999 "$@" 2>&1
}

# cannot_start TEXT ARGUMENTS...: the operator exits with 1, and its output contains the text.
cannot_start() {
    local text=$1
    shift
    exits 1 try "$@" >"$suite_dir/said" && says "$text" cat "$suite_dir/said" && is "" grep -E 'Sanitizer|runtime error' "$suite_dir/said"
}

# kubeconfig NAME USER [SERVER [CA-FILE]]: writes a kubeconfig for the cluster, and prints its path. USER is YAML.
kubeconfig() {
    cat >"$suite_dir/$1" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "${3:-https://172.30.0.1:6443}", certificate-authority: "${4:-$pki/ca.crt}"}}]
users: [{name: u, user: {$2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
YAML
    echo "$suite_dir/$1"
}

# A kubeconfig with an expired client certificate of the cluster's CA.
expired_kubeconfig() {
    local dir=$suite_dir/expired
    mkdir -p "$dir/db"
    : >"$dir/db/index"
    echo 01 >"$dir/db/serial"
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/key" -out "$dir/csr" \
        -subj /O=system:masters/CN=late 2>/dev/null
    cat >"$dir/conf" <<CONF
[ca]
default_ca = d
[d]
database = $dir/db/index
serial = $dir/db/serial
new_certs_dir = $dir/db
default_md = sha256
policy = p
[p]
O = optional
CN = supplied
CONF
    openssl ca -batch -config "$dir/conf" -cert "$pki/ca.crt" -keyfile "$pki/ca.key" -in "$dir/csr" -out "$dir/crt" \
        -startdate 20200101000000Z -enddate 20200102000000Z -notext 2>/dev/null
    kubeconfig expired.conf "client-certificate: $dir/crt, client-key: $dir/key"
}

test_config() {
    local file
    pki=$("$devcluster" exec -- printenv KUBECONFIG | xargs dirname)/pki
    check "no such kubeconfig: names it" cannot_start "/no/such/file does not exist" --kubeconfig /no/such/file
    echo 'one: [two' >"$suite_dir/broken"
    check "a kubeconfig that is not YAML: names it" cannot_start "$suite_dir/broken" --kubeconfig "$suite_dir/broken"
    : >"$suite_dir/empty"
    check "an empty kubeconfig: names it" cannot_start "$suite_dir/empty" --kubeconfig "$suite_dir/empty"
    check "a context that is not in it: names both" cannot_start "nowhere" --context nowhere
    file=$(kubeconfig noca "token: t" "" /no/ca.crt)
    check "a CA file that is missing: names it" cannot_start "/no/ca.crt" --kubeconfig "$file"
    file=$(kubeconfig nokey "client-certificate: $pki/ca.crt, client-key: /no/client.key")
    check "a key file that is missing: names it" cannot_start "/no/client.key" --kubeconfig "$file"
    file=$(expired_kubeconfig)
    check "an expired client certificate: says so" cannot_start "expired on 2020-01-02" --kubeconfig "$file" --check
    check "... and which file" says "expired/crt" try --kubeconfig "$file" --check
    file=$(kubeconfig nowhere "token: t" https://127.0.0.1:1)
    check "a server that does not answer: --check fails and names it" cannot_start "127.0.0.1:1" --kubeconfig "$file" --check
    check "rights that are missing: --check names them" cannot_start "FAIL  pods can be created" --check --kubeconfig "$(viewer_kubeconfig)"
    check "all rights: --check passes" exits 0 try --check
    check "an unknown option: exit status 2" exits 2 try --nonsense
    check "a wrong value: exit status 2, names what is allowed" says "must be true or false" try --leader-elect=perhaps
    check "... of a time" says "must be a time: whole numbers with h, m, s or ms" try --leader-elect-retry-period 1.5s
    check "times of the lease that do not go together: exit status 2" exits 2 try --leader-elect-renew-deadline 20s
    check "an IPv6 address without brackets: exit status 2" exits 2 try --advertise wss://::1:9443
    check "... says what to write" says "must be wss://HOST:PORT, or wss://[ADDRESS]:PORT for an IPv6 address" try --advertise wss://::1:9443
    check "an address that is none" cannot_start "nonsense" --http-address nonsense
}

# A kubeconfig of a ServiceAccount that may only read.
viewer_kubeconfig() {
    kc create serviceaccount viewer >/dev/null 2>&1
    kc create clusterrolebinding viewer --clusterrole=view --serviceaccount=default:viewer >/dev/null 2>&1
    kubeconfig viewer.conf "token: $(kc create token viewer)"
}

# ---- probes and metrics ---------------------------------------------------------------------------------------------

http_code() { # PATH
    operator_http op "$1" --output /dev/null --write-out '%{http_code}'
}

test_probes() {
    "$devcluster" apiserver stop >/dev/null 2>&1
    operator_launch op --leader-elect=false
    check "before its mirrors are complete it lives" eventually 15 is 200 http_code /healthz
    check "... but is not ready" is 503 http_code /readyz
    check "... and says what it waits for" says "waiting for the first list of" operator_http op /readyz
    "$devcluster" apiserver start >/dev/null 2>&1
    check "after it, it is ready" eventually 60 is 200 http_code /readyz
    check "other pages are not there" is 404 http_code /nonsense
}

metric_names() {
    operator_http op /metrics | sed -nE 's/^# TYPE ([^ ]+) .*/\1/p'
}

test_metrics() {
    local name
    group_apply counted >/dev/null
    group_ready counted >/dev/null
    for name in workqueue_depth workqueue_adds_total workqueue_retries_total workqueue_queue_duration_seconds \
        workqueue_work_duration_seconds controller_runtime_reconcile_total controller_runtime_reconcile_errors_total \
        controller_runtime_reconcile_time_seconds rest_client_requests_total leader_election_master_status \
        process_resident_memory_bytes process_cpu_seconds_total process_open_fds process_start_time_seconds; do
        check "the metric $name" matches "(^|[[:space:]])$name([[:space:]]|\$)" metric_names
    done
    check "requests are told apart by code, method and host" matches \
        'rest_client_requests_total\{code="201",host="172.30.0.1:6443",method="POST"\} [0-9]+' operator_http op /metrics
    group_delete counted
    test_alerts
}

# The series that the chart's alerts use, with the labels that the operator sets, such as "name{a="b"}".
alert_series() {
    HELM_CACHE_HOME=$suite_dir/helm HELM_CONFIG_HOME=$suite_dir/helm HELM_DATA_HOME=$suite_dir/helm \
        "$devcluster" helm template cadre "$suite_root/charts/cadre" --kube-version 1.30.0 \
        --set metrics.prometheusRule.enabled=true --show-only templates/prometheusrule.yaml >"$suite_dir/alerts" || return
    sed -n '/ expr:/,/ labels:/p' "$suite_dir/alerts" | grep -oE '[a-z_]+ *\{[^}]*\}' |
        sed -E 's/(namespace|pod)=~?"[^"]*"//g; s/[ ,]+/,/g; s/\{,/{/; s/,\}/}/' | sort -u
}

is_exported() { # NAME{LABEL}
    local label=${1#*\{}
    operator_http op /metrics | grep "^${1%%\{*}{" | grep -F -- "${label%\}}" && return
    operator_http op /metrics | grep "^${1%%\{*} " && [[ -z ${label%\}} ]]
}

test_alerts() {
    local series
    check "the chart's alerts look at turns of the loop and at the leader" is 3 eval 'alert_series | wc -l'
    while read -r series; do
        check "... $series is exported" is_exported "$series"
    done < <(alert_series)
}

# ---- at rest --------------------------------------------------------------------------------------------------------

requests() { # NAME [METHODS]
    operator_http "$1" /metrics | grep -E "^rest_client_requests_total.*method=\"(${2:-.*})\"" | awk '{ n += $NF } END { print n + 0 }'
}

# Five seconds in which it asks for nothing. They show that nothing happens, so there is no state to wait for.
asks_nothing() {
    local before
    before=$(requests op)
    sleep 5
    equals "$before" "$(requests op)"
}

# Ten seconds in which nothing wakes it up, for the same reason. A bookmark wakes it up once a minute for each kind that it
# watches.
sleeps() {
    local before
    before=$(operator_wakeups op)
    sleep 10
    equals "$before" "$(operator_wakeups op)"
}

test_rest() {
    group_apply resting '.spec.replicas = 4' >/dev/null
    group_apply waiting '.spec.replicas = 100' >/dev/null
    group_ready resting >/dev/null
    group_reason waiting Infeasible
    check "with nothing to do it asks the API server for nothing" eventually 60 asks_nothing
    check "... and sleeps" eventually 120 sleeps
    group_delete resting waiting
}

# ---- stopping -------------------------------------------------------------------------------------------------------

test_stop() {
    local i
    check "SIGTERM at rest: ends with 0, without a leak" operator_stop op
    operator_start op --leader-elect=false
    for ((i = 0; i < 5; i++)); do group_json "busy-$i" '.spec.replicas = 4'; done | kc apply -f - >/dev/null
    eventually 20 operator_said op "create pod"
    check "SIGTERM in the middle of five creations: ends with 0, without a leak" operator_stop op
    operator_start op --leader-elect=false
    for ((i = 0; i < 5; i++)); do group_ready "busy-$i" 60 >/dev/null; done
    check "what was begun is ended by the next" is "0 0 0 0 0" kc get wg -o 'jsonpath={.items[*].status.restarts}'
    check "SIGINT: the same" operator_stop op INT
    "$devcluster" apiserver stop >/dev/null 2>&1
    operator_launch op --leader-elect=false
    eventually 15 is 200 http_code /healthz
    check "SIGTERM before its mirrors are complete, without an API server: the same" operator_stop op
    "$devcluster" apiserver start >/dev/null 2>&1
    group_delete busy-0 busy-1 busy-2 busy-3 busy-4
}

# ---- one namespace --------------------------------------------------------------------------------------------------

test_namespaced() {
    kc create namespace mine >/dev/null
    kc create namespace theirs >/dev/null
    operator_start op --leader-elect=false --namespace mine
    group_namespace theirs
    group_apply other >/dev/null
    group_namespace mine
    group_apply own '.spec.replicas = 24' >/dev/null
    check "--namespace: a group there runs" group_ready own
    check "... one elsewhere is not touched" is "" kc -n theirs get wg other -o 'jsonpath={.status.conditions}'
    group_delete own
    group_namespace theirs
    group_delete other
    group_namespace mine
    kc -n theirs run full --image=none --restart=Never \
        --overrides='{"spec":{"containers":[{"name":"full","image":"none","resources":{"limits":{"nvidia.com/gpu":"4"}}}]}}' >/dev/null
    eventually 10 is Running kc -n theirs get pod full -o 'jsonpath={.status.phase}'
    group_apply own '.spec.replicas = 24' >/dev/null
    check "... but what runs elsewhere counts as room taken" group_reason own Insufficient
    group_delete own
    kc -n theirs delete pod full --wait=false >/dev/null
    check "it ends without a leak" operator_stop op
    # While the pod of that operator runs, an installation for all namespaces ignores its namespace.
    kc -n mine run op-0 --image=none --labels \
        app.kubernetes.io/part-of=cadre,app.kubernetes.io/component=operator,cadre.dev/watches=mine >/dev/null
    eventually 10 is Running kc -n mine get pod op-0 -o 'jsonpath={.status.phase}'
    operator_start op --leader-elect=false
    group_apply own >/dev/null
    group_namespace theirs
    group_apply other >/dev/null
    check "an operator for all namespaces beside one for a namespace: a group elsewhere runs" group_ready other
    check "... it ignores a group there" is "" kc -n mine get wg own -o 'jsonpath={.status.conditions}{.status.attempt}'
    check "... and the log says why" says "this installation ignores namespace mine" operator_log op
    group_delete other
    group_namespace mine
    group_delete own
    group_namespace default
    kc -n mine delete pod op-0 --wait=false >/dev/null
    check "it ends without a leak" operator_stop op
}

# ---- several --------------------------------------------------------------------------------------------------------

holder() {
    kc get lease cadre-operator -o 'jsonpath={.spec.holderIdentity}'
}

is_leader() { # NAME
    matches 'leader_election_master_status\{[^}]*\} 1' operator_http "$1" /metrics
}

leader() { # which of the two leads
    local name
    for name in a b; do if is_leader "$name" >/dev/null; then echo "$name"; fi; done
}

test_leaders() {
    local first second began
    POD_NAME=a operator_start a --listen 127.0.0.1:19441 "${long_lease[@]}"
    POD_NAME=b operator_start b --listen 127.0.0.1:19442 "${long_lease[@]}"
    check "of two one leads" eventually 20 matches '^[ab]$' leader
    first=$(leader)
    second=$([[ $first == a ]] && echo b || echo a)
    check "... whom the Lease names" matches "^${first}_" holder
    group_apply led >/dev/null
    check "the groups are served" group_ready led
    check "the other one writes nothing" is 0 requests "$second" "POST|PATCH|DELETE"
    check "... but is ready: its mirrors are complete" operator_http "$second" /readyz --fail
    check "the leader stops" operator_stop "$first"
    began=$SECONDS
    check "a lease that is released is taken over at once" eventually 6 is_leader "$second"
    echo "# after $((SECONDS - began)) s"
    group_apply led '.spec.replicas = 3' >/dev/null
    check "... and the groups are served" eventually 20 is 3 group_status led readyReplicas
    POD_NAME=$first operator_start "$first" --listen "127.0.0.1:$([[ $first == a ]] && echo 19441 || echo 19442)" \
        "${long_lease[@]}"
    operator_kill "$second"
    kc patch lease cadre-operator --type merge -p '{"spec":{"leaseDurationSeconds":1}}' >/dev/null
    began=$SECONDS
    check "a leader that is killed is followed when its lease has ended" eventually 25 is_leader "$first"
    echo "# after $((SECONDS - began)) s"
    group_apply led '.spec.replicas = 2' >/dev/null
    check "... and the groups are served" eventually 20 is 2 group_status led readyReplicas
    check "... without a restart" is "0" group_status led restarts
    kc patch lease cadre-operator --type merge -p "$(theft)" >/dev/null
    check "a leader whose lease is taken says so" eventually 20 says "the lease is lost" operator_log "$first"
    check "... and does not lead" exits 1 is_leader "$first"
    check "... leaves the thief's lease alone" is thief holder
    check "... and goes on serving" operator_http "$first" /readyz --fail
    kc patch lease cadre-operator --type merge -p '{"spec":{"leaseDurationSeconds":1}}' >/dev/null
    check "a lease that nobody renews is taken over when it has ended" eventually 20 is_leader "$first"
    group_apply led '.spec.replicas = 1' >/dev/null
    check "... and the groups are served" eventually 20 is 1 group_status led readyReplicas
    kc delete lease cadre-operator >/dev/null
    check "a lease that is deleted is made again" eventually 20 matches "^${first}_" holder
    check "... by a leader that never stopped to lead" is_leader "$first"
    # In one patch, because the leader writes its own annotation when it renews.
    kc patch lease cadre-operator --type merge -p "{\"metadata\":{\"annotations\":{\"cadre.dev/watches\":\"team-a\"}},
        \"spec\":{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":5,\"renewTime\":\"$(date -u +%FT%T.%6NZ)\"}}" >/dev/null
    check "another installation with the same lease is named" eventually 20 says "another installation holds the Lease" \
        operator_log "$first"
    check "it leads again in the end" eventually 30 is_leader "$first"
    check "it ends without a leak" operator_stop "$first"
}

# The Lease of a thief, who asks for an hour and never renews it.
theft() {
    jq -cn --arg now "$(date -u +%FT%T.%6NZ)" '{spec: {holderIdentity: "thief", leaseDurationSeconds: 3600,
        acquireTime: $now, renewTime: $now, leaseTransitions: 0}}'
}

# An operator waits for a Lease that a thief holds. It believes the thief for a minute, so the wait runs beside the other
# cases.
theft_begin() {
    kc create namespace stolen >/dev/null
    kc -n stolen create secret generic cadre-keys >/dev/null
    theft | jq '. + {apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: {name: "cadre-operator"}}' |
        kc -n stolen create -f - >/dev/null
    POD_NAME=c operator_start c --namespace stolen --leader-elect-namespace stolen --listen 127.0.0.1:19443
}

theft_end() {
    check "a lease that nobody renews is taken over, whatever it says" eventually 90 is_leader c
    check "... and its holder is named" matches "its holder does not renew it.*thief" operator_log c
    check "it ends without a leak" operator_stop c
}

apiserver_pid() {
    local pid
    (
        eval "$("$devcluster" env)"
        read -r pid _ <"${KUBECONFIG%/*}/run/kube-apiserver.pid"
        echo "$pid"
    )
}

lost_count() {
    grep -c "the lease is lost" "$suite_dir/operator-op.log"
}

lost_again() { # COUNT: it has lost the Lease more often than that
    [[ $(lost_count) -gt $1 ]]
}

# The number of plans between the loss of the Lease and the next election.
plans_without_lease() {
    sed -n '/the lease is lost/,/"leading"/p' "$suite_dir/operator-op.log" | grep -c '"msg":"plan"' || true
}

# The Lease has ended, because its holder does not renew it.
lease_over() {
    kc get lease cadre-operator -o json |
        jq -e '(.spec.renewTime | sub("[.][0-9]+"; "") | fromdate) + .spec.leaseDurationSeconds + 1 < now'
}

# The API server falls silent while pods are being created: their requests hang for longer than the lease lasts.
test_lost() {
    local i apiserver began lost
    apiserver=$(apiserver_pid)
    operator_start op "${short_lease[@]}"
    eventually 20 is_leader op
    for ((i = 0; i < 5; i++)); do
        group_json "lost-$i" '.spec.replicas = 40' '.spec.template.spec.containers[0].resources = {}'
    done >"$suite_dir/lost.json"
    kc apply -f "$suite_dir/lost.json" >/dev/null &
    eventually 20 operator_said op "create pod"
    kill -STOP "$apiserver"
    check "a leader that cannot renew its lease does not lead any more, and says so" eventually 14 \
        says "the lease is lost" operator_log op
    check "... and goes on serving" operator_http op /healthz --fail
    kill -CONT "$apiserver"
    began=$SECONDS
    check "... it leads again when the API server answers" eventually 20 is_leader op
    echo "# after $((SECONDS - began)) s"
    wait %% || kc apply -f "$suite_dir/lost.json" >/dev/null # kubectl may have given up
    check "... and has decided nothing in between" is 0 plans_without_lease
    for ((i = 0; i < 5; i++)); do group_ready "lost-$i" 60 >/dev/null; done
    check "what was begun is ended" is "0 0 0 0 0" kc get wg -o 'jsonpath={.items[*].status.restarts}'
    lost=$(lost_count)
    kill -STOP "${operator_pid[op]}"
    group_apply frozen >/dev/null
    eventually 20 lease_over
    kill -CONT "${operator_pid[op]}"
    check "a leader that stood still notices it" eventually 10 lost_again "$lost"
    check "... leads again" eventually 20 is_leader op
    check "... and decides only then" is 0 plans_without_lease
    check "... about what came meanwhile" group_ready frozen
    check "it ends without a leak" operator_stop op
    group_delete lost-0 lost-1 lost-2 lost-3 lost-4 frozen
    kc delete lease cadre-operator >/dev/null
}

suite_start itest-process --nodes 0 --kwok 6 --gpus 4
theft_begin
test_config
test_probes
test_metrics
test_rest
test_stop
test_namespaced
test_lost
test_leaders
theft_end
suite_end
