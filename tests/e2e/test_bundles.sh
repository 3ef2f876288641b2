#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WorkerGroups on bundles of PlacementGroups, with real containers on two real nodes of four fake GPUs. The suite runs the
# examples and compares their values with the feature table in docs/testing.md. Then it tests failures. The chart installs
# the operator.
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
# shellcheck source=/dev/null
. "$here/../lib/plg.sh"

image=".spec.template = {spec: {terminationGracePeriodSeconds: 30,
    containers: [{name: \"worker\", image: \"$calls_image\", imagePullPolicy: \"IfNotPresent\"}]}}"

# pool_apply NAME BUNDLES [JQ-FILTER]: a PlacementGroup whose image has the modules.
pool_apply() {
    plg_apply "$1" "$2" ".spec.bundles[0].resources = {cpu: \"50m\", memory: \"32Mi\", \"nvidia.com/gpu\": \"1\"} | $image | ${3:-.}" >/dev/null
}

# tenant_apply NAME REPLICAS GROUPS [JQ-FILTER]: a group of accumulators on those bundles.
tenant_apply() {
    jq -n --arg name "$1" --argjson n "$2" --argjson groups "$3" '{apiVersion: "cadre.dev/v1alpha1", kind: "WorkerGroup",
        metadata: {name: $name}, spec: {replicas: $n, placement: {groups: $groups},
            restartBackoff: {initialSeconds: 1, maxSeconds: 2},
            worker: {module: "/modules/accumulator.so", class: "Accumulator"}}}' |
        jq "${4:-.}" | kc apply -f - >/dev/null
}

# rank_values GROUP VARIABLE POD...: the value of the variable in the processes of the group, by rank.
rank_values() {
    local pod
    for pod in "${@:3}"; do
        kc exec "$pod" -c worker -- sh -c 'for f in /proc/[0-9]*/environ; do tr "\n\0" "_\n" <"$f" 2>/dev/null; echo; done'
    done | awk -v group="GROUP_NAME=$1" -v name="$2=" -v RS= '
        { split($0, lines, "\n"); rank = ""; value = ""; ours = 0
          for (i in lines) {
              if (lines[i] == group) ours = 1
              if (index(lines[i], "RANK=") == 1) rank = substr(lines[i], 6)
              if (index(lines[i], name) == 1) value = substr(lines[i], length(name) + 1)
          }
          if (ours) print rank, value }' | sort -n -u | cut -d ' ' -f 2 | xargs
}

master() { # GROUP
    group_status "$1" masterAddr
}

masters() { # GROUP...: sorted
    local group
    for group in "$@"; do
        master "$group"
        echo
    done | sort
}

processes_in() { # POD GROUP: how many processes of the group run there
    rank_values "$2" RANK "$1" | wc -w
}

address_of() { # POD of a PlacementGroup: as it resolves its own name
    kc exec "$1" -c worker -- nslookup "${1%-*}.${1%-*-*}.default.svc.cluster.local" |
        sed -nE 's/^Address( 1)?: ([0-9.]+)$/\2/p' | tail -n 1
}

# ---- one pool, two groups -------------------------------------------------------------------------------------------

test_two_groups() {
    check "kubectl apply -f examples/two-groups-one-placementgroup.yaml" kc apply -f "$suite_root/examples/two-groups-one-placementgroup.yaml"
    check "S2-2: the PlacementGroup becomes Ready" kc wait --for=condition=Ready plg/shared --timeout=600s
    check "S2-1: packed: in one pod, on one node" is "shared-plg-0-0=0-3" plg_pods shared
    check "both groups become Ready on it" kc wait --for=condition=Ready --timeout=600s wg/first wg/second
    check "S1-3: four ranks" is "[1, 2, 3, 4]" cadre call first add --per-rank '[1,1,1,1]'
    check "S1-6: the other has numbers of its own" is "[2, 3, 4, 5]" cadre call second add --per-rank '[2,2,2,2]'
    check "... and the first has kept its" is "[1, 2, 3, 4]" cadre call first get_value
    check "S1-4: local ranks" is "0 1 2 3" rank_values first LOCAL_RANK shared-plg-0-0
    check "... and the local world size" is "4 4 4 4" rank_values second LOCAL_WORLD_SIZE shared-plg-0-0
    check "... one node of torchrun" is "1 1 1 1" rank_values second NNODES shared-plg-0-0
    check "S0-11: both see the same GPUs" is "0 1 2 3" rank_values first CUDA_VISIBLE_DEVICES shared-plg-0-0
    check "... a GPU a worker" is "0 1 2 3" rank_values second CUDA_VISIBLE_DEVICES shared-plg-0-0
    check "S1-5: a name for each" eventually 10 matches \
        '0 +yes +[0-9]+ +shared-plg-0-0 .*1 +yes .*2 +yes .*3 +yes +[0-9]+ +shared-plg-0-0 +n[12]' cadre info second
    check "S2-3: rank 0's pod is the address, and the ports differ" is \
        "$(printf 'shared-plg-0.shared-plg.default.svc:%s\n' 29500 29501)" masters first second
    check "... as the processes have them" is "$(master first | sed 's/.*://; s/.*/& & & &/')" \
        rank_values first MASTER_PORT shared-plg-0-0
    check "status has the GPUs" is 4 group_status second gpus
    check "... and where the ranks are" matches '^\[\{"node":"n[12]","replicas":"0-3"\}\]$' group_status second placements
    check "the pod is known by name in the cluster" \
        eventually 10 is "$(plg_pod shared-plg-0-0 .status.podIP)" address_of shared-plg-0-0
    check "no pods are made for them" is "shared-plg-0-0" kc get pods -l app.kubernetes.io/managed-by=cadre \
        -o 'jsonpath={.items[*].metadata.name}'
}

test_restart() {
    local uid
    uid=$(plg_uids shared-plg-0-0)
    kc exec shared-plg-0-0 -c worker -- sh -c 'for p in /proc/[0-9]*; do
        e=$(tr "\0" "\n" <$p/environ 2>/dev/null) || continue
        case $e in *GROUP_NAME=second*) case $e in *"
RANK=2"*) kill -9 ${p#/proc/};; esac;; esac; done'
    check "a worker that dies: its group begins again" eventually 30 is 2 group_status second attempt
    check "... and is Ready again" eventually 30 is True/Running group_condition second Ready
    check "... with the numbers of the beginning" eventually 20 is "[0, 1, 2, 3]" cadre call second get_value
    check "... the other does not notice" is "1 [1, 2, 3, 4]" echo "$(group_status first attempt) $(cadre call first get_value)"
    check "... in the same pod" is "$uid" plg_uids shared-plg-0-0
    check "... the last failure names rank, pod and node" matches '^2 shared-plg-0-0 n[12]$' echo \
        "$(group_status second lastFailure.rank) $(group_status second lastFailure.pod) $(group_status second lastFailure.node)"
}

test_going() {
    local uid before port
    port=$(master second)
    uid=$(plg_uids shared-plg-0-0)
    kc delete wg second >/dev/null
    check "a group that is deleted: its processes end" eventually 30 is 0 processes_in shared-plg-0-0 second
    check "... the other's run on" is "[1, 2, 3, 4]" cadre call first get_value
    check "... the PlacementGroup stays" is "$uid True/Running" echo "$(plg_uids shared-plg-0-0) $(plg_condition shared Ready)"
    before=$(date +%s%N)
    tenant_apply third 2 '[{"name": "shared", "bundles": "2-3"}]'
    check "a new one on half of it is Ready" kc wait --for=condition=Ready wg/third --timeout=600s
    echo "# from kubectl apply to Ready: $((($(date +%s%N) - before) / 1000000)) ms"
    check "... with the port that became free" is "$port" master third
    check "... and the GPUs of its bundles" is "2 3" rank_values third CUDA_VISIBLE_DEVICES shared-plg-0-0
    kc patch wg third --type merge -p '{"spec": {"suspend": true}}' >/dev/null
    check "suspended: its processes end" eventually 30 is 0 processes_in shared-plg-0-0 third
    kc patch wg third --type merge -p '{"spec": {"suspend": false}}' >/dev/null
    check "... resumed: it is Ready again" eventually 30 is True/Running group_condition third Ready
    kc scale wg third --replicas 1 >/dev/null
    check "scaled down: a world of one" eventually 30 is "1 True/Running" echo_status third
    check "... has one process" eventually 20 is 1 processes_in shared-plg-0-0 third
    kc delete wg first third >/dev/null
    check "the last ones go: the pod idles" eventually 30 is "0 0" both_counts
    kc delete plg shared >/dev/null
    check "S1-12: nothing is left" eventually 60 plg_gone shared
}

echo_status() {
    echo "$(group_status "$1" worldSize) $(group_condition "$1" Ready)"
}

both_counts() {
    echo "$(processes_in shared-plg-0-0 first) $(processes_in shared-plg-0-0 third)"
}

# ---- split and merged -----------------------------------------------------------------------------------------------

test_split() {
    check "kubectl apply -f examples/split-placementgroup.yaml" kc apply -f "$suite_root/examples/split-placementgroup.yaml"
    check "both groups become Ready" kc wait --for=condition=Ready --timeout=600s wg/attention wg/model
    check "S2-4: the ranks of the one" is "0 1" rank_values attention RANK multi-group-plg-0-0
    check "... and of the other" is "0 1" rank_values model RANK multi-group-plg-0-0
    check "... in worlds of two" is "2 2" rank_values model WORLD_SIZE multi-group-plg-0-0
    check "... on the GPUs of their bundles" is "0 1 2 3" echo \
        "$(rank_values attention CUDA_VISIBLE_DEVICES multi-group-plg-0-0) $(rank_values model CUDA_VISIBLE_DEVICES multi-group-plg-0-0)"
    check "... each with a port of its own" is "29500 29500 29501 29501" ports
    check "... what they print says whose it is" \
        eventually 20 says "[model rank 1] Rank 1/2 in group model at multi-group-plg-0." \
        kc logs multi-group-plg-0-0 -c worker
    check "S2-6: who is where" matches '^multi-group-plg-0.multi-group-plg.default.svc multi-group-plg-0.multi-group-plg.default.svc$' \
        rank_values attention MASTER_ADDR multi-group-plg-0-0
    kc delete wg attention model >/dev/null
    tenant_apply lower 2 '[{"name": "multi-group", "bundles": "0-1"}]'
    tenant_apply upper 2 '[{"name": "multi-group", "bundles": "2-3"}]' '.spec.worker.init = {start: 100}'
    tenant_apply last 1 '[{"name": "multi-group", "bundles": "3"}]' '.spec.worker.init = {start: 200}'
    check "2f: halves of a pool, and a half of a half" \
        kc wait --for=condition=Ready --timeout=600s wg/lower wg/upper wg/last
    check "... are groups of their own" is "[0, 1] [100, 101] [200]" halves
    kc delete wg lower upper last >/dev/null
    kc delete -f "$suite_root/examples/split-placementgroup.yaml" --ignore-not-found >/dev/null
    check "nothing is left" eventually 60 plg_gone multi-group
}

halves() {
    echo "$(cadre call lower get_value) $(cadre call upper get_value) $(cadre call last get_value)"
}

ports() {
    echo "$(rank_values attention MASTER_PORT multi-group-plg-0-0) $(rank_values model MASTER_PORT multi-group-plg-0-0)" |
        tr ' ' '\n' | sort | xargs
}

test_merged() {
    check "kubectl apply -f examples/merged-placementgroups.yaml" kc apply -f "$suite_root/examples/merged-placementgroups.yaml"
    check "the group of eight becomes Ready" kc wait --for=condition=Ready wg/merged --timeout=600s
    check "S1-7: eight ranks" is "[3, 4, 5, 6, 7, 8, 9, 10]" cadre call merged add --per-rank '[3,3,3,3,3,3,3,3]'
    check "S1-9: one for all" is "[13, 14, 15, 16, 17, 18, 19, 20]" cadre call merged add 10
    check "... local ranks" is "0 1 2 3 0 1 2 3" rank_values merged LOCAL_RANK left-plg-0-0 right-plg-0-0
    check "... two nodes of torchrun" is "0 0 0 0 1 1 1 1" rank_values merged NODE_RANK left-plg-0-0 right-plg-0-0
    check "... a pod of its own for each PlacementGroup" matches '3 +yes +1 +left-plg-0-0 +n[12].*4 +yes +1 +right-plg-0-0 +n[12]' \
        cadre info merged
    kc delete pod right-plg-0-0 --wait=false >/dev/null
    check "a pod of the PlacementGroup is deleted: it comes again, and the group with it" eventually 90 is "2 True/Running 8" merged_status
    check "... not at the cost of the user's restarts" is 0 group_status merged restartsCountTowardsMax
    check "... which calls reach" eventually 20 is "[0, 1, 2, 3, 4, 5, 6, 7]" cadre call merged get_value
    tenant_apply uneven 6 '[{"name": "left"}, {"name": "right", "bundles": "0-1"}]'
    check "2f: pools of four and of two" eventually 60 is "6 True/Running" echo_status uneven
    check "... each rank with the size of its own pod" is "4 4 4 4 2 2" rank_values uneven LOCAL_WORLD_SIZE left-plg-0-0 right-plg-0-1
    kc delete wg uneven >/dev/null
    kc delete -f "$suite_root/examples/merged-placementgroups.yaml" >/dev/null
    check "nothing is left" eventually 60 plg_gone left
    check "... of the other either" eventually 60 plg_gone right
}

merged_status() {
    echo "$(group_status merged attempt) $(group_condition merged Ready) $(group_status merged readyWorkers)"
}

# ---- two groups that train ------------------------------------------------------------------------------------------

# train GROUP SEED...: runs a step on a batch of eight rows for each seed, and prints the losses of the ranks.
train() {
    local seed
    for seed in "${@:2}"; do cadre call "$1" train_step "[$seed, 8]" || return; done
}

# train_both: trains both groups at the same time, and writes the losses to files.
train_both() {
    local other
    train attention 1 2 >"$suite_dir/attention" &
    other=$!
    train mlp 3 4 >"$suite_dir/mlp" && wait "$other"
}

# The largest difference that rounding may cause between a model and its twin. The numbers of the attention block are large.
declare -A rounding=([mlp]=1e-8 [attention]='([.[2][] | fabs] | max * 2e-6)')

# alike MODEL GROUP ALONE: all ranks of the group have the same numbers, and a process that had all rows has them, too.
alike() {
    printf '%s\n' "$@" # explains a failure
    jq -en --argjson group "$2" --argjson alone "$3" '[$group[], $alone[]] | map([.] | flatten) | length == 3 and .[0] == .[1]
        and ('"${rounding[$1]}"' as $bound
            | [.[0], .[2]] | transpose | length > 0 and all((.[0] - .[1] | fabs) <= $bound and .[1] != 0))'
}

losses_alike() { # MODEL SEED...
    alike "$1" "$(jq -cs transpose "$suite_dir/$1")" "$(train "$1-alone" "${@:2}" | jq -cs transpose)"
}

grads_alike() { # MODEL
    alike "$1" "$(cadre call "$1" sample_grads 16)" "$(cadre call "$1-alone" sample_grads 16)"
}

# trainer_apply NAME CLASS REPLICAS BUNDLES
trainer_apply() {
    tenant_apply "$1" "$3" "[{\"name\": \"ddp\", \"bundles\": \"$4\"}]" \
        ".spec.worker = {module: \"/modules/ddp.so\", class: \"$2\"}"
}

# Models on the halves of one PlacementGroup. Each model has a twin: one process that gets the same batches.
test_train() {
    pool_apply ddp 4 '.spec.strategy = "StrictPack" | .spec.bundles[0].resources += {cpu: "250m", memory: "128Mi"}'
    trainer_apply attention Attention 2 0-1
    trainer_apply mlp MLP 2 2-3
    trainer_apply attention-alone Attention 1 0
    trainer_apply mlp-alone MLP 1 2
    check "S2-5: a model on two bundles, another one on the other two" kc wait --for=condition=Ready --timeout=600s \
        wg/attention wg/mlp wg/attention-alone wg/mlp-alone
    check "S2-7, S2-8: both train at the same time, each rank on its rows" train_both
    check "... with the losses of one process that has all rows" losses_alike attention 1 2
    check "... the other, too" losses_alike mlp 3 4
    check "S2-9: the gradients agree in the one, and with that process" grads_alike attention
    check "... and in the other" grads_alike mlp
    kc delete wg attention mlp attention-alone mlp-alone >/dev/null
    plg_delete ddp
}

# ---- weights that move ----------------------------------------------------------------------------------------------

# Pods that pass the strictest level of Pod Security.
restricted='.spec.template.spec |= (.securityContext = {runAsNonRoot: true, seccompProfile: {type: "RuntimeDefault"}}
    | .containers[0].securityContext = {allowPrivilegeEscalation: false, capabilities: {drop: ["ALL"]}})'

weights_apply() { # NAME CLASS PLACEMENTGROUP BUNDLES [JQ-FILTER]
    tenant_apply "$1" 2 "[{\"name\": \"$3\", \"bundles\": \"$4\"}]" \
        ".spec.worker = {module: \"/modules/weights.so\", class: \"$2\"} | ${5:-.}"
}

# moved TRAINER SERVER: runs examples/weights/transfer, which does three steps of the trainer, with a transfer after each.
moved() {
    CADRE_TOKEN_FILE=$suite_dir/token CADRE_CA_FILE=$suite_dir/ca.pem "$devcluster" exec -- \
        "${CADRE_BUILD_DIR:-$suite_root/build/ci}/examples/weights/transfer" "wss://$calls_host:9443" "$ns" "$1" "$2"
}

# moves TRAINER SERVER DIRECT STEP: `moved` prints the expected lines, from that step on. Each of the two ranks of the server
# has half of 256 x 1024 floats, and the same ten floats. A step adds 1 to all of them. DIRECT bytes used no connection.
moves() {
    local step lines=
    for step in "$4" $(($4 + 1)) $(($4 + 2)); do
        lines+="step of $1: [null,null]"$'\n'
        lines+="1048656 bytes have moved, $3 of them from memory to memory"$'\n'
        lines+="total of $2: [$((131082 * step)),$((131082 * step))]"$'\n'
    done
    is "${lines%?}" moved "$1" "$2"
}

# Two trainers in one pod. Three servers: in the same pod, in another pod of the same node, and on the other node.
test_weights() {
    local near=0-1 away=2-3
    calls_user mover >/dev/null
    calls_token mover >"$suite_dir/token"
    pool_apply home 2 "$restricted"
    pool_apply far 4 ".spec.strategy = \"Spread\" | $restricted"
    check "a PlacementGroup in one pod, and another one on both nodes" \
        kc wait --for=condition=Ready --timeout=600s plg/home plg/far
    check "... with two bundles on each" is "2 2" plg_layout far
    [[ $(plg_pod home-plg-0-0 .spec.nodeName) == "$(plg_pod far-plg-0-0 .spec.nodeName)" ]] || near=2-3 away=0-1
    weights_apply trainer Trainer home 0-1
    weights_apply secret Trainer home 0-1 '.spec.worker.env = [{name: "CADRE_TRANSFER_DIRECT", value: "0"}]'
    weights_apply inside Server home 0-1
    weights_apply beside Server far $near
    weights_apply across Server far $away
    check "three groups share a pod; two are in others, one of them on the same node" \
        kc wait --for=condition=Ready --timeout=600s wg/trainer wg/secret wg/inside wg/beside wg/across
    check "their system calls are filtered" is $'Seccomp:\t2' kc exec home-plg-0-0 -c worker -- grep Seccomp: /proc/self/status
    check "weights move within a pod, all of them from memory to memory" moves trainer inside 1048656 1
    check "... to another pod of the node over connections; what both ranks need comes once" moves trainer beside 40 4
    check "... and to another node" moves trainer across 40 7
    check "those whose memory others may not read go over connections also within a pod" moves secret inside 0 1
    kc delete wg trainer secret inside beside across >/dev/null
    plg_delete home far
}

# ---- slots ----------------------------------------------------------------------------------------------------------

pod_ip() { # POD
    plg_pod "$1" .status.podIP
}

node_count() { # GROUP: on how many hosts its ranks run
    cadre call "$1" get_actor_info | jq -r '[.[].host] | unique | length'
}

test_slots() {
    check "kubectl apply -f examples/reserved-gpus.yaml" kc apply -f "$suite_root/examples/reserved-gpus.yaml"
    check "three groups become Ready on one PlacementGroup" \
        kc wait --for=condition=Ready --timeout=600s wg/trainer wg/watcher wg/loader
    check "S0-6: two GPU slots, and one without, on one node" is "slots-plg-0-0=0-2 2" echo \
        "$(plg_pods slots) $(plg_pod slots-plg-0-0 '.spec.containers[0].resources.limits["nvidia.com/gpu"]')"
    check "S2-11: workers see the GPU of their slot" is '["0", "1"]' cadre call trainer visible_gpus
    check "... those that ask for none see none, though it is reserved" is '["", ""]' cadre call watcher visible_gpus
    check "... nor do those on a slot without one, though the pod has some" is '[""]' cadre call loader visible_gpus
    check "S2-6: where each worker is" is \
        "[{\"ip_address\": \"$(pod_ip slots-plg-0-0)\", \"host\": \"slots-plg-0\"}] x 2" actors trainer
    kc delete -f "$suite_root/examples/reserved-gpus.yaml" >/dev/null
    check "nothing is left" eventually 60 plg_gone slots
}

actors() { # GROUP: what its ranks say; equal answers once
    cadre call "$1" get_actor_info | jq -r '"[\(unique[0] | "{\"ip_address\": \"\(.ip_address)\", \"host\": \"\(.host)\"}")] x \(length)"'
}

test_spread() {
    check "kubectl apply -f examples/spread-placementgroup.yaml" kc apply -f "$suite_root/examples/spread-placementgroup.yaml"
    check "its group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/apart
    check "S2-1: spread: over both nodes, evenly" is "2 2" plg_layout wide
    check "... as the workers see it" is 2 node_count apart
    check "... ranks follow the nodes" is "0 0 1 1" rank_values apart NODE_RANK wide-plg-0-0 wide-plg-1-0
    kc delete -f "$suite_root/examples/spread-placementgroup.yaml" >/dev/null
    check "nothing is left" eventually 60 plg_gone wide
    pool_apply greedy 9
    check "2f: more GPUs than there are: said before anything is made" eventually 20 says \
        "needs 9 x 1 nvidia.com/gpu, at most 8 fit" plg_message greedy
    plg_delete greedy
}

# ---- what goes wrong ------------------------------------------------------------------------------------------------

test_waiting() {
    tenant_apply early 2 '[{"name": "pair"}]'
    check "no such PlacementGroup: it waits" group_reason early PlacementGroupNotFound
    check "... and says so" says "PlacementGroup pair does not exist in namespace default" group_message early Ready
    pool_apply pair 2 '.spec.bundles[0].resources["nvidia.com/gpu"] = "64"'
    check "one that is not ready: it waits" group_reason early PlacementGroupNotReady
    check "... and says why" eventually 15 says "PlacementGroup pair is not ready: Infeasible: " group_message early Ready
    pool_apply pair 2
    check "S0-6: two GPUs on one node: it runs" eventually 60 is "2 True/Running" echo_status early
    check "... a world of two" is "[0, 1]" cadre call early get_value
    tenant_apply outside 2 '[{"name": "pair", "bundles": "1-2"}]'
    check "bundles that there are not" eventually 15 is False/InvalidBundles group_condition outside Accepted
    check "... are named" says "asks for bundles 1-2 of PlacementGroup pair, which has 2 bundles (0-1)" group_message outside Accepted
    tenant_apply twice 2 '[{"name": "pair", "bundles": "0-1"}, {"name": "pair", "bundles": "1"}]'
    check "a bundle twice" eventually 15 says "names bundle 1 of PlacementGroup pair twice" group_message twice Accepted
    tenant_apply many 3 '[{"name": "pair"}]'
    check "more replicas than bundles" eventually 15 says "spec.replicas is 3, but spec.placement.groups has 2" group_message many Accepted
    tenant_apply greedy 2 '[{"name": "pair"}]' '.spec.worker.gpus = 2'
    check "more GPUs than a bundle has" eventually 15 says "has 1 nvidia.com/gpu" group_message greedy Accepted
    kc delete wg outside twice many greedy >/dev/null
}

test_ports() {
    tenant_apply fixed 1 '[{"name": "pair"}]' '.spec.rendezvousPort = 30000'
    check "a port that was asked for" eventually 30 is "True/Running" group_condition fixed Ready
    tenant_apply rival 1 '[{"name": "pair", "bundles": "1"}]' '.spec.rendezvousPort = 30000'
    check "... and again by another group of that pod" group_reason rival PortConflict
    check "... which learns who has it" says "used by WorkerGroup fixed" group_message rival Ready
    kc delete wg fixed >/dev/null
    check "... and gets it when that goes" eventually 30 is "True/Running" group_condition rival Ready
    tenant_apply mild 1 '[{"name": "pair"}]' '.spec.rendezvousPort = 30001'
    check "one with a port of its own runs" eventually 30 is "True/Running" group_condition mild Ready
    kc patch wg mild --type merge -p '{"spec": {"rendezvousPort": 30000}}' >/dev/null
    check "... and is changed to the port of the other" eventually 15 is "False/PortConflict" group_condition mild Accepted
    check "... it runs on with its own" is "1 True/Running pair-plg-0.pair-plg.default.svc:30001" echo \
        "$(group_status mild attempt) $(group_condition mild Ready) $(master mild)"
    kc delete wg mild >/dev/null
    kc exec pair-plg-0-0 -c worker -- sh -c 'nohup nc -l -p 29501 >/dev/null 2>&1 &'
    tenant_apply finder 1 '[{"name": "pair"}]'
    check "a port that another program has is passed over" eventually 30 is "True/Running" group_condition finder Ready
    check "... the next one is taken" is "pair-plg-0.pair-plg.default.svc:29502" master finder
    kc delete wg rival finder >/dev/null
}

test_placementgroup_deleted() {
    tenant_apply slow 1 '[{"name": "pair"}]' '.spec.worker = {command: ["sh", "-c",
        "trap \"echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.1; done"]}'
    check "two groups run" eventually 30 is "True/Running" group_condition slow Ready
    kc logs -f pair-plg-0-0 -c worker >"$suite_dir/last-words" 2>/dev/null &
    # kubectl logs cannot begin to follow a pod that is gone.
    check "... which says so" eventually 30 says "[slow rank 0] ready" cat "$suite_dir/last-words"
    kc delete plg pair --wait=false >/dev/null
    check "the PlacementGroup is deleted under them: they say what they wait for" group_reason early PlacementGroupNotFound 40
    check "... the other, too" group_reason slow PlacementGroupNotFound 40
    check "... its process had the time to save" eventually 20 says "[slow rank 0] saved" cat "$suite_dir/last-words"
    check "... the pods are gone" eventually 40 is "" kc get pods -l cadre.dev/group=pair-plg -o name
    pool_apply pair 2
    check "it comes back: they run again" eventually 60 is "True/Running" group_condition early Ready
    check "... the other, too" eventually 60 is "True/Running" group_condition slow Ready
    check "... not at the cost of the user's restarts" is 0 group_status early restartsCountTowardsMax
    kc delete wg early slow >/dev/null
}

# A group that moves to another PlacementGroup starts there after its old processes have ended.
test_moved() {
    local ended began
    pool_apply other 1
    tenant_apply mover 1 '[{"name": "pair"}]' '.spec.worker = {command: ["sh", "-c",
        "trap \"sleep 1; echo ended \\$(date +%s%N); exit 0\" TERM; echo began $(date +%s%N); while :; do sleep 0.1; done"]}'
    check "a group runs on one PlacementGroup" eventually 60 is "True/Running" group_condition mover Ready
    kc logs -f pair-plg-0-0 -c worker >"$suite_dir/moved" 2>/dev/null &
    eventually 30 matches " began [0-9]" cat "$suite_dir/moved" # it has its trap
    check "... another is there" plg_ready other 60
    group_moves mover nowhere
    check "where it cannot move to a name with a typing error" eventually 20 is "False/PlacementGroupNotFound" group_condition mover Accepted
    check "... it runs on where it is" is "1 True/Running" moved_status
    check "... which the status says" matches "^pair-plg-0[.]" master mover
    group_moves mover other
    check "it moves there" eventually 60 is "2 True/Running" moved_status
    check "... with rank 0 there" matches "^other-plg-0[.]" master mover
    check "... its old process has said its last words" eventually 20 matches " ended [0-9]" cat "$suite_dir/moved"
    ended=$(sed -n 's/.*rank 0\] ended //p' "$suite_dir/moved")
    eventually 30 matches " began [0-9]" kc logs other-plg-0-0 -c worker
    began=$(kc logs other-plg-0-0 -c worker | sed -n 's/.*rank 0\] began //p')
    echo "# ended at $ended, began at $began"
    check "... before the new one began" test "$ended" -lt "$began"
    check "... and nothing of it is left" is 0 processes_in pair-plg-0-0 mover
    kc delete wg mover >/dev/null
    plg_delete other
}

group_moves() { # NAME PLACEMENTGROUP
    kc patch wg "$1" --type merge -p "{\"spec\": {\"placement\": {\"groups\": [{\"name\": \"$2\"}]}}}" >/dev/null
}

# An edit that is refused affects neither the ranks nor the calls to them.
test_refused_edit() {
    tenant_apply steady 2 '[{"name": "pair"}]'
    check "a group of two ranks runs" eventually 60 is "True/Running" group_condition steady Ready
    check "... and adds" is "[1, 3]" cadre call steady add --per-rank '[1,2]'
    kc patch wg steady --type merge -p '{"spec": {"replicas": 64}}' >/dev/null
    check "more ranks than bundles are refused" eventually 20 is "False/InvalidBundles" group_condition steady Accepted
    check "... the two run on" is "2 True/Running" echo "$(group_status steady worldSize) $(group_condition steady Ready)"
    check "... and add up what they had" is "[2, 5]" cadre call steady add --per-rank '[1,2]'
    kc delete wg steady >/dev/null
}

moved_status() {
    echo "$(group_status mover attempt) $(group_condition mover Ready)"
}

# A group is deleted while no operator runs. The operator ends its processes when it is back.
test_operator_away() {
    tenant_apply orphan 2 '[{"name": "pair"}]'
    check "a group runs" eventually 30 is "True/Running" group_condition orphan Ready
    kc -n cadre-system scale deployment cadre-operator --replicas 0 >/dev/null
    eventually 60 is "" kc -n cadre-system get pods -l app.kubernetes.io/component=operator -o name
    kc delete wg orphan >/dev/null
    check "without an operator its processes run on" is 2 processes_in pair-plg-0-0 orphan
    kc -n cadre-system scale deployment cadre-operator --replicas 2 >/dev/null
    check "the operator is back: they end" eventually 90 is 0 processes_in pair-plg-0-0 orphan
    kc delete plg pair >/dev/null
    check "nothing is left" eventually 60 plg_gone pair
}

suite_cluster bundles --nodes 2 --gpus 4
calls_install
test_two_groups
test_restart
test_going
test_split
test_merged
test_train
test_weights
test_slots
test_spread
test_waiting
test_ports
test_placementgroup_deleted
test_moved
test_refused_edit
test_operator_away
suite_end
