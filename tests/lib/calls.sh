# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# An installed operator, groups that run modules, and the three ways to call them: kubectl-cadre, HTTP and a websocket.
# Needs suite.sh and group.sh.

calls_host=cadre-operator.cadre-system.svc
calls_image=localhost/cadre-example:dev
calls_images=() # other images of the suite, by their names in deploy/images.sh
kubectl_cadre=$(readlink -m "${CADRE_KUBECTL_CADRE:-$suite_root/build/ci/cli/kubectl-cadre}")
[[ -x $kubectl_cadre ]] || {
    echo "Bail out! $kubectl_cadre is not built: name the program in CADRE_KUBECTL_CADRE"
    exit 1
}

# calls_install HELM-ARGUMENTS...: installs the operator, and saves its CA for clients.
calls_install() {
    suite_images operator example "${calls_images[@]}"
    export HELM_CACHE_HOME=$suite_dir/helm HELM_CONFIG_HOME=$suite_dir/helm HELM_DATA_HOME=$suite_dir/helm
    "$devcluster" helm install cadre "$suite_root/charts/cadre" -n cadre-system --create-namespace --wait \
        --post-renderer "$suite_root/tests/lib/probes.sh" --timeout 600s \
        --set image.repository=localhost/cadre-operator --set image.tag=dev "$@" >"$tap_diag" 2>&1 ||
        bail_out "the operator does not come up"
    calls_ca >"$tap_diag" 2>&1 || bail_out "the operator does not tell its CA"
}

calls_ca() {
    eventually 20 "$devcluster" exec -- curl --silent --show-error --insecure --fail --max-time 60 \
        --output "$suite_dir/ca.pem" "https://$calls_host:9443/v1/ca"
}

# cadre ARGUMENTS...: kubectl cadre, for an admin, in the namespace default. Only a hang meets the deadline of a call.
cadre() {
    [[ $1 != call || " $* " == *" --timeout "* ]] || set -- "$@" --timeout 300s
    PATH=$(dirname "$kubectl_cadre"):$PATH kc cadre "$@"
}

# calls_user NAME: a ServiceAccount that may call groups of the namespace.
calls_user() {
    kc -n "$ns" create serviceaccount "$1"
    kc -n "$ns" create role "$1" --verb=create --resource=workergroups.cadre.dev/call
    kc -n "$ns" create rolebinding "$1" "--role=$1" "--serviceaccount=$ns:$1"
}

calls_token() { # SERVICEACCOUNT [AUDIENCE]
    kc -n "$ns" create token "$1" "--audience=${2:-cadre}"
}

# rpc ID METHOD PARAMS: prints a request. A call without a deadline gets one that only a hang meets.
rpc() {
    jq -cn --argjson id "$1" --arg method "$2" --argjson params "$3" \
        '(if $method == "group.call" then {timeoutMs: 300000} else {} end) as $limit
        | {jsonrpc: "2.0", id: $id, method: $method, params: ($limit + $params)}'
}

# calls_at IP: later requests go to that replica; "": to any replica.
calls_at() {
    calls_address=$1
}

calls_at ""
export TOKEN= # of the requests of post and talk

# post GROUP [CURL-ARGUMENTS...]: sends standard input by HTTP, with $TOKEN. Prints the status, then the answer.
post() {
    local url=https://$calls_host:9443/v1/namespaces/$ns/workergroups/$1
    shift
    if [[ -n ${TOKEN:-} ]]; then set -- --header "Authorization: Bearer $TOKEN" "$@"; fi
    if [[ -n $calls_address ]]; then set -- --resolve "$calls_host:9443:$calls_address" "$@"; fi
    "$devcluster" exec -- curl --silent --show-error --max-time 600 --cacert "$suite_dir/ca.pem" --data-binary @- \
        --header "Content-Type: application/json" --output "$suite_dir/answer" --write-out '%{http_code} ' "$@" "$url" &&
        cat "$suite_dir/answer"
}

# talk GROUP: sends the requests of standard input all at once over one websocket, with $TOKEN, and prints the answers.
talk() {
    "$devcluster" exec -- "$suite_root/tests/lib/jsonrpc.py" --host "$calls_host" --address "$calls_address" \
        --ca "$suite_dir/ca.pem" --path "/v1/namespaces/$ns/workergroups/$1" --sent "$suite_dir/sent"
}

# called GROUP PARAMS: calls by HTTP, and prints the result, or the code and message of the error.
called() {
    rpc 1 group.call "$2" | post "$1" | sed 's/^200 //' |
        jq -rc 'if .error then "\(.error.code) \(.error.message)" else .result end'
}

# answers GROUP PARAMS...: the same for calls over one websocket. Sends all of them without waiting, and prints in that order.
answers() {
    local group=$1 params id=0
    shift
    for params in "$@"; do rpc $((++id)) group.call "$params"; done | talk "$group" |
        jq -rc 'if .error then "\(.error.code) \(.error.message)" else .result end'
}

# later GROUP PARAMS: calls in the background. Returns when the proxy has read the call. `came` waits for the answer or the
# end of the connection.
later() {
    rm -f "$suite_dir/later" "$suite_dir/sent"
    {
        rpc 1 group.call "$2" | talk "$1" || true
    } >"$suite_dir/underway" 2>&1 && mv "$suite_dir/underway" "$suite_dir/later" &
    eventually 30 test -e "$suite_dir/sent"
}

came() {
    eventually 60 test -e "$suite_dir/later" && cat "$suite_dir/later"
}

# top_begin GROUP METHOD CALLS: starts kubectl cadre top, which measures again and again until it has counted so many calls of
# the method. Returns when the first measurement is over. `top_seen` waits for the end, and prints the sum: [calls, errors,
# slowest rank, how often that rank was the last].
top_begin() {
    rm -f "$suite_dir/top" "$suite_dir/top-sum"
    {
        cadre top "$1" --watch --interval 500ms -o json | tee "$suite_dir/top" |
            jq -nc --unbuffered --arg method "$2" --argjson calls "$3" 'first(foreach (inputs[] | select(.method == $method)) as $m
                ([0, 0, null, 0]; [.[0] + $m.ended, .[1] + $m.errors, ($m.slowest.rank // .[2]), .[3] + ($m.slowest.last // 0)];
                select(.[0] >= $calls)))' >"$suite_dir/top-sum" || true # top ends when nobody reads its output
    } 2>/dev/null &
    eventually 30 test -s "$suite_dir/top"
}

top_seen() {
    eventually 30 test -s "$suite_dir/top-sum" && cat "$suite_dir/top-sum"
}

# module_apply NAME REPLICAS MODULE CLASS [FILTER...]: a group that runs a module. Its pods pass Pod Security restricted.
module_apply() {
    local worker
    worker=$(jq -cn --arg file "$3" --arg class "$4" '{module: $file, class: $class}')
    container_apply "$1" "$2" ".spec.worker = $worker" "${@:5}"
}

# container_apply NAME REPLICAS [FILTER...]: the same, without a module and without a command.
container_apply() {
    group_apply "$1" ".spec |= (del(.runtime) | .replicas = $2 | .restartBackoff = {initialSeconds: 1, maxSeconds: 2})" \
        '.spec.template.spec |= (.terminationGracePeriodSeconds = 6
            | .securityContext = {runAsNonRoot: true, seccompProfile: {type: "RuntimeDefault"}})' \
        ".spec.template.spec.containers[0] |= (.image = \"$calls_image\" | .imagePullPolicy = \"IfNotPresent\"
            | .resources = {requests: {cpu: \"10m\", memory: \"16Mi\"}}
            | .securityContext = {allowPrivilegeEscalation: false, capabilities: {drop: [\"ALL\"]}})" "${@:3}" >/dev/null
}

# worker_signal POD SIGNAL: signals its worker process.
worker_signal() {
    kc -n "$ns" exec "$1" -c worker -- killall "-$2" cadre-worker
}

# worker_pids GROUP: the id of the worker process in each pod. A pod never uses an id twice.
worker_pids() {
    local pod
    for pod in $(group_pod_names "$1"); do
        echo "$pod" "$(kc -n "$ns" exec "$pod" -c worker -- pidof cadre-worker)"
    done
}

# container_kill NAMESPACE POD CONTAINER: kills all of its processes at once, as the kernel does when memory is short.
container_kill() {
    local node id
    node=$(kc -n "$1" get pod "$2" -o 'jsonpath={.spec.nodeName}')
    id=$(kc -n "$1" get pod "$2" -o "jsonpath={.status.containerStatuses[?(@.name==\"$3\")].containerID}")
    "$devcluster" exec --node "$node" -- ctr -n k8s.io tasks kill --signal SIGKILL "${id#containerd://}" 2>/dev/null
}

operator_pods() { # "name ip" a line, the leader first
    local leader
    leader=$(kc -n cadre-system get lease cadre-operator -o 'jsonpath={.spec.holderIdentity}')
    kc -n cadre-system get pods -l app.kubernetes.io/component=operator \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}' |
        awk -v leader="$leader" '{ print index(leader, $1) == 1 ? 0 : 1, $0 }' | sort | cut -d ' ' -f 2-
}

calls_explain() {
    local pod
    for pod in $(operator_pods | cut -d ' ' -f 1); do
        echo "--- the end of the log of $pod"
        kc -n cadre-system logs "$pod" --tail=15
    done
}

suite_explain+=(calls_explain)
