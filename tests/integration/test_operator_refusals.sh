#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input, and a cluster that refuses. The group gets a reason and a message that helps, nothing is half done, and the group
# runs once the cause is gone. With a real API server, scheduler and controller manager, on fake nodes.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"

# ---- a spec that cannot be run --------------------------------------------------------------------------------------

# refused NAME REASON TEXT [FILTER...]: the operator refuses the group with that reason and text, in the condition, the column
# STATUS and an event, and creates nothing for it. REASON is STATUS/REASON if the column shows another word.
refused() {
    local name=$1 reason=${2#*/} column=${2%/*} text=$3
    shift 3
    group_apply "$name" "$@" >/dev/null
    eventually 10 is "False/$reason" group_condition "$name" Accepted &&
        says "$text" group_message "$name" Accepted &&
        is "False/$column" group_condition "$name" Ready &&
        is "" group_pod_names "$name" &&
        eventually 5 matches "$reason" group_events "$name" &&
        group_delete "$name"
}

container='.spec.template.spec.containers[0]'

test_spec() {
    check "nothing that says what to run" refused agent CommandRequired "set module, python or command" 'del(.spec.runtime)'
    check "a pod a node" refused pernode NotSupported "podPer Node" '.spec.placement.podPer = "Node"'
    check "on bundles, a variable that the kubelet would look up" refused bundles NotSupported "KEY has a valueFrom" \
        'del(.spec.template, .spec.runtime) | .spec.placement.groups = [{name: "pool"}] | .spec.worker = {command: ["true"],
            env: [{name: "KEY", valueFrom: {fieldRef: {fieldPath: "spec.nodeName"}}}]}'
    check "a reserved variable" refused reserved ReservedEnv "container worker sets RANK" \
        "$container.env = [{name: \"RANK\", value: \"7\"}]"
    check "... in an init container, too" refused reserved-init ReservedEnv "container setup sets MASTER_ADDR" \
        '.spec.template.spec.initContainers = [{name: "setup", image: "none", env: [{name: "MASTER_ADDR", value: "x"}]}]'
    check "... and a future one of Cadre's own" refused reserved-own ReservedEnv "CADRE_DEVICE" \
        "$container.env = [{name: \"CADRE_DEVICE\", value: \"7\"}]"
    check "restarts by the kubelet" refused restarts InvalidTemplate "tear the group apart" \
        '.spec.template.spec.restartPolicy = "Always"'
    check "... of one container" refused restarts-one InvalidTemplate "containers[0].restartPolicy is set" \
        "$container.restartPolicy = \"OnFailure\""
    check "a node of the user's choice" refused node InvalidTemplate "narrow its choice with nodeSelector or affinity" \
        '.spec.template.spec.nodeName = "kwok-0"'
    check "a host name of its own" refused hostname InvalidTemplate "spec.template.spec.hostname is set" \
        '.spec.template.spec.hostname = "mine"'
    check "no containers is refused by the schema" says "should have at least 1 items" \
        group_apply empty '.spec.template.spec.containers = []'
    check "a template that is not a pod" refused wrongtype InvalidTemplate "" "$container.resources = 7"
    check "a value that the API server refuses" refused badimage InvalidTemplate "Required value" "$container.image = \"\""
    check "two containers of one name" refused twice InvalidTemplate "Duplicate value" \
        '.spec.template.spec.containers += [.spec.template.spec.containers[0]]'
    check "a missing ServiceAccount" refused noaccount Forbidden/InvalidTemplate "serviceaccount \"nobody\" not found" \
        '.spec.template.spec.serviceAccountName = "nobody"'
    check "a PriorityClass that does not exist" refused noprio Forbidden/InvalidTemplate "no PriorityClass" \
        '.spec.template.spec.priorityClassName = "nothing"'
    check "a GPU in halves" refused half InvalidTemplate "must be an integer" \
        "$container.resources.limits[\"nvidia.com/gpu\"] = \"500m\""
    check "a quantity that is none" refused quantity InvalidTemplate "" "$container.resources.limits.memory = \"lots\""
    check "the operator lives" operator_lives op
}

test_repair() {
    group_apply repaired "$container.env = [{name: \"RANK\", value: \"7\"}]" >/dev/null
    eventually 10 is "False/ReservedEnv" group_condition repaired Accepted
    kc patch wg repaired --type json -p '[{"op":"remove","path":"/spec/template/spec/containers/0/env"}]' >/dev/null
    check "a spec that is repaired runs" group_ready repaired
    check "... and the refusal is forgotten" is "True/Valid" group_condition repaired Accepted
    check "... in the first attempt" is 1 group_status repaired attempt
    group_delete repaired
    kc create namespace late >/dev/null
    group_namespace late
    group_apply late '.spec.template.spec.serviceAccountName = "late"' >/dev/null
    eventually 10 is "False/InvalidTemplate" group_condition late Accepted
    kc -n late create serviceaccount late >/dev/null
    check "a template that was refused for what came later runs without a new spec" group_ready late 90
    group_delete late
    group_namespace default
}

test_odd() {
    local long=a2345678901234567890123456789012345678901234567890
    check "a name that makes too long names is refused by the schema" says "at most 50 characters" \
        group_apply "${long}x" .
    check "the longest name runs" apply_ready "$long"
    check "a name with dots is refused by the schema" says "no dots" group_apply a.b .
    check "more replicas than there can be are refused by the schema" says "less than or equal to 10000" \
        group_apply many '.spec.replicas = 10001'
    group_apply huge '.spec.replicas = 10000' >/dev/null
    check "the most replicas are planned without harm" group_reason huge Infeasible
    check "one GPU each that no node has" apply_reason odd Infeasible "$container.resources.limits = {\"amd.com/gpu\": \"1\"}"
    check "a node selector that no node has" apply_reason selector Infeasible \
        '.spec.template.spec.nodeSelector = {"no": "where"}'
    check "a topology key that no node has" apply_reason rack Infeasible '.spec.placement.topologyKey = "example.com/none"'
    check "more CPU than any node has" apply_reason cpu Infeasible "$container.resources.requests.cpu = \"1000\""
    check "words of all alphabets come through" apply_ready words "$container.env = [{name: \"X\", value: \"ÄÖ \\\"漢\\\\ \$(RANK) \\u0007\"}]"
    group_delete huge odd selector rack cpu words "$long"
}

apply_reason() { # NAME REASON FILTER
    group_apply "$1" "$3" && group_reason "$1" "$2" && is "" group_pod_names "$1"
}

apply_ready() { # NAME [FILTER]
    group_apply "$@" && group_ready "$1"
}

test_placement_group() {
    kc apply -f - >/dev/null <<'YAML'
apiVersion: cadre.dev/v1alpha1
kind: PlacementGroup
metadata: {name: pool}
spec:
  bundles: [{resources: {cpu: "1"}}]
  template: {spec: {nodeName: n1, containers: [{name: worker}]}}
YAML
    check "a PlacementGroup that cannot be had is told so" eventually 10 is "False/InvalidTemplate" plg_condition Accepted
    check "... in its STATUS, too" is "False/InvalidTemplate" plg_condition Ready
    kc delete plg pool >/dev/null
}

plg_condition() {
    kc get plg pool -o "jsonpath={.status.conditions[?(@.type==\"$1\")].status}/{.status.conditions[?(@.type==\"$1\")].reason}"
}

# ---- a name that is taken -------------------------------------------------------------------------------------------

test_conflicts() {
    kc create service clusterip taken --clusterip=None >/dev/null
    group_apply taken >/dev/null
    check "a Service of the name that is not ours: NameConflict" \
        eventually 10 is "False/NameConflict" group_condition taken Accepted
    check "... names it and says what to do" says "a Service taken exists that does not belong to this WorkerGroup: delete it" \
        group_message taken Accepted
    check "... nothing is made" is "" group_pod_names taken
    check "... and theirs is left alone" is "" kc get service taken -o 'jsonpath={.metadata.ownerReferences}'
    kc delete service taken >/dev/null
    check "it runs once theirs is gone" group_ready taken 60
    check "... and is valid" eventually 5 is "True/Valid" group_condition taken Accepted
    kc delete service taken >/dev/null
    check "our own Service that somebody deletes comes back" eventually 15 kc get service taken
    check "... and costs no restart" is "1 True/Running" echo "$(group_status taken attempt) $(group_condition taken Ready)"
    group_delete taken
    kc run inway-1-0 --image=none --restart=Never --labels=app=other >/dev/null
    group_apply inway >/dev/null
    check "a Pod of our name that is not ours: the group runs beside it" group_ready inway 60
    check "... under the next names" is "inway-0-1 inway-1-1" group_pod_names inway
    check "... says why" eventually 5 says 'a Pod inway-1-0 exists that does not belong to this WorkerGroup' \
        kc get events.events.k8s.io -o json
    check "... and leaves theirs alone" is "Running" kc get pod inway-1-0 -o 'jsonpath={.status.phase}'
    kc delete pod inway-1-0 --wait=false >/dev/null
    group_delete inway
}

# ---- a cluster that refuses -----------------------------------------------------------------------------------------

set_quota() { # PODS
    kc -n quota apply -f - >/dev/null <<YAML
apiVersion: v1
kind: ResourceQuota
metadata: {name: pods, namespace: quota}
spec: {hard: {pods: "$1"}}
YAML
    eventually 10 is "$1" kc -n quota get resourcequota pods -o 'jsonpath={.status.hard.pods}'
}

test_quota() {
    kc create namespace quota >/dev/null
    set_quota 2
    group_namespace quota
    group_apply four '.spec.replicas = 4' >/dev/null
    check "quota in the middle of a gang: QuotaExceeded" group_reason four QuotaExceeded
    check "... in the API server's words" says "exceeded quota: pods" group_message four Ready
    check "... what was created goes again" eventually 15 is "" group_pod_names four
    check "... it is not the fault of the spec" is "True/Valid" group_condition four Accepted
    check "... an event tells" eventually 5 matches QuotaExceeded group_events four
    check "... and no restart is counted" is "0 1" \
        kc -n quota get wg four -o 'jsonpath={.status.restarts} {.status.attempt}'
    set_quota 10
    check "it runs once there is room in the quota" group_ready four 90
    check "... all four" is 4 group_status four readyReplicas
    check "... without a gap or a double" is "$(printf '%s\n' 0 1 2 3)" kc -n quota get pods -l cadre.dev/group=four \
        -o 'jsonpath={range .items[*]}{.metadata.labels.cadre\.dev/index}{"\n"}{end}'
    group_delete four
    set_quota 0
    group_apply none >/dev/null
    check "a quota of nothing: QuotaExceeded from the start" group_reason none QuotaExceeded
    group_delete none
    group_namespace default
}

test_security() {
    kc create namespace strict >/dev/null
    kc label namespace strict pod-security.kubernetes.io/enforce=restricted >/dev/null
    group_namespace strict
    group_apply rooted >/dev/null
    check "Pod Security refuses the template: InvalidTemplate" \
        eventually 10 is "False/InvalidTemplate" group_condition rooted Accepted
    check "... and its words come through" says 'violates PodSecurity "restricted' group_message rooted Accepted
    check "... nothing is made" is "" group_pod_names rooted
    check "a template as it wants one runs" apply_ready rooted \
        "$container.securityContext = {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false,
            capabilities: {drop: [\"ALL\"]}, seccompProfile: {type: \"RuntimeDefault\"}}"
    group_delete rooted
    group_namespace default
}

test_namespace() {
    kc create namespace doomed >/dev/null
    group_namespace doomed
    group_apply doomed '.spec.replicas = 6' >/dev/null
    kc delete namespace doomed --wait=false >/dev/null
    check "a namespace deleted in the middle of a creation goes" eventually 90 is "" \
        kc get namespace doomed -o name --ignore-not-found
    check "the operator lives" operator_lives op
    group_namespace default
}

suite_start itest-refusals --nodes 0 --kwok 6 --gpus 4
operator_start op --leader-elect=false
test_spec
test_repair
test_odd
test_placement_group
test_conflicts
test_quota
test_security
test_namespace
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
