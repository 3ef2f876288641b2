#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How WorkerGroups end and begin again, with a real API server, scheduler and controller manager: rules for exit codes, success
# by rank 0, deadlines, times to live, suspension, backoffs. The suite itself writes the status of containers, in place of a
# kubelet.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"

run() { # NAME FILTER...: creates a group, and waits until it runs
    group_apply "$@" >/dev/null && group_ready "$1" >/dev/null
}

fields() { # NAME FIELDS: fields of the status, on one line
    kc get wg "$1" -o json | jq -r ".status | \"$2\""
}

object() { # NAME: prints its name if it exists
    kc get wg "$1" -o name --ignore-not-found
}

# ---- how they end ---------------------------------------------------------------------------------------------------

test_rules() {
    local rules='[{exitCodes: [42], action: "Fail"}, {exitCodes: [3, 4], action: "Ignore"}, {exitCodes: [4], action: "Fail"}]'
    run rules ".spec.failurePolicy.rules = $rules" '.spec.maxRestarts = 0 | .spec.restartBackoff.initialSeconds = 0'
    fail_pod rules-1-0 4 "a passing trouble"
    check "Ignore: it begins again, though no restart is left" eventually 20 is "rules-0-1 rules-1-1" group_pod_names rules
    check "... which is shown, and does not count" eventually 5 is "1 0" fields rules '\(.restarts) \(.restartsCountTowardsMax)'
    group_ready rules >/dev/null
    fail_pod rules-0-1 42 "a bug"
    check "Fail: the end" kc wait --for=condition=Failed wg/rules --timeout=600s
    check "... for that reason" is "True/FailurePolicy" group_condition rules Failed
    check "... with the code" is "0 42" fields rules '\(.lastFailure.rank) \(.lastFailure.exitCode)'
    run never ".spec.failurePolicy.rules = $rules" '.spec.restartPolicy = "Never"'
    fail_pod never-0-0 3 ""
    check "a rule says more than restartPolicy Never" eventually 20 is "never-0-1 never-1-1" group_pod_names never
    group_ready never >/dev/null
    fail_pod never-0-1 5 ""
    check "... which holds where no rule matches" eventually 15 is "True/WorkerFailed" group_condition never Failed
    check "a code that no process has is refused" fails group_apply odd \
        '.spec.failurePolicy.rules = [{exitCodes: [0], action: "Fail"}]'
    check "so is an action that does not exist" fails group_apply odd \
        '.spec.failurePolicy.rules = [{exitCodes: [1], action: "Retry"}]'
    group_delete rules never
}

fails() {
    ! "$@"
}

test_rank_zero() {
    run zero '.spec.successPolicy = "RankZero" | .spec.replicas = 3'
    fail_pod zero-1-0 0 ""
    check "another rank has ended: it goes on" group_reason zero Completing
    fail_pod zero-0-0 0 ""
    check "rank 0 has ended: Succeeded" kc wait --for=condition=Succeeded wg/zero --timeout=600s
    check "... and the others are stopped" eventually 20 is "zero-0-0 zero-1-0" group_pod_names zero
    check "... without a restart" is "0 1" fields zero '\(.restarts) \(.attempt)'
    group_delete zero
}

test_deadline() {
    group_apply asleep '.spec.activeDeadlineSeconds = 3 | .spec.suspend = true' >/dev/null
    group_reason asleep Suspended >/dev/null
    run late '.spec.activeDeadlineSeconds = 600'
    # A slow machine may need longer than the deadline until it runs.
    kc patch wg late --type merge -p '{"spec":{"activeDeadlineSeconds":6}}' >/dev/null
    group_apply waits '.spec.activeDeadlineSeconds = 3' '.spec.placement.strategy = "StrictPack" | .spec.replicas = 9' >/dev/null
    check "waiting too long: Failed" eventually 15 is "True/DeadlineExceeded" group_condition waits Failed
    check "running too long: Failed" kc wait --for=condition=Failed wg/late --timeout=600s
    check "... for that reason" is "True/DeadlineExceeded" group_condition late Failed
    check "... its pods are stopped" eventually 20 is "" group_pod_names late
    check "... and it says no rank failed" is null fields late '\(.lastFailure)'
    # It has been suspended for longer than "late" has run.
    check "the operator decides about a group that was suspended for longer than its deadline" group_decide asleep
    check "... the time of a suspension does not count" is "False/NoFailure" group_condition asleep Failed
    kc patch wg late --type merge -p '{"spec":{"activeDeadlineSeconds":600}}' >/dev/null
    check "a later deadline comes too late" eventually 5 is 3 group_status late observedGeneration
    check "... it has failed" is "True/DeadlineExceeded" group_condition late Failed
    kc patch wg late --type json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"b"}]' >/dev/null
    check "another template, though the pods are gone: it begins again" group_ready late
    check "... with the next attempt, and its full time" is "2 False/NoFailure" echo \
        "$(group_status late attempt) $(group_condition late Failed)"
    group_delete late waits asleep
}

# The time to live of "brief" passes while the other cases run. It is short only after the first look at the group,
# because a slow machine may take longer for that.
test_ttl() {
    run brief '.spec.ttlSecondsAfterFinished = 3600'
    fail_pod brief-0-0 0 ""
    fail_pod brief-1-0 0 ""
    check "it has succeeded" kc wait --for=condition=Succeeded wg/brief --timeout=600s
    group_decide brief
    check "... and stays for its time" is "workergroup.cadre.dev/brief" object brief
    kc patch wg brief --type merge -p '{"spec":{"ttlSecondsAfterFinished":15}}' >/dev/null
    run kept
    run failed '.spec.ttlSecondsAfterFinished = 0 | .spec.maxRestarts = 0'
    fail_pod kept-0-0 0 ""
    fail_pod kept-1-0 0 ""
    fail_pod failed-0-0 1 ""
    check "0: deleted at once, also when it has failed" eventually 15 is "" object failed
    group_delete failed
}

test_ttl_over() {
    check "a group is deleted after its time to live" eventually 40 is "" object brief
    check "... with all that it had" eventually 60 group_gone brief
    check "one without a time to live is kept" is "workergroup.cadre.dev/kept" object kept
    kc patch wg kept --type merge -p '{"spec":{"ttlSecondsAfterFinished":1}}' >/dev/null
    check "... until it gets one" eventually 15 is "" object kept
    group_delete kept
}

# ---- how they begin again --------------------------------------------------------------------------------------------

test_suspension() {
    group_apply born '.spec.suspend = true' >/dev/null
    check "made suspended" eventually 10 is "True/Suspended 1" echo_state born
    kc patch wg born --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "resumed: it begins" group_ready born
    check "... with the first attempt" is "1 born-0-0 born-1-0" echo "$(group_status born attempt) $(group_pod_names born)"
    kc patch wg born --type merge -p '{"spec":{"suspend":true}}' >/dev/null
    check "suspended: no pods" eventually 20 is "" group_pod_names born
    kc patch wg born --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "resumed again: the second attempt" eventually 20 is "2 born-0-1 born-1-1" attempt_and_pods born
    check "... becomes Ready" group_ready born
    check "... as the events tell" eventually 5 matches Resumed group_events born
    kc patch wg born --type merge -p '{"spec":{"suspend":true}}' >/dev/null
    kc patch wg born --type merge -p '{"spec":{"suspend":false}}' >/dev/null
    check "suspended for a moment: it runs again" eventually 40 is "True/Running 2" ready_state born
    group_delete born
}

echo_state() {
    echo "$(group_condition "$1" Suspended) $(group_status "$1" attempt)"
}

attempt_and_pods() {
    echo "$(group_status "$1" attempt) $(group_pod_names "$1")"
}

ready_state() {
    echo "$(group_condition "$1" Ready) $(group_status "$1" readyReplicas)"
}

# The pause in milliseconds between lastFailure and the status with the new pods.
pause_of() { # POD
    local failed created
    failed=$(date -d "$(group_status "${1%-*-*}" lastFailure.time)" +%s%3N)
    created=$(date -d "$(kc get pod "$1" -o 'jsonpath={.metadata.creationTimestamp}')" +%s%3N)
    echo $((created - failed))
}

# The operator's log says that it waited, however late the suite looks.
test_backoff() {
    run pauses '.spec.restartBackoff = {initialSeconds: 10, maxSeconds: 60}'
    fail_pod pauses-0-0 1 ""
    check "it waits 10 s before the next attempt" eventually 20 operator_said op "begins after a backoff of 1[.0-9]* s"
    check "... then it begins" eventually 20 is "pauses-0-1 pauses-1-1" group_pod_names pauses
    local pause
    pause=$(pause_of pauses-0-1)
    check "... after 10 s (it took $pause ms)" test "$pause" -ge 10000
    check "... which is the first restart in a row" is "1 1" fields pauses '\(.restarts) \(.restartsInARow)'
    check "what it is made from is in the status" matches '^[0-9a-f]{16} 1$' fields pauses '\(.revision.pods) \(.revision.attempt)'
    group_delete pauses
}

test_sidecar() {
    run beside '.spec.template.spec.containers += [{name: "metrics", image: "none"}]'
    kc patch pod beside-1-0 --subresource=status --type merge -p "$(jq -n --arg now "$(date -u +%FT%TZ)" '{status: {
        containerStatuses: [
            {name: "worker", image: "none", imageID: "", ready: true, restartCount: 0, state: {running: {startedAt: $now}}},
            {name: "metrics", image: "none", imageID: "", ready: false, restartCount: 0, state: {terminated: {
                exitCode: 2, reason: "Error", message: "out of disk", startedAt: $now, finishedAt: $now}}}]}}')" >/dev/null
    check "a container beside the worker fails: all begin again" eventually 30 is "beside-0-1 beside-1-1" group_pod_names beside
    check "... and it is named" is "1 2 container metrics: out of disk" fields beside \
        '\(.lastFailure.rank) \(.lastFailure.exitCode) \(.lastFailure.message)'
    group_delete beside
}

# tests/e2e/test_groups.sh runs them, with containers.
test_examples() {
    local name
    for name in ttl failure-rules rank-zero suspended; do
        check "examples/$name.yaml is what the API server takes" \
            kc apply --dry-run=server -f "$here/../../examples/$name.yaml"
    done
}

suite_start life --nodes 0 --kwok 3 --gpus 8
operator_start op --leader-elect=false
test_examples
test_ttl
test_rules
test_rank_zero
test_deadline
test_suspension
test_backoff
test_sidecar
test_ttl_over
check "nothing is left of all the groups" eventually 60 is "" kc get wg,pods -A -l app.kubernetes.io/managed-by=cadre -o name
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
