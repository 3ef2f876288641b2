#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rows of the notebooks about modes, with real worker processes and no cluster: lists as JSON over HTTP, tensors by
# the C library. Arguments: cadre-local, cadre-agent, cadre-worker, batch_call, accumulator.so, dispatch.so, tensor.so, ddp.so,
# weights.so.
set -euo pipefail
local=$1 agent=$2 worker=$3 batch_call=$4 accumulator=$5 dispatch=$6 tensor=$7 ddp=$8 weights=$9
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

# group MODULE CLASS INIT REPLICAS MESHES
group() {
    cat >"$work/group.yaml" <<YAML
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: g, namespace: lab}
spec:
  replicas: $4
  worker: {module: $1, class: $2, init: $3, meshes: $5}
  template: {spec: {containers: [{name: worker, image: none}]}}
YAML
    local_start -f "$work/group.yaml"
}

# json ROW PARAMS RESULT
json() {
    local answer want="{\"jsonrpc\":\"2.0\",\"id\":1,$3}"
    answer=$(curl -sS -m 1200 --unix-socket "$work/socket" -H "Content-Type: application/json" -H 'Authorization: Bearer x' \
        http://x/v1/namespaces/lab/workergroups/g -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{$2}}")
    [[ $answer == "$want" ]] || fail "$1: $answer, not $want"
}

# batch ROW WANT METHOD DTYPE HEAD NUMBER...
batch() {
    local row=$1 want=$2 got rows=
    shift 2
    for i in $(seq 0 $(($# - 4))); do rows+="${rows:+,}\"r$i\""; done
    want=${want//ROWS/"{\"row\":\\[$rows]}"} # the column goes with the tensor
    got=$("$batch_call" "unix:$work/socket" lab g "$@") || true
    # shellcheck disable=SC2053 # it is a pattern
    [[ $got == $want ]] || fail "$row: $got, not $want"
}

group "$accumulator" Accumulator '{}' 2 '[]'
json "S0-8 each rank its own" '"method":"add","dispatch":"DP_COMPUTE","args":{"x":[1,3]}' '"result":[1,4]'
group "$accumulator" Accumulator '{}' 2 '[]'
json "S0-9 the same for all" '"method":"add","args":[10]' '"result":[10,11]'
group "$accumulator" Accumulator '{}' 4 '[]'
json "S1-3" '"method":"add","perRank":{"x":[1,1,1,1]}' '"result":[1,2,3,4]'
group "$accumulator" Accumulator '{}' 4 '[]'
json "S1-6" '"method":"add","dispatch":"ALL_TO_ALL","args":[2,2,2,2]' '"result":[2,3,4,5]'
group "$accumulator" Accumulator '{}' 8 '[]'
json "S1-7" '"method":"add","perRank":[3,3,3,3,3,3,3,3]' '"result":[3,4,5,6,7,8,9,10]'
group "$accumulator" Accumulator '{}' 8 '[{name: train, dims: [{name: pp, size: 2}, {name: dp, size: 2}, {name: tp, size: 2}]}]'
json "S1-9" '"method":"add","args":{"x":10}' '"result":[10,11,12,13,14,15,16,17]'
json "S1-8b lists for replicas" \
    '"method":"add","dispatch":"3D_PROTO","split":{"elements":true},"args":{"x":[100,200]}' '"result":[114,216]'
json "S1-8d" '"method":"add","dispatch":"3D_PP_ONLY","args":[0]' '"result":[110,114]'
json "any rank" '"method":"add","execute":"ANY","args":[1]' '"result":111'

group "$dispatch" TestActor '{x: 2}' 4 '[]'
json "2b ALL_TO_ALL" '"method":"foo_all_to_all","args":{"x":[1,2,3,4],"y":[5,6,7,8]}' '"result":[8,10,12,14]'
json "S1-10 two_to_all" '"method":"foo_custom","args":{"x":[1,2],"y":[5,6]}' '"result":[8,10,8,10]'
json "S1-11" '"method":"foo_rank_zero","args":{"x":1,"y":2}' '"result":5'
surplus() { # ROW METHOD ARGUMENTS WHY
    local why="rank 0: $2() $4"
    json "$1" "\"method\":\"$2\",\"args\":$3" \
        "\"error\":{\"code\":-32602,\"message\":\"$why\",\"data\":{\"code\":\"INVALID\",\"message\":\"$why\",\"rank\":0}}"
}
surplus "a surplus argument" foo_rank_zero '[1,2,3]' "was called with 3 arguments; it takes x, y"
surplus "an argument that the method does not have" foo_rank_zero '{"x":1,"y":2,"zz":3}' "has no argument 'zz'; it takes x, y"
group "$ddp" MLP '{}' 1 '[]'
surplus "ddp: a step" train_step '[1,8,9]' "was called with 3 arguments; it takes seed, rows"
surplus "ddp: gradients" sample_grads '{"n":1,"zz":3}' "has no argument 'zz'; it takes n"
surplus "ddp: a norm" norm '[1]' "was called with 1 argument; it takes no arguments"
group "$weights" Trainer '{}' 1 '[]'
surplus "weights: a step" step '[1,2]' "was called with 2 arguments; it takes x"
group "$weights" Server '{}' 1 '[]'
surplus "weights: the sum" total '[1]' "was called with 1 argument; it takes no arguments"
surplus "weights: the version" version '{"zz":3}' "has no argument 'zz'; it takes no arguments"

group "$tensor" Actor '{}' 2 '[]'
json "S2-10 actor, lists" '"method":"add","args":{"a":[0,0,0,0,0,0,0,0,0,0]}' '"result":{"a":[0,0,0,0,0,1,1,1,1,1]}'
json "not a multiple" '"method":"add","args":{"a":[1,2,3]}' \
    '"error":{"code":-32602,"message":"add(): a batch of 3 rows cannot be split into 2 equal pieces: send a multiple, or ask for padding","data":{"code":"INVALID","message":"add(): a batch of 3 rows cannot be split into 2 equal pieces: send a multiple, or ask for padding","ran":false}}'
json "padded" '"method":"add","pad":true,"args":{"a":[1,2,3]}' '"result":{"a":[1,2,4]}'
for dtype in F32 F64 I64; do
    batch "S2-10 actor, $dtype" "a 0 0 0 0 0 1 1 1 1 1 ROWS" add $dtype "" 0 0 0 0 0 0 0 0 0 0
    batch "padded, $dtype" "a 1 2 4 ROWS" add $dtype pad 1 2 3
done
batch "rows of each" "\\[2,2]" rows F32 pad 1 2 3
batch "a list of batches" $'a 1 2 ROWS\na 2 3 ROWS' add F64 dispatch=1 1 2
group "$tensor" Actor '{}' 1 '[]'
surplus "tensor: a list beside a" add '{"a":[1,2],"zz":[3,4]}' "has no argument 'zz'; it takes a"
group "$tensor" Critic '{b: 10}' 2 '[]'
batch "S2-10 critic" "a -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 ROWS" sub F32 "" 0 0 0 0 0 0 0 0 0 0

group "$tensor" Actor '{}' 4 '[]'
for rows in "0 0 0 0 0 0 0 0 0 0" "0" "0 0 0 0 0 0 0 0"; do # 2d: padding in a world of 4
    read -ra numbers <<<"$rows"
    want=
    each=$(((${#numbers[@]} + 3) / 4))
    for i in "${!numbers[@]}"; do want+=" $((i / each))"; done
    batch "2d: ${#numbers[@]} rows" "a$want ROWS" add I64 pad "${numbers[@]}"
done
batch "not a multiple" "INVALID add(): a batch of 3 rows cannot be split into 4 equal pieces*" add F32 "" 1 2 3

group "$tensor" Actor '{}' 8 \
    '[{name: train, dims: [{name: pp, size: 2}, {name: dp, size: 2}, {name: tp, size: 2}]}, {name: infer, dims: [{name: dp, size: 2}, {name: tp, size: 4}]}]'
batch "2c 3D_PROTO" "a 4 5 16 17 ROWS" add I64 dispatch=5 0 1 10 11
batch "2b a named mesh" "a 0 1 14 15 ROWS" add F32 $'dispatch=8\nsplit={"mesh":"infer","dims":["dp"]}\ncollect={"at":{"tp":0}}' 0 1 10 11
batch "2c 3D_ALL_MICRO_DP" "INVALID*meshes 'train' and 'infer' do not fit*" add I64 dispatch=6 0 1 2 3
batch "no such mesh" "NOT_FOUND add() of lab/g: the group has no mesh 'x'*" add I64 $'dispatch=8\nsplit={"mesh":"x","dims":["dp"]}' 1
echo ok
