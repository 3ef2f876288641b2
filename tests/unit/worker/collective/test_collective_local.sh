#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Communicators of ranks in a local run: examples/ddp on four ranks computes the gradients that one rank computes from
# the whole batch; over a dimension of a mesh; over lists of ranks; a limit that the group sets. A group whose rank was
# killed makes new ones.
# Arguments: the folder of the sources, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, ddp.so, chosen_ranks.so.
set -euo pipefail
root=$1 local=$2 agent=$3 worker=$4 cli=$5 module=$6 chosen=$7
# shellcheck source=tests/lib/local.sh
. "$root/tests/lib/local.sh"

group() { # NAME REPLICAS REST-OF-WORKER [RESTART-POLICY]
    cat >"$work/$1.yaml" <<YAML
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: $1, namespace: default}
spec:
  replicas: $2
  restartPolicy: ${4:-Never}
  worker: {module: $module$3}
  template: {spec: {containers: [{name: worker, image: none}]}}
YAML
}

call() { # GROUP METHOD ARGUMENT...
    "$cli" call "${patient[@]}" "$@" --server "unix:$work/socket" --token x
}
export CADRE_COLLECTIVE_LIMIT_MS=1200000 # with a sanitizer on a busy machine, ranks wait long for each other

# same LABEL A B: numbers in JSON lists, which differ by rounding only.
same() {
    python3 -c '
import json, sys
def flat(v):
    return [x for part in v for x in flat(part)] if isinstance(v, list) else [v]
a, b = flat(json.loads(sys.argv[1])), flat(json.loads(sys.argv[2]))
b = b * (len(a) // len(b))
sys.exit(len(a) != len(b) or any(abs(x - y) > 1e-5 * max(abs(y), 1e-3) for x, y in zip(a, b)))' "$2" "$3" ||
        fail "$1: $2 is not $3"
    echo "ok - $1"
}

# Ranks that share a busy machine may wait long for each other. A group that sets a limit does not get this one.
export CADRE_COLLECTIVE_LIMIT_MS=1200000

group one 1 ", class: MLP"
local_start -f "$work/one.yaml"
until_true call one norm
loss=$(call one train_step '[1,8]') grads=$(call one sample_grads 8)
call one train_step '[2,8]' >/dev/null
norm=$(call one norm)

group four 4 ", class: MLP"
local_start -f "$work/four.yaml"
until_true call four norm
same "four ranks have the loss of one" "$(call four train_step '[1,8]')" "$loss"
same "and its gradients" "$(call four sample_grads 8)" "$grads"
call four train_step '[2,8]' >/dev/null
same "and its weights, on every rank" "$(call four norm)" "$norm"

group again 4 ", class: MLP" Group
local_start -f "$work/again.yaml"
until_true call again norm
new=$(call again norm)
same "before a rank is killed" "$(call again train_step '[1,8]')" "$loss"
is_new() {
    [[ $(call again norm) == "$new" ]]
}
! is_new || fail "a step changes no weight"
kill -KILL "$(pgrep -f cadre-worker -P "$(pgrep -P "$pid" -f 'cadre-agent run')" | tail -n 1)"
until_true is_new
same "the ranks that were started again make a new communicator" "$(call again train_step '[1,8]')" "$loss"
same "which averages the gradients" "$(call again sample_grads 8)" "$grads"

CADRE_COLLECTIVE_DEBUG=1 local_start -f "$work/four.yaml"
until_true call four norm
same "in debug mode they compute the same" "$(call four train_step '[1,8]')" "$loss"

group mesh 4 ", class: MLP, init: {dim: dp}, meshes: [{name: train, dims: [{name: pp, size: 2}, {name: dp, size: 2}]}]"
local_start -f "$work/mesh.yaml"
until_true call mesh norm
same "so have two pairs of a mesh" "$(call mesh train_step '[1,8]')" "$loss"
same "with the same gradients" "$(call mesh sample_grads 8)" "$grads"

# The limit of the group, which ddp leaves to it.
group limit 2 ", class: MLP, env: [{name: CADRE_COLLECTIVE_LIMIT_MS, value: '300'}]"
local_start -f "$work/limit.yaml"
until_true call limit norm
cli_says "one rank alone waits as long as its group says" "rank 1 did not arrive within 300 ms" \
    call limit train_step '[1,8]' --rank 0
for value in 0 soon 2147483648; do
    ! CADRE_COLLECTIVE_LIMIT_MS=$value "$worker" --module "$module" --connect "unix:$work/nobody" 2>"$work/wrong" ||
        fail "a limit of $value starts"
    grep -qF "environment: CADRE_COLLECTIVE_LIMIT_MS $value: must be a number from 1 to" "$work/wrong" ||
        fail "a limit of $value: $(cat "$work/wrong")"
    echo "ok - a limit of $value is refused by name"
done

# A row of the attention takes seconds with sanitizers.
group one 1 ", class: Attention"
local_start -f "$work/one.yaml"
until_true call one norm
loss=$(call one train_step '[1,2]') grads=$(call one sample_grads 16) norm=$(call one norm)

group two 2 ", class: Attention"
local_start -f "$work/two.yaml"
until_true call two norm
same "two ranks have the loss of one for the attention" "$(call two train_step '[1,2]')" "$loss"
same "and its gradients" "$(call two sample_grads 16)" "$grads"
same "and its weights, on every rank" "$(call two norm)" "$norm"

group wrong 2 ", class: MLP, init: {dim: tp}, meshes: [{name: train, dims: [{name: dp, size: 2}]}]"
local_start -f "$work/wrong.yaml"
until_true call wrong norm
cli_says "a dimension that is not there" "mesh 'train' has no dimension 'tp'" call wrong train_step '[1,8]'

module=$chosen
group chosen 4 ""
local_start -f "$work/chosen.yaml"
until_true call chosen gather '[[0,1,2,3]]'
refused() { # ROW RANK LIST WORDS
    cli_says "$1" "gather(): a communicator: $4" call chosen gather "[$3]" --rank "$2"
}
refused "a rank twice in the list" 1 "[2,1,2]" "rank 2 is in the list of members twice"
refused "a rank that the group has not" 1 "[1,4]" "there is no rank 4; the group has 4"
refused "... nor has any other" 1 "[-1,1]" "there is no rank -1; the group has 4"
refused "a list without the rank that calls" 1 "[2,0]" "rank 1 is not in its own list of members"
refused "a list of nobody" 1 "[]" "members are a list of ranks, or a dimension of a mesh, or neither for all"
got=$(call chosen gather --per-rank '[[[2,0]],[[1,3]],[[2,0]],[[1,3]]]' | tr -d ' \n')
[[ $got == "[[1,2,[2,0]],[0,2,[1,3]],[0,2,[2,0]],[1,2,[1,3]]]" ]] || fail "lists of ranks: $got"
echo "ok - two lists of ranks at a time, in the order of the lists"

group late 2 ", env: [{name: CADRE_COLLECTIVE_LIMIT_MS, value: '300'}]"
local_start -f "$work/late.yaml"
until_true call late gather '[[0]]' --rank 0
cli_says "one rank alone waits in vain" "rank 1 did not arrive within 300 ms" call late gather '[[0,1]]' --rank 0
until_true call late gather '[[0,1]]'
echo "ok - later both ranks call, and meet"
