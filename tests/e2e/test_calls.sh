#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls, end to end. The chart installs the operator with two replicas. Groups run the modules of examples/ in a namespace
# with Pod Security restricted. Clients call from outside the cluster (kubectl-cadre) and from inside (HTTP, websocket).
# The suite compares values with the feature table in docs/testing.md. Then it tests failures: wrong clients and calls,
# workers, agents and operators that die, and groups that cannot start.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2016
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"

# Modules that misbehave. They are built as docs/modules.md says, and come from a ConfigMap, because no image needs them.
bad_modules() {
    local name files=()
    for name in misbehaving other_abi; do
        cc -std=c11 -O2 -D_GNU_SOURCE -I"$suite_root/sdk/c/include" -fPIC -shared -s -o "$suite_dir/$name.so" \
            "$suite_root/tests/unit/modules/$name.c"
        files+=("--from-file=$suite_dir/$name.so")
    done
    kc create configmap modules "${files[@]}"
}

mounted='.spec.template.spec |= (.volumes = [{name: "modules", configMap: {name: "modules"}}]
    | .containers[0].volumeMounts = [{name: "modules", mountPath: "/more"}])'
one_try='.spec.maxRestarts = 0'
gpu='.spec.template.spec.containers[0].resources.limits = {"nvidia.com/gpu": 1}'
spread='.spec.placement.strategy = "Spread"'

accumulators() { # NAME REPLICAS [FILTER...]
    module_apply "$1" "$2" /modules/accumulator.so Accumulator "${@:3}"
}

command_of() { # SCRIPT: a filter that lets the container run the script in a shell
    jq -rn --arg script "$1" '".spec.template.spec.containers[0].command = \(["/bin/sh", "-c", $script])"'
}

# The suite applies all groups at once, so that they start while it calls the first ones.
groups_that_run() {
    accumulators accumulator 4 "$gpu" "$spread"
    accumulators one 1
    accumulators two 2 "$gpu"
    accumulators pair 2 '.spec.restartPolicy = "Worker"'
    accumulators eight 4 '.spec.workersPerReplica = 2'
    module_apply actor 4 /modules/dispatch.so TestActor '.spec.worker.init = {x: 2}'
    module_apply counter 1 /modules/counter.so Counter '.spec.restartPolicy = "Never"'
}

groups_that_end() {
    container_apply plain 2 '.spec.workersPerReplica = 2' \
        "$(command_of 'echo "I am $RANK, here $LOCAL_RANK of $LOCAL_WORLD_SIZE, of $WORLD_SIZE"')"
    container_apply dies 1 '.spec.maxRestarts = 1' "$(command_of 'echo "attempt $CADRE_ATTEMPT"; echo last words; exit 3')"
    module_apply nomodule 1 /modules/none.so None "$one_try"
    module_apply noclass 1 /modules/counter.so Clock "$one_try"
    module_apply noobject 1 /more/misbehaving.so Failing "$one_try" "$mounted"
    module_apply otherabi 1 /more/other_abi.so Any "$one_try" "$mounted"
    module_apply noworker 1 /modules/counter.so Counter "$one_try" \
        '.spec.template.spec.containers[0].env = [{name: "PATH", value: "/nowhere"}]'
    container_apply nocommand 1
    accumulators badmesh 2 '.spec.worker.meshes = [{name: "train", dims: [{name: "dp", size: 3}]}]'
    accumulators toobig 1 '.spec.template.spec.containers[0].resources.limits = {"nvidia.com/gpu": 64}'
}

# ---- what comes back ------------------------------------------------------------------------------------------------

test_values() {
    check "groups of modules become Ready" kc wait --for=condition=Ready --timeout=600s \
        wg/accumulator wg/one wg/two wg/pair wg/eight wg/actor wg/counter
    check "ranks are on both nodes" is "2 2" group_nodes accumulator
    check "S0-7: a group of two: kubectl cadre info shows both ranks and the methods" \
        eventually 10 matches '2 of 2 ranks.*0 +yes +1 +two-0-0 +n[12].*1 +yes +1 +two-1-0 +n[12].*get_value +ONE_TO_ALL +ALL' \
        cadre info two
    check "... readyWorkers counts them" is 2 group_status two readyWorkers
    check "S0-5, S1-2: a new accumulator" is 0 cadre call one get_value --rank 0
    check "... add and get without waiting: in the order sent" is "$(printf '%s\n' 10 10 15)" answers one \
        '{"method": "add", "args": {"x": 10}, "rank": 0}' '{"method": "get_value", "rank": 0}' \
        '{"method": "add", "args": [5], "rank": 0}'
    check "S0-8: an argument for each rank" is "[1, 4]" cadre call two add --per-rank '[1,3]'
    check "S0-9: one for all" is "[10, 11]" cadre call pair add 10
    check "S1-3: four ranks" is "[1, 2, 3, 4]" cadre call accumulator add --per-rank '[1,1,1,1]'
    check "... one for all" is "[11, 12, 13, 14]" cadre call accumulator add 10
    check "S1-9: eight ranks, two in a pod" is "[10, 11, 12, 13, 14, 15, 16, 17]" cadre call eight add '{"x": 10}'
    check "S1-8a: ONE_TO_ALL" is "[5,5,5,5]" called actor '{"method": "foo_one_to_all", "args": {"x": 1, "y": 2}}'
    check "S1-8f: ALL_TO_ALL" is "[8,10,12,14]" called actor \
        '{"method": "foo_all_to_all", "args": {"x": [1, 2, 3, 4], "y": [5, 6, 7, 8]}}'
    check "... by the command line" is "[8, 10, 12, 14]" cadre call actor foo_all_to_all '{"x": [1, 2, 3, 4], "y": [5, 6, 7, 8]}'
    check "S1-11: RANK_ZERO gives one result" is 5 called actor '{"method": "foo_rank_zero", "args": {"x": 1, "y": 2}}'
    check "the client may choose another mode" is "[3,6,9,12]" called actor \
        '{"method": "foo_one_to_all", "perRank": [[0, 1], [1, 3], [2, 5], [3, 7]]}'
    check "S3-4: two increments" is "$(printf '%s\n' 1 2 2)" answers counter '{"method": "increment", "rank": 0}' \
        '{"method": "increment", "rank": 0}' '{"method": "get_value", "rank": 0}'
    check "what a rank prints has its number in front" says "[rank 1] " kc logs --tail=-1 accumulator-1-0
    check "kubectl cadre logs shows all ranks" matches '\[rank 0\].*\[rank 3\]' sorted cadre logs accumulator
}

sorted() {
    "$@" | sort
}

# ---- who may call, and what ------------------------------------------------------------------------------------------

call_as() { # TOKEN
    rpc 1 group.call '{"method": "get_value"}' | TOKEN=$1 post one
}

test_clients() {
    kc create serviceaccount nobody >/dev/null
    check "POST with a token: 200" matches '^200 .*"result":\[15\]' call_as "$TOKEN"
    check "... without: 401" matches "^401 .*token" call_as ""
    check "... with a token for another audience: 401" matches "^401 " call_as "$(calls_token caller https://elsewhere)"
    check "... with a token for the API server: 401" matches "^401 " call_as "$(kc create token caller)"
    check "... with nonsense: 401" matches "^401 " call_as "nonsense"
    check "... of one who may not: 403, and what is missing" matches "^403 .*workergroups/call" \
        call_as "$(calls_token nobody)"
    check "kubectl cadre call as a ServiceAccount of the namespace that may" is "[15]" \
        cadre call one get_value --service-account caller
    check "... as one that may not" says "workergroups/call" cadre call one get_value --service-account nobody
    check "the rights that docs/calls.md lists for one user" rights_of_the_page
    check "... are enough for her to call" is "[15]" alice call one get_value --service-account caller
    check "... and for info" says "1 of 1 ranks" alice info one --service-account caller
    check "... not for tokens of others" says "is forbidden" alice call one get_value --service-account nobody
    check "... nor for other Services" says "services/proxy" \
        kc get --raw /api/v1/namespaces/kube-system/services/none/proxy/ --as alice
    check "kubectl cadre ca: what the operator's certificate is from" is "$(<"$suite_dir/ca.pem")" cadre ca
    check "a websocket without a token is refused" matches '^refused 401' refused_websocket
    check "an unknown path: 404" matches "^404 " post_to /v1/nothing
    check "GET: 426" matches "^426 " post_to /v1/namespaces/default --get
}

rights_of_the_page() {
    sed -n '/^### Rights/,/^```$/p' "$suite_root/docs/calls.md" | sed '1,/^```yaml/d; /^```$/d' |
        sed "s/namespace: ml/namespace: $ns/" | kc apply -f -
    kc config view --raw -o json | jq '.users[0].user.as = "alice"' >"$suite_dir/alice"
}

alice() {
    cadre "$@" --kubeconfig "$suite_dir/alice"
}

refused_websocket() {
    rpc 1 group.call '{"method": "get_value"}' | TOKEN='' talk one
}

post_to() { # PATH [CURL-ARGUMENTS...]
    "$devcluster" exec -- curl --silent --show-error --max-time 600 --cacert "$suite_dir/ca.pem" --output /dev/null \
        --write-out '%{http_code} ' --header "Authorization: Bearer $TOKEN" --header "Content-Type: application/json" --data '{}' "${@:2}" \
        "https://$calls_host:9443$1"
}

test_wrong_calls() {
    check "an unknown group: named" matches "^-32007 .*nowhere" called nowhere '{"method": "add", "args": [1]}'
    check "an unknown method: named, with those that there are" matches "^-32007 .*sub.*add" called one '{"method": "sub"}'
    check "a list of the wrong length: no rank gets anything" matches "^-32602 .*3.*4" called accumulator \
        '{"method": "add", "perRank": [1, 1, 1]}'
    check "... by the command line" matches "3.*4" cadre call accumulator add --per-rank '[1,1,1]'
    check "... which exits with an error" exits 1 cadre call accumulator add --per-rank '[1,1,1]'
    check "... indeed none" is "[11,12,13,14]" called accumulator '{"method": "get_value"}'
    check "an argument that is missing" matches "needs an argument 'x'" called one '{"method": "add"}'
    check "a member that is misspelt" matches "^-32602 .*arg" called one '{"method": "add", "arg": [1]}'
    check "JSON that is none" matches '"code":-32700' broken_json
    check "a group that waits, and a client that does not: why" matches "^-32015 .*toobig" called toobig \
        '{"method": "add", "args": [1], "whenNotReady": "Refuse"}'
    check "a deadline: the ranks that are missing" matches "^-32003 .*" called toobig \
        '{"method": "add", "args": [1], "timeoutMs": 300}'
    check "group.info by HTTP" matches '"worldSize":8,"connected":8,"ready":true' info_of eight
    check "a request above the cap of HTTP: 413" matches "^413 " long_post
    check "a message above the cap of a websocket: 1009" matches "^closed 1009" long_message
    check "... after which others are served" \
        is 2 called counter '{"method": "get_value", "timeoutMs": 300000, "rank": 0}'
}

broken_json() {
    echo '{"jsonrpc": "2.0", ' | post one
}

info_of() {
    rpc 1 group.info '{}' | post "$1"
}

long_post() {
    head -c 1100000 /dev/zero | tr '\0' ' ' | post one
}

long_message() {
    { head -c 70000000 /dev/zero | tr '\0' ' ' && echo x; } | talk one
}

# ---- groups that cannot start ----------------------------------------------------------------------------------------

failure() { # NAME FIELDS: of lastFailure, on one line
    kc get wg "$1" -o json | jq -r ".status.lastFailure | \"$2\""
}

ends_with() { # NAME EXIT-CODE TEXT
    kc wait --for=condition=Failed "wg/$1" --timeout=600s &&
        is "$2" failure "$1" '\(.exitCode)' && says "$3" failure "$1" '\(.message)'
}

test_ends() {
    check "a plain command: Succeeded" kc wait --for=condition=Succeeded wg/plain --timeout=600s
    check "... each process had its ranks" says "[rank 3] I am 3, here 1 of 2, of 4" kc logs --tail=-1 plain-1-0
    check "maxRestarts is used up: Failed" kc wait --for=condition=Failed wg/dies --timeout=600s
    check "... after one restart" is "True/MaxRestartsExceeded 1 2" echo \
        "$(group_condition dies Failed) $(group_status dies restarts) $(group_status dies attempt)"
    check "... in the same pod" is "dies-0-0" group_pod_names dies
    check "... with rank, code and the last lines" matches "^0 dies-0-0 n[12] 3 Error.*last words" \
        failure dies '\(.rank) \(.pod) \(.node) \(.exitCode) \(.reason) \(.message)'
    check "... kubectl cadre why says so" matches "last words" cadre why dies
    check "an unknown module" ends_with nomodule 65 "module /modules/none.so: No such file or directory"
    check "an unknown class" ends_with noclass 65 "no class Clock; it has Counter"
    check "a constructor that fails" ends_with noobject 66 "no weights at /weights/model.bin"
    check "another ABI" ends_with otherabi 65 "was built for ABI 4, this cadre-worker speaks 3"
    check "an image without cadre-worker" ends_with noworker 127 "cadre-worker"
    check "nothing to run: CommandRequired" group_reason nocommand CommandRequired
    check "... kubectl cadre why says what to do" matches "worker" cadre why nocommand
    check "a mesh that does not fit: MeshMismatch" group_reason badmesh MeshMismatch
    check "... with the numbers" matches "dp 3.*2" group_message badmesh Ready
    check "kubectl cadre why of one that does not fit" matches "nvidia.com/gpu" cadre why toobig
    check "a call to one that has failed: refused" matches "^-32015 .*dies" called dies '{"method": "add"}'
}

# ---- workers that die ------------------------------------------------------------------------------------------------

pod_uids() {
    kc get pods -l "cadre.dev/group=$1" -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'
}

restarted() { # GROUP RESTARTS ATTEMPT
    is "$2 $3" echo "$(group_status "$1" restarts) $(group_status "$1" attempt)"
}

test_worker_dies() {
    local before node began
    before=$(pod_uids accumulator)
    node=$(kc get pod accumulator-2-0 -o 'jsonpath={.spec.nodeName}')
    worker_signal accumulator-2-0 STOP
    later accumulator '{"method": "add", "args": [1], "timeoutMs": 300000}'
    began=$(date +%s%3N)
    worker_signal accumulator-2-0 KILL
    check "a worker is killed: its pending call fails at once, by rank, node and exit code" \
        matches "rank 2 of default/accumulator .*on node $node.*code 137.*\"exitCode\":137" came
    check "the next call waits for the restart, and its state is fresh" is "[1, 2, 3, 4]" \
        cadre call accumulator add --per-rank '[1,1,1,1]' --timeout 300s
    echo "# after $(($(date +%s%3N) - began)) ms, the backoff of up to 1 s included"
    check "RESTARTS 1, ATTEMPT 2" eventually 10 restarted accumulator 1 2
    check "... shown by kubectl get" matches "accumulator .* 1 +[0-9]" kc get wg accumulator
    check "... Ready" group_ready accumulator 30
    check "... in the same pods" is "$before" pod_uids accumulator
    check "... lastFailure tells" is "2 accumulator-2-0 $node 137" failure accumulator '\(.rank) \(.pod) \(.node) \(.exitCode)'
    check "a call for the attempt before is refused" matches "^-32009 " called accumulator \
        '{"method": "get_value", "attempt": 1}'
}

test_one_worker_dies() {
    worker_signal pair-1-0 KILL
    check "restartPolicy Worker: only that rank is fresh" eventually 30 is "[10,1]" called pair '{"method": "get_value"}'
    check "... in the same pods" is "pair-0-0 pair-1-0" group_pod_names pair
    check "... counted" eventually 10 matches "^1 [0-9]+$" kc get wg pair -o 'jsonpath={.status.restarts} {.status.attempt}'
    check "... Ready again" group_ready pair 30
}

test_actor_dies() {
    worker_signal counter-0-0 KILL
    check "S3-8: killed for good: later calls fail, and say so" eventually 20 matches "^-32015 .*counter" \
        called counter '{"method": "get_value"}'
    check "... Failed" is "True/WorkerFailed" group_condition counter Failed
    check "... by the command line, too" exits 1 cadre call counter get_value
}

test_agent_dies() {
    local others node
    others=$(pod_uids accumulator | grep -v accumulator-1-)
    node=$(kc get pod accumulator-1-0 -o 'jsonpath={.spec.nodeName}')
    container_kill default accumulator-1-0 worker
    check "an agent is killed: that index has a new pod" eventually 60 says "accumulator-1-1 $node" group_pods accumulator
    check "... the others keep theirs" is "$others" other_uids
    check "... the group becomes Ready" group_ready accumulator 60
    check "... and is called" is "[0,1,2,3]" called accumulator '{"method": "get_value", "timeoutMs": 300000}'
}

other_uids() {
    pod_uids accumulator | grep -v accumulator-1-
}

# A real shortage of memory: the kernel kills the worker, and not the agent beside it.
test_out_of_memory() {
    container_apply hungry 2 '.spec.worker.command = ["sh", "-c",
        "if [ $RANK$CADRE_ATTEMPT = 11 ]; then exec dd if=/dev/zero of=/dev/null bs=400M count=1; fi; exec sleep 1000"]' \
        '.spec.template.spec.containers[0].resources.limits = {memory: "64Mi"}'
    check "a worker takes more memory than its pod may have: restarted in its pod" eventually 90 is \
        "1 1 OOMKilled hungry-0-0 hungry-1-0" hungry_state
    check "... and it is known which one" is "1 137" kc get wg hungry -o 'jsonpath={.status.lastFailure.rank} {.status.lastFailure.exitCode}'
    check "... it becomes Ready" group_ready hungry 60
    evict hungry-1-0
    check "a pod is evicted: that does not count" eventually 90 is \
        "2 1 EvictionByEvictionAPI hungry-0-1 hungry-1-1" hungry_state
    check "... it becomes Ready again" group_ready hungry 60
    group_delete hungry
}

hungry_state() {
    echo "$(group_counts hungry) $(group_pod_names hungry)"
}

# ---- operators that die ----------------------------------------------------------------------------------------------

# Makes one call through each replica, and prints how many calls kubectl cadre top counts meanwhile.
top_of_all() {
    local name ip
    top_begin actor foo_one_to_all 2
    while read -r name ip; do
        calls_at "$ip"
        called actor '{"method": "foo_one_to_all", "args": [1, 2]}' >/dev/null || return 1
    done < <(operator_pods)
    calls_at ""
    top_seen | jq '.[0]'
}

top_inside() {
    "$devcluster" exec -- "$kubectl_cadre" top actor --namespace "$ns" --server "wss://$calls_host:9443" \
        --ca-file "$suite_dir/ca.pem" --token "$TOKEN" --interval 100ms
}

test_two_operators() {
    local name ip
    while read -r name ip; do
        calls_at "$ip"
        check "calls through $name" is "[5,5,5,5]" called actor '{"method": "foo_one_to_all", "args": [1, 2]}'
    done < <(operator_pods)
    calls_at ""
    check "kubectl cadre top: the calls of both" eventually 10 is 2 top_of_all
    check "... which it names" eventually 10 says "(all replicas)" cadre top --interval 100ms
    check "... also inside of the cluster" eventually 10 says "(all replicas)" top_inside
}

test_operator_dies() {
    local name ip pids attempt
    read -r name ip < <(operator_pods)
    pids=$(worker_pids actor)
    attempt=$(group_status actor attempt)
    worker_signal actor-3-0 STOP
    calls_at "$ip"
    later actor '{"method": "foo_one_to_all", "args": [1, 2]}'
    container_kill cadre-system "$name" operator
    check "the leader is killed in the middle of a call: the client hears of it" matches "^(closed|lost)" came
    worker_signal actor-3-0 CONT
    calls_at "$(operator_pods | awk -v name="$name" '$1 != name { print $2 }')"
    check "... the other one serves meanwhile" is "[5,5,5,5]" called actor \
        '{"method": "foo_one_to_all", "args": [1, 2], "timeoutMs": 300000}'
    calls_at "$ip"
    check "... and the killed one when it is back" eventually 60 is "[5,5,5,5]" called actor \
        '{"method": "foo_one_to_all", "args": [1, 2], "timeoutMs": 5000}'
    calls_at ""
    check "... the workers have run on" is "$pids" worker_pids actor
    check "... the leader decides about their group" group_decide actor
    check "... in the same attempt, Ready" is "$attempt True/Running" echo \
        "$(group_status actor attempt) $(group_condition actor Ready)"
    worker_signal one-0-0 KILL
    check "... and a worker that dies afterwards is restarted" eventually 60 restarted one 1 2
}

test_operators_away() {
    local pids
    pids=$(worker_pids actor)
    kc -n cadre-system scale deployment cadre-operator --replicas=0 >/dev/null
    eventually 30 is "" operator_pods
    check "no operator: the workers run on" is "$pids" worker_pids actor
    check "... kubectl cadre says that none is there" eventually 20 says "no endpoints available" \
        cadre call actor foo_one_to_all '[1, 2]' --timeout 5s
    kc -n cadre-system scale deployment cadre-operator --replicas=2 >/dev/null
    check "... they dial in again" eventually 30 is "[5,5,5,5]" called actor '{"method": "foo_one_to_all", "args": [1, 2]}'
    check "... the same ones" is "$pids" worker_pids actor
    check "... without a restart" is 0 group_status actor restarts
}

# ---- changes ---------------------------------------------------------------------------------------------------------

change() { # NAME SPEC
    kc patch wg "$1" --type merge -p "{\"spec\": $2}" >/dev/null
}

test_changes() {
    change two '{"worker": {"init": {"start": 100}}}'
    check "another init: processes that have it" eventually 30 is "[100,101]" called two '{"method": "get_value"}'
    check "... in a new attempt, which is not a restart" is "2 0" \
        echo "$(group_status two attempt) $(group_status two restarts)"
    change two '{"suspend": true}'
    check "suspended: calls are refused" eventually 30 matches "^-32015 .*suspended" called two '{"method": "get_value"}'
    change two '{"suspend": false, "replicas": 1}'
    check "resumed with another size" eventually 30 is "[100]" called two '{"method": "get_value"}'
}

# ---- groups that clients make ------------------------------------------------------------------------------------

# made LIFETIME: the params of group.create for a copy of group "one".
made() {
    kc get wg one -o json | jq -c --arg lifetime "$1" '{lifetime: $lifetime, workerGroup: {metadata: {name: "made"}, spec}}'
}

# ask METHOD PARAMS: sends a request by HTTP, and prints the result or the error.
ask() {
    rpc 1 "$1" "$2" | post one | sed 's/^200 //' | jq -rc 'if .error then "\(.error.code) \(.error.message)" else .result end'
}

no_group() { # NAME
    ! kc get wg "$1" >/dev/null 2>&1
}

test_made() {
    check "group.create: a user who may not create WorkerGroups is refused" \
        matches "^-32012 .*may not create WorkerGroups in namespace default.*-edit" ask group.create "$(made Detached)"
    kc create role maker --verb=create,delete --resource=workergroups.cadre.dev >/dev/null
    kc create rolebinding maker --role=maker --serviceaccount=default:caller >/dev/null
    check "... else it is made" matches '"name":"made".*"lifetime":"Detached"' ask group.create "$(made Detached)"
    check "... and can be called at once" is "[7]" called made '{"method": "add", "args": [7]}'
    check "... it says who made it" is system:serviceaccount:default:caller \
        kc get wg made -o 'jsonpath={.metadata.annotations.cadre\.dev/created-by}'
    check "... the same request again finds it" matches '"name":"made"' ask group.create "$(made Detached)"
    check "... another one does not" matches "^-32008 .*made" ask group.create "$(made Detached | jq -c '.workerGroup.spec.replicas = 2')"
    check "group.delete" is null ask group.delete '{"group": "made"}'
    check "... deletes it" eventually 30 no_group made
    check "what the schema refuses comes back with the API server's words" matches "spec.replicas" \
        ask group.create "$(made Detached | jq -c '.workerGroup.spec.replicas = -1')"
    check "a POST has no session for a group to go with" matches "^-32602 .*Detached" ask group.create "$(made Session)"
    check "a group for a session" matches '"lifetime":"Session"' in_session "$(made Session)"
    check "... goes with it" eventually 30 no_group made
}

in_session() { # PARAMS
    rpc 1 group.create "$1" | talk one
}

# ---- references ------------------------------------------------------------------------------------------------------

test_references() {
    local ref kept
    ref=$(cadre put one 5)
    check "kubectl cadre put: a reference" says "cadre:1:" echo "$ref"
    check "... whose object is with its owner" is 5 cadre get one "$ref"
    check "... ranks of another group on both nodes fetch it from there" is "[15, 16, 17, 18, 19, 20, 21, 22]" \
        cadre call eight add "$ref"
    kept=$(cadre call eight get_value --keep)
    check "call --keep: results stay with their ranks" says "cadre:1:" echo "$kept"
    check "... and go from rank to rank" is "[30, 32, 34, 36, 38, 40, 42, 44]" cadre call eight add "$kept" --dispatch all-to-all
    check "... or are got" is "[15, 16, 17, 18, 19, 20, 21, 22]" cadre get eight "$kept"
    cadre free one "$ref" >/dev/null
    check "what was freed is not found" matches "free|not found|NOT_FOUND" cadre call eight add "$ref"
}

# ---- the end ---------------------------------------------------------------------------------------------------------

test_deleted() {
    check "S1-12: deleted groups leave nothing" group_delete accumulator one two pair eight actor counter plain dies \
        nomodule noclass noobject otherabi noworker nocommand badmesh toobig
    check "... no pods and no Services" \
        eventually 30 is "" kc get wg,pods,services -l app.kubernetes.io/managed-by=cadre -o name
    check "a call to one of them: not found" \
        eventually 10 matches "^-3200(7|10) .*accumulator" called accumulator '{"method": "get_value"}'
    check "the operators have logged no error" is "" operator_errors
}

operator_errors() {
    kc -n cadre-system logs -l app.kubernetes.io/component=operator --tail=-1 | grep '"level":"error"'
}

suite_start e2e-calls --nodes 2 --gpus 4
calls_install --set crds.install=false
kc label namespace default pod-security.kubernetes.io/enforce=restricted >/dev/null
calls_user caller >/dev/null
bad_modules >/dev/null
TOKEN=$(calls_token caller)
groups_that_run
groups_that_end
test_values
test_clients
test_wrong_calls
test_made
test_references
test_ends
test_worker_dies
test_one_worker_dies
test_actor_dies
test_two_operators
test_operator_dies
test_agent_dies
test_out_of_memory
test_changes
test_operators_away
test_deleted
suite_end
