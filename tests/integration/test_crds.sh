#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The CRDs against a real kube-apiserver of a dev cluster of its own without nodes: what the schema accepts, defaults,
# keeps and refuses, what people see in kubectl, and what cannot be changed later.
#
# The cases are data. tests/golden/crd/accept/*.yaml: each "# has: JSONPATH = VALUE" line must hold for the object as
# the API server would store it (no value: the field must be absent). tests/golden/crd/refuse/*.yaml: the API server
# must refuse the object, with the text of the "# refuse: TEXT" line in its answer.
#
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
set -euo pipefail

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/../lib/suite.sh"

golden=$suite_root/tests/golden/crd
max_bytes=200000

# refuses TEXT COMMAND...: the command fails and its output contains the text.
refuses() {
    local text=$1 out
    shift
    if out=$("$@" 2>&1); then printf 'was accepted: %s\n' "$out"; return 1; fi
    out=$(tr -s ' \n' ' ' <<<"$out")
    case $out in *"$text"*) ;; *) printf 'want: ...%s...\ngot:  %s\n' "$text" "$out"; return 1 ;; esac
}

# get JSONPATH OBJECT...: one value of an object.
get() {
    local path=$1
    shift
    kc get "$@" -o "jsonpath={$path}"
}

# ---- the files ---------------------------------------------------------------------------------------------------

small_enough() {
    local bytes
    bytes=$(cat "$suite_root"/crds/*.yaml | wc -c)
    echo "$bytes bytes"
    [ "$bytes" -lt "$max_bytes" ]
}

test_install() {
    check "both CRDs together are smaller than $max_bytes bytes" small_enough
    check "plain kubectl apply creates the CRDs" says "workergroups.cadre.dev created" kc apply -f "$suite_root/crds/"
    check "a second kubectl apply changes nothing" \
        equals "unchanged unchanged" "$(kc apply -f "$suite_root/crds/" | awk '{print $NF}' | xargs)"
    check "the CRDs are established" \
        kc wait --for=condition=Established --timeout=600s crd/workergroups.cadre.dev crd/placementgroups.cadre.dev
    if [ "$tap_failed" != 0 ]; then
        echo "Bail out! without the CRDs there is nothing to test"
        exit 1
    fi
}

# ---- accept and refuse -------------------------------------------------------------------------------------------

# The template prints the "has" lines again, with the values that the API server holds.
accepts() {
    local file=$1 template="" want path
    while IFS= read -r path; do
        template+="$path = {$path}{\"\\n\"}"
    done < <(sed -n 's/^# has: \([^ ]*\) =.*/\1/p' "$file")
    want=$(sed -n 's/^# has: //p' "$file")
    diff <(echo "$want") \
        <(kc create --dry-run=server --validate=strict -o "jsonpath=$template" -f "$file" 2>&1 | sed 's/ *$//')
}

test_cases() {
    local file text
    for file in "$golden"/accept/*.yaml; do
        check "accept $(basename "$file" .yaml)" accepts "$file"
    done
    for file in "$golden"/refuse/*.yaml; do
        text=$(sed -n '1s/^# refuse: //p' "$file")
        check "refuse $(basename "$file" .yaml)" \
            refuses "${text:?$file has no '# refuse:' line}" kc create --dry-run=server --validate=strict -f "$file"
    done
}

# Prints the reasons of conditions that the operator knows and the page lacks.
undocumented_reasons() {
    local reason
    sed -n 's/^#define REASON_[A-Z_]* "\([A-Za-z]*\)".*/\1/p' "$suite_root/operator/reconcile/reason.h" |
        while read -r reason; do
            grep -q "\`$reason\`" "$suite_root/docs/api.md" || echo "$reason"
        done
}

test_docs() {
    check "docs/api.md explains every reason of a condition" equals "" "$(undocumented_reasons)"
    # shellcheck disable=SC2016  # backquotes of Markdown
    check "the objects of docs/api.md are accepted" \
        kc create --dry-run=server --validate=strict -f <(sed -n '/^```yaml$/,/^```$/{s/^```yaml$/---/;/^```$/!p}' \
            "$suite_root/docs/api.md")
}

# ---- what people see ---------------------------------------------------------------------------------------------

# Prints the fields without a description, and the kind when it has seen all of its fields. The three that every object
# has are the API server's to describe.
undescribed() {
    local crd
    for crd in workergroups placementgroups; do
        # shellcheck disable=SC2016  # the variables are the template's own
        kc get crd "$crd.cadre.dev" -o go-template='
            {{- define "walk"}}{{range $name, $p := .properties}}
                {{- if not $p.description}}{{$name}}{{"\n"}}{{end}}{{template "walk" $p}}{{end}}
                {{- with .items}}{{template "walk" .}}{{end}}{{end}}
            {{- range .spec.versions}}{{template "walk" .schema.openAPIV3Schema.properties.spec}}
                {{- template "walk" .schema.openAPIV3Schema.properties.status}}{{end}}
            {{- .spec.names.kind}}{{"\n"}}'
    done
}

test_explain() {
    check "kubectl explain wg.spec.placement says what it is" \
        says "Where the replicas go." kc explain wg.spec.placement
    check "kubectl explain names the values of an enum" \
        says "ENUM:" kc explain wg.spec.placement.strategy
    check "kubectl explain plg.spec.bundles says how bundles are counted" \
        says "The index of a bundle is its position" kc explain plg.spec.bundles
    check "every field has a description" equals "WorkerGroup PlacementGroup" "$(undescribed | xargs)"
}

time=2026-01-01T00:00:00Z
conditions='"conditions": [
    {"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "'$time'"},
    {"type": "Ready", "status": "False", "reason": "Insufficient", "observedGeneration": 1,
     "message": "needs 16 nodes; 15 of 18 have them", "lastTransitionTime": "'$time'"}]'
group_status='{"status": {'$conditions', "observedGeneration": 1, "worldSize": 16, "readyWorkers": 0, "replicas": 3,
    "readyReplicas": 0, "scheduledReplicas": 2, "gpus": 128, "attempt": 1, "incarnation": 2, "restarts": 0,
    "restartsCountTowardsMax": 0, "masterAddr": "llama-0.llama.default.svc:29500", "selector": "cadre.dev/group=llama",
    "strategy": "StrictSpread", "placements": [{"node": "n1", "replicas": "0-2"}],
    "lastFailure": {"rank": 3, "pod": "llama-3-1", "node": "n1", "exitCode": 137, "reason": "OOMKilled",
                    "message": "out of memory", "time": "'$time'"}}}'
reserve_status='{"status": {'$conditions', "observedGeneration": 1, "bundles": 4, "boundBundles": 2, "gpus": 4,
    "nodes": 1, "incarnation": 1, "placements": [{"node": "n1", "bundles": "0-1"}]}}'

create_objects() {
    kc apply -f - <<'YAML'
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: llama}
spec:
  replicas: 16
  placement: {strategy: StrictSpread}
  template: {spec: {containers: [{name: main, image: worker, command: [run]}]}}
---
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: on-pool}
spec:
  placement: {groups: [{name: pool}]}
  worker: {module: /modules/m.so}
---
apiVersion: cadre.dev/v1alpha1
kind: PlacementGroup
metadata: {name: pool}
spec:
  strategy: StrictPack
  bundles: [{count: 4, resources: {cpu: 1, nvidia.com/gpu: 1}}]
YAML
}

# Reads a table; cells are one blank apart and the age is a word.
table() {
    kc get "$@" | sed -E 's/ +/ /g; s/ $//; s/ [0-9]+(s|m|m[0-9]+s) ?/ <age> /; s/ $//'
}

test_columns() {
    check "the objects of the next tests are created" create_objects
    check "a new group without a status shows what it asks for" \
        equals "$(printf 'NAME STATUS READY DESIRED GPUS PLACEMENT RESTARTS AGE\nllama 16 <age>')" "$(table wg llama)"
    check "a whole status of a WorkerGroup is accepted" \
        kc patch wg llama --subresource=status --type=merge -p "$group_status"
    check "a whole status of a PlacementGroup is accepted" \
        kc patch plg pool --subresource=status --type=merge -p "$reserve_status"
    check "nothing of a WorkerGroup's status is pruned" \
        equals "2 137 0-2" "$(kc get wg llama \
            -o jsonpath='{.status.incarnation} {.status.lastFailure.exitCode} {.status.placements[0].replicas}')"
    check "kubectl get workergroups" \
        equals "$(printf '%s\n' "NAME STATUS READY DESIRED GPUS PLACEMENT RESTARTS AGE" \
            "llama Insufficient 0 16 128 StrictSpread 0 <age>")" "$(table workergroups llama)"
    check "kubectl get wg -o wide" \
        equals "$(printf '%s\n' "NAME STATUS READY DESIRED GPUS PLACEMENT RESTARTS AGE MASTER ATTEMPT MESSAGE" \
            "llama Insufficient 0 16 128 StrictSpread 0 <age> llama-0.llama.default.svc:29500 1 $(
            )needs 16 nodes; 15 of 18 have them")" "$(table wg llama -o wide)"
    check "kubectl get placementgroups" \
        equals "$(printf '%s\n' "NAME STRATEGY BUNDLES BOUND GPUS STATUS NODES AGE" \
            "pool StrictPack 4 2 4 Insufficient 1 <age>")" "$(table placementgroups)"
    check "kubectl get plg -o wide" \
        equals "$(printf '%s\n' "NAME STRATEGY BUNDLES BOUND GPUS STATUS NODES AGE MESSAGE" \
            "pool StrictPack 4 2 4 Insufficient 1 <age> needs 16 nodes; 15 of 18 have them")" "$(table plg -o wide)"
    check "kubectl get all lists WorkerGroups" says "workergroup.cadre.dev/llama" kc get all
    check "kubectl get all lists PlacementGroups" says "placementgroup.cadre.dev/pool" kc get all
    check "kubectl wait works with the conditions" kc wait --for=condition=Accepted --timeout=600s wg/llama plg/pool
}

# ---- subresources and updates ------------------------------------------------------------------------------------

patch() {
    kc patch "$1" "$2" --type=merge -p "$3"
}

test_status() {
    local before
    before=$(get .metadata.generation wg llama)
    check "a write to the status leaves the spec and its generation alone" \
        kc patch wg llama --subresource=status --type=merge -p '{"spec": {"replicas": 5}, "status": {"restarts": 1}}'
    check "... the spec" equals 16 "$(get .spec.replicas wg llama)"
    check "... the generation" equals "$before" "$(get .metadata.generation wg llama)"
    patch wg llama '{"status": {"restarts": 7}}' >/dev/null
    check "a write to the object leaves the status alone" equals 1 "$(get .status.restarts wg llama)"
    check "a status of a wrong type is refused" refuses "status.restarts" \
        kc patch wg llama --subresource=status --type=merge -p '{"status": {"restarts": "many"}}'
    check "two conditions of one type are refused" refuses "Duplicate value" \
        kc patch plg pool --subresource=status --type=json -p \
        '[{"op": "copy", "from": "/status/conditions/0", "path": "/status/conditions/-"}]'
}

test_scale() {
    check "kubectl scale works" kc scale wg/llama --replicas=5
    check "... and sets spec.replicas" equals 5 "$(get .spec.replicas wg llama)"
    check "the scale subresource shows status and selector" \
        equals "3 cadre.dev/group=llama" "$(kc get wg llama --subresource=scale \
            -o jsonpath='{.status.replicas} {.status.selector}')"
    check "scaling to 0 is refused and names suspend" \
        refuses "to run nothing, set spec.suspend to true" kc scale wg/llama --replicas=0
    check "scaling beyond 10000 is refused" refuses "less than or equal to 10000" kc scale wg/llama --replicas=10001
}

test_updates() {
    check "the runtime of a WorkerGroup cannot be changed" \
        refuses "the runtime cannot be changed" patch wg llama '{"spec": {"runtime": "Plain"}}'
    check "a WorkerGroup cannot move to bundles" refuses "cannot move between pods of its own" patch wg llama \
        '{"spec": {"template": null, "placement": {"strategy": null, "groups": [{"name": "pool"}]},
                   "worker": {"module": "/m.so"}}}'
    check "a WorkerGroup on bundles cannot get a template" \
        refuses "cannot move between pods of its own" patch wg on-pool \
        '{"spec": {"placement": {"groups": null}, "template": {"spec": {"containers": [{"name": "a"}]}}}}'
    check "the template of a WorkerGroup can change" patch wg llama \
        '{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "worker:2"}]}}}}'
    check "the worker of a WorkerGroup can change" patch wg llama '{"spec": {"worker": {"command": ["run"]}}}'
    check "a WorkerGroup can be suspended" patch wg llama '{"spec": {"suspend": true}}'
    check "the bundles that a WorkerGroup runs on can change" \
        patch wg on-pool '{"spec": {"placement": {"groups": [{"name": "pool", "bundles": "0-1"}]}}}'
    check "the strategy of a PlacementGroup cannot be changed" \
        refuses "the strategy cannot be changed" patch plg pool '{"spec": {"strategy": "Spread"}}'
    check "... nor by leaving it out" \
        refuses "the strategy cannot be changed" patch plg pool '{"spec": {"strategy": null}}'
    check "the topologyKey of a PlacementGroup cannot be changed" \
        refuses "topologyKey cannot be changed" patch plg pool '{"spec": {"topologyKey": "rack"}}'
    check "the podPer of a PlacementGroup cannot be changed" \
        refuses "podPer cannot be changed" patch plg pool '{"spec": {"podPer": "Bundle"}}'
    check "the bundles of a PlacementGroup can grow" \
        patch plg pool '{"spec": {"bundles": [{"count": 5, "resources": {"cpu": 1}}]}}'
    check "the objects can be deleted" kc delete wg/llama wg/on-pool plg/pool --timeout=600s
}

# ---- examples ----------------------------------------------------------------------------------------------------

test_examples() {
    local file
    for file in "$suite_root"/examples/*.yaml "$suite_root"/examples/python/*.yaml; do
        check "the API server accepts ${file#"$suite_root"/}" kc apply --dry-run=server -f "$file"
    done
}

suite_cluster crds --nodes 0
test_install
test_cases
test_examples
test_docs
test_explain
test_columns
test_status
test_scale
test_updates
suite_end
