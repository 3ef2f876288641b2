#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program cadre-local with real worker processes: calls over HTTP, exit codes. Arguments: cadre-local, cadre-agent,
# cadre-worker, accumulator.so, kubectl-cadre.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4 cli=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

# exit_code CODE TEXT ARGUMENT...: checks that the program ends with this code and prints this text.
exit_code() {
    local want=$1 text=$2 got=0
    shift 2
    "$local" "$@" >"$work/err" 2>&1 || got=$?
    [[ $got == "$want" ]] || fail "$*: exit code $got, not $want"
    grep -qF -- "$text" "$work/err" || fail "$*: does not say: $text"
}

call() {
    curl -sS -m 1200 --unix-socket "$work/socket" -H 'Authorization: Bearer x' \
        -H 'Content-Type: application/json' "http://x/v1/namespaces/lab/workergroups/acc" -d "$1"
}

stop() {
    local code=0
    kill -TERM "$pid"
    wait "$pid" || code=$?
    pid=
    [[ $code == 0 ]] || fail "told to stop: exit code $code"
}

local_start --namespace lab --group acc --processes 4 -- "$worker" --module "$module"
answer=$(call '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"add","perRank":[1,1,1,1]}}')
[[ $answer == '{"jsonrpc":"2.0","id":1,"result":[1,2,3,4]}' ]] || fail "per rank: $answer"
answer=$(call '{"jsonrpc":"2.0","id":2,"method":"group.call","params":{"method":"add","args":[10]}}')
[[ $answer == '{"jsonrpc":"2.0","id":2,"result":[11,12,13,14]}' ]] || fail "for all: $answer"
stop

# With nothing to do nobody uses the CPU: no pings are sent on a Unix socket while nobody waits.
local_start --namespace lab --group acc -- "$worker" --module "$module"
until_true grep -q "ready for calls" "$work/out" "$work/err"
agent_pid=$(pgrep -P "$pid")
rank_pid=$(pgrep -P "$agent_pid")
until_true asleep "$pid" "$agent_pid" "$rank_pid"
stop

# A manifest as for kubectl apply
cat >"$work/group.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: acc, namespace: lab}
spec:
  replicas: 2
  workersPerReplica: 2
  worker: {module: /modules/accumulator.so, class: Accumulator, init: {start: 5}, env: [{name: GREETING, value: hello}]}
  template: {spec: {containers: [{name: worker, image: none}]}}
---
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: shell}
spec:
  template:
    spec:
      containers:
      - name: worker
        command: [sh, -c, 'echo "$WORD and $RANK of $WORLD_SIZE"; exit 3', "0"]
        env: [{name: WORD, value: "yes"}]
YAML
: >"$work/err"
PATH=$(dirname "$worker"):$(dirname "$local"):$PATH "$cli" run -f "$work/group.yaml" --group acc --map "/modules=$(dirname "$module")" \
    --listen "unix:$work/socket" --agent "$agent" 2>"$work/err" &
pid=$!
until_true serves
answer=$(call '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"add","perRank":[1,1,1,1]}}')
[[ $answer == '{"jsonrpc":"2.0","id":1,"result":[6,7,8,9]}' ]] || fail "a group of a manifest: $answer"
answer=$("$cli" call "${patient[@]}" acc add 10 --namespace lab --server "unix:$work/socket" --token any)
[[ $answer == "[16, 17, 18, 19]" ]] || fail "the same by kubectl cadre call: $answer"
answer=$("$cli" call "${patient[@]}" acc add 1 --no-reply --namespace lab --server "unix:$work/socket" --token any)
[[ -z $answer ]] || fail "a call without a reply: $answer"
stop

for line in "run --help" "help run"; do
    # shellcheck disable=SC2086  # two words
    [[ $(PATH=$(dirname "$local"):$PATH "$cli" $line) == "Usage: cadre-local"* ]] || fail "kubectl cadre $line prints no help of a run"
done

socket=(--listen "unix:$work/socket" --agent "$agent")
exit_code 7 "exit code 7" "${socket[@]}" --processes 2 -- sh -c 'exit 7'
exit_code 0 "taking calls" "${socket[@]}" --no-spin -- true
exit_code 127 "cannot run $work/none" --listen "unix:$work/socket" --agent "$work/none" -- true
exit_code 69 "cannot listen" --listen "unix:$work/no/socket" -- true
exit_code 64 "must be 127.0.0.1:PORT" --listen 0.0.0.0:1 -- true
exit_code 64 "must be a number" --processes 0 -- true
exit_code 64 "name the command for each rank after --" --processes 2
exit_code 3 "yes and 0 of 1" "${socket[@]}" -f "$work/group.yaml" --group shell
exit_code 65 "name one of its WorkerGroups with --group: acc, shell" "${socket[@]}" -f "$work/group.yaml"
exit_code 65 "with --group: acc, shell" "${socket[@]}" -f "$work/group.yaml" --group none
exit_code 65 "the module /modules/accumulator.so: No such file or directory; --map PREFIX=DIRECTORY says where" \
    "${socket[@]}" -f "$work/group.yaml" --group acc
printf 'kind: WorkerGroup\nmetadata: {name: a}\nspec: {replicas: two}\n' >"$work/bad.yaml"
exit_code 65 "bad.yaml: WorkerGroup a: spec.replicas" "${socket[@]}" -f "$work/bad.yaml"
printf 'kind: WorkerGroup\nmetadata: {name: a}\nspec: {}\n' >"$work/bad.yaml"
exit_code 65 "nothing says what to run" "${socket[@]}" -f "$work/bad.yaml"
# A local run refuses what the API server or the operator would refuse
refuses() { # TEXT SPEC
    printf '%s\n' 'apiVersion: cadre.dev/v1alpha1' 'kind: WorkerGroup' 'metadata: {name: a}' "spec: $2" >"$work/bad.yaml"
    exit_code 65 "bad.yaml: $1" "${socket[@]}" -f "$work/bad.yaml"
}
refuses "a WorkerGroup has no field spec.replica" '{replica: 2, worker: {command: ["true"]}}'
refuses "a WorkerGroup has no field spec.worker.env[1].val" '{worker: {command: ["true"], env: [{name: A}, {name: B, val: c}]}}'
refuses "spec.worker: set at most one of module, python and command" '{worker: {command: ["true"], module: /m.so}}'
refuses "spec.suspend is true, so there is nothing to run" '{suspend: true, worker: {command: ["true"]}}'
refuses "spec.worker.env sets RANK" '{worker: {command: ["true"], env: [{name: RANK, value: "1"}]}}'
refuses "spec.worker.meshes: the sizes of mesh m (dp 3) do not multiply to the world size of 2" \
    '{replicas: 2, worker: {command: ["true"], meshes: [{name: m, dims: [{name: dp, size: 3}]}]}}'
printf 'apiVersion: cadre.dev/v2\nkind: WorkerGroup\nmetadata: {name: a}\nspec: {}\n' >"$work/bad.yaml"
exit_code 65 "apiVersion must be cadre.dev/v1alpha1" "${socket[@]}" -f "$work/bad.yaml"
printf 'kind: WorkerGroup\nmetadata: {name: ../a}\nspec: {worker: {command: ["true"]}}\n' >"$work/bad.yaml"
exit_code 65 "the group ../a of the namespace default: a name has" "${socket[@]}" -f "$work/bad.yaml"
exit_code 65 "the group A of the namespace default: a name has" "${socket[@]}" --group A -- true
exit_code 3 "yes and 0 of 1" "${socket[@]}" -f - --group shell <"$work/group.yaml"
printf 'kind: WorkerGroup\nspec: [\n' >"$work/bad.yaml"
exit_code 65 "bad.yaml: line " "${socket[@]}" -f "$work/bad.yaml"
printf 'a: &a {x: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n' >"$work/bad.yaml"
for i in c:b d:c e:d f:e g:f; do
    printf '%s: &%s [*%s, *%s, *%s, *%s, *%s, *%s, *%s, *%s]\n' "${i%:*}" "${i%:*}" "${i#*:}"{,,,,,,,}
done >>"$work/bad.yaml"
exit_code 65 "too long for a manifest" "${socket[@]}" -f "$work/bad.yaml"
exit_code 65 "the file has no WorkerGroup" "${socket[@]}" -f /dev/null
exit_code 65 "cannot read $work/none" "${socket[@]}" -f "$work/none"
exit_code 64 "must be PREFIX=DIRECTORY" "${socket[@]}" -f "$work/group.yaml" --map modules
exit_code 64 "leave out the command after --" "${socket[@]}" -f "$work/group.yaml" -- true
exit_code 64 "the file says the number of ranks" "${socket[@]}" -f "$work/group.yaml" --processes 2
echo "ok"
